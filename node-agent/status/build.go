// SPDX-License-Identifier: Apache-2.0

// Package status makes the status of a NodeCapture from the report of a node's data path, and writes it.
package status

import (
	"cmp"
	"maps"
	"slices"

	"github.com/ringcap/ringcap/node-agent/capture"
	"github.com/ringcap/ringcap/node-agent/datapath"
	"github.com/ringcap/ringcap/node-agent/node"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Module is the state of the kernel module.
type Module struct {
	Ready bool
	// Reason is one of the reasons of ModuleReady.
	Reason, Message string
	Version         string
	// Available is the module that waits for an upgrade.
	Available string
}

// Input holds everything that a status is made of.
type Input struct {
	Report   datapath.Report
	Identity node.Identity
	Module   Module
	// Consumers are the pods that queues are allocated to, as namespace/name.
	Consumers map[capture.QueueID]string
	// ConsumersUnknown means that the kubelet does not report them.
	ConsumersUnknown bool
	// Truncating names the rings with truncated packets although no snap length is set.
	Truncating map[string]bool
	// Holders are the processes that read queues which are allocated to no pod.
	Holders map[capture.QueueID]string
	// InUse names the processes for which sets of queues wait, by set.
	InUse map[string]string
}

// Build makes the status except its conditions' transition times and the time of observation. Conditions and the
// writer add these. Lists are sorted by name, so equal states make equal statuses.
func Build(in Input) v1.NodeCaptureStatus {
	r := in.Report
	status := v1.NodeCaptureStatus{
		AppliedGeneration: r.Generation,
		Engine:            r.Plan.Auto,
		EngineReason:      r.Plan.AutoReason,
		ModuleVersion:     in.Module.Version,
		ModuleAvailable:   in.Module.Available,
		KernelRelease:     in.Identity.KernelRelease,
		BootID:            in.Identity.BootID,
	}
	if r.Plan.Plans == nil {
		// Nothing was applied.
		status.AppliedGeneration = 0
	}
	for _, name := range slices.Sorted(maps.Keys(r.Rings)) {
		status.Rings = append(status.Rings, ringStatus(name, in))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Clusters)) {
		status.Clusters = append(status.Clusters, clusterStatus(name, in))
	}
	status.Interfaces = interfaceStatuses(r)
	return status
}

func ringStatus(name string, in Input) v1.NodeRingStatus {
	r := in.Report
	ring := r.Rings[name]
	decision := ring.Decision
	observed, there := r.Observations[ring.Engine].Rings[name]
	status := v1.NodeRingStatus{
		Name: name, ObservedRevision: revision(r.Spec.Rings, name), Engine: ring.Engine, EngineReason: decision.EngineReason, Interfaces: decision.Interfaces, PodsNotTapped: decision.PodsNotTapped,
		Ready: ring.Ready() && there || ring.Absent(), Reason: ring.Reason, Message: ring.Message,
		TransparentMode: decision.TransparentMode, TransparentReason: decision.TransparentReason, Truncating: in.Truncating[name],
		Seen: int64(observed.Stats.Seen), SeenBytes: int64(observed.Stats.SeenBytes), Filtered: int64(observed.Stats.Filtered),
		SampledOut: int64(observed.Stats.SampledOut), Passed: int64(observed.Stats.Passed),
		Reflected: int64(observed.Stats.Reflected), Absorbed: int64(observed.Stats.Absorbed), Directed: int64(observed.Stats.Directed),
	}
	if ring.Ready() && !there {
		status.Reason, status.Message = v1.ReasonPending, absent(r)
	}
	status.Inline = inlineRing(decision.Pairs, observed.Inline)
	return status
}

// revision returns the revision of the entry of that name.
func revision(rings []v1.NodeRing, name string) string {
	for i := range rings {
		if rings[i].Name == name {
			return rings[i].Revision
		}
	}
	return ""
}

func clusterStatus(name string, in Input) v1.NodeClusterStatus {
	r := in.Report
	cluster := r.Clusters[name]
	observed, there := r.Queues(name)
	status := v1.NodeClusterStatus{
		Name: name, Ready: cluster.Ready() && there || cluster.Absent(), Reason: cluster.Reason, Message: in.clusterMessage(name),
		MemoryBytes: int64(observed.Memory), Duplicated: int64(observed.Duplicated), Spread: int64(observed.Spread),
	}
	if cluster.Ready() && !there {
		status.Reason, status.Message = v1.ReasonPending, absent(r)
	}
	for i, queue := range observed.Queues {
		id := capture.QueueID{Cluster: name, Queue: i}
		q := queueStatus(i, queue)
		q.Inline = inlineQueue(queue.Inline)
		q.Consumer, q.Holder = in.Consumers[id], in.Holders[id]
		status.Queues = append(status.Queues, q)
	}
	return status
}

// clusterMessage returns what is wrong with a set of queues. It names the consumers that somebody must stop.
func (in Input) clusterMessage(name string) string {
	message := in.Report.Clusters[name].Message
	if who := in.InUse[name]; who != "" {
		message += ": " + who
	}
	return message
}

func absent(r datapath.Report) string {
	if r.ObserveErr != nil {
		return r.ObserveErr.Error()
	}
	return "the engine does not have it yet"
}

func queueStatus(number int, queue capture.QueueStats) v1.QueueStatus {
	return v1.QueueStatus{
		Queue: int32(number), Attached: queue.Attached,
		Delivered: int64(queue.Delivered), DeliveredBytes: int64(queue.DeliveredBytes), UnreadBytes: int64(queue.UnreadBytes),
		Truncated: int64(queue.Truncated), TruncatedBytes: int64(queue.TruncatedBytes),
		Shunted: int64(queue.Shunted), ShuntedBytes: int64(queue.ShuntedBytes), ShuntedFlows: int64(queue.ShuntedFlows),
		ShuntsLost: int64(queue.ShuntsLost), Dropped: countsOf(capture.DropReasons, queue.Dropped),
	}
}

// problem is an object that is not as its spec asks.
type problem struct {
	kind, name      string
	reason, message string
	// made means that everything decided was made despite the problem. asBefore means that a change has the problem,
	// and what was before it stays.
	made, asBefore bool
}

// problems lists the problems in an order that does not change from report to report.
func problems(in Input) []problem {
	var found []problem
	add := func(kind, name, message string, o datapath.Object) {
		if !o.Ready() && !o.Absent() {
			found = append(found, problem{kind, name, o.Reason, message, o.Made, o.Decision.AsBefore})
		}
	}
	for name, ring := range in.Report.Rings {
		add("ring", name, ring.Message, ring)
	}
	for name, cluster := range in.Report.Clusters {
		add("cluster", name, in.clusterMessage(name), cluster)
	}
	slices.SortFunc(found, func(x, y problem) int {
		return cmp.Or(-cmp.Compare(x.kind, y.kind), cmp.Compare(x.name, y.name))
	})
	return found
}
