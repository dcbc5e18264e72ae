// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// TestNodesAreTold: each Linux node has a NodeCapture with the rings that select it and the Clusters over those.
func TestNodesAreTold(t *testing.T) {
	w := newWorld(t)
	a := w.node("told-a")
	w.node("told-b")
	windows := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "told-windows", Labels: map[string]string{"kubernetes.io/os": "windows", "test": t.Name()}}}
	w.create(windows)

	ring, cluster := w.ring("told"), w.cluster("told-ids", "told")
	w.create(ring)
	w.create(cluster)
	nc := w.capture("told-a", []string{"told"}, []string{"told-ids"})
	w.capture("told-b", []string{"told"}, []string{"told-ids"})
	want := *ring.Spec.DeepCopy()
	want.NodeSelector, want.Interfaces[0].WhenMissing = nil, v1alpha1.WhenMissingReport
	require.Equal(t, want, nc.Spec.Rings[0].Spec)
	require.EqualValues(t, ring.UID, nc.Spec.Rings[0].UID)
	require.Equal(t, cluster.Spec, nc.Spec.Clusters[0].Spec)

	// A node that does not match any more loses both.
	update(w, a, func(n *corev1.Node) { n.Labels = nil })
	w.capture("told-a", nil, nil)
	require.NoError(t, client.IgnoreNotFound(w.Get(t.Context(), client.ObjectKey{Name: "told-b"}, nc)))
	generation := nc.Generation

	// One that is gone loses its NodeCapture.
	require.NoError(t, w.Delete(t.Context(), a))
	w.eventually(func(c *assert.CollectT) {
		err := w.Get(t.Context(), client.ObjectKey{Name: "told-a"}, &v1alpha1.NodeCapture{})
		assert.True(c, err != nil && client.IgnoreNotFound(err) == nil)
	})
	// All this was nothing to the other node.
	require.NoError(t, w.Get(t.Context(), client.ObjectKey{Name: "told-b"}, nc))
	require.Equal(t, generation, nc.Generation)
	require.Error(t, w.Get(t.Context(), client.ObjectKey{Name: "told-windows"}, nc))
}

// TestNodesAreToldOfPairs: a node gets all of spec.inline, with its defaults.
func TestNodesAreToldOfPairs(t *testing.T) {
	w := newWorld(t)
	w.node("paired")
	ring := w.ring("line")
	ring.Spec.Interfaces, ring.Spec.Queues = nil, v1alpha1.Queues(2)
	ring.Spec.Inline = &v1alpha1.Inline{
		Pairs: []v1alpha1.InterfacePair{{Interfaces: []string{"eth1", "eth2"}}}, WhenHung: v1alpha1.InlineBlock,
	}
	w.create(ring)
	nc := w.capture("paired", []string{"line"}, nil)
	require.Equal(t, &v1alpha1.Inline{
		Pairs:          []v1alpha1.InterfacePair{{Interfaces: []string{"eth1", "eth2"}, WhenMissing: v1alpha1.WhenMissingReport}},
		WhenUnattended: v1alpha1.InlineBypass, WhenFull: v1alpha1.InlineBypass, WhenHung: v1alpha1.InlineBlock,
		HungAfter: &metav1.Duration{Duration: 250 * time.Millisecond},
	}, nc.Spec.Rings[0].Spec.Inline)
	require.Empty(t, nc.Spec.Rings[0].Spec.Interfaces)
}

// TestNodeCaptureIsRestored: what someone else changes in or deletes of a node's desired state comes back; what the agent
// reported stays, and who wrote what is not remembered.
func TestNodeCaptureIsRestored(t *testing.T) {
	w := newWorld(t)
	w.node("restored")
	w.create(w.ring("restored"))
	w.capture("restored", []string{"restored"}, nil)
	w.agent("restored", nil)
	nc := w.capture("restored", []string{"restored"}, nil)
	reported := nc.Status
	update(w, nc, func(nc *v1alpha1.NodeCapture) { nc.Spec.Rings = nil })
	nc = w.capture("restored", []string{"restored"}, nil)
	require.Equal(t, reported, nc.Status)
	require.Empty(t, nc.ManagedFields)
	require.NoError(t, w.Delete(t.Context(), nc))
	w.capture("restored", []string{"restored"}, nil)
}

// TestNodeCaptureThatDoesNotDecodeIsRestored, and the others are written meanwhile.
func TestNodeCaptureThatDoesNotDecodeIsRestored(t *testing.T) {
	w := newWorld(t)
	w.node("undecodable")
	w.create(w.ring("first"))
	nc := w.capture("undecodable", []string{"first"}, nil)
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"rings":[{"name":"first","spec":{"slots":"many"}}]}}`))
	require.NoError(t, w.Patch(t.Context(), nc, patch))
	w.node("decodable")
	w.create(w.ring("second"))
	w.capture("undecodable", []string{"first", "second"}, nil)
	w.capture("decodable", []string{"first", "second"}, nil)
}

// TestInvalidFilter: the condition has libpcap's words; the nodes never get it, or keep the last valid one.
func TestInvalidFilter(t *testing.T) {
	if _, err := rcbpf(); err != nil {
		t.Skip("needs rcbpf: run make in lib")
	}
	w := newWorld(t)
	w.node("filter")
	broken := w.ring("filter-broken")
	broken.Spec.Filter = &v1alpha1.Filter{BPF: "tcp port foo bar"}
	w.create(broken)
	const own = "port 'foo'" // libpcap's own words
	w.expect(broken, v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonInvalidFilter,
		`spec.filter.bpf "tcp port foo bar"`, own)
	w.expect(broken, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonInvalidFilter)

	ring := w.ring("filter")
	ring.Spec.Filter = &v1alpha1.Filter{BPF: "udp port 53"}
	w.create(ring)
	w.expect(ring, v1alpha1.ConditionAccepted, metav1.ConditionTrue, v1alpha1.ReasonAccepted)
	before := w.capture("filter", []string{"filter"}, nil)

	update(w, ring, func(r *v1alpha1.CaptureRing) { r.Spec.Filter.BPF, r.Spec.SnapLength = "udp port", 128 })
	w.expect(ring, v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonInvalidFilter,
		"until then, filter keeps what was accepted last")
	after := w.capture("filter", []string{"filter"}, nil)
	require.Equal(t, before.Generation, after.Generation)
	require.Equal(t, "udp port 53", after.Spec.Rings[0].Spec.Filter.BPF)

	update(w, ring, func(r *v1alpha1.CaptureRing) { r.Spec.Filter.BPF = "udp port 54" })
	w.expect(ring, v1alpha1.ConditionAccepted, metav1.ConditionTrue, v1alpha1.ReasonAccepted)
	w.eventually(func(c *assert.CollectT) {
		require.NoError(c, w.Get(t.Context(), client.ObjectKeyFromObject(after), after))
		assert.Equal(c, "udp port 54", after.Spec.Rings[0].Spec.Filter.BPF)
		assert.EqualValues(c, 128, after.Spec.Rings[0].Spec.SnapLength)
	})
}

// TestNameConflict: the older keeps the name, the younger names its owner, and follows when it is free.
func TestNameConflict(t *testing.T) {
	w := newWorld(t)
	w.node("names")
	w.create(w.ring("names-feed"))
	older := w.ring("names")
	w.create(older)
	w.expect(older, v1alpha1.ConditionAccepted, metav1.ConditionTrue, v1alpha1.ReasonAccepted)
	younger := w.cluster("names", "names-feed")
	w.create(younger)
	w.expect(younger, v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonNameConflict,
		`CaptureRing "names"`)
	w.expect(older, v1alpha1.ConditionAccepted, metav1.ConditionTrue, v1alpha1.ReasonAccepted)
	w.capture("names", []string{"names", "names-feed"}, nil)

	require.NoError(t, w.Delete(t.Context(), older))
	w.expect(younger, v1alpha1.ConditionAccepted, metav1.ConditionTrue, v1alpha1.ReasonAccepted)
	w.capture("names", []string{"names-feed"}, []string{"names"})
}

// TestRingNotFound: a Cluster over a ring that is not there is told to no node, and follows when the ring is.
func TestRingNotFound(t *testing.T) {
	w := newWorld(t)
	w.node("lonely")
	cluster := w.cluster("lonely-ids", "lonely")
	w.create(cluster)
	w.expect(cluster, v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonRingNotFound,
		`spec.rings: there is no CaptureRing "lonely"`)
	w.expect(cluster, v1alpha1.ConditionProgrammed, metav1.ConditionFalse, v1alpha1.ReasonRingNotFound)

	w.create(w.ring("lonely"))
	w.expect(cluster, v1alpha1.ConditionAccepted, metav1.ConditionTrue, v1alpha1.ReasonAccepted)
	w.capture("lonely", []string{"lonely"}, []string{"lonely-ids"})
}

// TestMemoryLimit: what cannot fit is refused with figures, and so is a Cluster over a ring that is refused.
func TestMemoryLimit(t *testing.T) {
	w := newWorld(t)
	w.node("memory")
	limit := resource.MustParse("1Mi")
	ring := w.ring("memory")
	ring.Spec.MemoryLimit, ring.Spec.Queues = &limit, v1alpha1.Queues(4)
	w.create(ring)
	w.expect(ring, v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonMemoryLimitExceeded,
		"spec.memoryLimit 1Mi: 4 queues of 4096 slots of 1536 bytes need at least 32 MiB")

	cluster := w.cluster("memory-ids", "memory")
	w.create(cluster)
	w.expect(cluster, v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonRingNotAccepted,
		`CaptureRing "memory" is not accepted (MemoryLimitExceeded)`)
	w.capture("memory", nil, nil)
}

// TestDeletionWaitsForTheNodes: an object is there until no node has it; who holds it is in the condition.
func TestDeletionWaitsForTheNodes(t *testing.T) {
	w := newWorld(t)
	w.node("holding")
	w.node("silent")
	ring, cluster := w.ring("held"), w.cluster("held-ids", "held")
	w.create(ring)
	w.create(cluster)
	w.capture("silent", []string{"held"}, []string{"held-ids"})
	w.capture("holding", []string{"held"}, []string{"held-ids"})
	w.agent("silent", nil)
	w.agent("holding", nil)
	w.expect(cluster, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady, "on 2 nodes")
	late.Store(int64(v1alpha1.StaleAfter + time.Second))
	defer late.Store(0)
	again := func(s *v1alpha1.NodeCaptureStatus) { s.ObservedTime = &metav1.Time{Time: time.Now().Add(time.Minute)} }
	w.agent("holding", again)
	w.expect(cluster, v1alpha1.ConditionDegraded, metav1.ConditionTrue, v1alpha1.ReasonNodeNotReporting, "silent")

	require.NoError(t, w.Delete(t.Context(), cluster))
	w.capture("holding", []string{"held"}, nil)
	condition := w.expect(cluster, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonDeleting,
		"holding: its queues are in use: delete the consumer of queue 0")
	require.NotContains(t, condition.Message, "silent", "a silent node is not waited for")

	// The agent cannot remove it while a pod has a queue.
	w.agent("holding", func(s *v1alpha1.NodeCaptureStatus) {
		queues := queuesStatus("held-ids", 2)
		queues.Ready, queues.Reason, queues.Queues[1].Consumer = false, v1alpha1.ReasonQueueInUse, "ids/snort-0"
		s.Clusters = append(s.Clusters, queues)
	})
	w.expect(cluster, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonDeleting, "pod ids/snort-0")
	// Then it can.
	w.agent("holding", nil)
	w.eventually(func(c *assert.CollectT) {
		assert.Error(c, w.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster))
	})
	w.expect(ring, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonNoQueues)
}
