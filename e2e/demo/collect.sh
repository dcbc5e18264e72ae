# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Takes what the cluster knows of a replay. Needs kubectl in PATH and KUBECONFIG.

consumers=ringcap-demo

# What each consumer's file has by now: lines of "POD BYTES".
collect_sizes() {
	local pod
	for pod in $(kubectl -n $consumers get pods -l app.kubernetes.io/name=tcpdump -o 'jsonpath={.items[*].metadata.name}'); do
		echo "$pod $(kubectl -n $consumers exec "$pod" -- stat -c %s "/captures/$pod.pcap")"
	done
}

# collect_files SIZES FOLDER: what each consumer wrote since its file had that size, as a capture.
collect_files() {
	local sizes=$1 folder=$2 pod size file
	while read -r pod size; do
		file=/captures/$pod.pcap
		# shellcheck disable=SC2016 # its arguments are the other shell's
		kubectl -n $consumers exec "$pod" -- sh -c 'head -c 24 "$1" && tail -c "+$2" "$1"' sh "$file" $((size + 1)) \
			>"$folder/${consumers}_$pod.pcap" </dev/null
	done <"$sizes"
}

# The counters of all nodes in one line, and whether anything is still unread.
collect_signature() {
	jq -c '[.items[].status | [(.rings // [])[] | .seen, .passed, .filtered],
		[(.clusters // [])[].queues // [] | .[] | .delivered, .unreadBytes, (.dropped // [])]]' "$1"
}

collect_unread() { jq '[.items[].status.clusters // [] | .[].queues // [] | .[].unreadBytes] | add // 0' "$1"; }

collect_observed() { jq -r '[.items[].status.observedTime // ""] | min' "$1"; }

# collect_stable OUT SECONDS: waits until every node has reported twice after now with the same counters and nothing
# unread, and leaves the last report in OUT.
collect_stable() {
	local out=$1 until=$((SECONDS + $2)) start known='' seen='' observed
	start=$(date -u +%Y-%m-%dT%H:%M:%SZ)
	while :; do
		kubectl get nodecaptures -o json >"$out"
		observed=$(collect_observed "$out")
		if [[ $observed > $start && $observed != "$seen" ]]; then
			if [ "$(collect_signature "$out")" = "$known" ] && [ "$(collect_unread "$out")" = 0 ]; then return; fi
			known=$(collect_signature "$out") seen=$observed
		fi
		if [ "$SECONDS" -ge "$until" ]; then
			echo "the counters were not stable after $2 s; unread: $(collect_unread "$out") bytes; last: $known" >&2
			return 1
		fi
		sleep 1
	done
}
