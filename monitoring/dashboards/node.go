// SPDX-License-Identifier: Apache-2.0

package dashboards

var node = Dashboard{
	Name: "node", Title: "Node", Description: "One node: its interfaces, rings, queues and agent.",
	Variables: []Variable{nodes},
	Rows: []Row{
		{Title: "Interfaces", Panels: []Panel{
			graph("Received", PacketsPerSecond, 8, "", Query{`sum by (node, interface) (rate(ringcap_interface_received_packets_total{node=~"$node"}[$__rate_interval]))`, "{{node}} {{interface}}"}),
			graph("Received", BytesPerSecond, 8, "", Query{`sum by (node, interface) (rate(ringcap_interface_received_bytes_total{node=~"$node"}[$__rate_interval]))`, "{{node}} {{interface}}"}),
			graph("Lost or refused", PacketsPerSecond, 8, "Packets that count as missed, overrun or errors are lost before any ring. Rings saw most of those that the stack dropped.",
				Query{`sum by (node, interface) (` + missedRate + `)`, "{{node}} {{interface}} missed"},
				Query{`sum by (node, interface) (` + overrunRate + `)`, "{{node}} {{interface}} overrun"},
				Query{`sum by (node, interface) (rate(ringcap_interface_errors_packets_total{node=~"$node"}[$__rate_interval]))`, "{{node}} {{interface}} errors"},
				Query{`sum by (node, interface) (rate(ringcap_interface_dropped_packets_total{node=~"$node"}[$__rate_interval]))`, "{{node}} {{interface}} dropped by the stack"}),
			table("Drivers", Count, 24, "The state of each interface's driver: stock, aware, replaced or failed.", `max by (node, interface, driver, state) (ringcap_interface_driver_info{node=~"$node"})`),
		}},
		{Title: "Rings and queues", Panels: []Panel{
			graph("Seen", PacketsPerSecond, 8, "", Query{`sum by (node, ring, engine) (rate(ringcap_ring_seen_packets_total{node=~"$node"}[$__rate_interval]))`, "{{node}} {{ring}} ({{engine}})"}),
			graph("Delivered", PacketsPerSecond, 8, "", Query{`sum by (node, capture_cluster, queue) (rate(ringcap_queue_delivered_packets_total{node=~"$node"}[$__rate_interval]))`, "{{node}} {{capture_cluster}}@{{queue}}"}),
			stacked(graph("Lost", PacketsPerSecond, 8, "", Query{`sum by (node, capture_cluster, queue, reason) (` + droppedRate + `)`, "{{node}} {{capture_cluster}}@{{queue}} {{reason}}"})),
			graph("Fill", Ratio, 8, "The share of its fullest lane that each queue has unread.", Query{`max by (node, capture_cluster, queue) (ringcap_queue_fullest_lane_ratio{node=~"$node"})`, "{{node}} {{capture_cluster}}@{{queue}}"}),
			table("Consumers", Count, 8, "1 if a consumer is attached to the queue.", `max by (node, capture_cluster, queue) (ringcap_queue_attached{node=~"$node"})`),
			graph("Memory of queues", Bytes, 8, "By Cluster; room is what new queues can still take, and reserve is what queues leave free.", Query{`sum by (node, capture_cluster) (ringcap_cluster_memory_bytes{node=~"$node"})`, "{{node}} {{capture_cluster}}"},
				Query{`sum by (node) (ringcap_node_memory_room_bytes{node=~"$node"})`, "{{node}} room"}, Query{`sum by (node) (ringcap_node_memory_reserve_bytes{node=~"$node"})`, "{{node}} reserve"}),
		}},
		{Title: "Agent", Panels: []Panel{
			graph("Reconciliations", Seconds, 8, "99th percentile and mean of the duration.",
				Query{`histogram_quantile(0.99, sum by (node, le) (rate(ringcap_reconcile_duration_seconds_bucket{node=~"$node"}[$__rate_interval])))`, "{{node}} 99 %"},
				Query{`sum by (node) (rate(ringcap_reconcile_duration_seconds_sum{node=~"$node"}[$__rate_interval])) / sum by (node) (rate(ringcap_reconcile_duration_seconds_count{node=~"$node"}[$__rate_interval]))`, "{{node}} mean"}),
			graph("Errors", Count, 8, "Failed reconciliations per second.", Query{`sum by (node) (rate(ringcap_reconcile_errors_total{node=~"$node"}[$__rate_interval]))`, "{{node}}"}),
			table("Resources at the kubelet", Count, 8, "1 if the resource is registered.", `max by (node, resource) (ringcap_resource_registered{node=~"$node"})`),
			graph("CPU", Ratio, 8, "Share of one CPU.", Query{`sum by (node) (rate(process_cpu_seconds_total{node=~"$node"}[$__rate_interval]) and on (instance) ringcap_build_info)`, "{{node}}"}),
			graph("Memory", Bytes, 8, "Resident memory. The agent's cgroup is also charged for the queues of the eBPF engine.", Query{`sum by (node) (process_resident_memory_bytes{node=~"$node"} and on (instance) ringcap_build_info)`, "{{node}}"}),
			table("Engines", Count, 8, "1 if the engine can be used.", `max by (node, engine) (ringcap_engine_available{node=~"$node"})`),
		}},
	},
}
