// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// namespace makes one; nothing here ends it.
func (w *world) namespace(name string) string {
	w.t.Helper()
	require.NoError(w.t, w.Create(w.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	return name
}

func podCapture(namespace, name string) *v1alpha1.PodCapture {
	return &v1alpha1.PodCapture{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1alpha1.PodCaptureSpec{PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
	}
}

// expectPods waits until the PodCapture's condition Ready is about its present generation and has this reason.
func (w *world) expectPods(capture *v1alpha1.PodCapture, reason string, words ...string) {
	w.t.Helper()
	w.eventually(func(c *assert.CollectT) {
		require.NoError(c, w.Get(w.t.Context(), client.ObjectKeyFromObject(capture), capture))
		ready := meta.FindStatusCondition(capture.Status.Conditions, v1alpha1.ConditionReady)
		require.NotNil(c, ready)
		assert.Equal(c, capture.Generation, ready.ObservedGeneration)
		assert.Equal(c, capture.Generation, capture.Status.ObservedGeneration)
		assert.Equal(c, reason, ready.Reason, ready.Message)
		for _, text := range words {
			assert.Contains(c, ready.Message, text)
		}
	})
}

// ringOf waits for the CaptureRing of a PodCapture.
func (w *world) ringOf(capture *v1alpha1.PodCapture) *v1alpha1.CaptureRing {
	w.t.Helper()
	var ring v1alpha1.CaptureRing
	w.eventually(func(c *assert.CollectT) {
		var list v1alpha1.CaptureRingList
		require.NoError(c, w.List(w.t.Context(), &list, client.MatchingLabels{v1alpha1.LabelPodCaptureUID: string(capture.UID)}))
		require.Len(c, list.Items, 1)
		ring = list.Items[0]
	})
	return &ring
}

func (w *world) ringGoes(name string) {
	w.t.Helper()
	w.eventually(func(c *assert.CollectT) {
		assert.True(c, apierrors.IsNotFound(w.Get(w.t.Context(), client.ObjectKey{Name: name}, &v1alpha1.CaptureRing{})))
	})
}

// TestPodCapture: it gets a ring over pods of its namespace for consumers there, and tells how that does; whatever is done to the ring is
// undone, and it goes with the PodCapture.
func TestPodCapture(t *testing.T) {
	w := newWorld(t)
	w.node("pods-1")
	capture := podCapture(w.namespace("shop"), "web")
	capture.Spec.Filter = &v1alpha1.Filter{BPF: "tcp", Rules: []v1alpha1.Rule{{Action: v1alpha1.RuleDrop, Match: v1alpha1.RuleMatch{Source: "10.0.0.0/8"}}}}
	capture.Spec.Sampling = &v1alpha1.Sampling{OneIn: 2}
	capture.Spec.Queues = 2
	w.create(capture)
	ring := w.ringOf(capture)
	want := ring.Spec.DeepCopy()
	require.Equal(t, []v1alpha1.InterfaceSelector{{
		PodSelector:       &capture.Spec.PodSelector,
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "shop"}},
	}}, want.Interfaces)
	require.Equal(t, &v1alpha1.Consumers{Namespaces: []string{"shop"}}, want.Consumers)
	require.Equal(t, v1alpha1.Queues(2), want.Queues)
	require.Equal(t, v1alpha1.DirectionBoth, want.Direction)
	require.Equal(t, capture.Spec.Filter, want.Filter)
	require.Equal(t, capture.Spec.Sampling, want.Sampling)
	require.EqualValues(t, 16<<20, want.MemoryLimit.Value())
	require.Zero(t, want.SnapLength, "packets come whole")

	w.capture("pods-1", []string{ring.Name}, nil)
	w.agent("pods-1", func(s *v1alpha1.NodeCaptureStatus) {
		s.Interfaces = []v1alpha1.InterfaceStatus{
			{Name: "veth1", Pod: "shop/web-1", Rings: []string{ring.Name}}, {Name: "veth2", Pod: "shop/web-1", Rings: []string{ring.Name}},
			{Name: "veth3", Pod: "shop/web-2", Rings: []string{"other", ring.Name}}, {Name: "veth4", Pod: "other/web", Rings: []string{"other"}},
		}
	})
	w.expectPods(capture, v1alpha1.ReasonReady, "pods can request ringcap.io/"+ring.Name+" on 1 node")
	w.eventually(func(c *assert.CollectT) {
		require.NoError(c, w.Get(t.Context(), client.ObjectKeyFromObject(capture), capture))
		status := capture.Status
		assert.Len(c, status.Conditions, 6)
		status.Conditions = nil
		assert.Equal(c, v1alpha1.PodCaptureStatus{
			ObservedGeneration: capture.Generation, Resource: "ringcap.io/" + ring.Name, Pods: 2, NodesDesired: 1, NodesReady: 1,
			Queues: 2, QueuesAttached: 1, Seen: 100, Delivered: 80, Dropped: 10, Truncated: 8,
		}, status)
	})

	update(w, ring, func(r *v1alpha1.CaptureRing) {
		r.Spec.Interfaces = []v1alpha1.InterfaceSelector{{PodSelector: &metav1.LabelSelector{}}}
		r.Spec.Consumers.Namespaces = []string{"*"}
		r.Spec.Filter = nil
		r.Annotations = nil
	})
	w.eventually(func(c *assert.CollectT) {
		require.NoError(c, w.Get(t.Context(), client.ObjectKeyFromObject(ring), ring))
		assert.Equal(c, want, &ring.Spec)
		assert.Equal(c, "web", ring.Annotations[v1alpha1.AnnotationPodCapture])
	})
	before := ring.UID
	require.NoError(t, w.Delete(t.Context(), ring))
	w.eventually(func(c *assert.CollectT) {
		var again v1alpha1.NodeCapture
		require.NoError(c, w.Get(t.Context(), client.ObjectKey{Name: "pods-1"}, &again))
		assert.Empty(c, again.Spec.Rings)
	})
	w.agent("pods-1", nil)
	w.eventually(func(c *assert.CollectT) {
		require.NoError(c, w.Get(t.Context(), client.ObjectKeyFromObject(ring), ring))
		assert.NotEqual(c, before, ring.UID)
	})

	update(w, capture, func(p *v1alpha1.PodCapture) { p.Spec.Filter.BPF = "this is no filter" })
	w.expectPods(capture, v1alpha1.ReasonInvalidFilter, "spec.filter.bpf")
	require.NoError(t, w.Delete(t.Context(), capture))
	w.capture("pods-1", nil, nil)
	w.agent("pods-1", nil)
	w.ringGoes(ring.Name)
}

// TestPodCaptureLimits: what is too many or too large is refused, and a change that is refused takes nothing away.
func TestPodCaptureLimits(t *testing.T) {
	w := newWorld(t)
	team := w.namespace("limits")
	first, second, third := podCapture(team, "a"), podCapture(team, "b"), podCapture(team, "c")
	w.create(first)
	was := w.ringOf(first)
	w.create(second)
	w.ringOf(second)
	w.create(third)
	w.expectPods(third, v1alpha1.ReasonLimitExceeded, "2 older PodCaptures in this namespace")
	require.Empty(t, third.Status.Resource)

	large := podCapture(w.namespace("limits-large"), "large")
	large.Spec.Queues = 3
	w.create(large)
	w.expectPods(large, v1alpha1.ReasonMemoryLimitExceeded, "3 queues of 4096 slots of 1536 bytes need 24576 KiB on each node, and a PodCapture may have 16384 KiB")
	update(w, large, func(p *v1alpha1.PodCapture) { p.Spec.Queues = 2 })
	ring := w.ringOf(large)
	update(w, large, func(p *v1alpha1.PodCapture) {
		p.Spec.Filter = &v1alpha1.Filter{}
		for range 100 {
			p.Spec.Filter.Payload = append(p.Spec.Filter.Payload, v1alpha1.PayloadPattern{Text: "some words that are looked for"})
		}
	})
	w.expectPods(large, v1alpha1.ReasonLimitExceeded, "a PodCapture may take 4096", "until then it stays as it was before the change")
	require.Equal(t, "ringcap.io/"+ring.Name, large.Status.Resource)
	spec := ring.Spec
	require.NoError(t, w.Get(t.Context(), client.ObjectKeyFromObject(ring), ring))
	require.Equal(t, spec, ring.Spec)

	// The next one in the row gets the place, and the name.
	require.NoError(t, w.Delete(t.Context(), first))
	require.Equal(t, was.Name, w.ringOf(third).Name)
}

// TestPodCaptureNames: of the same name in two namespaces each has its own ring over its own pods; a ring that is somebody else's is
// left alone; and who comes again under a name gets the resource of before.
func TestPodCaptureNames(t *testing.T) {
	w := newWorld(t)
	mine, theirs := podCapture(w.namespace("names-mine"), "web"), podCapture(w.namespace("names-theirs"), "web")
	w.create(mine)
	w.create(theirs)
	for _, capture := range []*v1alpha1.PodCapture{mine, theirs} {
		ring := w.ringOf(capture)
		require.Equal(t, capture.Namespace, ring.Spec.Interfaces[0].NamespaceSelector.MatchLabels["kubernetes.io/metadata.name"])
		require.Equal(t, []string{capture.Namespace}, ring.Spec.Consumers.Namespaces)
	}
	name := w.ringOf(mine).Name
	require.NotEqual(t, name, w.ringOf(theirs).Name)

	// The last digit is a number of the namespace's.
	stranger := w.ring(name[:len(name)-1] + "1")
	w.create(stranger)
	second := podCapture("names-mine", "second")
	w.create(second)
	w.expectPods(second, v1alpha1.ReasonNameConflict, "the name "+stranger.Name+" is taken by a CaptureRing that is not of a PodCapture")
	require.NoError(t, w.Get(t.Context(), client.ObjectKeyFromObject(stranger), stranger))
	require.Equal(t, "mirror0", stranger.Spec.Interfaces[0].Name)

	require.NoError(t, w.Delete(t.Context(), stranger))
	require.Equal(t, stranger.Name, w.ringOf(second).Name)

	require.NoError(t, w.Delete(t.Context(), second))
	require.NoError(t, w.Delete(t.Context(), mine))
	again := podCapture("names-mine", "web")
	w.create(again)
	require.Equal(t, name, w.ringOf(again).Name)
}
