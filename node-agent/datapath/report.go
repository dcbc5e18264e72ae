// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"slices"

	"github.com/ringcap/ringcap/node-agent/capture"
	"github.com/ringcap/ringcap/node-agent/node"
	"github.com/ringcap/ringcap/node-agent/plan"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Report describes one reconciliation: what was asked for, what was seen, what was decided, the outcome, and what the
// node has now.
type Report struct {
	Spec v1.NodeCaptureSpec
	// Generation of the spec, for the caller.
	Generation int64
	// Engines are the facts of the engines by kind.
	Engines map[v1.Engine]plan.EngineFact
	// RxQueues of each interface by name.
	RxQueues map[string]int
	// Drivers by interface name; empty if they are not known.
	Drivers map[string]plan.DriverFact
	// Memory of the node at the time of the plan; nil if it is not known.
	Memory *capture.Memory
	// plannedWith is the number of bytes that the queues took at that time.
	plannedWith uint64

	// Plan is the decision. Its Plans are nil if there could be none. Nothing that happens later changes it.
	Plan plan.Result
	// Outcome is the result of applying the plan.
	Outcome Outcome
	// Rings and Clusters combine plan and outcome for each object, by name. They include orphaned objects.
	Rings, Clusters map[string]Object

	// Observations by engine, after the plan was applied or since.
	Observations map[v1.Engine]capture.Observation
	Interfaces   []node.Interface
	// Err concerns the node as a whole: the agent could not read or set something that does not belong to a single
	// ring.
	Err error
	// ObserveErr means that the counters of an engine could not be read.
	ObserveErr error
}

// Queues returns the engine's state of a set of queues that was asked for, from the engine that serves it.
func (r Report) Queues(name string) (capture.ClusterState, bool) {
	object, ok := r.Clusters[name]
	if !ok {
		return capture.ClusterState{}, false
	}
	state, ok := r.Observations[object.Engine].Clusters[name]
	return state, ok
}

// Blocked reports whether a new try may succeed. Either an object could not be changed or removed because of its
// consumers, and they are gone. Or it could not be made for lack of memory, and other queues have freed some.
func (r Report) Blocked() bool {
	for name, object := range r.Clusters {
		if object.Reason == v1.ReasonNodeMemoryInsufficient && r.queueMemory() < r.plannedWith {
			return true
		}
		if object.Reason != v1.ReasonQueueInUse {
			continue
		}
		if state, there := r.Queues(name); !there || !slices.ContainsFunc(state.Queues, func(q capture.QueueStats) bool { return q.Attached }) {
			return true
		}
	}
	return false
}

// queueMemory returns the number of bytes that the observed queues take.
func (r Report) queueMemory() (bytes uint64) {
	for _, observation := range r.Observations {
		for _, cluster := range observation.Clusters {
			bytes += cluster.Memory
		}
	}
	return bytes
}

// queues returns the number of observed queues.
func (r Report) queues() (n int) {
	for _, observation := range r.Observations {
		for _, cluster := range observation.Clusters {
			n += len(cluster.Queues)
		}
	}
	return n
}
