// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ringcap/ringcap/node-agent/capture"
	"github.com/ringcap/ringcap/node-agent/nic"
	"github.com/ringcap/ringcap/node-agent/plan"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Object is a ring or a set of queues of the node, with the decision about it and the result.
type Object struct {
	// Decision is the plan's verdict; empty for an orphan.
	Decision plan.Verdict
	// Engine that serves it, or is to serve it.
	Engine v1.Engine
	// Made means that it was planned, and its engine has it as planned.
	Made bool
	// Orphaned means that no spec has it any more, but it could not be removed.
	Orphaned bool
	// Fed means that at least one existing ring passes packets to this set of queues.
	Fed bool
	// Reason and Message describe what is wrong, with the decision or since. Reason is empty if all is as the spec
	// asks.
	Reason, Message string
}

// Ready reports whether it was made as the spec asks.
func (o Object) Ready() bool { return o.Made && o.Reason == "" }

// Absent reports whether it does not concern this node, because the node has none of the interfaces.
func (o Object) Absent() bool { return o.Decision.Absent() }

// conclude combines a plan and its outcome, for each object that is asked for or that an engine still has. Only this
// function combines the two.
func conclude(p plan.Result, o Outcome, have map[v1.Engine]capture.Observation) (rings, clusters map[string]Object) {
	rings, clusters = map[string]Object{}, map[string]Object{}
	for name, verdict := range p.Rings {
		ring := newObject(verdict, o.problem(verdict.Engine, name))
		if ring.Ready() {
			ring.Reason, ring.Message = nicProblem(verdict, o.NICs)
		}
		rings[name] = ring
	}
	for name, verdict := range p.Clusters {
		cluster := newObject(verdict, o.problem(verdict.Engine, name))
		if observation, observed := have[verdict.Engine]; observed && cluster.Fed && !isFed(name, p.Plans[verdict.Engine], observation) {
			cluster.unfed()
		}
		clusters[name] = cluster
	}
	for engine, observation := range have {
		for name := range observation.Rings {
			addOrphan(rings, name, engine, o.Failed[engine][name])
		}
		for name := range observation.Clusters {
			addOrphan(clusters, name, engine, o.Failed[engine][name])
		}
	}
	return rings, clusters
}

// newObject combines a verdict with the problem of its engine. If a change is withheld, the reason for this is
// reported first.
func newObject(v plan.Verdict, problem error) Object {
	object := Object{Decision: v, Engine: v.Engine, Made: v.Planned, Fed: v.Fed, Reason: v.Reason, Message: v.Message}
	if !v.Planned || problem == nil {
		return object
	}
	object.Made = false
	if v.AsBefore {
		object.Message += fmt.Sprintf("; of what was accepted before it: %v", problem)
	} else {
		object.Reason, object.Message = reasonOf(problem), problem.Error()
	}
	return object
}

// nicProblem returns the problem of a ring's interfaces. The reason is empty if there is none. If an interface could
// not be set as a ring asks, the ring still captures there, and reports it. An interface in a pod is set again when
// it is back.
func nicProblem(v plan.Verdict, outcomes map[string]nic.Outcome) (reason, message string) {
	for _, name := range v.Interfaces {
		if v.Away[name] {
			continue
		}
		if err := outcomes[name].Err; err != nil {
			return v1.ReasonEngineError, err.Error()
		}
		for _, state := range outcomes[name].Settings {
			if desired, mine := v.NIC[state.Setting]; mine && desired.Value == state.Value && state.Problem != "" {
				return v1.ReasonNICSettingRefused, fmt.Sprintf("spec.nic.%s cannot be had on %s, and is captured without: %s; choose another value, or leave it out",
					state.Setting, name, state.Message)
			}
		}
	}
	return "", ""
}

// isFed reports whether an engine has a ring that is planned to feed a set of queues.
func isFed(cluster string, planned capture.Plan, have capture.Observation) bool {
	return slices.ContainsFunc(planned.Rings, func(ring capture.Ring) bool {
		_, made := have.Rings[ring.Name]
		return made && slices.Contains(ring.Outputs, cluster)
	})
}

// unfed records that its rings were planned but not made. No pod is to be sent to its queues.
func (o *Object) unfed() {
	o.Fed = false
	if o.Reason == "" {
		o.Reason, o.Message = v1.ReasonEngineError, "none of its rings could be made: see their own status"
	}
}

// addOrphan adds an object that no spec has any more, but that an engine could not remove.
func addOrphan(objects map[string]Object, name string, engine v1.Engine, problem error) {
	if _, asked := objects[name]; asked || problem == nil {
		return
	}
	objects[name] = Object{Orphaned: true, Engine: engine, Reason: reasonOf(problem), Message: problem.Error()}
}

func reasonOf(err error) string {
	switch {
	case errors.Is(err, capture.ErrInUse):
		return v1.ReasonQueueInUse
	case errors.Is(err, capture.ErrNoMemory):
		return v1.ReasonNodeMemoryInsufficient
	case errors.Is(err, capture.ErrUnsupported):
		return v1.ReasonUnsupported
	default:
		return v1.ReasonEngineError
	}
}
