# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# helm test, on both nodes and so with both engines. Needs disturbed.sh.

# helm_tested NODE ENGINE: its pod captures what it sends, and nothing of it stays.
helm_tested() {
	local said
	helm upgrade ringcap charts/ringcap --namespace ringcap-system --reuse-values --set "test.nodeSelector.kubernetes\.io/hostname=$1" >/dev/null
	said=$(helm test ringcap --namespace ringcap-system --timeout 150s 2>&1) || { echo "$said"; return 1; }
	grep "1000 packets were sent and captured by $2 in ringcap-test@0, in order and unchanged; none was lost" <<<"$said"
	wait_for 60 helm_test_left_nothing
}

helm_test_left_nothing() {
	[ -z "$(kubectl get jobs,pods,serviceaccounts,clusterroles,clusterrolebindings,capturerings -A -o name \
		-l 'app.kubernetes.io/component in (test,test-capture)')" ]
}

test_helm_test() {
	helm_tested node-ebpf EBPF
	helm_tested node-kmod KernelModule
}
