// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// atMost lets so many of the ring's nodes be unavailable.
func atMost(ring *v1alpha1.CaptureRing, most intstr.IntOrString) {
	ring.Spec.Rollout = &v1alpha1.Rollout{MaxUnavailable: &most}
}

// snapLengths waits until the nodes have been told of these.
func (w *world) snapLengths(ring string, want map[string]int32) {
	w.t.Helper()
	w.eventually(func(c *assert.CollectT) {
		got := map[string]int32{}
		for node := range want {
			var nc v1alpha1.NodeCapture
			require.NoError(c, w.Get(w.t.Context(), client.ObjectKey{Name: node}, &nc))
			for _, r := range nc.Spec.Rings {
				if r.Name == ring {
					got[node] = r.Spec.SnapLength
				}
			}
		}
		assert.Equal(c, want, got)
	})
}

// refuses is an agent that cannot do what it was told.
func refuses(s *v1alpha1.NodeCaptureStatus) {
	s.Rings[0].Ready, s.Rings[0].Reason, s.Rings[0].Message = false, v1alpha1.ReasonNodeMemoryInsufficient, "4 queues need 9 GiB"
}

// TestRolloutInWaves: an edit goes on when the agents report that it works, pauses at the first node that refuses it, and goes on when
// it is corrected. A report about the previous version is no progress.
func TestRolloutInWaves(t *testing.T) {
	w := newWorld(t)
	nodes := []string{"wave-a", "wave-b", "wave-c"}
	ring := w.ring("wave")
	ring.Spec.Queues = v1alpha1.Queues(1)
	atMost(ring, intstr.FromInt32(1))
	for _, node := range nodes {
		w.node(node)
		w.agent(node, nil)
	}
	w.create(ring)
	for i, node := range nodes {
		w.capture(node, []string{"wave"}, nil)
		if i == 0 {
			w.expect(ring, v1alpha1.ConditionRolledOut, metav1.ConditionFalse, v1alpha1.ReasonRollingOut, "given to 1 of 3 nodes, at most 1 at a time")
			w.expect(ring, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonPending)
		}
		w.agent(node, nil)
	}
	w.expect(ring, v1alpha1.ConditionRolledOut, metav1.ConditionTrue, v1alpha1.ReasonRolledOut, "given to 3 nodes")
	w.expect(ring, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady, "on 3 nodes")

	update(w, ring, func(r *v1alpha1.CaptureRing) { r.Spec.SnapLength = 128 })
	w.snapLengths("wave", map[string]int32{"wave-a": 128, "wave-b": 0, "wave-c": 0})
	w.agent("wave-b", nil) // it has the version before
	w.agent("wave-a", nil)
	w.snapLengths("wave", map[string]int32{"wave-a": 128, "wave-b": 128, "wave-c": 0})
	w.agent("wave-b", refuses)
	w.expect(ring, v1alpha1.ConditionRolledOut, metav1.ConditionFalse, v1alpha1.ReasonRolloutPaused,
		"given to 2 of 3 nodes; paused", "wave-b (NodeMemoryInsufficient): 4 queues need 9 GiB", "Correct the ring", "spec.rollout.maxUnavailable")
	w.expect(ring, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonNodeMemoryInsufficient, "2 of 3 nodes not ready; wave-b")
	w.eventually(func(c *assert.CollectT) {
		assert.Contains(c, strings.Join(w.events(c, ring), "\n"), "Warning RolloutPaused: given to 2 of 3 nodes")
	})
	w.snapLengths("wave", map[string]int32{"wave-a": 128, "wave-b": 128, "wave-c": 0})

	update(w, ring, func(r *v1alpha1.CaptureRing) { r.Spec.SnapLength = 256 })
	w.snapLengths("wave", map[string]int32{"wave-a": 128, "wave-b": 256, "wave-c": 0})
	w.agent("wave-b", nil)
	w.snapLengths("wave", map[string]int32{"wave-a": 256, "wave-b": 256, "wave-c": 0})
	w.agent("wave-a", nil)
	w.snapLengths("wave", map[string]int32{"wave-a": 256, "wave-b": 256, "wave-c": 256})
	w.agent("wave-c", nil)
	w.expect(ring, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)

	// Nothing that is in nodes' way holds up the removal.
	update(w, ring, func(r *v1alpha1.CaptureRing) { r.Spec.SnapLength = 512 })
	w.snapLengths("wave", map[string]int32{"wave-a": 512, "wave-b": 256, "wave-c": 256})
	require.NoError(t, w.Delete(t.Context(), ring))
	for _, node := range nodes {
		w.capture(node, nil, nil)
		w.agent(node, nil)
	}
}

// TestRolloutWhereAnAgentIsStuck: an agent that can apply nothing does not report that for each ring; the rollout that waits for it does.
func TestRolloutWhereAnAgentIsStuck(t *testing.T) {
	w := newWorld(t)
	ring := w.ring("stuck")
	ring.Spec.Queues = v1alpha1.Queues(1)
	atMost(ring, intstr.FromInt32(1))
	for _, node := range []string{"stuck-a", "stuck-b"} {
		w.node(node)
		w.agent(node, nil)
	}
	w.create(ring)
	for _, node := range []string{"stuck-a", "stuck-b"} {
		w.capture(node, []string{"stuck"}, nil)
		w.agent(node, nil)
	}
	w.expect(ring, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	update(w, ring, func(r *v1alpha1.CaptureRing) { r.Spec.SnapLength = 128 })
	w.snapLengths("stuck", map[string]int32{"stuck-a": 128, "stuck-b": 0})
	w.agent("stuck-a", func(s *v1alpha1.NodeCaptureStatus) {
		*s = v1alpha1.NodeCaptureStatus{ObservedTime: s.ObservedTime, Conditions: []metav1.Condition{{
			Type: v1alpha1.ConditionProgrammed, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonEngineError, Message: "no bpffs", LastTransitionTime: metav1.Now(),
		}}}
	})
	w.expect(ring, v1alpha1.ConditionRolledOut, metav1.ConditionFalse, v1alpha1.ReasonRolloutPaused, "stuck-a (EngineError): no bpffs")
	w.agent("stuck-a", nil)
	w.snapLengths("stuck", map[string]int32{"stuck-a": 128, "stuck-b": 128})
}

// TestSilentNodes: nodes without their agent are named and not waited for, and do not keep the ring from being Ready unless there
// are no others.
func TestSilentNodes(t *testing.T) {
	w := newWorld(t)
	ring, cluster := w.ring("silent"), w.cluster("silent-ids", "silent")
	w.create(ring)
	w.create(cluster)
	for _, node := range []string{"silent-a", "silent-b", "silent-c"} {
		w.node(node)
		w.capture(node, []string{"silent"}, []string{"silent-ids"})
	}
	w.agent("silent-a", nil)
	w.expect(ring, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonNodeNotReporting, "2 of 3 nodes not ready; silent-b")
	w.expect(ring, v1alpha1.ConditionDegraded, metav1.ConditionFalse, v1alpha1.ReasonAllReporting)

	// They have had the time to start.
	old := func(s *v1alpha1.NodeCaptureStatus) {
		s.ObservedTime = &metav1.Time{Time: time.Now().Add(3 * time.Minute)}
	}
	late.Store(int64(3 * time.Minute))
	defer late.Store(0)
	w.agent("silent-a", old)
	for _, object := range []client.Object{ring, cluster} {
		w.expect(object, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady, "on 1 node; not counted, for their agents do not report: silent-b, silent-c")
		w.expect(object, v1alpha1.ConditionDegraded, metav1.ConditionTrue, v1alpha1.ReasonNodeNotReporting,
			"the agents of 2 of 3 nodes do not report: see the agents' pods on silent-b, silent-c")
		s := statusOf(object)
		require.EqualValues(t, []int32{3, 1, 2}, []int32{s.NodesDesired, s.NodesReady, s.NodesNotReporting})
	}
	// An edit reaches them at once: no agent has ever said anything there.
	update(w, ring, func(r *v1alpha1.CaptureRing) { r.Spec.SnapLength = 128 })
	w.snapLengths("silent", map[string]int32{"silent-a": 128, "silent-b": 128, "silent-c": 128})
	w.agent("silent-a", old)
	w.expect(ring, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	// None is left.
	late.Add(int64(v1alpha1.StaleAfter + time.Second))
	w.expect(ring, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonNodeNotReporting, "3 of 3 nodes not ready")
	w.expect(ring, v1alpha1.ConditionDegraded, metav1.ConditionTrue, v1alpha1.ReasonNodeNotReporting)
	// One where the ring works keeps that until its agent reports again.
	update(w, ring, func(r *v1alpha1.CaptureRing) { r.Spec.SnapLength = 256 })
	w.snapLengths("silent", map[string]int32{"silent-a": 128, "silent-b": 256, "silent-c": 256})
	w.expect(ring, v1alpha1.ConditionRolledOut, metav1.ConditionFalse, v1alpha1.ReasonRollingOut, "given to 2 of 3 nodes")
	w.agent("silent-b", old)
	w.expect(ring, v1alpha1.ConditionRolledOut, metav1.ConditionTrue, v1alpha1.ReasonRolledOut,
		"given to 2 of 3 nodes", "keep what they had until their agents report again: silent-a")
	w.agent("silent-a", old)
	w.snapLengths("silent", map[string]int32{"silent-a": 256, "silent-b": 256, "silent-c": 256})
}

// TestFleetLimit: the ring for which all NodeCaptures together have no room is refused, and others are not affected.
func TestFleetLimit(t *testing.T) {
	w := newWorld(t)
	for i := range 8 {
		w.node(fmt.Sprintf("limit-%d", i))
	}
	large := func(r *v1alpha1.CaptureRing, rules int) {
		r.Spec.Filter = &v1alpha1.Filter{}
		for i := range rules {
			r.Spec.Filter.Rules = append(r.Spec.Filter.Rules, v1alpha1.Rule{
				Action: v1alpha1.RuleDrop, Match: v1alpha1.RuleMatch{Source: fmt.Sprintf("10.%d.%d.0/24", i/256, i%256)},
			})
		}
	}
	fits, not := w.ring("limit-fits"), w.ring("limit-not")
	large(not, 3000)
	w.create(fits)
	w.create(not)
	w.expect(not, v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonFleetLimitExceeded,
		"of all CaptureRings and Clusters may take 1024 KiB", "select fewer nodes by spec.nodeSelector", "--fleet-limit")
	w.expect(not, v1alpha1.ConditionRolledOut, metav1.ConditionFalse, v1alpha1.ReasonFleetLimitExceeded)
	w.expect(fits, v1alpha1.ConditionAccepted, metav1.ConditionTrue, v1alpha1.ReasonAccepted)
	update(w, fits, func(r *v1alpha1.CaptureRing) { large(r, 3000) })
	w.expect(fits, v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonFleetLimitExceeded, "keep what was accepted last")
	require.Nil(t, w.capture("limit-3", []string{"limit-fits"}, nil).Spec.Rings[0].Spec.Filter)
	update(w, not, func(r *v1alpha1.CaptureRing) { large(r, 4) })
	w.expect(not, v1alpha1.ConditionAccepted, metav1.ConditionTrue, v1alpha1.ReasonAccepted)
}
