# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# What a person may ask for that cannot be: each is refused with a condition, or at once by the API server, that names
# the field and the cause, and nothing else suffers.

# apply NAME KIND SPEC: a ringcap object of the suite's own.
apply() {
	kubectl apply -f - <<-END
		apiVersion: ringcap.io/v1alpha1
		kind: $2
		metadata: {name: $1, labels: {ringcap.local/suite: refused}}
		spec: $3
	END
}

# condition KIND/NAME TYPE: "STATUS REASON MESSAGE" of a condition, by the spec as it is.
condition() {
	kubectl get "$1" -o json | jq -r --arg type "$2" '. as $o | .status.conditions[] |
		select(.type == $type and .observedGeneration == $o.metadata.generation) | "\(.status) \(.reason) \(.message)"'
}

# expect_condition KIND/NAME TYPE PATTERN: waits for a condition like the pattern (extended, at its start).
expect_condition() {
	local until=$((SECONDS + 60)) is=
	while [ "$SECONDS" -lt "$until" ]; do
		is=$(condition "$1" "$2" 2>/dev/null || true)
		if grep -qE "^$3" <<<"$is"; then
			echo "$1 $2: $is"
			return 0
		fi
		sleep 1
	done
	echo "$1: condition $2 is '$is', not like '$3'" >&2
	return 1
}

# expect_rejected PATTERN NAME KIND SPEC: the API server refuses it in words like the pattern.
expect_rejected() {
	local pattern=$1 said
	shift
	if said=$(apply "$@" 2>&1); then
		echo "the API server took $2 $1 ($3)" >&2
		return 1
	fi
	grep -qE "$pattern" <<<"$said" || { echo "refused, but not in words like '$pattern': $said" >&2; return 1; }
	echo "$said"
}

remove() { kubectl delete --wait --timeout=60s "$@"; }

test_unknown_interface() {
	apply suite-nowhere CaptureRing '{interfaces: [{name: nowhere7}], queues: 1}'
	expect_condition capturering/suite-nowhere Ready 'False InterfaceNotFound .*nowhere7'
	remove capturering/suite-nowhere
}

test_filter_that_does_not_compile() {
	apply suite-filter CaptureRing '{interfaces: [{name: mirror0}], queues: 1, filter: {bpf: "tcp prot 80"}}'
	expect_condition capturering/suite-filter Accepted 'False InvalidFilter .*(syntax|filter)'
	expect_condition capturering/suite-filter Ready 'False'
	remove capturering/suite-filter
}

test_queues_out_of_range() {
	expect_rejected 'queues.*must be 1 to 256' suite-zero CaptureRing '{interfaces: [{name: mirror0}], queues: 0}'
	expect_rejected 'queues.*must be 1 to 256' suite-many CaptureRing '{interfaces: [{name: mirror0}], queues: 100000}'
	expect_rejected 'queues.*less than or equal to 256' suite-many Cluster '{rings: [mirror], queues: 100000}'
}

test_ring_larger_than_its_memory_limit() {
	apply suite-large CaptureRing '{interfaces: [{name: mirror0}], queues: 2, slots: 1048576, snapLength: 2048, memoryLimit: 64Mi}'
	expect_condition capturering/suite-large Ready 'False MemoryLimitExceeded .*memoryLimit'
	remove capturering/suite-large
}

# It took a node down: half a gigabyte a queue and lane, on a machine of less than three. What runs there goes on.
test_ring_larger_than_its_node() {
	apply suite-huge CaptureRing '{nodeSelector: {matchLabels: {ringcap.io/lab: kmod}}, interfaces: [{name: mirror0}], queues: 4, slots: 262144, memoryLimit: 64Gi}'
	expect_condition capturering/suite-huge Ready 'False NodeMemoryInsufficient .*4 queues of 512Mi.* need .* MiB.*--memory-reserve.*spec.slots'
	expect_condition capturering/mirror Ready 'True'
	remove capturering/suite-huge
}

# The snapLength of a ring on each node, by name, as the operator told it.
told_snap_lengths() {
	kubectl get nodecaptures -o json | jq -c --arg r "$1" '[.items | sort_by(.metadata.name)[].spec.rings[] | select(.name == $r) | .spec.snapLength]'
}

are_told() { [ "$(told_snap_lengths "$1")" = "$2" ]; }

# An edit that a node refuses stops at it: node-ebpf comes first by name, and has no such queue. The other keeps what it had, and goes on when
# the edit is corrected.
test_edit_stops_at_the_node_that_refuses_it() {
	local rest='queues: 1, slots: 64'
	apply suite-edit CaptureRing "{interfaces: [{name: mirror0}], $rest, snapLength: 1000}"
	expect_condition capturering/suite-edit RolledOut 'True RolledOut given to 2 nodes'
	expect_condition capturering/suite-edit Ready 'True'
	apply suite-edit CaptureRing "{interfaces: [{name: mirror0, rxQueues: '1000'}], $rest, snapLength: 1001}"
	expect_condition capturering/suite-edit RolledOut \
		'False RolloutPaused given to 1 of 2 nodes; paused.*node-ebpf \(Unsupported\): .*rxQueues 1000.*spec.rollout.maxUnavailable'
	expect_condition capturering/suite-edit Ready 'False Unsupported'
	are_told suite-edit '[1001,1000]' || { told_snap_lengths suite-edit >&2; return 1; }
	apply suite-edit CaptureRing "{interfaces: [{name: mirror0}], $rest, snapLength: 1002}"
	expect_condition capturering/suite-edit Ready 'True'
	are_told suite-edit '[1002,1002]' || { told_snap_lengths suite-edit >&2; return 1; }
	expect_rejected 'maxUnavailable.*1 or more' suite-edit CaptureRing "{interfaces: [{name: mirror0}], rollout: {maxUnavailable: 0}}"
	remove capturering/suite-edit
}

test_ring_and_cluster_of_one_name() {
	apply suite-twin CaptureRing '{interfaces: [{name: mirror0}], queues: 1, slots: 64}'
	expect_condition capturering/suite-twin Ready 'True'
	apply suite-twin Cluster '{rings: [mirror], queues: 1, slots: 64}'
	expect_condition clusters.ringcap.io/suite-twin Accepted 'False NameConflict .*suite-twin'
	expect_condition capturering/suite-twin Ready 'True'
	remove capturering/suite-twin clusters.ringcap.io/suite-twin
}

test_cluster_over_a_missing_ring() {
	apply suite-orphan Cluster '{rings: [not-there], queues: 1}'
	expect_condition clusters.ringcap.io/suite-orphan Accepted 'False RingNotFound .*not-there'
	remove clusters.ringcap.io/suite-orphan
}

# What a node has of a name: its resource at the kubelet, and what the agent reports.
node_has() {
	kubectl get node "$1" -o json | jq -e --arg r "ringcap.io/$2" '(.status.allocatable[$r] // "0") != "0"' && return
	kubectl get nodecapture "$1" -o json | jq -e --arg n "$2" '[.status.rings[], .status.clusters[] | .name] | index($n)'
}

node_has_not() { ! node_has "$@"; }

test_deletion_cleans_the_nodes() {
	local node
	apply suite-brief CaptureRing '{interfaces: [{name: mirror0}], queues: 1, slots: 64}'
	expect_condition capturering/suite-brief Ready 'True'
	# shellcheck disable=SC2154 # of the cluster's env.sh
	for node in $nodes; do wait_for 60 node_has "$node" suite-brief; done
	remove capturering/suite-brief
	for node in $nodes; do
		wait_for 60 node_has_not "$node" suite-brief || { echo "$node still has suite-brief" >&2; return 1; }
	done
	"$root/e2e/cluster/node-exec" node-kmod 'cat /proc/net/ringcap/info; ! ls /dev/ringcap/suite-brief /run/ringcap/suite-brief'
	"$root/e2e/cluster/node-exec" node-ebpf '! ls /run/ringcap/suite-brief; ! ls -R /sys/fs/bpf | grep -q suite-brief'
}
