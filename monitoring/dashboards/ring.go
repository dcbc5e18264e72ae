// SPDX-License-Identifier: Apache-2.0

package dashboards

func ringRate(metric string) string {
	return `sum by (ring) (rate(ringcap_ring_` + metric + `_packets_total{ring=~"$ring",node=~"$node"}[$__rate_interval]))`
}

var ring = Dashboard{
	Name: "ring", Title: "CaptureRing", Description: "How many packets a ring saw, and what happened to them, by node and by rule.",
	Variables: []Variable{rings, nodes},
	Rows: []Row{
		{Title: "Packets", Panels: []Panel{
			graph("Seen by node", PacketsPerSecond, 12, "", Query{`sum by (ring, node) (rate(ringcap_ring_seen_packets_total{ring=~"$ring",node=~"$node"}[$__rate_interval]))`, "{{ring}} {{node}}"}),
			graph("Seen by node", BytesPerSecond, 12, "Bytes as they were on the wire.", Query{`sum by (ring, node) (rate(ringcap_ring_seen_bytes_total{ring=~"$ring",node=~"$node"}[$__rate_interval]))`, "{{ring}} {{node}}"}),
			stacked(graph("Outcome", PacketsPerSecond, 24, "The series add up to the packets seen. Each of the ring's Clusters gets all packets that passed.",
				Query{ringRate("passed"), "{{ring}} passed"}, Query{ringRate("filtered"), "{{ring}} filtered"}, Query{ringRate("sampled_out"), "{{ring}} sampled out"},
				Query{ringRate("directed"), "{{ring}} directed"}, Query{ringRate("reflected"), "{{ring}} reflected"}, Query{ringRate("absorbed"), "{{ring}} absorbed (fragments)"})),
			graph("In line, past the queues", PacketsPerSecond, 24, "Bridged: packets of a ring in line that its filter does not pass; they left at once. Lost: those of them that did not leave.",
				Query{`sum by (ring) (rate(ringcap_ring_inline_bridged_packets_total{ring=~"$ring",node=~"$node"}[$__rate_interval]))`, "{{ring}} bridged"},
				Query{`sum by (ring, reason) (rate(ringcap_ring_inline_lost_packets_total{ring=~"$ring",node=~"$node"}[$__rate_interval])) > 0`, "{{ring}} lost, {{reason}}"}),
		}},
		{Title: "Rules", Panels: []Panel{
			graph("Rules", PacketsPerSecond, 8, "Packets that a rule decided on, for the 20 busiest rules with a name.", Query{`topk(20, sum by (ring, rule) (rate(ringcap_rule_packets_total{ring=~"$ring",node=~"$node"}[$__rate_interval])))`, "{{ring}} {{rule}}"}),
			graph("Payload patterns", PacketsPerSecond, 8, "Packets that a pattern decided on, for the 20 busiest patterns with a name.", Query{`topk(20, sum by (ring, pattern) (rate(ringcap_payload_pattern_packets_total{ring=~"$ring",node=~"$node"}[$__rate_interval])))`, "{{ring}} {{pattern}}"}),
			graph("Other rules", PacketsPerSecond, 8, "Packets that rules without a name, or beyond the first hundred names, decided on.", Query{`sum by (ring) (rate(ringcap_rules_other_packets_total{ring=~"$ring",node=~"$node"}[$__rate_interval]))`, "{{ring}}"}),
		}},
		{Title: "Nodes", Panels: []Panel{
			table("In the data path", Count, 12, "1 if the ring is in the node's data path as its spec asks; otherwise 0 and the reason.", `max by (ring, node, engine, reason) (ringcap_ring_ready{ring=~"$ring",node=~"$node"})`),
			table("Served by eBPF instead of the module", Count, 12, "1 if spec.engine is Auto and the node's kernel module cannot be used.", `max by (ring, node) (ringcap_ring_fallback{ring=~"$ring",node=~"$node"})`),
		}},
	},
}
