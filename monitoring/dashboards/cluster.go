// SPDX-License-Identifier: Apache-2.0

package dashboards

const (
	ofCluster     = `{capture_cluster=~"$capture_cluster",node=~"$node"}`
	deliveredRate = `sum by (node, capture_cluster, queue) (rate(ringcap_queue_delivered_packets_total` + ofCluster + `[$__rate_interval]))`
)

var cluster = Dashboard{
	Name: "cluster", Title: "Cluster", Description: "How a Cluster's packets are balanced over its queues, and whether consumers keep up.",
	Variables: []Variable{clusters, nodes},
	Rows: []Row{
		{Title: "Balance", Panels: []Panel{
			graph("Delivered by queue", PacketsPerSecond, 12, "", Query{deliveredRate, "{{node}} {{capture_cluster}}@{{queue}}"}),
			graph("Delivered by queue", BytesPerSecond, 12, "Bytes that consumers can read, and bytes that the snap length cut off.",
				Query{`sum by (node, capture_cluster, queue) (rate(ringcap_queue_delivered_bytes_total` + ofCluster + `[$__rate_interval]))`, "{{node}} {{capture_cluster}}@{{queue}}"},
				Query{`sum by (node, capture_cluster, queue) (rate(ringcap_queue_truncated_bytes_total` + ofCluster + `[$__rate_interval])) > 0`, "{{node}} {{capture_cluster}}@{{queue}} cut off"}),
			graph("Skew", Count, 12, "The busiest queue's rate divided by the mean: 1 if all are equal, the number of queues if one gets all packets. A few large flows make it large.",
				Query{`max by (node, capture_cluster) (` + deliveredRate + `) / avg by (node, capture_cluster) (` + deliveredRate + `)`, "{{node}} {{capture_cluster}}"}),
			graph("Spread and doubled", PacketsPerSecond, 12, "Spread: given to another queue by whenFull or whenUnattended. Doubled: second copies with the balance type BothEnds.",
				Query{`sum by (node, capture_cluster) (rate(ringcap_cluster_spread_packets_total` + ofCluster + `[$__rate_interval]))`, "{{node}} {{capture_cluster}} spread"},
				Query{`sum by (node, capture_cluster) (rate(ringcap_cluster_duplicated_packets_total` + ofCluster + `[$__rate_interval]))`, "{{node}} {{capture_cluster}} doubled"}),
			graph("Shunted by queue", PacketsPerSecond, 8, "Packets that were not delivered, because the queue's consumer has shunted their flows.",
				Query{`sum by (node, capture_cluster, queue) (rate(ringcap_queue_shunted_packets_total` + ofCluster + `[$__rate_interval])) > 0`, "{{node}} {{capture_cluster}}@{{queue}}"}),
			graph("Shunted by queue", BytesPerSecond, 8, "Bytes on the wire of these packets.",
				Query{`sum by (node, capture_cluster, queue) (rate(ringcap_queue_shunted_bytes_total` + ofCluster + `[$__rate_interval])) > 0`, "{{node}} {{capture_cluster}}@{{queue}}"}),
			graph("Shunted flows", Count, 8, "Flows that consumers have shunted now, and those whose final counters they did not read in time, since the queues were made.",
				Query{`sum by (node, capture_cluster, queue) (ringcap_queue_shunted_flows` + ofCluster + `) > 0`, "{{node}} {{capture_cluster}}@{{queue}}"},
				Query{`sum by (node, capture_cluster, queue) (ringcap_queue_shunted_flows_lost_total` + ofCluster + `) > 0`, "{{node}} {{capture_cluster}}@{{queue}} lost"}),
		}},
		{Title: "Consumers", Panels: []Panel{
			stacked(graph("Lost by queue and reason", PacketsPerSecond, 8, "", Query{`sum by (node, capture_cluster, queue, reason) (rate(ringcap_queue_dropped_packets_total` + ofCluster + `[$__rate_interval]))`, "{{node}} {{capture_cluster}}@{{queue}} {{reason}}"})),
			graph("Truncated by queue", PacketsPerSecond, 8, "Packets that were delivered, but shortened to the ring's snap length.", Query{`sum by (node, capture_cluster, queue) (rate(ringcap_queue_truncated_packets_total` + ofCluster + `[$__rate_interval]))`, "{{node}} {{capture_cluster}}@{{queue}}"}),
			graph("Fill", Ratio, 8, "Lane: the share of the fullest lane that is unread; a full lane loses packets. All: unread bytes as a share of capacity.",
				Query{`max by (node, capture_cluster, queue) (ringcap_queue_fullest_lane_ratio` + ofCluster + `)`, "{{node}} {{capture_cluster}}@{{queue}} lane"},
				Query{`sum by (node, capture_cluster, queue) (ringcap_queue_unread_bytes` + ofCluster + `) / sum by (node, capture_cluster, queue) (ringcap_queue_capacity_bytes` + ofCluster + `)`, "{{node}} {{capture_cluster}}@{{queue}} all"}),
			table("Attached", Count, 8, "1 if a consumer is attached to the queue.", `max by (node, capture_cluster, queue) (ringcap_queue_attached`+ofCluster+`)`),
			table("In the data path", Count, 8, "1 if the queues are in the node's data path as the spec asks; otherwise 0 and the reason.", `max by (node, capture_cluster, engine, reason) (ringcap_cluster_ready`+ofCluster+`)`),
			graph("Memory", Bytes, 8, "", Query{`sum by (node, capture_cluster) (ringcap_cluster_memory_bytes` + ofCluster + `)`, "{{node}} {{capture_cluster}}"}),
		}},
		{Title: "In line", Panels: []Panel{
			stacked(graph("Outcome", PacketsPerSecond, 12, "What became of the packets that a ring in line passed to the queues. Bypassed: left without a verdict, at an event. Stopped: dropped without a verdict, at an event.",
				Query{`sum by (capture_cluster, outcome, reason) (rate(ringcap_queue_inline_packets_total` + ofCluster + `[$__rate_interval]))`, "{{capture_cluster}} {{outcome}} {{reason}}"})),
			graph("Nobody decides", Ratio, 6, "The share of the time in which a queue's consumer did not decide on packets.",
				Query{`sum by (node, capture_cluster, queue) (rate(ringcap_queue_inline_undecided_seconds_total` + ofCluster + `[$__rate_interval]))`, "{{node}} {{capture_cluster}}@{{queue}}"}),
			graph("Waiting", Count, 6, "Packets that wait for a verdict.", Query{`sum by (node, capture_cluster, queue) (ringcap_queue_inline_held_packets` + ofCluster + `)`, "{{node}} {{capture_cluster}}@{{queue}}"}),
			graph("Events, own packets and late verdicts, each second", Count, 8, "How often packets began to go past a consumer, packets that consumers sent themselves, and verdicts without effect.",
				Query{`sum by (node, capture_cluster, queue) (rate(ringcap_queue_inline_episodes_total` + ofCluster + `[$__rate_interval]))`, "{{node}} {{capture_cluster}}@{{queue}} events"},
				Query{`sum by (node, capture_cluster, queue, outcome) (rate(ringcap_queue_inline_injected_packets_total` + ofCluster + `[$__rate_interval])) > 0`, "{{node}} {{capture_cluster}}@{{queue}} own packets, {{outcome}}"},
				Query{`sum by (node, capture_cluster, queue, reason) (rate(ringcap_queue_inline_unused_verdicts_total` + ofCluster + `[$__rate_interval])) > 0`, "{{node}} {{capture_cluster}}@{{queue}} {{reason}} verdicts"}),
			table("Bypassed now", Count, 8, "1 while packets bypass the queue's consumer.", `max by (node, capture_cluster, queue) (ringcap_queue_inline_bypassing`+ofCluster+`)`),
			table("Blocked now", Count, 8, "1 while packets are blocked because nobody decides on them.", `max by (node, capture_cluster, queue) (ringcap_queue_inline_blocking`+ofCluster+`)`),
		}},
	},
}
