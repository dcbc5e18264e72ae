# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Which pods may have queues. Needs refused.sh, disturbed.sh and hostile.sh.

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
		"its spec.consumers.namespaces names elsewhere, not ringcap-suite")) | .involvedObject.name] | unique | length')" = 2 ]
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
	grep "spec.consumers.namespaces of Cluster suite-closed names $suite; " <<<"$said"
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
