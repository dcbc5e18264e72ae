# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Which pods may have queues, and what they are given. Needs refused.sh, disturbed.sh, hostile.sh and restarted.sh.

# consumer_pod NAMESPACE: a pod that requests a queue of suite-closed, wherever one is free.
consumer_pod() {
	kubectl apply -f - <<-END
		apiVersion: v1
		kind: Pod
		metadata: {name: consumer, namespace: $1}
		spec:
		  containers: [{name: c, image: x, resources: {limits: {ringcap.io/suite-closed: 1}}}]
	END
}

# close_to NAMESPACE: suite-closed is for its pods only, on all nodes from now on.
close_to() {
	apply suite-closed Cluster "{rings: [mirror], queues: 1, slots: 64, consumers: {namespaces: [$1]}}"
	expect_condition clusters.ringcap.io/suite-closed Ready 'True'
}

kept_from_start() {
	[ "$(kubectl -n $suite get events -o json | jq '[.items[] | select(.message | test("may not have queues of suite-closed: " +
		"spec.consumers of Cluster suite-closed names elsewhere, not ringcap-suite")) | .involvedObject.name] | unique | length')" = 2 ]
}

all_inside_run() {
	kubectl -n $suite get pods -l app=inside -o json |
		jq -e '[.items[].status.containerStatuses[0] | .state.running != null and .restartCount == 1] == [true, true]'
}

# Refused when it is made; and where it was made before the namespace was taken out, at its next start.
test_pod_of_another_namespace() {
	local said node
	close_to $suite
	if said=$(consumer_pod default 2>&1); then
		echo 'the API server took the pod' >&2
		return 1
	fi
	grep "spec.consumers of Cluster suite-closed names $suite; " <<<"$said"
	hostile_pods inside suite-closed
	for node in $nodes; do probe inside "$node" take suite-closed 0; done

	close_to elsewhere
	expect_refused probe inside node-ebpf take suite-closed 0
	# shellcheck disable=SC2016 # the other shell's
	each_node 'for p in $(pidof sleep); do ! grep -q infinity /proc/$p/cmdline || kill -9 $p; done'
	wait_for 60 kept_from_start || { echo 'the containers were not kept from starting' >&2; return 1; }

	close_to $suite
	wait_for 60 all_inside_run || { echo 'the containers did not start again' >&2; return 1; }
	kubectl -n $suite delete daemonset inside --wait
	remove clusters.ringcap.io/suite-closed
}

# wide_pod: one that requests a queue of suite-wide.
wide_pod() {
	kubectl apply -f - <<-END
		apiVersion: v1
		kind: Pod
		metadata: {name: wide, namespace: $suite}
		spec:
		  terminationGracePeriodSeconds: 1
		  automountServiceAccountToken: false
		  containers:
		    - name: c
		      image: ringcap.local/probe:$(image_tag probe)
		      command: [sleep, infinity]
		      resources: {limits: {ringcap.io/suite-wide: 1}}
	END
}

wide_is_told() { kubectl -n $suite get events -o json | jq -e --arg text "$1" 'any(.items[]; .involvedObject.name == "wide" and (.message | contains($text)))'; }
wide_runs() { [ "$(kubectl -n $suite get pod wide -o 'jsonpath={.status.phase}')" = Running ]; }

# A ring that names nobody is nobody's, and a Cluster is no wider than its ring, whatever it says.
test_nobody_but_who_is_named() {
	local ring='interfaces: [{name: mirror0}]' said status=0
	kubectl create namespace $suite --dry-run=client -o yaml | kubectl apply -f -
	apply suite-ring CaptureRing "{$ring}"
	apply suite-wide Cluster "{rings: [suite-ring], queues: 1, slots: 64, consumers: {namespaces: ['*']}}"
	expect_condition clusters.ringcap.io/suite-wide Ready 'True'
	expect_condition clusters.ringcap.io/suite-wide ConsumersEffective 'False NobodyAllowed .*CaptureRing suite-ring names no namespace'
	wide_pod
	wait_for 120 wide_is_told 'spec.consumers of CaptureRing suite-ring names no namespace' || { state_pods; return 1; }
	apply suite-ring CaptureRing "{$ring, consumers: {namespaces: [elsewhere]}}"
	wait_for 120 wide_is_told 'spec.consumers of CaptureRing suite-ring names elsewhere, not ringcap-suite' || { state_pods; return 1; }
	said=$("$ringcap" capture suite-ring -w "$work/none.pcapng" 2>&1) || status=$?
	[ "$status" = 1 ] && grep -F '"namespaces":["elsewhere","default"]' <<<"$said"
	apply suite-ring CaptureRing "{$ring, consumers: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: $suite}}}}"
	wait_for 360 wide_runs || { kubectl -n $suite get events; return 1; }
	kubectl -n $suite delete pod wide --wait
	remove clusters.ringcap.io/suite-wide
	remove capturering/suite-ring
}

# attached_everywhere WHICH: whether the queue of suite-closed is read, true or false, on all nodes.
attached_everywhere() {
	kubectl get nodecaptures -o json | jq -e --argjson which "$1" '[.items[].status.clusters[] | select(.name == "suite-closed") |
		.queues[].attached] | length == 2 and all(. == $which)'
}

taken_back_is_told() {
	[ "$(kubectl get events -n default -o json | jq '[.items[] | select(.reason == "QueueTakenBack") | select(.message |
		test("queue 0 of suite-closed was taken back from process [0-9]+ \\(probe\\).* may not have queues of suite-closed")) |
		.involvedObject.name] | unique | length')" = 2 ]
}

# A consumer whose namespace is taken out of the list loses its queue while it runs, on both engines, and cannot come back.
test_queue_is_taken_back() {
	local node pid pids=()
	close_to $suite
	hostile_pods inside suite-closed
	for node in $nodes; do
		probe inside "$node" scribble suite-closed 0 90 &
		pids+=($!)
	done
	wait_for 60 attached_everywhere true || { echo 'the consumers are not attached' >&2; return 1; }
	close_to elsewhere
	wait_for 60 attached_everywhere false || { echo 'the queues were not taken back' >&2; return 1; }
	wait_for 90 taken_back_is_told || { echo 'there are no Events of it' >&2; return 1; }
	expect_refused probe inside node-ebpf take suite-closed 0
	# Those who had the queues hold what is left of them, and keep nobody from removing them.
	remove clusters.ringcap.io/suite-closed
	for pid in "${pids[@]}"; do wait "$pid" || true; done
	kubectl -n $suite delete daemonset inside --wait
}

# Images as distributions make them, with their own libpcap, which knows nothing of ringcap: the distribution's here, and
# stand-ins for those of RHEL (libpcap.so.1 in /usr/lib64) and of Alpine (musl, in /usr/lib).

# stock_image NAME FOLDER LIBPCAP PATH: with a libpcap at its place, which PATH, a link, names as programs do.
stock_image() {
	local tool
	if grep -aq ringcap "$3"; then
		echo "$3 is not a stock libpcap" >&2
		return 1
	fi
	install -D "$3" "$2${4%/*}/libpcap.so.1.10.3"
	ln -s libpcap.so.1.10.3 "$2$4"
	install -D "$(command -v busybox)" "$2/usr/bin/busybox"
	for tool in sh cat ls wc head tail; do ln -s busybox "$2/usr/bin/$tool"; done
	mkdir -p "$2"/{captures,proc,dev,sys,tmp}
	[ ! -d "$2/usr/lib64" ] || ldconfig -r "$2"
	"$root/images/archive" "stock-$1" "$2" "$images/stock-$1.tar"
}

# glibc_image FOLDER PROGRAM: a program with its libraries but libpcap, in a file system like Debian's and RHEL's.
glibc_image() {
	local library
	mkdir -p "$1"/usr/{bin,lib,lib64} "$1/etc"
	ln -s usr/lib "$1/lib"
	ln -s usr/lib64 "$1/lib64"
	printf '%s\n' "/usr/lib/$(gcc -print-multiarch)" /usr/lib64 >"$1/etc/ld.so.conf"
	install "$2" "$1/usr/bin/"
	while read -r library; do
		case $library in */libpcap.so.*) ;; *) install -D "$library" "$1$library" ;; esac
	done < <(ldd "$2" | grep -o '/[^ ]*')
}

stock_images() {
	local build=$work/stock debian kind headers=$root/out/obj/lib/musl/include
	mkdir -p "$build"
	debian=$(ldd "$(command -v tcpdump)" | awk '$1 == "libpcap.so.0.8" { print $3 }')
	glibc_image "$build/debian" "$(command -v tcpdump)"
	stock_image debian "$build/debian" "$(readlink -f "$debian")" "/usr/lib/$(gcc -print-multiarch)/libpcap.so.0.8"

	SONAME=libpcap.so.1 CC=gcc lib/pcap/build plain "$root/out/obj/stock/glibc"
	SONAME=libpcap.so.1 CC=musl-gcc CFLAGS="-O2 -isystem $headers" lib/pcap/build plain "$root/out/obj/stock/musl"
	for kind in glibc musl; do
		cp "$root/out/obj/stock/$kind/libpcap.so" "$build/$kind.so.1"
		mkdir -p "$build/bin-$kind"
	done
	gcc -O2 -Wall -Wextra -Werror -I"$root/out/obj/stock/glibc/src" -o "$build/bin-glibc/pcapdump" \
		e2e/suite/probe/pcapdump.c "$build/glibc.so.1" -Wl,-rpath-link,"$build"
	musl-gcc -O2 -Wall -Wextra -Werror -I"$root/out/obj/stock/musl/src" -isystem "$headers" -o "$build/bin-musl/pcapdump" \
		e2e/suite/probe/pcapdump.c "$build/musl.so.1"
	glibc_image "$build/rhel" "$build/bin-glibc/pcapdump"
	stock_image rhel "$build/rhel" "$build/glibc.so.1" /usr/lib64/libpcap.so.1
	install -D "$build/bin-musl/pcapdump" "$build/alpine/usr/bin/pcapdump"
	install -D "/lib/ld-musl-$(uname -m).so.1" "$build/alpine/lib/ld-musl-$(uname -m).so.1"
	stock_image alpine "$build/alpine" "$build/musl.so.1" /usr/lib/libpcap.so.1
	"$root/e2e/cluster/load-images"
}

# stock_pods NAME PROGRAM...: a pod on each node that captures with that image.
stock_pods() {
	kubectl apply -f - <<-END
		apiVersion: apps/v1
		kind: DaemonSet
		metadata: {name: stock-$1, namespace: $suite}
		spec:
		  selector: {matchLabels: {app: stock-$1}}
		  template:
		    metadata: {labels: {app: stock-$1, suite: stock}}
		    spec:
		      terminationGracePeriodSeconds: 1
		      automountServiceAccountToken: false
		      securityContext: {runAsNonRoot: true, runAsUser: 65534, fsGroup: 65534, seccompProfile: {type: RuntimeDefault}}
		      containers:
		        - name: stock
		          image: ringcap.local/stock-$1:$(image_tag "stock-$1")
		          command: [$2]
		          securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
		          resources: {limits: {ringcap.io/suite-stock: 1}}
		          volumeMounts: [{name: captures, mountPath: /captures}]
		      volumes: [{name: captures, emptyDir: {}}]
	END
}

stock_attached() {
	kubectl get nodecaptures -o json | jq -e '[.items[].status.clusters[] | select(.name == "suite-stock") |
		.queues[].attached] == [true, true, true, true, true, true]'
}

leave_alone() { :; }

# Every packet of a replay is in the files of three images' programs, on both engines.
test_stock_images_capture() {
	local run=$work/leave_alone pod kind
	stock_images
	apply suite-stock Cluster '{rings: [mirror], queues: 3, slots: 8192, consumers: {injectLibpcap: true}}'
	expect_condition clusters.ringcap.io/suite-stock Ready 'True'
	kubectl create namespace $suite --dry-run=client -o yaml | kubectl apply -f -
	stock_pods debian 'tcpdump, -i, rc-suite-stock, -n, -U, -w, /captures/0.pcap'
	for kind in rhel alpine; do stock_pods $kind 'pcapdump, rc-suite-stock, /captures/0.pcap'; done
	wait_for 240 stock_attached || { kubectl -n $suite logs -l suite=stock --prefix; return 1; }
	each_node 'grep ringcap.io/queue /var/run/cdi/ringcap.io-suite-stock.json'
	disturbed 0 leave_alone --lossless
	for pod in $(kubectl -n $suite get pods -l suite=stock -o 'jsonpath={.items[*].metadata.name}'); do
		restarting_collect "$pod" "$run/${suite}_$pod.pcap"
	done
	"$rcdemo" report --dir "$run" --cluster suite-stock --lossless
	kubectl -n $suite delete daemonset stock-debian stock-rhel stock-alpine --wait
	remove clusters.ringcap.io/suite-stock
	wait_for 60 nodes_tidy || { echo 'these files stay:' >&2; files_of_stock >&2; return 1; }
}

nodes_tidy() { [ -z "$(files_of_stock)" ]; }

# What a VM's script says of errors comes with what it prints.
files_of_stock() {
	local node
	for node in $nodes; do
		"$root/e2e/cluster/node-exec" "$node" 'ls /var/run/cdi/ringcap.io-suite-stock.json /var/lib/kubelet/plugins/ringcap.io/*/* 2>/dev/null || true' |
			sed "s/^/$node: /"
	done
}
