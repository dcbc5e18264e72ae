// SPDX-License-Identifier: Apache-2.0

package dashboards

func ringRate(metric string) string {
	return `sum by (ring) (rate(ringcap_ring_` + metric + `_packets_total{ring=~"$ring",node=~"$node"}[$__rate_interval]))`
}

var ring = Dashboard{
	Name: "ring", Title: "CaptureRing", Description: "What became of the packets that a ring saw, by node and by rule.",
	Variables: []Variable{rings, nodes},
	Rows: []Row{
		{Title: "Packets", Panels: []Panel{
			graph("Seen by node", PacketsPerSecond, 12, "", Query{`sum by (ring, node) (rate(ringcap_ring_seen_packets_total{ring=~"$ring",node=~"$node"}[$__rate_interval]))`, "{{ring}} {{node}}"}),
			graph("Seen by node", BytesPerSecond, 12, "On the wire.", Query{`sum by (ring, node) (rate(ringcap_ring_seen_bytes_total{ring=~"$ring",node=~"$node"}[$__rate_interval]))`, "{{ring}} {{node}}"}),
			stacked(graph("What became of them", PacketsPerSecond, 24, "These add up to what was seen. Passed is what every one of the ring's clusters got.",
				Query{ringRate("passed"), "{{ring}} passed"}, Query{ringRate("filtered"), "{{ring}} filtered"}, Query{ringRate("sampled_out"), "{{ring}} sampled out"},
				Query{ringRate("directed"), "{{ring}} directed"}, Query{ringRate("reflected"), "{{ring}} reflected"}, Query{ringRate("absorbed"), "{{ring}} absorbed (fragments)"})),
		}},
		{Title: "Rules", Panels: []Panel{
			graph("Rules", PacketsPerSecond, 8, "That decided, by name: the 20 busiest.", Query{`topk(20, sum by (ring, rule) (rate(ringcap_rule_packets_total{ring=~"$ring",node=~"$node"}[$__rate_interval])))`, "{{ring}} {{rule}}"}),
			graph("Payload patterns", PacketsPerSecond, 8, "That decided, by name: the 20 busiest.", Query{`topk(20, sum by (ring, pattern) (rate(ringcap_payload_pattern_packets_total{ring=~"$ring",node=~"$node"}[$__rate_interval])))`, "{{ring}} {{pattern}}"}),
			graph("Other rules", PacketsPerSecond, 8, "Without a name, or beyond the first hundred names.", Query{`sum by (ring) (rate(ringcap_rules_other_packets_total{ring=~"$ring",node=~"$node"}[$__rate_interval]))`, "{{ring}}"}),
		}},
		{Title: "Nodes", Panels: []Panel{
			table("In the data path", Count, 12, "1 where a node has the ring as asked; else the reason.", `max by (ring, node, engine, reason) (ringcap_ring_ready{ring=~"$ring",node=~"$node"})`),
			table("Served by eBPF in the module's place", Count, 12, "1 where spec.engine is Auto and the module is not there.", `max by (ring, node) (ringcap_ring_fallback{ring=~"$ring",node=~"$node"})`),
		}},
	},
}
