# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# What of the installation is ready, in a line, for those who wait. Needs kubectl in PATH and KUBECONFIG.

# The Ready conditions of rings, clusters and nodes, as "KIND/NAME: message" of those that are not true.
state_unready() {
	kubectl get capturerings,clusters.ringcap.io,nodecaptures -o json 2>/dev/null | jq -r '
		.items[] | . as $object | [.status.conditions // [] | .[] | select(.type == "Ready")][0] as $ready |
		select($ready.status != "True" or $ready.observedGeneration != $object.metadata.generation) |
		"\(.kind)/\(.metadata.name) is not ready: \($ready.reason // "no status yet") \($ready.message // "")"'
	# A node that is down does not count in Ready.
	kubectl get capturerings,clusters.ringcap.io -o json 2>/dev/null | jq -r '
		.items[] | . as $object | .status.conditions // [] | .[] | select(.type == "Degraded" and .status == "True") |
		"\($object.kind)/\($object.metadata.name) is degraded: \(.message)"'
}

state_pods() {
	kubectl get pods -A -o json 2>/dev/null | jq -r '
		.items[] | select([.status.conditions // [] | .[] | select(.type == "Ready" and .status == "True")] == []) |
		[.status.initContainerStatuses // [], .status.containerStatuses // [] | .[] |
			(.state.waiting // .state.terminated // {}) | select(.reason) | .reason + " " + (.message // "")] as $why |
		[.status.conditions // [] | .[] | select(.type == "PodScheduled" and .status == "False") | .message] as $unscheduled |
		select(.status.phase != "Succeeded") |
		"pod \(.metadata.name) is not ready: \($why + $unscheduled + [.status.phase] | .[0])"'
}

state_rollouts() {
	kubectl get daemonsets,deployments -A -o json 2>/dev/null | jq -r '
		.items[] | .status as $s |
		(if .kind == "DaemonSet" then [$s.desiredNumberScheduled, $s.updatedNumberScheduled, $s.numberReady]
		 else [.spec.replicas, $s.updatedReplicas, $s.readyReplicas] end | map(. // 0)) as [$want, $new, $ready] |
		select($want == 0 or $new < $want or $ready < $want or ($s.observedGeneration // 0) < .metadata.generation) |
		"\(.kind) \(.metadata.name): \($ready) of \($want) ready"'
}

# state_wait SECONDS FUNCTION...: waits until none of the functions has anything to say, and says on file descriptor 3
# what is waited for whenever that changes.
state_wait() {
	local until=$((SECONDS + $1)) now said=
	shift
	while :; do
		now=$(for function; do "$function"; done)
		[ -n "$now" ] || return 0
		# Only what was not said before.
		grep -vxFf <(echo "$said") <<<"$now" | cut -c 1-160 | head -n 4 >&3 || true
		said+=$'\n'$now
		[ "$SECONDS" -lt "$until" ] || { echo "$now" >&2; return 1; }
		sleep 2
	done
}

# Everything that helps to see why something is not ready.
state_describe() {
	kubectl get nodes,pods -A -o wide
	kubectl get capturerings,clusters.ringcap.io,nodecaptures -o yaml
	kubectl get events -A --sort-by=.lastTimestamp | tail -n 60
	local pod namespace
	while read -r namespace pod; do
		echo "=== $namespace/$pod"
		kubectl -n "$namespace" logs "$pod" --all-containers --tail=100
	done < <(kubectl get pods -A -o 'jsonpath={range .items[*]}{.metadata.namespace} {.metadata.name}{"\n"}{end}')
} 2>&1
