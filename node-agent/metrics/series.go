// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ringcap/ringcap/monitoring/catalogue"
)

// metric is a name with its labels.
type metric struct {
	catalogue.Metric
	desc *prometheus.Desc
}

// known lists all metrics, in the order of this file.
var known []metric

func define(kind catalogue.Kind, name, help string, labels ...string) metric {
	name = "ringcap_" + name
	m := metric{catalogue.Metric{Name: name, Kind: kind, Labels: labels, Help: help}, prometheus.NewDesc(name, help, labels, nil)}
	known = append(known, m)
	return m
}

func counter(name, help string, labels ...string) metric {
	return define(catalogue.Counter, name, help, labels...)
}

func gauge(name, help string, labels ...string) metric {
	return define(catalogue.Gauge, name, help, labels...)
}

// Catalogue lists what an agent exposes, in addition to the metrics of every Go process.
func Catalogue() []catalogue.Metric {
	var all []catalogue.Metric
	for _, m := range known {
		all = append(all, m.Metric)
	}
	return slices.Clip(all)
}

// States of an interface's driver.
const (
	driverStock    = "stock"
	driverAware    = "aware"
	driverReplaced = "replaced"
	driverFailed   = "failed"
)

var (
	ringSeen          = counter("ring_seen_packets_total", "Packets that a ring's taps saw.", "ring", "engine")
	ringSeenBytes     = counter("ring_seen_bytes_total", "Bytes on the wire of the packets that a ring's taps saw.", "ring", "engine")
	ringFiltered      = counter("ring_filtered_packets_total", "Packets that the ring's filter rejected.", "ring", "engine")
	ringSampledOut    = counter("ring_sampled_out_packets_total", "Packets that sampling left out.", "ring", "engine")
	ringReflected     = counter("ring_reflected_packets_total", "Packets that a rule sent out of another interface.", "ring", "engine")
	ringReflectFailed = counter("ring_reflect_failed_packets_total", "Of the reflected packets, those that the other interface did not take.", "ring", "engine")
	ringAbsorbed      = counter("ring_absorbed_packets_total", "Fragments that became part of another packet.", "ring", "engine")
	ringDirected      = counter("ring_directed_packets_total", "Packets that a rule sent to a queue that it names.", "ring", "engine")
	ringPassed        = counter("ring_passed_packets_total", "Packets that the ring passed to each of its clusters.", "ring", "engine")
	ringReady         = gauge("ring_ready", "1 while the ring is in the data path as its spec asks, else 0; the label reason explains a 0.", "ring", "engine", "reason")
	ringFallback      = gauge("ring_fallback", "1 while a ring that leaves the choice of engine to the node (spec.engine Auto) is served by EBPF, else 0.", "ring")

	rulePackets      = counter("rule_packets_total", "Packets that a named rule of the ring's filter decided on.", "ring", "engine", "rule")
	ruleBytes        = counter("rule_bytes_total", "Bytes on the wire of the packets that a named rule decided on.", "ring", "engine", "rule")
	otherRulePackets = counter("rules_other_packets_total", "Packets that rules without a series of their own decided on.", "ring", "engine")
	otherRuleBytes   = counter("rules_other_bytes_total", "Bytes on the wire of the packets that rules without a series of their own decided on.", "ring", "engine")
	patternPackets   = counter("payload_pattern_packets_total", "Packets that a named payload pattern decided on.", "ring", "engine", "pattern")
	otherPatterns    = counter("payload_patterns_other_packets_total", "Packets that payload patterns without a series of their own decided on.", "ring", "engine")
	pluginFiltered   = counter("plugin_filtered_packets_total", "Packets that a plugin did not let pass, since the ring was set last.", "ring", "engine", "plugin")

	queueDelivered = counter("queue_delivered_packets_total", "Packets put where the queue's consumer can read them.", "capture_cluster", "queue", "engine")
	queueBytes     = counter("queue_delivered_bytes_total", "Bytes of delivered packets that their consumer can read; on the wire these packets had truncated bytes more.", "capture_cluster", "queue", "engine")
	queueTruncated = counter("queue_truncated_packets_total", "Of the delivered packets, those that the snap length has shortened.", "capture_cluster", "queue", "engine")
	queueCutBytes  = counter("queue_truncated_bytes_total", "Bytes that the truncated packets lack.", "capture_cluster", "queue", "engine")
	queueDropped   = counter("queue_dropped_packets_total", "Packets passed and not delivered, by reason: full (the consumer is too slow), unattended (there is none), nomem (the kernel had no memory; with eBPF also: a CPU waited too long for a lane that others share), hung (in line: the consumer let a packet wait for too long). In line, such a packet may have left: see queue_inline_packets_total.", "capture_cluster", "queue", "engine", "reason")
	queueShunted   = counter("queue_shunted_packets_total", "Packets passed and not delivered, because the queue's consumer has shunted their flows. In line, such a packet may have left: see queue_inline_packets_total.", "capture_cluster", "queue", "engine")
	queueShuntedB  = counter("queue_shunted_bytes_total", "Bytes on the wire of the shunted packets.", "capture_cluster", "queue", "engine")
	queueShunts    = gauge("queue_shunted_flows", "Flows that the queue's consumer has shunted now.", "capture_cluster", "queue", "engine")
	queueShuntLost = counter("queue_shunted_flows_lost_total", "Shunted flows whose end no consumer was told of: the sensor's records of them are incomplete.", "capture_cluster", "queue", "engine")
	queueUnread    = gauge("queue_unread_bytes", "Bytes of the queue's memory that its consumer has not released: how far it lags.", "capture_cluster", "queue", "engine")
	queueCapacity  = gauge("queue_capacity_bytes", "Bytes that the queue can hold, over all of its lanes; a packet is dropped when the lane of its CPU is full.", "capture_cluster", "queue", "engine")
	queueFullest   = gauge("queue_fullest_lane_ratio", "Share of the queue's fullest lane that its consumer has not released; at 1, packets of that lane's CPU are dropped. Of all lanes together, with a module that does not report the lane.", "capture_cluster", "queue", "engine")
	queueAttached  = gauge("queue_attached", "1 while a consumer reads the queue, else 0.", "capture_cluster", "queue", "engine")
	clusterMemory  = gauge("cluster_memory_bytes", "Kernel memory that a set of queues takes.", "capture_cluster", "engine")
	clusterDoubled = counter("cluster_duplicated_packets_total", "Second copies, by balance BothEnds.", "capture_cluster", "engine")
	clusterSpread  = counter("cluster_spread_packets_total", "Packets that another queue got by whenFull or whenUnattended.", "capture_cluster", "engine")
	clusterReady   = gauge("cluster_ready", "1 while the queues are there as the spec asks, else 0; the label reason explains a 0.", "capture_cluster", "engine", "reason")

	ringBridged    = counter("ring_inline_bridged_packets_total", "Packets of a ring in line that left at once, because its filter does not pass them to its queues.", "ring", "engine")
	ringInlineLost = counter("ring_inline_lost_packets_total", "Packets of a ring in line that were to leave at once and did not, by reason: toolong (longer than the other interface's MTU), refused (by the other interface), nomem, down (the other interface).", "ring", "engine", "reason")
	queueInline    = counter("queue_inline_packets_total", "Packets that a ring in line passed to the queue and that do not wait any more, by outcome: passed, replaced or blocked (by the consumer's verdict), unanswered (released without one; not sent), bypassed and stopped (left or dropped without a verdict; the reason is the event: unattended, full or hung), shunted (of flows that the consumer has shunted; the reason is passed or blocked), lost (for the reasons of ring_inline_lost_packets_total).", "capture_cluster", "queue", "engine", "outcome", "reason")
	queueHeld      = gauge("queue_inline_held_packets", "Packets that wait for the verdict of the queue's consumer.", "capture_cluster", "queue", "engine")
	queueInjected  = counter("queue_inline_injected_packets_total", "Packets of the consumer's own, such as TCP resets, by outcome: sent, or failed (longer than the interface's MTU, refused by it, or it was down). They are in no sum.", "capture_cluster", "queue", "engine", "outcome")
	queueUnused    = counter("queue_inline_unused_verdicts_total", "Verdicts without effect, by reason: late (an event had taken the packet), unknown (it never waited, or had a verdict).", "capture_cluster", "queue", "engine", "reason")
	queueEpisodes  = counter("queue_inline_episodes_total", "How often packets began to go past the queue's consumer, or to be blocked, at an event.", "capture_cluster", "queue", "engine")
	queueUndecided = counter("queue_inline_undecided_seconds_total", "Seconds in which the queue's consumer did not decide on packets: they bypassed it or were blocked.", "capture_cluster", "queue", "engine")
	queueBypassing = gauge("queue_inline_bypassing", "1 while packets bypass the queue's consumer, else 0.", "capture_cluster", "queue", "engine")
	queueBlocking  = gauge("queue_inline_blocking", "1 while packets are blocked because the queue's consumer does not decide on them, else 0.", "capture_cluster", "queue", "engine")

	interfaceReceived = counter("interface_received_packets_total", "The kernel's rx_packets of a captured interface.", "interface")
	interfaceBytes    = counter("interface_received_bytes_total", "The kernel's rx_bytes of a captured interface.", "interface")
	interfaceDropped  = counter("interface_dropped_packets_total", "The kernel's rx_dropped of a captured interface: no protocol wanted them, or there was no memory. Most are lost to the stack after a ring saw them.", "interface")
	interfaceMissed   = counter("interface_missed_packets_total", "The kernel's rx_missed_errors of a captured interface: the NIC had no descriptor or bus time for them, and no ring saw them.", "interface")
	interfaceOverrun  = counter("interface_overrun_packets_total", "The kernel's rx_fifo_errors of a captured interface: the NIC's own buffer ran over, and no ring saw them. Some drivers count them as missed too.", "interface")
	interfaceErrors   = counter("interface_errors_packets_total", "The kernel's rx_errors of a captured interface: received with errors, as by a bad checksum of the frame; no ring saw them.", "interface")
	interfaceDriver   = gauge("interface_driver_info", "1, with the driver of a captured interface and its state: stock, aware (of capture, and not by the agent's doing), replaced (by the agent, by an aware one), failed (it was to be replaced and is not).", "interface", "driver", "state")

	memoryRoom    = gauge("node_memory_room_bytes", "Bytes that new queues may have of the node's memory: what is available less --memory-reserve, within the memory limit of the agent's container.")
	memoryReserve = gauge("node_memory_reserve_bytes", "Bytes of the node's memory that queues leave (--memory-reserve).")

	moduleReady     = gauge("module_ready", "1 while the kernel module is loaded and compatible, else 0; reason is that of the NodeCapture's condition ModuleReady.", "reason", "version")
	engineAvailable = gauge("engine_available", "1 while the engine can be used on this node, else 0.", "engine")

	resourceRegistered = gauge("resource_registered", "1 while the kubelet has the extended resource from this agent, 0 while it is to be offered and is not.", "resource")
	reconcileDuration  = define(catalogue.Histogram, "reconcile_duration_seconds", "Time that it took to plan, apply and observe the node's data path.")
	reconcileErrors    = counter("reconcile_errors_total", "Reconciliations in which something failed that concerns the node and no single ring.")
	buildInfo          = gauge("build_info", "1, with the agent's version and the node's kernel.", "version", "kernel")
)
