# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Events of Suricata that can be compared: without times, and in one order.

# Rules that count over flows (rules.rules). Suricata's threads share the counts, so the number of alerts by a source is the same,
# but not which of the source's packets they are for.
over_flows='[1401, 1402]'

# events FOLDER QUEUES: alerts, then flows with what Suricata counted in them.
events() {
	jq -c --argjson queues "$2" --argjson over "$over_flows" '
		if .event_type == "alert" then
			[.alert.signature_id, .proto, .src_ip] + (
				if $queues > 1 and (.alert.signature_id | IN($over[])) then []
				else [.src_port, .dest_ip, .dest_port, .vlan, .icmp_type, .icmp_code, .app_proto, .direction, .pkt_src, .alert.action]
				end)
		elif .event_type == "flow" then
			["flow", .proto, .src_ip, .src_port, .dest_ip, .dest_port, .vlan, .app_proto, .flow.pkts_toserver, .flow.pkts_toclient,
			.flow.bytes_toserver, .flow.bytes_toclient, .flow.state, .tcp.tcp_flags, .tcp.state,
			if $queues == 1 then .flow.alerted else null end]
		else empty end' "$1/eve.json" | LC_ALL=C sort
}

# counter FOLDER NAME: the last that Suricata wrote, as counters of all threads.
counter() { jq -rs --arg name "$2" '[.[] | select(.event_type == "stats")] | last | .stats | getpath($name / ".")' "$1/eve.json"; }
