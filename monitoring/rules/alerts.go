// SPDX-License-Identifier: Apache-2.0

package rules

import "time"

// ofNamespaces are the names of the rings of PodCaptures, which users with edit rights in one namespace create. Their problems are not
// critical: RingcapNotReady and the PodCapture report them.
const ofNamespaces = `pods-.+-[0-9a-f]{10}-[0-9]+`

// Alerts are the alerting rules. Each has a runbook of its name.
var Alerts = []Alert{
	{
		Name: "RingcapPacketsLost", Severity: Warning, For: 5 * time.Minute,
		Expr:    `sum without (reason) (ringcap:queue_dropped:ratio_rate5m{reason!="unattended"}) > 0.001`,
		Summary: `Queue {{ $labels.queue }} of {{ $labels.capture_cluster }} on {{ $labels.node }} loses {{ $value | humanizePercentage }} of its packets.`,
		Description: `Packets that the ring passed did not reach the consumer. Reason full: it reads more slowly than packets come; give it more CPU, ` +
			`give the Cluster more queues or slots, or filter more. Reason nomem: the kernel had no memory for them; with the engine EBPF also: a CPU waited too long for a lane that others share. ` +
			`Reason hung: in line, the consumer let a packet wait for longer than spec.inline.hungAfter; these and, in line, those of reason full may have passed unseen.`,
	},
	{
		Name: "RingcapQueueUnattended", Severity: Warning, For: 5 * time.Minute,
		Expr: `ringcap:queue_dropped:ratio_rate5m{reason="unattended"} > 0.001` +
			` unless on (node, capture_cluster, queue) max by (node, capture_cluster, queue) (ringcap_queue_attached) == 1` +
			` unless on (node, capture_cluster, queue) max by (node, capture_cluster, queue) (ringcap_queue_inline_bypassing)`,
		Summary: `Queue {{ $labels.queue }} of {{ $labels.capture_cluster }} on {{ $labels.node }} has no consumer, and {{ $value | humanizePercentage }} of its packets are lost for this reason.`,
		Description: `No pod reads this queue: fewer pods request ringcap.io/{{ $labels.capture_cluster }} than it has queues, or some do not run. ` +
			`Start them, lower spec.queues, or set spec.whenUnattended to Spread.`,
	},
	{
		Name: "RingcapConsumerLagging", Severity: Warning, For: 5 * time.Minute,
		Expr:        `ringcap:queue_fill:ratio > 0.5`,
		Summary:     `The consumer of queue {{ $labels.queue }} of {{ $labels.capture_cluster }} on {{ $labels.node }} lags: a lane of the queue is {{ $value | humanizePercentage }} full.`,
		Description: `When the lane is full, packets are lost. Find out what slows the consumer down: a CPU limit, a slow disk, a pod that hangs.`,
	},
	{
		Name: "RingcapInlineBypassed", Severity: Warning, For: 2 * time.Minute,
		Expr:    `max by (node, capture_cluster, queue) (ringcap_queue_inline_bypassing) == 1`,
		Summary: `Packets bypass the consumer of queue {{ $labels.queue }} of {{ $labels.capture_cluster }} on {{ $labels.node }}.`,
		Description: `The ring is in line, and nobody decides on these packets: they pass unseen. The queue has no consumer, or it was full, or its consumer let a packet ` +
			`wait for longer than spec.inline.hungAfter. The NodeCapture contains which of these it is.`,
	},
	{
		Name: "RingcapInlineBlocking", Severity: Critical, For: time.Minute,
		Expr:    `max by (node, capture_cluster, queue) (ringcap_queue_inline_blocking) == 1`,
		Summary: `Packets for queue {{ $labels.queue }} of {{ $labels.capture_cluster }} on {{ $labels.node }} are blocked.`,
		Description: `The ring is in line, nobody decides on these packets, and spec.inline asks to drop them at this event: hosts behind the pair lose their connections. ` +
			`Start the consumer, or set spec.inline.whenUnattended or whenHung to Bypass.`,
	},
	{
		Name: "RingcapNICMissingPackets", Severity: Warning, For: 5 * time.Minute,
		Expr:    `ringcap:interface_lost:ratio_rate5m > 0.001`,
		Summary: `{{ $labels.interface }} on {{ $labels.node }} loses {{ $value | humanizePercentage }} of its packets before any ring can see them.`,
		Description: `The NIC had no free descriptor, or its buffer ran over: the CPUs that poll it are too busy. Give it a larger ring (spec.nic.rxRingSize), ` +
			`more RX queues or threaded polling, or a mode that needs less CPU time.`,
	},
	{
		Name: "RingcapNotCapturing", Severity: Critical, For: 5 * time.Minute,
		Expr: `max by (node, ring) (ringcap_ring_ready{ring!~"` + ofNamespaces + `"}) == 0` +
			` or max by (node, capture_cluster) (ringcap_cluster_ready{capture_cluster!~"` + ofNamespaces + `"}) == 0`,
		Summary:     `{{ with $labels.ring }}CaptureRing{{ else }}Cluster{{ end }} {{ $labels.ring }}{{ $labels.capture_cluster }} is not in the data path of {{ $labels.node }} as it asks.`,
		Description: `The NodeCapture {{ $labels.node }} contains the reason, and what to do. The previous version keeps capturing if possible.`,
	},
	{
		Name: "RingcapNotReady", Severity: Warning, For: 15 * time.Minute,
		Expr:        `max by (kind, name) (ringcap_operator_object_ready) == 0`,
		Summary:     `{{ $labels.kind }} {{ $labels.name }} is not ready on all of its nodes that report.`,
		Description: `Its condition Ready names the node and what to do; RolledOut shows whether an edit waits for that node.`,
	},
	{
		Name: "RingcapEngineFallback", Severity: Info, For: 10 * time.Minute,
		Expr:    `max by (node, ring) (ringcap_ring_fallback) == 1 unless on (node) ringcap_module_ready{reason=~"Disabled|NoPrebuiltModule|ModulesUnsupported"}`,
		Summary: `CaptureRing {{ $labels.ring }} on {{ $labels.node }} is served by the eBPF engine, because the node's kernel module cannot be used.`,
		Description: `It captures with the features and the CPU cost of that engine. See the NodeCapture's condition ModuleReady. If you want eBPF, ` +
			`set spec.engine to EBPF or agent.module.mode to Disabled.`,
	},
	{
		Name: "RingcapModuleFailed", Severity: Warning, For: 10 * time.Minute,
		Expr: `max by (node) (ringcap_module_ready) == 0 and on (node)` +
			` max by (node) (ringcap_ring_ready{reason="EngineUnavailable"}) == 0`,
		Summary:     `The kernel module is not usable on {{ $labels.node }}, and a ring there is not served without it.`,
		Description: `Rings with spec.engine Auto are served by eBPF; those with KernelModule are not served. The NodeCapture's condition ModuleReady contains what to do.`,
	},
	{
		Name: "RingcapResourceNotRegistered", Severity: Warning, For: 5 * time.Minute,
		Expr:        `max by (node, resource) (ringcap_resource_registered) == 0`,
		Summary:     `{{ $labels.resource }} is not registered with the kubelet of {{ $labels.node }}.`,
		Description: `Pods that request it cannot start there; running pods are not affected. The agent's log and its /readyz contain the reason.`,
	},
	{
		Name: "RingcapReconcileErrors", Severity: Warning, For: 15 * time.Minute,
		Expr:        `sum by (node) (increase(ringcap_reconcile_errors_total[10m])) > 0`,
		Summary:     `The agent of {{ $labels.node }} repeatedly fails to set up the data path.`,
		Description: `Something that belongs to no single ring fails: an interface that cannot be restored, an engine that does not answer. The agent's log and its /readyz contain the error.`,
	},
	{
		Name: "RingcapNodeNotReporting", Severity: Warning, For: 5 * time.Minute,
		Expr:        `max by (nodecapture) (ringcap_operator_node_reporting) == 0`,
		Summary:     `The agent of {{ $labels.nodecapture }} does not report.`,
		Description: `Its captures continue, but changes do not reach the node, and its status is unknown. See the agent's pod on that node.`,
	},
	{
		Name: "RingcapAgentsAbsent", Severity: Warning, For: 5 * time.Minute,
		Expr:        `absent(ringcap_build_info)`,
		Summary:     `Prometheus has no agent of ringcap.`,
		Description: `No agent runs, or Prometheus does not find them: without their metrics no other alert can report loss.`,
	},
	{
		Name: "RingcapOperatorAbsent", Severity: Warning, For: 5 * time.Minute,
		Expr:        `absent(ringcap_operator_build_info)`,
		Summary:     `Prometheus has no operator of ringcap.`,
		Description: `Captures continue as they are, but changes of CaptureRings and Clusters do not reach the nodes, and their status is old.`,
	},
}
