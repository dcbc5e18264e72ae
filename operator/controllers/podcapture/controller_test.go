// SPDX-License-Identifier: Apache-2.0

package podcapture

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
	"github.com/ringcap/ringcap/operator/plan"
)

// schemeOf returns the scheme of ringcap's kinds and of Nodes.
func schemeOf(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, errors.Join(v1alpha1.AddToScheme(scheme), corev1.AddToScheme(scheme)))
	return scheme
}

// TestPause: changes in quick succession become one, because each is written to all nodes. Until then the status describes the former ring.
func TestPause(t *testing.T) {
	capture := old("shop", "web", 1)
	c := fake.NewClientBuilder().WithScheme(schemeOf(t)).WithStatusSubresource(&v1alpha1.PodCapture{}, &v1alpha1.CaptureRing{}).
		WithObjects(&capture, &v1alpha1.NodeCapture{ObjectMeta: metav1.ObjectMeta{Name: "node"}}).Build()
	r := &Reconciler{Client: c, Limits: limits, Pause: time.Hour}
	run := func() ctrl.Result {
		result, err := r.Reconcile(t.Context(), ctrl.Request{})
		require.NoError(t, err)
		return result
	}
	var ring v1alpha1.CaptureRing
	ringThere := func() bool {
		err := c.Get(t.Context(), client.ObjectKey{Name: plan.RingName("shop", 0)}, &ring)
		require.NoError(t, client.IgnoreNotFound(err))
		return !apierrors.IsNotFound(err)
	}
	require.Zero(t, run().RequeueAfter)
	require.True(t, ringThere(), "the first change does not wait")

	for slots := range int32(3) {
		require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(&capture), &capture))
		before := capture.Status
		capture.Spec.Slots, capture.Generation = 1024+slots, int64(2+slots)
		require.NoError(t, c.Update(t.Context(), &capture))
		require.NotZero(t, run().RequeueAfter)
		require.True(t, ringThere())
		require.EqualValues(t, 4096, ring.Spec.Slots)
		require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(&capture), &capture))
		require.Equal(t, before, capture.Status)
	}
	r.wrote = time.Now().Add(-r.Pause)
	require.Zero(t, run().RequeueAfter)
	require.True(t, ringThere())
	require.EqualValues(t, 1026, ring.Spec.Slots)
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(&capture), &capture))
	require.Equal(t, capture.Generation, capture.Status.ObservedGeneration)

	require.NoError(t, c.Delete(t.Context(), &capture))
	require.NotZero(t, run().RequeueAfter)
	require.True(t, ringThere())
	r.wrote = time.Now().Add(-r.Pause)
	require.Zero(t, run().RequeueAfter)
	require.False(t, ringThere())
}

// TestInvalid: if the API server refuses the ring of a PodCapture, the reason is in the PodCapture's status. The PodCapture itself may be one
// that was created before a check existed: here a filter that drops everything after its rules were taken out.
func TestInvalid(t *testing.T) {
	capture := old("shop", "web", 1)
	invalid := apierrors.NewInvalid(schema.GroupKind{Group: v1alpha1.GroupVersion.Group, Kind: "CaptureRing"}, plan.RingName("shop", 0),
		field.ErrorList{field.Invalid(field.NewPath("spec", "filter"), "object", "defaultAction Drop without rules drops everything")})
	c := fake.NewClientBuilder().WithScheme(schemeOf(t)).WithStatusSubresource(&v1alpha1.PodCapture{}).WithObjects(&capture).
		WithInterceptorFuncs(interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return invalid }}).Build()
	r := &Reconciler{Client: c, Limits: limits}
	_, err := r.Reconcile(t.Context(), ctrl.Request{})
	require.NoError(t, err)
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(&capture), &capture))
	accepted := meta.FindStatusCondition(capture.Status.Conditions, v1alpha1.ConditionAccepted)
	require.NotNil(t, accepted)
	require.Equal(t, v1alpha1.ReasonUnsupported, accepted.Reason)
	require.Contains(t, accepted.Message, "defaultAction Drop without rules drops everything")
}

// TestWhichNodesAreNamed: those where the namespace has pods of its own, which its people see anyway, and no others.
func TestWhichNodesAreNamed(t *testing.T) {
	capture, name := old("shop", "web", 1), plan.RingName("shop", 0)
	node := func(name string, status v1alpha1.NodeCaptureStatus) *v1alpha1.NodeCapture {
		return &v1alpha1.NodeCapture{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: status}
	}
	c := fake.NewClientBuilder().WithScheme(schemeOf(t)).WithStatusSubresource(&v1alpha1.PodCapture{}, &v1alpha1.CaptureRing{}).WithObjects(&capture,
		node("tapped", v1alpha1.NodeCaptureStatus{Interfaces: []v1alpha1.InterfaceStatus{{Pod: "shop/web-1", Rings: []string{name}}}}),
		node("not-tapped.example", v1alpha1.NodeCaptureStatus{Rings: []v1alpha1.NodeRingStatus{{Name: name, PodsNotTapped: []string{"shop/web-2: hostNetwork"}}}}),
		node("foreign", v1alpha1.NodeCaptureStatus{Rings: []v1alpha1.NodeRingStatus{{Name: name}}}),
		node("foreign.example", v1alpha1.NodeCaptureStatus{Interfaces: []v1alpha1.InterfaceStatus{{Pod: "bank/web-1", Rings: []string{"mirror"}}}}),
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "new"}}, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "tapped"}},
	).Build()
	r := &Reconciler{Client: c, Limits: limits}
	run := func() {
		_, err := r.Reconcile(t.Context(), ctrl.Request{})
		require.NoError(t, err)
	}
	run()
	var ring v1alpha1.CaptureRing
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Name: name}, &ring))
	said := map[string]string{
		v1alpha1.ConditionReady:        "2 of 4 nodes not ready; foreign.example: its agent has not reported since 2026-11-23T10:00:00Z",
		v1alpha1.ConditionProgrammed:   "programmed; not counted, for their agents do not report: foreign, new, not-tapped.example, tapped.",
		v1alpha1.ConditionPacketsWhole: "on foreign packets have been cut within the last ten minutes (foreign/veth1, tapped/veth2, unforeign, foreign-2)",
	}
	for kind, message := range said {
		meta.SetStatusCondition(&ring.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNotReady, Message: message})
	}
	require.NoError(t, c.Status().Update(t.Context(), &ring))
	run()
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(&capture), &capture))
	for kind, want := range map[string]string{
		v1alpha1.ConditionReady:        "2 of 4 nodes not ready; another node: its agent has not reported since 2026-11-23T10:00:00Z",
		v1alpha1.ConditionProgrammed:   "programmed; not counted, for their agents do not report: another node, another node, not-tapped.example, tapped.",
		v1alpha1.ConditionPacketsWhole: "on another node packets have been cut within the last ten minutes (another node/veth1, tapped/veth2, unforeign, foreign-2)",
	} {
		require.Equal(t, want, meta.FindStatusCondition(capture.Status.Conditions, kind).Message)
	}
}

// TestNodesThatCannotBeRead: the status stays as it is, and names no node.
func TestNodesThatCannotBeRead(t *testing.T) {
	capture, name := old("shop", "web", 1), plan.RingName("shop", 0)
	capture.Status.Pods = 7
	ring := Ring(&capture, name, limits.Memory)
	ring.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Message: "1 of 1 nodes not ready; foreign"}}
	away := errors.New("the API server is away")
	c := fake.NewClientBuilder().WithScheme(schemeOf(t)).WithStatusSubresource(&v1alpha1.PodCapture{}).WithObjects(&capture, ring).
		WithInterceptorFuncs(interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, nodes := list.(*v1alpha1.NodeCaptureList); nodes {
				return away
			}
			return c.List(ctx, list, options...)
		}}).Build()
	r := &Reconciler{Client: c, Limits: limits}
	_, err := r.Reconcile(t.Context(), ctrl.Request{})
	require.ErrorIs(t, err, away)
	before := capture.Status
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(&capture), &capture))
	require.Equal(t, before, capture.Status)
}

// TestWhatUsersWroteIsNotRedacted: else they could guess the names of nodes.
func TestWhatUsersWroteIsNotRedacted(t *testing.T) {
	capture, name := old("shop", "web", 1), plan.RingName("shop", 0)
	on := podNodes{nodes: map[string]bool{"guess": true}}
	conditions := func(d decision, reasons map[string]string) map[string]string {
		ring := Ring(&capture, name, limits.Memory)
		for kind, reason := range reasons {
			meta.SetStatusCondition(&ring.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: "host guess"})
		}
		d.capture, d.ring = &capture, name
		c := fake.NewClientBuilder().WithScheme(schemeOf(t)).WithStatusSubresource(&capture).WithObjects(&capture).Build()
		require.NoError(t, (&Reconciler{Client: c}).writeStatus(t.Context(), d, ring, on))
		written := capture.DeepCopy()
		require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(&capture), written))
		said := map[string]string{}
		for _, condition := range written.Status.Conditions {
			said[condition.Type] = condition.Message
		}
		return said
	}
	const accepted, ready, rules, whole = v1alpha1.ConditionAccepted, v1alpha1.ConditionReady, v1alpha1.ConditionRulesEffective, v1alpha1.ConditionPacketsWhole
	invalid, deleting, other := v1alpha1.ReasonInvalidFilter, v1alpha1.ReasonDeleting, v1alpha1.ReasonNotReady
	said := conditions(decision{refused: &refusal{v1alpha1.ReasonUnsupported, "spec.podSelector: guess"}}, nil)
	require.Equal(t, "spec.podSelector: guess", said[accepted])
	said = conditions(decision{}, map[string]string{accepted: invalid, ready: invalid, rules: invalid, whole: other})
	require.Equal(t, "host guess", said[accepted])
	require.Equal(t, "host guess", said[ready])
	require.Equal(t, "host guess", said[rules])
	require.Equal(t, "host another node", said[whole], "this one names nodes")
	said = conditions(decision{}, map[string]string{accepted: deleting, ready: deleting, rules: other})
	require.Equal(t, "host another node", said[accepted])
	require.Equal(t, "host another node", said[ready])
	require.Equal(t, "host guess", said[rules])
}
