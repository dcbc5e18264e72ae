# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# The pods of a workload are captured on both nodes while their number changes, by a ring (examples/pods.yaml as it is) and by
# `ringcap capture deploy/web`. Each datagram that a pod sends is in both captures, once. Needs cli.sh and refused.sh.

shop=shop
# Where the datagrams go: an address for documentation, which nobody has.
nowhere=192.0.2.1

# workload NAME REPLICAS: a Deployment of pods that the example selects, spread over the nodes.
workload() {
	kubectl create namespace $shop --dry-run=client -o yaml | kubectl apply -f -
	kubectl apply -f - <<-END
		apiVersion: apps/v1
		kind: Deployment
		metadata: {name: $1, namespace: $shop}
		spec:
		  replicas: $2
		  selector: {matchLabels: {app: web, part: $1}}
		  template:
		    metadata: {labels: {app: web, part: $1}}
		    spec:
		      terminationGracePeriodSeconds: 0
		      automountServiceAccountToken: false
		      topologySpreadConstraints:
		        - {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {part: $1}}}
		      containers:
		        - {name: web, image: "ringcap.local/probe:$(image_tag probe)", command: [sleep, infinity]}
	END
	kubectl -n $shop rollout status deployment "$1" --timeout=150s
}

# web_pods PART: lines of "POD NODE ADDRESS".
web_pods() {
	kubectl -n $shop get pods -l "part=$1" -o json | jq -r '.items[] | "\(.metadata.name) \(.spec.nodeName) \(.status.podIP)"'
}

# All pods that there are have their interfaces tapped, and the status says whose they are.
all_tapped() {
	diff <(kubectl -n $shop get pods -l app=web -o 'jsonpath={range .items[*]}{.spec.nodeName} shop/{.metadata.name}{"\n"}{end}' | sort) \
		<(kubectl get nodecaptures -o json | jq -r '.items[] | .metadata.name as $node | .status.interfaces[]? |
			select(.pod and (.rings | index("web-pods"))) | "\($node) \(.pod)"' | sort)
}

# sends PART COUNT: each of its pods sends so many datagrams, at the same time; $work/sent has a line for each.
sends() {
	local pod node address senders=() sender
	while read -r pod node address; do
		kubectl -n $shop exec "$pod" -- send $nowhere 9 "$2" </dev/null &
		senders+=($!)
		echo "$pod $node $address $2" >>"$work/sent"
	done < <(web_pods "$1")
	for sender in "${senders[@]}"; do wait "$sender"; done
}

# in_file FILE ADDRESS COUNT: it has so many of the datagrams from there, and no more.
in_file() {
	local found
	found=$(captured "$1" "udp dst port 9 and src host $2")
	[ "$found" = "$3" ] || { echo "${1##*/} has $found of $3 datagrams from $2" >&2; return 1; }
}

# Every datagram that was sent is in the file of the node's tcpdump.
ring_has_all() {
	local node pod address count file consumer
	for node in $nodes; do
		consumer=$(kubectl -n ringcap-pods get pods --field-selector "spec.nodeName=$node" -o 'jsonpath={.items[0].metadata.name}')
		kubectl -n ringcap-pods exec "$consumer" -- cat /captures/web.pcap >"$work/web-$node.pcap"
	done
	while read -r pod node address count; do
		in_file "$work/web-$node.pcap" "$address" "$count" || return 1
	done <"$work/sent"
	for file in "$work"/web-node-*.pcap; do echo "$file: $(captured "$file") packets"; done
}

# A report that is made while packets come has ring and queues a moment apart.
web_adds_up() {
	"$rcdemo" nodecaptures | jq -e '[.items[].status | (.rings[] | select(.name == "web-pods")) as $ring |
		[(.clusters[] | select(.name == "web-pods")).queues[] | .delivered + ([.dropped[]?.packets] | add)] as $queues |
		$ring.seen == $ring.passed and $ring.passed == ($queues | add)] | all'
}

test_pods_come_and_go_and_none_loses_a_packet() {
	local file=$work/deploy.pcapng steady pod node address count
	rm -f "$work/sent"
	workload web 2
	kubectl apply -f examples/pods.yaml
	expect_condition capturering/web-pods Ready 'True'
	kubectl -n ringcap-pods rollout status daemonset tcpdump --timeout=150s
	wait_for 60 all_tapped
	captures_of_shop deploy/web -w "$file" --slots 16384

	# These two send all the while.
	sends web 30000 &
	steady=$!
	workload more 4
	wait_for 60 all_tapped
	sends more 500
	kubectl -n $shop delete deployment more --wait
	wait_for 60 all_tapped
	wait "$steady"
	wait_for 60 ring_has_all
	wait_for 60 web_adds_up

	deploy_there() { [ "$(captured "$file" 'udp dst port 9')" -ge 60000 ]; }
	wait_for 60 deploy_there || accounts_of_captures || true
	kill -INT "$capture"
	wait "$capture" || { cat "$work/capture.err" >&2; return 1; }
	cat "$work/capture.err"
	# Of the Deployment's own pods it has all, by their names, and of others nothing.
	while read -r pod node address count; do
		case $pod in
		web-*)
			in_file "$file" "$address" "$count"
			grep -qa "$node/shop/$pod" "$file"
			;;
		*)
			in_file "$file" "$address" 0
			! grep -qa "shop/$pod" "$file" || return 1
			;;
		esac
	done <"$work/sent"
	grep -q ', 0 lost$' "$work/capture.err"
	ringcap_left_nothing
	remove -f examples/pods.yaml
	remove namespace $shop
	nothing_tapped() { ! kubectl get nodecaptures -o json | jq -e '.items[].status.interfaces[]? | select(.pod)'; }
	wait_for 90 nothing_tapped
}

captures_of_shop() {
	local ringcap=$work/ringcap-in-shop
	printf '#!/bin/sh\nexec %s -n %s "$@"\n' "$root/out/bin/ringcap" $shop >"$ringcap"
	chmod +x "$ringcap"
	captures "$@"
}
