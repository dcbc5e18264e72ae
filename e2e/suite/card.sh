# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# A network card whose driver is replaced by a capture-aware one of the agent's image, and put back. Needs refused.sh, and the
# demo's replay.sh and collect.sh.
#
#	wire1 (replay) ---cable--- card0 (igb, then igb_ringcap) ---> ring suite-card ---> tcpdump in a pod
#	                                        \---> the node's stack, in mode 1

# shellcheck disable=SC2016 # the other shell's
card_looks='cd /sys/class/net/card0
	for what in mtu tx_queue_len ifalias address flags; do echo "$what $(cat $what)"; done
	grep "" /proc/sys/net/ipv6/conf/card0/disable_ipv6 /proc/sys/net/ipv4/conf/card0/arp_announce
	readlink device/driver; ls queues; ip address show card0 | grep "inet6* "'

on_node() { "$root/e2e/cluster/node-exec" node-kmod "$1"; }

# card_ring MODE
card_ring() {
	apply suite-card CaptureRing "{nodeSelector: {matchLabels: {ringcap.io/lab: kmod}}, interfaces: [{driver: igb}], queues: 1, slots: 16384, consumers: {namespaces: [ringcap-suite]},
		snapLength: 2048, transparentMode: $1, nodeTraffic: Allow, nic: {promiscuous: true, offloads: Disable, rxQueues: 1,
		driver: {policy: Replace, linkTimeout: 30s}}}"
	wait_for 120 card_has_mode "$1" || { kubectl get nodecapture node-kmod -o json | jq .status; return 1; }
	expect_condition capturering/suite-card Ready 'True'
}

card_has_mode() {
	kubectl get nodecapture node-kmod -o json | jq -e --argjson mode "$1" '.metadata.generation == .status.appliedGeneration and
		any(.status.rings[]; .name == "suite-card" and .ready and .transparentMode == $mode) and
		any(.status.interfaces[]; .name == "card0" and .driver == "igb_ringcap" and .aware and .stockDriver == "igb")'
}

card_pod() {
	kubectl create namespace ringcap-suite --dry-run=client -o yaml | kubectl apply -f -
	kubectl apply -f - <<-'END'
		apiVersion: v1
		kind: Pod
		metadata: {name: card, namespace: ringcap-suite}
		spec:
		  terminationGracePeriodSeconds: 1
		  automountServiceAccountToken: false
		  securityContext: {runAsNonRoot: true, runAsUser: 65534, fsGroup: 65534, seccompProfile: {type: RuntimeDefault}}
		  containers:
		    - name: tcpdump
		      image: ringcap.local/tcpdump:demo
		      imagePullPolicy: IfNotPresent
		      command: [tcpdump, -i, rc-suite-card, -n, -U, -w, /captures/card.pcap]
		      securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
		      resources: {limits: {ringcap.io/suite-card: 1}}
		      volumeMounts: [{name: captures, mountPath: /captures}]
		  volumes: [{name: captures, emptyDir: {}}]
	END
	wait_for 240 card_attached
}

card_attached() {
	kubectl get nodecapture node-kmod -o json | jq -e 'any(.status.clusters[]; .name == "suite-card" and .queues[0].attached)'
}

# card_replay MODE STACK: every packet is in the ring once and unchanged, and STACK of them are in the node's stack, by
# netfilter's count of what comes in.
card_replay() {
	local run=$work/card_$1 replay_wire=wire1 collect_ring=suite-card collect_cluster=suite-card consumers=ringcap-suite
	local size had
	mkdir -p "$run"
	cp "$work/card.pcap" "$run/input.pcap"
	on_node 'nft add table netdev suite; nft delete table netdev suite; nft add table netdev suite
		nft "add chain netdev suite card { type filter hook ingress device card0 priority 0; }"
		nft add rule netdev suite card counter'
	size=$(kubectl -n $consumers exec card -- stat -c %s /captures/card.pcap)
	collect_counters "$run/before.json"
	replay "$run/input.pcap" "$run/wire.json" node-kmod
	collect_stable "$run/before.json" "$run/wire.json" "$run/after.json" 150
	collect_file card "$size" "$run/${consumers}_card.pcap"
	had=$(on_node 'nft list table netdev suite' | awk '$1 == "counter" { print $3 }')
	"$rcdemo" report --dir "$run" --ring suite-card --cluster suite-card --lossless
	echo "mode $1: the stack has had $had of $2 packets"
	[ "$had" = "$2" ]
}

card_announced() {
	kubectl get events.events.k8s.io -o json | jq -e '[.items[] | select(.regarding.kind == "NodeCapture" and .regarding.name == "node-kmod")] |
		any(.[]; .reason == "DriverReplaced" and .related.name == "suite-card") and any(.[]; .reason == "DriverRestored")'
}

# Shorter frames are padded by the card: they would not come out as they went in.
test_card_in_modes_1_and_2() {
	local before packets=10000
	tcpdump -r "$input" -w "$work/card.pcap" -c $packets 'greater 60'
	on_node 'ip link set card0 mtu 1600 qlen 555; echo span port >/sys/class/net/card0/ifalias; ip address flush dev card0; ip address add 192.0.2.7/32 dev card0
		echo 1 >/proc/sys/net/ipv6/conf/card0/disable_ipv6; echo 2 >/proc/sys/net/ipv4/conf/card0/arp_announce'
	before=$(on_node "$card_looks")
	card_ring 1
	card_pod
	card_replay 1 $packets
	card_ring 2
	card_replay 2 0
	kubectl -n ringcap-suite delete pod card --wait
	remove capturering/suite-card
	on_node 'nft delete table netdev suite' || true
	card_restored() { [ "$(on_node "$card_looks")" = "$before" ]; }
	wait_for 120 card_restored || { diff <(echo "$before") <(on_node "$card_looks"); return 1; }
	wait_for 90 card_announced || { kubectl get events; return 1; }
	on_node 'ip address del 192.0.2.7/32 dev card0; ! dmesg | grep -E "BUG|Oops|WARNING|general protection"'
}
