# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Sends a capture to every node's mirror interface and accounts for it at the sending end. Needs $log and the cluster's
# env.sh.

# Packets a second. A virtual machine without KVM is slower by far.
replay_rate() {
	case $1 in
	node-ebpf) echo "${RINGCAP_DEMO_PPS_EBPF:-20000}" ;;
	node-kmod) echo "${RINGCAP_DEMO_PPS_KMOD:-5000}" ;;
	esac
}

# The cable's end that is sent into; another than wire0 is a caller's to choose.
replay_wire=${RINGCAP_REPLAY_WIRE:-wire0}

wire_counter() { ip netns exec "$(node_wire "$1")" cat "/sys/class/net/$replay_wire/statistics/$2"; }

# replay_one NODE CAPTURE: sends it, then prints {"NODE": {sent, lost, onWire}}. A tap counts a packet as sent when the
# machine has taken it, so what QEMU has yet to take is waited for.
replay_one() {
	local node=$1 capture=$2 sent lost on_wire before_sent before_lost said=$log/tcpreplay-$1.log
	before_sent=$(wire_counter "$node" tx_packets)
	before_lost=$(wire_counter "$node" tx_dropped)
	ip netns exec "$(node_wire "$node")" tcpreplay --quiet --preload-pcap --no-flow-stats --pps="$(replay_rate "$node")" \
		--intf1=$replay_wire "$capture" >"$said" 2>&1 || { echo "tcpreplay to $node failed; log: $said" >&2; return 1; }
	sent=$(awk '/^Actual:/ { print $2 }' "$said")
	wire_settled() {
		on_wire=$(($(wire_counter "$node" tx_packets) - before_sent))
		lost=$(($(wire_counter "$node" tx_dropped) - before_lost))
		[ $((on_wire + lost)) -ge "$sent" ]
	}
	wait_for 20 wire_settled || true
	jq -nc --arg node "$node" --argjson sent "$sent" --argjson lost "$lost" --argjson onWire "$on_wire" \
		'{($node): {$sent, $lost, $onWire}}'
}

# replay CAPTURE OUT [NODE...]: to the nodes, all by default, at the same time; writes the account of all wires to OUT.
replay() {
	local capture=$1 out=$2 node pids=() failed=0
	shift 2
	# shellcheck disable=SC2086 # a list
	[ $# -gt 0 ] || set -- $nodes
	for node; do
		replay_one "$node" "$capture" >"$out.$node" &
		pids+=($!)
	done
	for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
	[ "$failed" = 0 ] || return 1
	for node; do cat "$out.$node"; done | jq -s add >"$out"
	for node; do rm "$out.$node"; done
}
