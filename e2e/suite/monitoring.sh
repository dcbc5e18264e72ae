# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# A real Prometheus scrapes the real agents and the real operator, with the chart's rules: all that dashboards, recording rules
# and alerts ask for is there, and what a fault does is seen. Needs refused.sh and the demo's replay.sh.

prometheus=http://127.0.0.1:19090

# What the PodMonitors of the chart say, as a file: three seconds between two scrapes.
prometheus_config() {
	local node operator
	operator=$(kubectl -n ringcap-system get pods -l app.kubernetes.io/component=operator -o 'jsonpath={.items[0].status.podIP}')
	cat <<-END
		global: {scrape_interval: 3s, scrape_timeout: 3s, evaluation_interval: 3s}
		rule_files: [$root/charts/ringcap/files/rules.yaml]
		scrape_configs:
		  - job_name: operator
		    static_configs: [{targets: ['$operator:8080']}]
		  - job_name: agent
		    static_configs:
	END
	for node in $nodes; do echo "      - {targets: ['$(node_ip "$node"):9466'], labels: {node: $node}}"; done
}

# For the rest of the (sub)shell that calls it.
prometheus_start() {
	prometheus_bin=$("$root/e2e/prometheus/get")
	CGO_ENABLED=0 go build -o "$work/monitoring" ./e2e/monitoring
	rm -rf "$work/prometheus"
	mkdir "$work/prometheus"
	prometheus_config >"$work/prometheus/config.yml"
	"$prometheus_bin/prometheus" --config.file="$work/prometheus/config.yml" --storage.tsdb.path="$work/prometheus/data" \
		--web.listen-address="${prometheus#http://}" >"$log/prometheus.log" 2>&1 &
	prometheus_pid=$!
	trap 'kill "$prometheus_pid"; wait "$prometheus_pid" || true' EXIT
	wait_for 60 prometheus_scrapes || { tail -n 5 "$log/prometheus.log" >&2; return 1; }
}

# asked QUERY: how many series it has.
asked() { curl_get "$prometheus/api/v1/query" "query=$1" | jq '.data.result | length'; }

# curl is not everywhere.
curl_get() {
	python3 -c 'import sys, urllib.parse, urllib.request
print(urllib.request.urlopen(sys.argv[1] + "?" + urllib.parse.quote(sys.argv[2], safe="=")).read().decode())' "$@"
}

prometheus_scrapes() { [ "$(asked 'up == 1')" = 3 ]; }

# has NUMBER QUERY: waits until the query has so many series.
has() {
	has_now() { [ "$(asked "$2")" = "$1" ]; }
	wait_for 60 has_now "$@" || { echo "$(asked "$2") series, not $1: $2" >&2; return 1; }
	echo "$1: $2"
}

# Rings that nobody reads, with rules and patterns by name and without.
monitored_rings() {
	apply suite-rules CaptureRing '{interfaces: [{name: mirror0}], queues: 1, slots: 1024, filter: {rules: [
		{name: web, action: Pass, match: {protocol: TCP, destinationPort: 80, bidirectional: true}},
		{action: Drop, match: {protocol: UDP, destinationPort: 53}}]}}'
	apply suite-payload CaptureRing '{interfaces: [{name: mirror0}], queues: 1, slots: 1024, engine: KernelModule,
		nodeSelector: {matchLabels: {kubernetes.io/hostname: node-kmod}}, filter: {payload: [{name: request, text: GET}, {text: POST}]}}'
	expect_condition capturering/suite-rules Ready True
	expect_condition capturering/suite-payload Ready True
}

# Every packet that each ring saw is in one of the sums, in what Prometheus has as in the kernel.
seen_adds_up() {
	local sum='' part
	for part in passed filtered sampled_out reflected absorbed directed; do
		sum+="${sum:+ + }sum by (node, ring) (ringcap_ring_${part}_packets_total)"
	done
	has 0 "sum by (node, ring) (ringcap_ring_seen_packets_total) != ($sum)"
	has 5 'sum by (node, ring) (ringcap_ring_seen_packets_total{ring=~"mirror|suite-rules|suite-payload"}) > 0'
}

test_monitoring() {
	local target
	monitored_rings
	prometheus_start
	replay "$input" "$work/wire_monitoring.json"
	all_answered() { "$work/monitoring" check "$prometheus"; }
	wait_for 60 all_answered || true
	all_answered
	seen_adds_up
	has 0 'ALERTS{alertstate="firing"}'
	has 2 'ALERTS{alertname="RingcapQueueUnattended",capture_cluster="suite-rules"}'
	has 0 'ALERTS{alertname=~"RingcapModuleFailed|RingcapEngineFallback"}'
	has 0 'ALERTS{alertname=~"Ringcap.*Absent|RingcapNot.*|RingcapNodeNotReporting|RingcapResourceNotRegistered|RingcapReconcileErrors"}'
	[ "$(curl_get "$prometheus/api/v1/rules" '' | jq '[.data.groups[].rules[] | select(.health != "ok")] | length')" = 0 ]
	for target in $(curl_get "$prometheus/api/v1/targets" '' | jq -r '.data.activeTargets[].scrapeUrl'); do
		curl_get "$target" '' | grep -E '^(# (HELP|TYPE) )?ringcap_' | "$prometheus_bin/promtool" check metrics
	done
	remove capturering/suite-rules capturering/suite-payload
}
