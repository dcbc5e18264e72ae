// SPDX-License-Identifier: Apache-2.0

// Package report reads NodeCaptures: what nodes say about one CaptureRing or Cluster. It is pure.
package report

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Object is the CaptureRing or the Cluster that is asked about.
type Object struct {
	Name string
	// Ring says that it is a CaptureRing; OwnQueues that it has queues of its own.
	Ring, OwnQueues bool
}

// State is how an object does on one node.
type State struct {
	Node string
	// Programmed: it is in the data path as its spec asks. Ready: and its queues can be requested.
	Programmed, Ready bool
	// Silent: the node's agent is not there or not reachable, and has had its time to start.
	Silent bool
	// Absent: the node has none of the interfaces, and that is no trouble. It is Ready.
	Absent bool
	// Reason and Message say what is wrong when it is not Ready, and why it is Absent.
	Reason, Message string
}

// On says how the object does on the node; capture is nil where the node has none yet.
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

// Current says whether the node's report on the object is about what the node was told last. Of a CaptureRing the report says it; of
// Clusters, and of agents before revisions, only of all objects at once.
func Current(capture *v1alpha1.NodeCapture, o Object) bool {
	if o.Ring {
		told := slices.IndexFunc(capture.Spec.Rings, func(r v1alpha1.NodeRing) bool { return r.Name == o.Name })
		said := slices.IndexFunc(capture.Status.Rings, func(r v1alpha1.NodeRingStatus) bool { return r.Name == o.Name })
		if told >= 0 && said >= 0 && capture.Status.Rings[said].ObservedRevision != "" {
			return capture.Status.Rings[said].ObservedRevision == capture.Spec.Rings[told].Revision
		}
	}
	return capture.Status.AppliedGeneration >= capture.Generation
}

// Working says whether the node's agent reports of the ring that what the node was told last works, queues and all. It does not
// look at the report's age.
func Working(capture *v1alpha1.NodeCapture, told *v1alpha1.NodeRing) bool {
	s, current := answer(capture, told)
	return current && s.Ready
}

// Refused says whether the node's agent reports of the ring that what the node was told last does not work, for another reason than that
// it is still about it. It does not look at the report's age.
func Refused(capture *v1alpha1.NodeCapture, told *v1alpha1.NodeRing) bool {
	s, current := answer(capture, told)
	return current && !s.Ready && s.Reason != v1alpha1.ReasonPending
}

// Stuck says that the node's agent can act upon nothing that the node was told, and says why.
func Stuck(capture *v1alpha1.NodeCapture) bool {
	programmed := meta.FindStatusCondition(capture.Status.Conditions, v1alpha1.ConditionProgrammed)
	return capture.Status.AppliedGeneration == 0 && programmed != nil && programmed.Reason == v1alpha1.ReasonEngineError
}

// answer is what the node's agent reports of the ring, and whether that is about what the node was told last.
func answer(capture *v1alpha1.NodeCapture, told *v1alpha1.NodeRing) (s State, current bool) {
	o := Object{Name: told.Name, Ring: true, OwnQueues: told.Spec.Queues != nil}
	s.Node = capture.Name
	s.ring(capture, o)
	return s, Current(capture, o)
}

// Fresh says whether the node's agent reports.
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

// pending says that the agent is not there yet, or what keeps it from getting there.
func (s *State) pending(capture *v1alpha1.NodeCapture) {
	programmed := meta.FindStatusCondition(capture.Status.Conditions, v1alpha1.ConditionProgrammed)
	if programmed != nil && programmed.Reason == v1alpha1.ReasonEngineError {
		s.Reason, s.Message = programmed.Reason, programmed.Message
		return
	}
	s.Reason = v1alpha1.ReasonPending
	s.Message = fmt.Sprintf("its agent has not applied generation %d yet (it is at %d)", capture.Generation, capture.Status.AppliedGeneration)
}

// explain leaves no state without a reason.
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
