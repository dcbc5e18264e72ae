# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# Events of Suricata that can be compared: without times, and in one order.
#
# With several queues some things depend on which thread comes first:
# - Rules that count over flows. Suricata's threads share the counts, so the number of alerts by a source is the same, but not
#   which of the source's packets they are for.
# - ICMP errors. Suricata adds them to the flow that they are about, if it knows the flow already. They have no ports, and may
#   come by another queue than the flow.
# - If a flow has alerts, because of both.
over_flows='[1401, 1402]'
icmp_errors='[1620]' # a rule for these alone

# events FOLDER QUEUES: alerts, then flows with what Suricata counted in them.
events() {
	jq -c -s --argjson queues "$2" --argjson over "$over_flows" --argjson errors "$icmp_errors" '
		def one: $queues == 1;
		def alert($error): [.alert.signature_id, .proto, .src_ip] +
			if one or (.alert.signature_id | IN($over[]) | not) then
				[.src_port, .dest_ip, .dest_port, .vlan, .icmp_type, .icmp_code, .pkt_src, .alert.action] +
				if one or ($error | not) then [.app_proto, .direction] else [] end
			else [] end;
		def flow($about): ["flow", .proto, .src_ip, .src_port, .dest_ip, .dest_port, .vlan, .app_proto, .tcp.tcp_flags, .tcp.state] +
			(if one or ($about | not) then
				[.flow.pkts_toserver, .flow.bytes_toserver, .flow.pkts_toclient, .flow.bytes_toclient, .flow.state]
			else [] end) +
			if one then [.flow.alerted] else [] end;
		([.[] | select(.event_type == "alert" and (.alert.signature_id | IN($errors[])))] | map({key: .dest_ip, value: true}) |
			from_entries) as $told |
		.[] |
		if .event_type == "alert" then alert(.proto == "ICMP" and (.icmp_type | IN(3)))
		elif .event_type == "flow" then flow($told[.src_ip] or $told[.dest_ip])
		else empty end' "$1/eve.json" | LC_ALL=C sort
}

# counter FOLDER NAME: the last that Suricata wrote, as counters of all threads.
counter() {
	jq -rs --arg name "$2" '[.[] | select(.event_type == "stats")] | last | .stats | getpath($name / ".")' "$1/eve.json"
}
