# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# What may happen while packets flow. Each test replays the demo's capture to both nodes, disturbs, and has every packet
# accounted for. Needs the demo's replay.sh and collect.sh.

# disturbed AT FUNCTION [OPTION...]: replays, calls the function once AT packets were sent to node-kmod, and checks the
# account with the options of `rcdemo report`. $input is what is replayed, by traffic; undisturb is called when all was sent.
disturbed() {
	local at=$1 function=$2 run=$work/$2 sender
	shift 2
	mkdir -p "$run"
	cp "$input" "$run/input.pcap"
	collect_sizes >"$run/sizes"
	collect_counters "$run/before.json"
	sent_before=$(wire_counter node-kmod tx_packets)
	[ "$at" != 0 ] || "$function"
	traffic "$run" &
	sender=$!
	if [ "$at" != 0 ]; then
		wait_for 60 sent "$at"
		"$function"
	fi
	wait "$sender"
	undisturb
	collect_stable "$run/before.json" "$run/wire.json" "$run/after.json" 150
	collect_files "$run/sizes" "$run"
	"$rcdemo" report --dir "$run" --json "$run/summary.json" "$@"
}

traffic() { replay "$1/input.pcap" "$1/wire.json"; }

undisturb() { :; }

sent() { [ $(($(wire_counter node-kmod tx_packets) - sent_before)) -ge "$1" ]; }

each_node() {
	local node
	for node in $nodes; do "$root/e2e/cluster/node-exec" "$node" "$1"; done
}

agent_restarts() {
	kubectl -n ringcap-system get pods -l app.kubernetes.io/component=agent -o json |
		jq '[.items[].status.containerStatuses[].restartCount] | add'
}

# shellcheck disable=SC2016 # the other shell's
kill_agents() { each_node 'kill -9 $(pidof node-agent)'; }

test_agent_killed_under_traffic() {
	local before
	before=$(agent_restarts)
	disturbed 30000 kill_agents --lossless
	wait_for 120 agents_restarted $((before + 2)) || { echo 'the agents were not restarted' >&2; return 1; }
	wait_for 180 everything_ready
}

agents_restarted() { [ "$(agent_restarts)" -ge "$1" ]; }

everything_ready() { [ -z "$(state_rollouts)$(state_unready)$(state_pods)" ]; }

# shellcheck disable=SC2016 # the other shell's
kill_kubelets() { each_node 'kill -9 $(cat /run/node/kubelet.pid)'; }

test_kubelet_restarted_under_traffic() {
	disturbed 30000 kill_kubelets --lossless
	wait_for 180 everything_ready
	wait_for 120 resources_offered || { echo 'a node does not offer ringcap.io/ids: 2 again' >&2; return 1; }
}

resources_offered() {
	kubectl get nodes -o json | jq -e '[.items[].status.allocatable["ringcap.io/ids"]] == ["2", "2"]'
}

# Consumers that do not read lose packets, and each is named.
# shellcheck disable=SC2016 # the other shell's
stop_consumers() { each_node 'kill -STOP $(pidof tcpdump)'; }

test_consumers_too_slow() {
	local input=$work/long.pcap
	undisturb() { each_node 'kill -CONT $(pidof tcpdump)'; }
	"$rcdemo" trace --out "$input" --at-least 400000 "$("$root/e2e/demo/captures")"
	RINGCAP_DEMO_PPS_KMOD=15000 disturbed 0 stop_consumers
	undisturb() { :; }
	jq -e 'all(.nodes[]; [.queues[].dropped.full // 0] | add > 0)' "$work/stop_consumers/summary.json" ||
		{ echo 'no packet was dropped as full: the consumers were fast enough after all' >&2; return 1; }
}

# An edit that only the nodes refuse, under traffic, while the agents are replaced by those of an upgrade: with both engines what
# was accepted goes on, before and after. Both get it: by default the rollout would stop at the first.
refused_edit() {
	kubectl patch capturering mirror --type=json --patch "[{\"op\": \"$1\", \"path\": \"/spec/interfaces/0/rxQueues\", \"value\": \"1000\"},
		{\"op\": \"$1\", \"path\": \"/spec/rollout\", \"value\": {\"maxUnavailable\": \"100%\"}}]"
}

roll_agents() {
	helm upgrade ringcap charts/ringcap --namespace ringcap-system --reuse-values --set agent.logLevel="${1:-debug}" >/dev/null
	kubectl -n ringcap-system rollout status daemonset ringcap-agent --timeout=180s
}

# Both nodes say so, by agents that are ready.
edit_is_refused() {
	kubectl get nodecaptures -o json | jq -e '[.items[].status.rings[] | select(.name == "mirror") |
		.reason == "Unsupported" and (.message | test("rxQueues 1000: .*until then it stays as it was"))] == [true, true]'
}

test_agents_upgraded_while_an_edit_is_refused() {
	refused_edit add
	trap 'refused_edit remove' EXIT
	wait_for 60 edit_is_refused
	disturbed 30000 roll_agents --lossless
	wait_for 120 edit_is_refused
	refused_edit remove
	trap - EXIT
	roll_agents info
	wait_for 180 everything_ready
}
