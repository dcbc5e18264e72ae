// SPDX-License-Identifier: Apache-2.0

package rules

// Recordings are the recording rules. The label node is the target's; what else the target has (pod, instance) changes when an
// agent is replaced, and is summed away.
var Recordings = []Recording{
	{"ringcap:ring_seen_packets:rate5m", `sum by (node, ring) (rate(ringcap_ring_seen_packets_total[5m]))`},
	{"ringcap:ring_seen_bytes:rate5m", `sum by (node, ring) (rate(ringcap_ring_seen_bytes_total[5m]))`},
	{"ringcap:queue_delivered_packets:rate5m", `sum by (node, capture_cluster, queue) (rate(ringcap_queue_delivered_packets_total[5m]))`},
	{"ringcap:queue_dropped_packets:rate5m", `sum by (node, capture_cluster, queue, reason) (rate(ringcap_queue_dropped_packets_total[5m]))`},
	// Share of what was passed to the queue. No value while nothing is.
	{"ringcap:queue_dropped:ratio_rate5m", `ringcap:queue_dropped_packets:rate5m / on (node, capture_cluster, queue) group_left () (` +
		`(ringcap:queue_delivered_packets:rate5m + sum by (node, capture_cluster, queue) (ringcap:queue_dropped_packets:rate5m)) > 0)`},
	// That of the fullest lane: when one is full, packets are lost. An agent that is not replaced yet tells only of all lanes.
	{"ringcap:queue_fill:ratio", `max by (node, capture_cluster, queue) (ringcap_queue_fullest_lane_ratio) or sum by (node, capture_cluster, queue) (ringcap_queue_unread_bytes) / sum by (node, capture_cluster, queue) (ringcap_queue_capacity_bytes)`},
	// 1 when all queues get the same, the number of queues when one gets all.
	{"ringcap:cluster_skew:ratio", `max by (node, capture_cluster) (ringcap:queue_delivered_packets:rate5m) / (avg by (node, capture_cluster) (ringcap:queue_delivered_packets:rate5m) > 0)`},
	{"ringcap:interface_lost_packets:rate5m", `label_replace(sum by (node, interface) (rate(ringcap_interface_missed_packets_total[5m])), "reason", "missed", "", "")` +
		` or label_replace(sum by (node, interface) (rate(ringcap_interface_overrun_packets_total[5m])), "reason", "overrun", "", "")` +
		` or label_replace(sum by (node, interface) (rate(ringcap_interface_errors_packets_total[5m])), "reason", "errors", "", "")`},
	// Share of what came to the interface. No value while nothing does.
	{"ringcap:interface_lost:ratio_rate5m", `sum by (node, interface) (ringcap:interface_lost_packets:rate5m{reason=~"missed|overrun"}) / (` +
		`(sum by (node, interface) (rate(ringcap_interface_received_packets_total[5m])) + sum by (node, interface) (ringcap:interface_lost_packets:rate5m{reason=~"missed|overrun"})) > 0)`},
}
