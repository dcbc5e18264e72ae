// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringcap/ringcap/operator/api/heartbeat"
	"github.com/ringcap/ringcap/operator/api/v1alpha1"
	"github.com/ringcap/ringcap/operator/cleanup"
)

// TestRulesEffective: a rule that others come before is pointed out, and the ring is accepted all the same.
func TestRulesEffective(t *testing.T) {
	w := newWorld(t)
	w.node("effective")
	ring := w.ring("effective")
	ring.Spec.Filter = &v1alpha1.Filter{Rules: []v1alpha1.Rule{
		{Action: v1alpha1.RulePass}, {Name: "late", Action: v1alpha1.RuleDrop, Match: v1alpha1.RuleMatch{Source: "10.0.0.0/8"}},
	}}
	w.create(ring)
	w.expect(ring, v1alpha1.ConditionRulesEffective, metav1.ConditionFalse, v1alpha1.ReasonShadowed,
		"spec.filter.rules[1] (late) never decides: spec.filter.rules[0] matches all that it matches")
	w.expect(ring, v1alpha1.ConditionAccepted, metav1.ConditionTrue, v1alpha1.ReasonAccepted)
	update(w, ring, func(r *v1alpha1.CaptureRing) { r.Spec.Filter.Rules[1].Priority = 1 })
	w.expect(ring, v1alpha1.ConditionRulesEffective, metav1.ConditionTrue, v1alpha1.ReasonEffective)
	require.Equal(t, ring.Generation, ring.Status.ObservedGeneration)
	update(w, ring, func(r *v1alpha1.CaptureRing) { r.Spec.Filter.Rules[1].Match.Destination = "::/0" })
	w.expect(ring, v1alpha1.ConditionRulesEffective, metav1.ConditionFalse, v1alpha1.ReasonInvalidFilter, "not accepted: spec.filter.rules[1]")
}

// TestConsumersEffective: a ring that permits no namespace is reported, and so is each Cluster over it, whatever the Cluster permits.
func TestConsumersEffective(t *testing.T) {
	w := newWorld(t)
	w.node("consumers")
	ring, cluster := w.ring("consumers"), w.cluster("consumers-ids", "consumers")
	ring.Spec.Consumers = nil
	cluster.Spec.Consumers = &v1alpha1.Consumers{Namespaces: []string{"*"}}
	w.create(ring)
	w.create(cluster)
	for _, object := range []client.Object{ring, cluster} {
		w.expect(object, v1alpha1.ConditionConsumersEffective, metav1.ConditionFalse, v1alpha1.ReasonNobodyAllowed,
			"spec.consumers of CaptureRing consumers names no namespace: list there the namespaces that may have its packets ('*' for all); no new pod gets")
	}
	update(w, ring, func(r *v1alpha1.CaptureRing) { r.Spec.Consumers = &v1alpha1.Consumers{Namespaces: []string{"sensors"}} })
	w.expect(ring, v1alpha1.ConditionConsumersEffective, metav1.ConditionTrue, v1alpha1.ReasonEffective)
	w.expect(cluster, v1alpha1.ConditionConsumersEffective, metav1.ConditionTrue, v1alpha1.ReasonEffective)
	update(w, cluster, func(c *v1alpha1.Cluster) { c.Spec.Consumers.Namespaces = []string{"others"} })
	w.expect(cluster, v1alpha1.ConditionConsumersEffective, metav1.ConditionFalse, v1alpha1.ReasonNobodyAllowed, "have no name in common")
}

// TestNodesWithoutTheInterface: they do not count, unless there are no others.
func TestNodesWithoutTheInterface(t *testing.T) {
	w := newWorld(t)
	w.node("with")
	w.node("without")
	ring, cluster := w.ring("here"), w.cluster("here-ids", "here")
	w.create(ring)
	w.create(cluster)
	absent := func(s *v1alpha1.NodeCaptureStatus) {
		s.Rings[0].Reason, s.Rings[0].Message = v1alpha1.ReasonInterfaceAbsent, "no interface mirror0"
		s.Clusters[0].Reason, s.Clusters[0].Message = v1alpha1.ReasonInterfaceAbsent, "no interface mirror0"
	}
	for _, node := range []string{"with", "without"} {
		w.capture(node, []string{"here"}, []string{"here-ids"})
		w.agent(node, absent)
	}
	condition := w.expect(ring, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonInterfaceNotFound)
	require.Equal(t, "2 of 2 nodes not ready; with: no interface mirror0", condition.Message)
	w.expect(cluster, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonInterfaceNotFound)
	w.agent("with", nil)
	w.expect(cluster, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady, "on 1 node")
	w.expect(ring, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady, "on 1 node")
}

// TestStatusAddsUp: conditions and sums follow from what the nodes report.
func TestStatusAddsUp(t *testing.T) {
	w := newWorld(t)
	w.node("sum-a")
	w.node("sum-b")
	ring, cluster := w.ring("sum"), w.cluster("sum-ids", "sum")
	w.create(ring)
	w.expect(ring, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonNoQueues)
	w.create(cluster)

	w.expect(ring, v1alpha1.ConditionProgrammed, metav1.ConditionFalse, v1alpha1.ReasonNodeNotReporting,
		"2 of 2 nodes not ready; sum-a: no agent has reported yet")

	w.capture("sum-a", []string{"sum"}, []string{"sum-ids"})
	w.capture("sum-b", []string{"sum"}, []string{"sum-ids"})
	w.agent("sum-a", nil)
	w.agent("sum-b", func(s *v1alpha1.NodeCaptureStatus) {
		s.Rings[0].Ready, s.Rings[0].Reason, s.Rings[0].Message = false, v1alpha1.ReasonInterfaceNotFound, "no interface mirror0"
		s.Clusters[0].Ready, s.Clusters[0].Reason, s.Clusters[0].Message = false, v1alpha1.ReasonRingNotAccepted, "ring sum has no interface"
	})
	condition := w.expect(ring, v1alpha1.ConditionProgrammed, metav1.ConditionFalse, v1alpha1.ReasonInterfaceNotFound)
	require.Equal(t, "1 of 2 nodes not ready; sum-b: no interface mirror0", condition.Message)
	w.expect(cluster, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonRingNotAccepted)

	w.agent("sum-b", func(s *v1alpha1.NodeCaptureStatus) { s.Rings[0].Engine = v1alpha1.EngineKernelModule })
	for _, object := range []client.Object{ring, cluster} {
		w.expect(object, v1alpha1.ConditionAccepted, metav1.ConditionTrue, v1alpha1.ReasonAccepted)
		w.expect(object, v1alpha1.ConditionProgrammed, metav1.ConditionTrue, v1alpha1.ReasonProgrammed)
		w.expect(object, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
		s := statusOf(object)
		require.EqualValues(t, []int32{2, 2, 4, 2}, []int32{s.NodesDesired, s.NodesReady, s.Queues, s.QueuesAttached})
		require.EqualValues(t, []int64{160, 12, 20, 16, 1200}, []int64{s.Delivered, s.Shunted, s.Dropped, s.Truncated, s.TruncatedBytes})
		require.Equal(t, "EBPF,KernelModule", s.Engines)
	}
	require.EqualValues(t, 200, ring.Status.Seen, "what the interfaces saw")
	require.EqualValues(t, 192, cluster.Status.Seen, "what the ring passed to it: delivered + shunted + dropped")

	// What was waited for, and what a node refused, once each; what passed by itself is not told.
	w.eventually(func(c *assert.CollectT) {
		assert.ElementsMatch(c, []string{"Warning InterfaceNotFound: 1 of 2 nodes not ready; sum-b: no interface mirror0",
			"Normal Ready: feeds the Clusters over it on 2 nodes"}, w.events(c, ring))
	})

	// A change that the agents have not applied yet.
	update(w, cluster, func(c *v1alpha1.Cluster) { c.Spec.Queues = 3 })
	w.expect(cluster, v1alpha1.ConditionProgrammed, metav1.ConditionFalse, v1alpha1.ReasonPending,
		"has not applied generation")
}

// TestPacketsThatNobodyAskedToCut: what a ring's spec asks for is no trouble, and the condition has no number that changes.
func TestPacketsThatNobodyAskedToCut(t *testing.T) {
	w := newWorld(t)
	w.node("cut-a")
	w.node("cut-b")
	ring := w.ring("cut")
	ring.Spec.Queues = v1alpha1.Queues(1)
	w.create(ring)
	w.capture("cut-a", []string{"cut"}, nil)
	w.capture("cut-b", []string{"cut"}, nil)
	w.agent("cut-a", nil)
	w.agent("cut-b", nil)
	w.expect(ring, v1alpha1.ConditionPacketsWhole, metav1.ConditionTrue, v1alpha1.ReasonWhole, "up to 65535 bytes")

	w.agent("cut-b", func(s *v1alpha1.NodeCaptureStatus) { s.Rings[0].Truncating = true })
	condition := w.expect(ring, v1alpha1.ConditionPacketsWhole, metav1.ConditionFalse, v1alpha1.ReasonPacketsTruncated, "on cut-b packets have been cut")
	require.NotContains(t, condition.Message, "cut-a")
	w.expect(ring, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)

	update(w, ring, func(r *v1alpha1.CaptureRing) { r.Spec.SnapLength = 1536 })
	w.expect(ring, v1alpha1.ConditionPacketsWhole, metav1.ConditionTrue, v1alpha1.ReasonSnapLengthGiven, "1536 bytes")
}

// TestSilentNode: a node that reported once and does no more is not ready, unless its agent renews its Lease.
func TestSilentNode(t *testing.T) {
	w := newWorld(t)
	w.node("quiet")
	ring := w.ring("quiet")
	ring.Spec.Queues = v1alpha1.Queues(1)
	w.create(ring)
	w.capture("quiet", []string{"quiet"}, nil)
	w.agent("quiet", nil)
	condition := w.expect(ring, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	require.Equal(t, "pods can request ringcap.io/quiet on 1 node", condition.Message)

	late.Store(int64(v1alpha1.StaleAfter + time.Second))
	t.Cleanup(func() { late.Store(0) })
	// Anything that happens makes the operator look again.
	update(w, ring, func(r *v1alpha1.CaptureRing) { r.Spec.SnapLength = 256 })
	w.expect(ring, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonNodeNotReporting,
		"quiet: its agent has not reported since")

	// Its agent is there after all: by the Lease, the status still holds.
	renewed := metav1.NewMicroTime(time.Now().Add(v1alpha1.StaleAfter))
	w.create(&coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: deployment.Namespace, Name: heartbeat.Name("quiet"), Labels: heartbeat.Labels()},
		Spec:       coordinationv1.LeaseSpec{RenewTime: &renewed},
	})
	w.eventually(func(c *assert.CollectT) {
		var nc v1alpha1.NodeCapture
		require.NoError(c, w.Get(t.Context(), client.ObjectKey{Name: "quiet"}, &nc))
		require.EqualValues(c, 256, nc.Spec.Rings[0].Spec.SnapLength)
	})
	w.agent("quiet", nil)
	w.expect(ring, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	late.Add(int64(v1alpha1.StaleAfter))
	update(w, ring, func(r *v1alpha1.CaptureRing) { r.Spec.SnapLength = 512 })
	w.expect(ring, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonNodeNotReporting)
}

// TestNoNodes: a selector that matches nothing is said to.
func TestNoNodes(t *testing.T) {
	w := newWorld(t)
	ring, cluster := w.ring("nowhere"), w.cluster("nowhere-ids", "nowhere")
	w.create(ring)
	w.create(cluster)
	for _, object := range []client.Object{ring, cluster} {
		w.expect(object, v1alpha1.ConditionAccepted, metav1.ConditionTrue, v1alpha1.ReasonAccepted)
		w.expect(object, v1alpha1.ConditionProgrammed, metav1.ConditionFalse, v1alpha1.ReasonNoNodes)
		w.expect(object, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonNoNodes)
	}
	// A sum of nothing is 0, not missing: print columns would be empty.
	var raw unstructured.Unstructured
	raw.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("CaptureRing"))
	require.NoError(t, w.Get(t.Context(), client.ObjectKeyFromObject(ring), &raw))
	for _, field := range []string{"nodesDesired", "nodesReady", "queues", "queuesAttached", "seen", "delivered", "shunted", "dropped", "truncated", "truncatedBytes"} {
		value, found, err := unstructured.NestedInt64(raw.Object, "status", field)
		require.NoError(t, err)
		require.True(t, found, field)
		require.Zero(t, value)
	}
}

// told signals that something was written.
type told chan struct{}

func (t told) Write(p []byte) (int, error) {
	select {
	case t <- struct{}{}:
	default:
	}
	return len(p), nil
}

// TestCleanup: everything is deleted, and what holds it up is named.
func TestCleanup(t *testing.T) {
	w := newWorld(t)
	w.node("clean")
	ring, cluster := w.ring("clean"), w.cluster("clean-ids", "clean")
	w.create(ring)
	w.create(cluster)
	pods := podCapture(w.namespace("clean"), "web")
	w.create(pods)
	w.capture("clean", []string{"clean", w.ringOf(pods).Name}, []string{"clean-ids"})
	w.agent("clean", nil)

	// The condition's last message is as far as the operator has come by then.
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		err := cleanup.Run(ctx, w.Client, io.Discard)
		assert.ErrorContains(c, err, "Cluster clean-ids: waiting for clean: its queues are in use: delete the consumer of queue 0")
	}, time.Minute, 50*time.Millisecond)

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	waits, done := make(told, 1), make(chan error, 1)
	go func() { done <- cleanup.Run(ctx, w.Client, waits) }()
	<-waits
	require.NoError(t, w.Create(t.Context(), podCapture("clean", "web")), "a pipeline makes again what it misses")
	w.capture("clean", nil, nil)
	for ended := false; !ended; {
		w.agent("clean", nil) // as often as it is told something
		select {
		case err := <-done:
			require.NoError(t, err)
			ended = true
		case <-time.After(50 * time.Millisecond):
		}
	}
	var rings v1alpha1.CaptureRingList
	require.NoError(t, w.List(t.Context(), &rings))
	assert.Empty(t, rings.Items)
	assert.True(t, apierrors.IsNotFound(w.Get(t.Context(), client.ObjectKeyFromObject(pods), pods)))
}
