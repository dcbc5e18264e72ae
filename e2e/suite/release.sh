# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# The chart over its life: uninstalled while pods hold queues, with what users made kept, an earlier release installed, upgraded and rolled back under
# traffic, the module replaced when it is free, and uninstalled for good. What is there after each uninstall is listed, on the
# cluster and on the nodes. Needs layer.sh, refused.sh, disturbed.sh and the demo's replay.sh.
#
# The earlier release is this tree with another module (its source version and its version are others) and a CRD that
# lacks a field, under names of its own.

system=ringcap-system
# As long as the present one's, for it is written over that in the module.
earlier=0.0.9 present=0.1.0

release_helm() {
	helm "$@" --namespace $system --wait --timeout 250s --set agent.maxUnavailable=100% --set cleanup.timeoutSeconds=240
}

# ---- the earlier release

# The agent's image with other modules.
earlier_agent() {
	local folder=$work/earlier/agent module
	mkdir -p "$folder"
	tar -xOf "$images/agent.tar" layer.tar | tar -x -C "$folder" --wildcards './modules/*/ringcap.ko'
	for module in "$folder"/modules/*/ringcap.ko; do
		strip --strip-debug "$module"
		LC_ALL=C sed -i "s/srcversion=......../srcversion=EARLIER0/; s/$present/$earlier/g" "$module"
	done
	layer_over agent agent-earlier "$folder"
}

earlier_chart() {
	local chart=$work/earlier/chart
	cp -r charts/ringcap "$chart"
	sed -i "s/^\(version\|appVersion\): .*/\1: $earlier/" "$chart/Chart.yaml"
	python3 - "$chart/files/crd/ringcap.io_capturerings.yaml" <<-'END'
		import re, sys
		text = open(sys.argv[1], encoding="utf-8").read()
		less = re.sub(r"(?m)^( +)watermarkTimeout:\n(?:\1 .*\n)+", "", text, count=1)
		assert less != text
		open(sys.argv[1], "w", encoding="utf-8").write(less)
	END
}

# The operator's image is the same by another name.
earlier_release() {
	mkdir -p "$work/earlier"
	earlier_chart
	earlier_agent
	"$root/e2e/cluster/load-images"
	each_node "ctr -n k8s.io images tag --force ringcap.local/operator:$(image_tag operator) ringcap.local/operator-earlier:operator-earlier"
}

install_earlier() {
	release_helm install ringcap "$work/earlier/chart" --set operator.image.repository=ringcap.local/operator-earlier \
		--set operator.image.tag=operator-earlier --set agent.image.repository=ringcap.local/agent-earlier --set agent.image.tag=agent-earlier
}

# The present one by digest, and with it the module when nobody has a queue of the loaded one.
upgrade_to_present() {
	release_helm upgrade ringcap charts/ringcap --set crds.keep=false --set agent.module.upgrade.policy=WhenFree \
		--set operator.image.digest="$(by_digest operator)" --set agent.image.digest="$(by_digest agent)"
}

# by_digest NAME: the digest of its image, by which the nodes' containerd knows it from now on.
by_digest() {
	local image=ringcap.local/$1 digest
	image+=:$(image_tag "$1")
	digest=$("$root/e2e/cluster/node-exec" node-ebpf "ctr -n k8s.io images ls name==$image" | grep -o 'sha256:[0-9a-f]*' | head -n 1)
	each_node "ctr -n k8s.io images tag --force $image ringcap.local/$1@$digest" >&2
	echo "$digest"
}

# in_force AGENT OPERATOR FIELD: the images of ringcap's pods, each up to the tag or digest, and whether the CRD has the field.
in_force() {
	diff <(printf '%s\n' "$@") <(
		kubectl -n $system get pods -o json | jq -r '[.items[] | select(.metadata.deletionTimestamp | not) |
			.spec.containers[].image | sub("(?<kind>[:@]).*"; .kind)] | unique[]'
		kubectl get crd capturerings.ringcap.io -o json | jq '.spec.versions[0].schema.openAPIV3Schema.properties.spec.properties | has("watermarkTimeout")'
	)
}

earlier_in_force() { in_force ringcap.local/agent-earlier: ringcap.local/operator-earlier: false; }
present_in_force() { in_force ringcap.local/agent@ ringcap.local/operator@ true; }

# module_is VERSION SOURCE: what the kernel says, and the agent.
module_is() {
	[ "$("$root/e2e/cluster/node-exec" node-kmod 'cd /sys/module/ringcap && cut -c 1-8 srcversion && cat version')" = "$2"$'\n'"$1" ] &&
		kubectl get nodecapture node-kmod -o json | jq -e --arg version "$1" '.status.moduleVersion == $version'
}

# module_waits: the loaded one stays, because of both consumers, and the one of the image is named.
module_waits() {
	kubectl get nodecapture node-kmod -o json | jq -e --arg present $present '.status | (.moduleAvailable | startswith($present + " (")) and
		any(.conditions[]; .type == "ModuleReady" and .reason == "InUse" and (.message | [match("ringcap-demo/tcpdump-"; "g")] | length == 2))'
}

module_does_not_wait() { kubectl get nodecapture node-kmod -o json | jq -e '.status.moduleAvailable // "" == ""'; }

# ---- what there is

# All objects of the cluster, as "KIND NAMESPACE NAME FINALIZERS", but those that come and go by themselves; and how nodes are marked.
cluster_listing() {
	kubectl get "$(kubectl api-resources --verbs=list -o name | grep -vE '^(events|componentstatuses|endpoints)' | paste -sd,)" -A -o json |
		jq -r '.items[] | select(.kind != "Lease" or .metadata.namespace == "'$system'") |
			"\(.kind) \(.metadata.namespace // "-") \(.metadata.name) \(.metadata.finalizers // [] | join(","))"'
	kubectl get nodes -o json | jq -r '.items[] | "\(.metadata.name) is marked \(.metadata.labels) \(.spec.taints)"'
}

# Of a node: folders, modules, device nodes, sockets, and how its NICs are set. 24FA is the agent's port.
# shellcheck disable=SC2016 # the other shell's
node_listing='exec 2>/dev/null
	find /run/ringcap /dev/ringcap /proc/net/ringcap /sys/fs/bpf /var/run/cdi /var/lib/kubelet/plugins /var/lib/kubelet/device-plugins |
		grep -v kubelet_internal_checkpoint
	grep ringcap /proc/modules /proc/devices /proc/misc
	awk "/ringcap/ { print \"unix socket\", \$8 }" /proc/net/unix
	awk "NR > 1 { print \"packet socket\", \$3, \$4, \$5 }" /proc/net/packet
	grep -ho ":24FA 0*:0000 0A" /proc/net/tcp /proc/net/tcp6
	for nic in /sys/class/net/*; do
		name=${nic##*/}
		case $name in veth*) continue ;; esac
		cd $nic
		echo $name $(cat flags mtu tx_queue_len threaded napi_defer_hard_irqs gro_flush_timeout ifalias) $(readlink device/driver) $(ls queues)
		tc qdisc show dev $name
		[ -d device ] || [ $name = mirror0 ] || continue
		for what in k l g x c; do ethtool -$what $name | sed "s/^/$name: /"; done
	done
	true'

nodes_listing() {
	local node
	for node in $nodes; do "$root/e2e/cluster/node-exec" "$node" "$node_listing" | sed "s/^/$node: /"; done
}

# lists FILE PATTERN...
lists() {
	local pattern
	for pattern in "${@:2}"; do grep -q "^$pattern" "$1" || { echo "$1 lacks '$pattern'" >&2; return 1; }; done
}

# Promiscuous is 0x1103, not 0x1003.
nics_free=('node-ebpf: mirror0 0x1003 ' 'node-kmod: mirror0 0x1003 ' 'node-kmod: card0 0x1003 .*/igb rx-0 rx-1 ' 'node-kmod: card0: RX:.*256')
nics_taken=('node-ebpf: mirror0 0x1103 ' 'node-kmod: mirror0 0x1103 ' 'node-kmod: card0 0x1103 .*/igb rx-0 tx-0' 'node-kmod: card0: RX:.*512')

# Of a listing, what is ringcap's. Namespaces are the user's, a label the lab's.
ringcaps() {
	grep -iE '^(CaptureRing|Cluster|NodeCapture) |ringcap' "$1" |
		grep -vE '^Namespace - |^(ServiceAccount|ConfigMap) ringcap-[a-z]+ (default|kube-root-ca.crt) | is marked '
}

# removed FILE KEPT: of ringcap there is what is kept, and nothing else; FILE is the listing that says so.
removed() {
	{ cluster_listing; nodes_listing; } | LC_ALL=C sort >"$1"
	lists "$1" 'Node - node-kmod ' 'node-ebpf: mirror0: generic-receive-offload:' "${nics_free[@]}" || return 1
	diff <(printf %s "$2") <(ringcaps "$1" | cut -d ' ' -f 1-3)
}

kept_crds='APIService - v1alpha1.ringcap.io
CustomResourceDefinition - capturerings.ringcap.io
CustomResourceDefinition - clusters.ringcap.io
CustomResourceDefinition - nodecaptures.ringcap.io
CustomResourceDefinition - podcaptures.ringcap.io
'

# What users made, as JSON a line, and who has a finalizer on it.
made_by_users() {
	kubectl get capturerings,clusters.ringcap.io -o json |
		jq -cS '.items[] | [.kind, .metadata.name, .metadata.uid, .metadata.annotations, .metadata.labels, .spec, .metadata.finalizers // []]'
}

# kept_listing FILE: what an uninstall leaves that keeps the objects of FILE, which made_by_users wrote.
kept_listing() {
	{ printf %s "$kept_crds"; jq -r '"\(.[0]) - \(.[1])"' "$1"; } | LC_ALL=C sort
}

# The objects stay as they were and are nobody's: one that is deleted goes at once.
made_by_users_stays() {
	diff <(jq -c '.[6] = []' "$1") <(made_by_users)
	kubectl delete capturering kept --timeout 20s
}

# is_removed FILE KEPT: soon, for what helm does not wait for.
is_removed() { wait_for 60 removed "$@" || removed "$@"; }

# ---- install, upgrade, rollback, uninstall

release_uninstall() { helm uninstall ringcap --namespace $system --wait --timeout 290s; }

# With consumers it waits and says for whom; when they are gone it goes on.
uninstall_with_consumers() {
	local helm status=0
	release_uninstall &
	helm=$!
	names_consumers() { kubectl -n $system logs job/ringcap-cleanup | grep -F 'ringcap-demo/tcpdump-'; }
	wait_for 100 names_consumers && names_consumers && kubectl -n $system get daemonset ringcap-agent || status=1
	kubectl delete namespace ringcap-demo ringcap-suite --ignore-not-found
	wait "$helm" && return $status
}

# A mirror port, and a card that is given other settings.
release_rings() {
	wait_for 60 kubectl apply --dry-run=server -f examples/mirror.yaml
	kubectl apply -f examples/mirror.yaml -f examples/tcpdump.yaml
	apply card CaptureRing '{nodeSelector: {matchLabels: {ringcap.io/lab: kmod}}, interfaces: [{driver: igb}], queues: 1, slots: 1024,
		nic: {rxQueues: 1, rxRingSize: 512, vlanOffload: Disable}}'
	wait_for 180 everything_ready || { state_rollouts; state_unready; state_pods; return 1; }
}

# traffic_until_done RUN: the capture again and again until the file "done" is there.
traffic_until_done() {
	local run=$1 round=0
	until [ -e "$run/done" ]; do
		replay "$input" "$run/wire.$round" || return 1
		[ "$round" = 0 ] || tail -c +25 "$input" >>"$run/input.pcap"
		round=$((round + 1))
	done
	jq -s 'map(to_entries[]) | group_by(.key) | map({key: .[0].key, value: (map(.value) |
		{sent: map(.sent) | add, lost: map(.lost) | add, onWire: map(.onWire) | add})}) | from_entries' "$run"/wire.* >"$run/wire.json"
}

upgrade_and_rollback() {
	upgrade_to_present
	wait_for 60 present_in_force || present_in_force
	wait_for 60 module_waits || { kubectl get nodecapture node-kmod -o json | jq .status; return 1; }
	module_is $earlier EARLIER0
	helm rollback ringcap 1 --namespace $system --wait --timeout 250s
	wait_for 60 earlier_in_force || earlier_in_force
	wait_for 60 module_does_not_wait
	module_is $earlier EARLIER0
	touch "$work/upgrade_and_rollback/done"
}

replace_module() {
	kubectl -n ringcap-demo scale deployment tcpdump --replicas 0
	no_consumers() { [ -z "$(kubectl -n ringcap-demo get pods -o name)" ]; }
	wait_for 60 no_consumers
	upgrade_to_present
	wait_for 60 present_in_force || present_in_force
	wait_for 60 module_is $present "$source" || { kubectl get nodecapture node-kmod -o json | jq .status; return 1; }
	module_does_not_wait
	wait_for 60 no_rings_unready || { state_unready; return 1; }
}

no_queues_offered() {
	kubectl get nodes -o json | jq -e 'all(.items[].status.allocatable["ringcap.io/ids"] // "0"; . == "0")'
}

no_rings_unready() { [ -z "$(state_unready)" ]; }

unattended() { :; }

test_release() {
	local input=$work/short.pcap source
	mkdir -p "$work/upgrade_and_rollback"
	trap 'touch "$work/upgrade_and_rollback/done"; rm -f "$images"/agent-earlier.* "$images/bpf"' EXIT
	export RINGCAP_DEMO_PPS_KMOD=1000 RINGCAP_DEMO_PPS_EBPF=1000
	"$rcdemo" trace --out "$input" --at-least 1 "$("$root/e2e/demo/captures")"
	source=$("$root/e2e/cluster/node-exec" node-kmod 'cut -c 1-8 /sys/module/ringcap/srcversion')
	earlier_release
	apply kept CaptureRing '{interfaces: [{name: mirror0}], queues: 1}'
	wait_for 60 no_rings_unready || { state_unready; return 1; }
	made_by_users >"$work/made"
	uninstall_with_consumers
	is_removed "$work/listing-before" "$(kept_listing "$work/made")"$'\n'
	made_by_users_stays "$work/made"

	# What was kept is captured again, by itself.
	install_earlier
	earlier_in_force
	wait_for 180 no_rings_unready || { state_unready; return 1; }
	kubectl get capturering mirror
	kubectl delete clusters.ringcap.io,capturerings --all --timeout 120s
	# Or the scheduler sends pods to queues that were there before.
	wait_for 60 no_queues_offered
	release_rings
	module_is $earlier EARLIER0
	(
		traffic() { traffic_until_done "$1"; }
		disturbed 1000 upgrade_and_rollback --lossless
	)
	# Nobody has a queue: the module is replaced, and each packet is counted as lost.
	replace_module
	disturbed 0 unattended
	jq -e 'all(.nodes[]; ([.queues[].dropped | add] | add) == .sent)' "$work/unattended/summary.json"

	nodes_listing >"$work/listing-during"
	lists "$work/listing-during" "${nics_taken[@]}" 'node-kmod: .*igb_ringcap ' 'node-kmod: /dev/ringcap/ids/0' 'node-ebpf: unix socket .*ringcap'
	CGO_ENABLED=0 go build -o "$images/bpf" ./e2e/suite/bpf
	"$root/e2e/cluster/node-exec" node-ebpf '/images/bpf pinned /sys/fs/bpf/ringcap' >"$work/bpf"
	lists "$work/bpf" 'map ' 'prog ' 'link '
	kubectl delete namespace ringcap-demo
	release_uninstall
	is_removed "$work/listing-after" ''
	diff <(grep -vE 'ringcap\.io |^(CaptureRing|Cluster) ' "$work/listing-before") "$work/listing-after"
	bpf_gone() { [ -z "$("$images/bpf" alive <"$work/bpf")" ]; }
	wait_for 90 bpf_gone || { "$images/bpf" alive <"$work/bpf"; return 1; }
	"$root/e2e/cluster/node-exec" node-kmod '! dmesg | grep -E "BUG|Oops|WARNING|general protection"'
}
