// SPDX-License-Identifier: Apache-2.0

package dashboards

const (
	droppedRate = `rate(ringcap_queue_dropped_packets_total{node=~"$node"}[$__rate_interval])`
	missedRate  = `rate(ringcap_interface_missed_packets_total{node=~"$node"}[$__rate_interval])`
	overrunRate = `rate(ringcap_interface_overrun_packets_total{node=~"$node"}[$__rate_interval])`
)

// fleet answers where loss is, and why.
var fleet = Dashboard{
	Name: "fleet", Title: "Fleet", Description: "Where packets are lost and why, and which nodes and rings are not as their specs ask.",
	Variables: []Variable{nodes},
	Rows: []Row{
		{Title: "Is anything wrong?", Panels: []Panel{
			figure("Seen", PacketsPerSecond, "Packets that all rings saw.", `sum(rate(ringcap_ring_seen_packets_total{node=~"$node"}[$__rate_interval]))`),
			number("Lost in queues", PacketsPerSecond, 0.001, "Packets that rings passed and queues did not deliver, for any reason.", `sum(`+droppedRate+`)`),
			number("Lost before rings", PacketsPerSecond, 0.001, "Packets that NICs missed, or that overran their buffers.", `sum(`+missedRate+`) + sum(`+overrunRate+`)`),
			number("Queues without consumer", Count, 1, "No pod reads these queues.", `count(ringcap_queue_attached{node=~"$node"}) - sum(ringcap_queue_attached{node=~"$node"})`),
			number("Not in the data path", Count, 1, "Rings and sets of queues that are not in a node's data path as their specs ask, counted for each node.",
				`count(ringcap_ring_ready{node=~"$node"}) - sum(ringcap_ring_ready{node=~"$node"}) + count(ringcap_cluster_ready{node=~"$node"}) - sum(ringcap_cluster_ready{node=~"$node"})`),
			number("Silent nodes", Count, 1, "Nodes with an agent that does not report its status to the API server.", `count(ringcap_operator_node_reporting) - sum(ringcap_operator_node_reporting)`),
		}},
		{Title: "Where is loss, and why?", Panels: []Panel{
			stacked(graph("Lost by reason", PacketsPerSecond, 12, "full: the consumer is too slow. unattended: no consumer is attached. nomem: the kernel has no memory, or (eBPF) a CPU waited too long for a lane that others share. hung: in line, the consumer let packets wait for too long. In line, these packets may have left. NIC: lost before any ring sees it.",
				Query{`sum by (reason) (` + droppedRate + `)`, "{{reason}}"}, Query{`sum(` + missedRate + `)`, "NIC missed"}, Query{`sum(` + overrunRate + `)`, "NIC overrun"})),
			graph("Lost by node", PacketsPerSecond, 12, "Packets lost in queues, for the ten nodes that lose the most.", Query{`topk(10, sum by (node) (` + droppedRate + `))`, "{{node}}"}),
			table("Queues that lose the most", PacketsPerSecond, 12, "", `topk(20, sum by (node, capture_cluster, queue, reason) (`+droppedRate+`))`),
			table("Interfaces that miss the most", PacketsPerSecond, 12, "", `topk(20, sum by (node, interface) (`+missedRate+`))`),
		}},
		{Title: "Rings and clusters", Panels: []Panel{
			graph("Seen by ring", PacketsPerSecond, 12, "", Query{`sum by (ring) (rate(ringcap_ring_seen_packets_total{node=~"$node"}[$__rate_interval]))`, "{{ring}}"}),
			graph("Fullest queues", Ratio, 12, "The share of its fullest lane that each queue has unread, for the ten fullest queues. A full lane loses packets.",
				Query{`topk(10, max by (node, capture_cluster, queue) (ringcap_queue_fullest_lane_ratio{node=~"$node"}))`, "{{node}} {{capture_cluster}}@{{queue}}"}),
			table("Not in the data path", Count, 12, "Nodes where a ring is not in the data path as its spec asks, and the reason.", `max by (node, ring, engine, reason) (ringcap_ring_ready{node=~"$node"}) == 0`),
			table("Not ready", Count, 12, "CaptureRings and Clusters with a condition Ready that is not True, and its reason.", `max by (kind, name, reason) (ringcap_operator_object_ready) == 0`),
		}},
		{Title: "Nodes", Panels: []Panel{
			graph("Rings by engine", Count, 8, "", Query{`count by (engine) (ringcap_ring_ready{node=~"$node"})`, "{{engine}}"}),
			table("Without the kernel module", Count, 8, "Nodes that should use the module and cannot load it, or that have a kernel without one.", `max by (node, reason, version) (ringcap_module_ready{node=~"$node",reason!="Disabled"}) == 0`),
			table("Agents and kernels", Count, 8, "", `count by (version, kernel) (ringcap_build_info{node=~"$node"})`),
			graph("Nodes of rings and clusters", Count, 8, "", Query{`sum by (kind, name) (ringcap_operator_object_nodes_desired)`, "{{kind}} {{name}} desired"},
				Query{`sum by (kind, name) (ringcap_operator_object_nodes_ready)`, "{{kind}} {{name}} ready"}),
			table("Silent", Count, 8, "Nodes with an agent that does not report its status.", `max by (nodecapture) (ringcap_operator_node_reporting) == 0`),
			graph("Operator's reconciliations", Seconds, 8, "Mean duration, by controller.",
				Query{`sum by (controller) (rate(controller_runtime_reconcile_time_seconds_sum{controller=~"rollout|status"}[$__rate_interval])) / sum by (controller) (rate(controller_runtime_reconcile_time_seconds_count{controller=~"rollout|status"}[$__rate_interval]))`, "{{controller}}"}),
		}},
	},
}
