# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# A ring on the interface with the node's own network: what can cut the node off is refused, and where it is allowed in words, the
# node comes back by itself. Needs refused.sh.

own_ring() {
	apply suite-own CaptureRing "{nodeSelector: {matchLabels: {kubernetes.io/hostname: node-ebpf}}, interfaces: [{name: eth0}], queues: 1, slots: 64,
		engine: EBPF, xdp: GenericAllowed, $1}"
}

# own_says REASON: the node has said so of the ring as it is asked for now.
own_says() {
	kubectl get nodecapture node-ebpf -o json | jq -e --arg reason "$1" '.metadata.generation == .status.appliedGeneration and
		any(.status.rings[]; .name == "suite-own" and (.reason // "") == $reason)'
}

test_ring_on_the_nodes_own_network() {
	own_ring 'transparentMode: 0'
	expect_condition capturering/suite-own Ready 'True'
	own_ring 'transparentMode: 2'
	expect_condition capturering/suite-own Ready 'False NodeTrafficRefused .*eth0 has the address .*transparentMode 2 .*spec.nodeTraffic to Allow.*stays as it was'
	own_ring 'transparentMode: 0, nic: {vlanOffload: Disable, rxQueues: 1}'
	expect_condition capturering/suite-own Ready 'False NodeTrafficRefused .*spec.nic.vlanOffload Disable, spec.nic.rxQueues would stop its device'
	remove capturering/suite-own
	# The module, and a driver that would be replaced.
	apply suite-own CaptureRing '{nodeSelector: {matchLabels: {ringcap.io/lab: kmod}}, interfaces: [{name: eth0}], queues: 1, slots: 64, nic: {rxRingSize: 256}}'
	expect_condition capturering/suite-own Ready 'False NodeTrafficRefused .*eth0 has the address'
	remove capturering/suite-own
}

# Seconds since the kubelet of node-ebpf was last heard of.
lease_age() { kubectl -n kube-node-lease get lease node-ebpf -o json | jq '.spec.renewTime | now - (sub("\\.[0-9]+"; "") | fromdate) | floor'; }

is_silent() { [ "$(lease_age)" -ge 20 ]; }
is_heard() { [ "$(lease_age)" -lt 13 ]; }

cut_off_announced() {
	kubectl get events.events.k8s.io -o json | jq -e 'any(.items[]; .regarding.kind == "NodeCapture" and .regarding.name == "node-ebpf" and
		.reason == "NodeCutOff" and .related.name == "suite-own")'
}

test_node_cut_off_comes_back() {
	local agent
	wait_for 60 is_heard
	own_ring 'transparentMode: 2, nodeTraffic: Allow, nic: {vlanOffload: Disable}'
	wait_for 90 is_silent || { echo "node-ebpf was not cut off" >&2; kubectl get nodecapture node-ebpf -o json | jq .status; return 1; }
	wait_for 120 own_says NodeCutOff || { kubectl get nodecapture node-ebpf -o json | jq .status; return 1; }
	wait_for 60 is_heard
	expect_condition capturering/suite-own Ready 'False NodeCutOff .*API server could not be reached for 30s.*until the ring.s spec changes'
	wait_for 60 cut_off_announced || { kubectl get events; return 1; }
	# Another agent does not try it again.
	# shellcheck disable=SC2154 # of release.sh
	agent=$(kubectl -n "$system" get pods -l app.kubernetes.io/component=agent --field-selector spec.nodeName=node-ebpf -o name)
	kubectl -n "$system" delete "$agent" --wait
	kubectl -n "$system" rollout status daemonset ringcap-agent --timeout=120s
	sleep 30
	wait_for 10 is_heard
	own_says NodeCutOff
	# Another spec is another ring.
	own_ring 'transparentMode: 0'
	expect_condition capturering/suite-own Ready 'True'
	remove capturering/suite-own
}
