# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Takes what the cluster knows of a replay. Needs kubectl in PATH, KUBECONFIG, rcdemo at $rcdemo, and to be in the repository's root.

consumers=ringcap-demo

# collect_counters FILE: all NodeCaptures, with the counters that the agents say now: in the API they are up to five minutes old.
collect_counters() { "$rcdemo" nodecaptures >"$1.new" && mv "$1.new" "$1"; }

# What each consumer's file has by now: lines of "POD BYTES".
collect_sizes() {
	local pod
	for pod in $(kubectl -n $consumers get pods -l app.kubernetes.io/name=tcpdump -o 'jsonpath={.items[*].metadata.name}'); do
		echo "$pod $(kubectl -n $consumers exec "$pod" -- stat -c %s "/captures/$pod.pcap")"
	done
}

# collect_file POD FROM OUT: what a consumer wrote since its file had FROM bytes, as a capture.
collect_file() {
	local pod=$1 from=$2 out=$3 node uid
	read -r node uid < <(kubectl -n $consumers get pod "$pod" -o 'jsonpath={.spec.nodeName} {.metadata.uid}{"\n"}')
	e2e/cluster/node-captures "$node" "$uid" "$pod.pcap" "$from" "$out"
}

# collect_files SIZES FOLDER: what all consumers wrote since their files had those sizes.
collect_files() {
	local sizes=$1 folder=$2 pod size
	while read -r -u 4 pod size; do
		collect_file "$pod" "$size" "$folder/${consumers}_$pod.pcap"
	done 4<"$sizes"
}

# collect_settled BEFORE WIRES AFTER: on every node the ring has seen what was on its wire, and of the cluster that is
# looked at nothing is unread.
collect_settled() {
	jq -en --slurpfile before "$1" --slurpfile wires "$2" --slurpfile after "$3" --arg ring mirror --arg cluster ids '
		def seen($list; $node): [$list.items[] | select(.metadata.name == $node) | .status.rings // [] | .[] |
			select(.name == $ring) | .seen] | add // 0;
		def unread($list; $node): [$list.items[] | select(.metadata.name == $node) | .status.clusters // [] | .[] |
			select(.name == $cluster) | .queues // [] | .[] | .unreadBytes] | add // 0;
		$wires[0] | to_entries | all(. as $wire |
			seen($after[0]; .key) - seen($before[0]; .key) >= $wire.value.onWire and unread($after[0]; .key) == 0)'
}

# collect_stable BEFORE WIRES AFTER SECONDS: waits until all is seen and read and, for as long as a node may be behind
# with its report, nothing changes any more; leaves the last report in AFTER. When that does not come in time, the
# last report is what there is: the account will say what is wrong with it.
collect_stable() {
	local before=$1 wires=$2 after=$3 until=$((SECONDS + $4)) known='' since=$SECONDS now
	while [ "$SECONDS" -lt "$until" ]; do
		# An agent that does not answer, and was waited for, leaves what there is.
		collect_counters "$after" || [ -e "$after" ] || cp "$before" "$after"
		now=$(jq -c '[.items[].status | .rings, .clusters]' "$after")
		if [ "$now" != "$known" ]; then known=$now since=$SECONDS; fi
		if collect_settled "$before" "$wires" "$after" >/dev/null && [ $((SECONDS - since)) -ge 3 ]; then return; fi
		sleep 1
	done
	echo "after $4 s not all packets are seen and read, or the counters still move"
}
