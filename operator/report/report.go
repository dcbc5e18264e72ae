// SPDX-License-Identifier: Apache-2.0

// Package report reads from NodeCaptures what nodes report about one CaptureRing or Cluster. It is pure.
package report

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Object identifies a CaptureRing or a Cluster.
type Object struct {
	Name string
	// Ring is true for a CaptureRing; OwnQueues is true if it has queues of its own.
	Ring, OwnQueues bool
}

// State is the state of an object on one node.
type State struct {
	Node string
	// Programmed: it is in the data path as its spec asks. Ready: its queues can be requested, too.
	Programmed, Ready bool
	// Silent: the node's agent is missing or unreachable, and has had the time to start.
	Silent bool
	// Absent: the node has none of the interfaces, and the ring permits that. It is Ready.
	Absent bool
	// Reason and Message are the problem if it is not Ready, and why it is Absent.
	Reason, Message string
}

// On returns the object's state on the node; capture is nil if the node has none yet.
func On(node string, capture *v1alpha1.NodeCapture, o Object, now time.Time) State {
	s := State{Node: node}
	if s.Message = capture.Silence(now); s.Message != "" {
		s.Reason, s.Silent = v1alpha1.ReasonNodeNotReporting, capture != nil && now.Sub(capture.CreationTimestamp.Time) > v1alpha1.StaleAfter
		return s
	}
	if o.Ring {
		s.ring(capture, o)
	} else {
		s.cluster(capture, o.Name)
		s.Programmed = s.Ready
	}
	if s.Ready && !Current(capture, o) {
		s.Programmed, s.Ready, s.Absent = false, false, false
		s.pending(capture)
	}
	return s
}

// Current reports whether the node's report on the object describes the node's present spec. For a CaptureRing the report has a
// revision; for Clusters, and agents without revisions, only the generation of all objects together is known.
func Current(capture *v1alpha1.NodeCapture, o Object) bool {
	if o.Ring {
		entry := slices.IndexFunc(capture.Spec.Rings, func(r v1alpha1.NodeRing) bool { return r.Name == o.Name })
		reported := slices.IndexFunc(capture.Status.Rings, func(r v1alpha1.NodeRingStatus) bool { return r.Name == o.Name })
		if entry >= 0 && reported >= 0 && capture.Status.Rings[reported].ObservedRevision != "" {
			return capture.Status.Rings[reported].ObservedRevision == capture.Spec.Rings[entry].Revision
		}
	}
	return capture.Status.AppliedGeneration >= capture.Generation
}

// Working reports whether the node's agent reports that the present entry of the ring works, including its queues. It does not
// check the report's age.
func Working(capture *v1alpha1.NodeCapture, entry *v1alpha1.NodeRing) bool {
	s, current := answer(capture, entry)
	return current && s.Ready
}

// Refused reports whether the node's agent reports that the present entry of the ring does not work, and not because it is still
// pending. It does not check the report's age.
func Refused(capture *v1alpha1.NodeCapture, entry *v1alpha1.NodeRing) bool {
	s, current := answer(capture, entry)
	return current && !s.Ready && s.Reason != v1alpha1.ReasonPending
}

// Stuck reports whether the node's agent can apply nothing at all, and has reported why.
func Stuck(capture *v1alpha1.NodeCapture) bool {
	programmed := meta.FindStatusCondition(capture.Status.Conditions, v1alpha1.ConditionProgrammed)
	return capture.Status.AppliedGeneration == 0 && programmed != nil && programmed.Reason == v1alpha1.ReasonEngineError
}

// answer returns what the node's agent reports about the ring, and whether that describes the present entry.
func answer(capture *v1alpha1.NodeCapture, entry *v1alpha1.NodeRing) (s State, current bool) {
	o := Object{Name: entry.Name, Ring: true, OwnQueues: entry.Spec.Queues != nil}
	s.Node = capture.Name
	s.ring(capture, o)
	return s, Current(capture, o)
}

// Fresh reports whether the node's agent reports.
func Fresh(capture *v1alpha1.NodeCapture, now time.Time) bool {
	return capture.Silence(now) == ""
}

func (s *State) ring(capture *v1alpha1.NodeCapture, o Object) {
	i := slices.IndexFunc(capture.Status.Rings, func(r v1alpha1.NodeRingStatus) bool { return r.Name == o.Name })
	if i < 0 {
		s.pending(capture)
		return
	}
	ring := capture.Status.Rings[i]
	s.Programmed, s.Ready, s.Reason, s.Message = ring.Ready, ring.Ready, ring.Reason, ring.Message
	if ring.Ready && o.OwnQueues && ring.Reason != v1alpha1.ReasonInterfaceAbsent {
		s.cluster(capture, o.Name)
	}
	s.explain()
}

func (s *State) cluster(capture *v1alpha1.NodeCapture, name string) {
	i := slices.IndexFunc(capture.Status.Clusters, func(c v1alpha1.NodeClusterStatus) bool { return c.Name == name })
	if i < 0 {
		s.Ready = false
		s.pending(capture)
		return
	}
	queues := capture.Status.Clusters[i]
	s.Ready, s.Reason, s.Message = queues.Ready, queues.Reason, queues.Message
	s.explain()
}

// pending sets that the agent has not applied the spec yet, or what prevents it.
func (s *State) pending(capture *v1alpha1.NodeCapture) {
	programmed := meta.FindStatusCondition(capture.Status.Conditions, v1alpha1.ConditionProgrammed)
	if programmed != nil && programmed.Reason == v1alpha1.ReasonEngineError {
		s.Reason, s.Message = programmed.Reason, programmed.Message
		return
	}
	s.Reason = v1alpha1.ReasonPending
	s.Message = fmt.Sprintf("its agent has not applied generation %d yet (it is at %d)", capture.Generation, capture.Status.AppliedGeneration)
}

// explain sets a reason if there is none.
func (s *State) explain() {
	if s.Absent = s.Ready && s.Reason == v1alpha1.ReasonInterfaceAbsent; s.Absent {
		return
	}
	if s.Ready {
		s.Reason, s.Message = "", ""
	} else if s.Reason == "" {
		s.Reason = v1alpha1.ReasonNotReady
	}
}
