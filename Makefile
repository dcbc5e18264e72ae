# SPDX-License-Identifier: Apache-2.0
#
# Everything that a person does with this repository. Heavy things are built once and kept by content in
# RINGCAP_CACHE (~/.cache/ringcap by default); what is built here lands in out/.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

export RINGCAP_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/ringcap

# Debian keeps these from a user's PATH, and from sudo's when it is told to keep the user's.
export PATH := $(PATH):/usr/local/sbin:/usr/sbin:/sbin

# Captures, namespaces and VM networks need root; everything else runs as the user who calls make.
SUDO := $(if $(filter 0,$(shell id -u)),,sudo -E env "PATH=$(PATH)")
# A checkout may belong to another user than the one who builds.
export GOFLAGS := -buildvcs=false $(GOFLAGS)
GO := CGO_ENABLED=0 go
CLANG ?= $(or $(shell command -v clang),$(shell command -v clang-14))
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS := -s -w -X main.version=$(VERSION)
BPF_OBJECT := node-agent/engine/ebpf/bpf/ringcap.bpf.o
CONTROLLER_GEN := go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0

.PHONY: help
help: ## show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ the main job

.PHONY: demo
demo: deps ## a real cluster with two sensor nodes captures a real trace; every packet is accounted for
	$(SUDO) e2e/demo/run

.PHONY: demo-down
demo-down: ## stop and remove everything that the demo started
	$(SUDO) e2e/demo/down

.PHONY: demo-standalone
demo-standalone: deps build ## the same manifests on this machine alone, without Kubernetes (KEEP=1: leaves it running, to try)
	$(SUDO) env KEEP=$(KEEP) e2e/demo/standalone

##@ build

.PHONY: deps
deps: ## install the Debian/Ubuntu packages that the rest needs (nothing to do when they are there)
	@$(SUDO) e2e/deps

.PHONY: build
build: lib bpf ## build the binaries and libraries into out/
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o out/bin/ ./node-agent/cmd/node-agent ./operator/cmd/operator ./cli/cmd/ringcap
	ln -sf ringcap out/bin/kubectl-ringcap

.PHONY: lib
lib:
	$(MAKE) -C lib

.PHONY: bpf
bpf:
	$(MAKE) -C node-agent/engine/ebpf/bpf CLANG=$(CLANG)

.PHONY: modules
modules: ## build ringcap.ko for every supported kernel into out/modules/
	$(MAKE) -C kmod modules

# DRIVERS="igb tg3": those that are built, and packed into the agent's image.
DRIVERS ?= e1000e igb ixgbe virtio_net
.PHONY: drivers
drivers: ## build capture-aware drivers for every supported kernel into out/modules/ (DRIVERS="igb tg3")
	for series in 6.1 6.12 7; do for name in $(DRIVERS); do drivers/build --series $$series $$name; done; done

.PHONY: images
images: build modules drivers ## build the container images into out/images/, without a registry
	RINGCAP_DRIVERS="$(DRIVERS)" images/build

# KEY=FILE: a private key in PEM, cosign's too, for signatures of the checksums and of what is pushed. IMAGES="operator agent",
# ARCHITECTURES=amd64, SYSTEMS=linux-amd64: a part of all.
.PHONY: release
release: build modules drivers ## a release in out/release: images, chart, manifests, the CLI, checksums (KEY=FILE signs)
	RINGCAP_DRIVERS="$(DRIVERS)" KEY="$(KEY)" release/build

# What can be said before the release's own tool runs, which make release builds.
define release_and_registry
[ -n "$(REGISTRY)" ] || { echo 'make $@: say where: REGISTRY=HOST[:PORT][/PATH]' >&2; exit 2; }
[ -x out/obj/release/release ] || { echo 'make $@: there is no release in out/release: run make release' >&2; exit 2; }
endef

.PHONY: push
push: ## send out/release to REGISTRY=HOST[:PORT][/PATH] (KEY=FILE signs; FORCE=1 replaces another release's)
	@$(release_and_registry)
	out/obj/release/release push $(if $(KEY),--key '$(KEY)') $(if $(FORCE),--force) out/release '$(REGISTRY)'

.PHONY: verify-push
verify-push: ## whether REGISTRY has all of out/release, unchanged (PLATFORM=linux/arm64: and for that platform)
	@$(release_and_registry)
	out/obj/release/release verify $(if $(PLATFORM),--platform '$(PLATFORM)') out/release '$(REGISTRY)'

.PHONY: generate
generate: bpf ## regenerate what follows from Go types (CRDs, RBAC, docs/api.md), the netlink specification, the eBPF program, the chart's values, and monitoring/
	operator/generate
	$(GO) run ./kmod/netlink/generate
	$(GO) run ./node-agent/engine/ebpf/generate
	charts/generate
	$(GO) run ./monitoring/generate

##@ test

.PHONY: check
check: deps ## the quick loop: lint and unit tests, minutes
	e2e/test check

.PHONY: lint
lint: bpf ## formatting, vet, shellcheck, generated files fresh
	e2e/lint

.PHONY: test
test: deps ## everything: units, kernels in VMs, both engines, a real cluster
	$(SUDO) e2e/test all

.PHONY: test-agent
test-agent: deps build ## the agent against real kernels: everything in namespaces here, an agent killed at each step, and in VMs with the module
	$(SUDO) env RINGCAP_EVERY=1 go test -count=1 -timeout 60m ./filter ./node-agent/...
	node-agent/tests/run 6.1 6.12 7
	node-agent/tests/kills --every 10 6.1

.PHONY: test-suricata
test-suricata: deps build ## Debian's Suricata 7 and 8 with the capture plugin, on queues of both engines, from a file and in line
	$(SUDO) e2e/suricata/run
	e2e/suricata/vm 6.1
	e2e/suricata/inline 6.1

.PHONY: test-clients
test-clients: deps build ## programs on libpcap that Debian packages, each on a queue of the eBPF engine: docs/clients.md (CLIENTS="quick", or names)
	$(SUDO) e2e/clients/run $(CLIENTS)

.PHONY: test-conformance
test-conformance: deps ## both engines do the same: a table of rings, clusters and packets over both, here and on all kernels (SERIES=6.1)
	$(SUDO) node-agent/engine/conformance/run $(SERIES)

.PHONY: test-cpus
test-cpus: deps build ## both engines with eight processors: several producers, flows that move between CPUs, CPUs that go offline and come back (SERIES=6.1)
	status=0; for series in $(or $(SERIES),6.1 6.12 7); do \
		kmod/tests/run --cpus 8 $$series producer smp || status=1; \
		node-agent/engine/ebpf/vm-test --cpus 8 $$series || status=1; done; exit $$status

# A real kube-apiserver and etcd, and helm and kubectl; the filter compiler.
ASSETS = KUBEBUILDER_ASSETS="$$(e2e/cluster/build --print-bin)" RINGCAP_RCBPF='$(CURDIR)/out/bin/rcbpf'

.PHONY: test-operator
test-operator: deps build ## operator and CLI against a real kube-apiserver: planning, status, conflicts, deletion, upgrades of modules
	$(ASSETS) go test -count=1 -p 1 ./operator/... ./cli/...

.PHONY: test-chart
test-chart: deps build ## the chart: lint, schema, golden renders, every object on a real kube-apiserver, install to uninstall; on a cluster: e2e/suite/run
	charts/generate --check
	$(ASSETS) go test -count=1 -p 1 ./charts/...

# FULL=1: the churn of the whole plan (thousands of devices, namespaces, rule sets), not a part of it.
.PHONY: test-kernel
test-kernel: deps ## the module on all supported kernels and the debug kernel (FULL=1: all of the churn)
	FULL=$(FULL) kmod/tests/run all $(CASES)
	kmod/tests/run --cpus 6 6.1 smp
	kmod/tests/run --cpus 1 6.1 inline_pass inline_events
	kmod/tests/run debug $(CASES)

.PHONY: fuzz-kernel
fuzz-kernel: deps ## fuzz the module on the debug kernel: MINUTES=10 SEED=random SERIES=debug
	kmod/tests/fuzz/run --minutes $(or $(MINUTES),10) $(addprefix --seed ,$(SEED)) $(or $(SERIES),debug)

.PHONY: test-drivers
test-drivers: deps ## capture-aware drivers: what the rules find, and emulated network cards on all kernels and the debug kernel
	drivers/tests/matrix
	$(SUDO) drivers/tests/run all $(CASES)
	$(SUDO) drivers/tests/run debug $(CASES)

.PHONY: bench-kernel
bench-kernel: deps ## instructions per packet beside AF_PACKET, for 64, 8 and 1 possible processors, one and four producing, deterministic
	$(SUDO) bench/kernel/run

.PHONY: bench-agent
bench-agent: deps ## an agent with 200 rings of 64 queues: idle CPU, memory, 10,000 rules, the first packet: wall clock
	$(SUDO) bench/agent/run

.PHONY: bench-drivers
bench-drivers: deps ## instructions per packet and lossless rates from the network card on, stock and capture-aware drivers, deterministic
	$(SUDO) bench/drivers/run

.PHONY: bench-sensors
bench-sensors: deps ## instructions per packet and latencies of libdaq's modules for ringcap and for packet sockets, passive and in line, deterministic
	$(SUDO) bench/sensors/run

.PHONY: bench-lossless
bench-lossless: deps ## the rate at which tcpdump on a busy machine begins to lose packets, beside the packet socket's, deterministic
	$(SUDO) bench/lossless/run

.PHONY: bench-consumers
bench-consumers: deps ## CPU time and wake-ups of tcpdump, dumpcap and Suricata on AF_PACKET and on rings; here, and in a VM with the module
	$(SUDO) bench/consumers/run
	$(SUDO) bench/consumers/run --vm 6.1 --rounds 3

# FLEET="NODES RINGS POOLS": a ring is for the nodes of one pool, but for one that is for all.
.PHONY: bench-operator
bench-operator: ## one edit of a ring reaches all NodeCaptures of a large fleet: seconds, CPU and memory of the operator and the API server
	RINGCAP_SCALE="$(or $(FLEET),5000 500 50)" $(GO) test ./operator/scale -count=1 -timeout 30m -v -run TestOneEditReachesAllNodes

.PHONY: clean
clean: ## remove what was built here; the cache stays
	rm -rf out
