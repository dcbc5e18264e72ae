// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/ringcap/ringcap/operator/api/counters"
	"github.com/ringcap/ringcap/operator/api/v1alpha1"
	"github.com/ringcap/ringcap/operator/snapshot"
)

// TestDeletionAfterAnOutage: no agent has reported for a while when an operator starts again with the API server. What is being deleted
// stays until the nodes have said that they are rid of it, or have had the time to.
func TestDeletionAfterAnOutage(t *testing.T) {
	for _, returns := range []bool{true, false} {
		t.Run(fmt.Sprint("the agent returns: ", returns), func(t *testing.T) {
			now := time.Unix(1_000_000, 0)
			ring := &v1alpha1.CaptureRing{ObjectMeta: metav1.ObjectMeta{
				Name: "mirror", UID: "1", Finalizers: []string{v1alpha1.FinalizerNodes}, DeletionTimestamp: &metav1.Time{Time: now},
			}}
			node := &v1alpha1.NodeCapture{ObjectMeta: metav1.ObjectMeta{Name: "node", Generation: 2}, Status: v1alpha1.NodeCaptureStatus{
				AppliedGeneration: 1, ObservedTime: &metav1.Time{Time: now.Add(-2 * v1alpha1.StaleAfter)},
				Rings: []v1alpha1.NodeRingStatus{{Name: ring.Name, Ready: true}},
			}}
			scheme := runtime.NewScheme()
			require.NoError(t, errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)))
			c := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(node).WithObjects(ring, node).Build()
			r := &Reconciler{Client: c, Planner: &snapshot.Planner{Reader: c, Now: func() time.Time { return now }}}
			var again time.Duration
			there := func() bool {
				state, err := r.Planner.Latest(t.Context())
				require.NoError(t, err)
				s := &scope{Reconciler: r, state: state}
				require.NoError(t, s.removeFinalizers(t.Context()))
				err = c.Get(t.Context(), client.ObjectKeyFromObject(ring), &v1alpha1.CaptureRing{})
				require.NoError(t, client.IgnoreNotFound(err))
				require.Equal(t, err == nil, s.again > 0)
				again = s.again
				return err == nil
			}
			require.True(t, there())
			require.Equal(t, recheck, again)
			now = now.Add(v1alpha1.StaleAfter)
			require.True(t, there())
			require.Equal(t, time.Millisecond, again, "an uninstall waits for this, and not for long")
			if returns {
				require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(node), node))
				node.Status = v1alpha1.NodeCaptureStatus{AppliedGeneration: node.Generation, ObservedTime: &metav1.Time{Time: now}}
				require.NoError(t, c.Status().Update(t.Context(), node))
			} else {
				now = now.Add(time.Second)
			}
			require.False(t, there())
		})
	}
}

// TestCountersAreNoReasonToPlan: every agent writes them all the time.
func TestCountersAreNoReasonToPlan(t *testing.T) {
	before := &v1alpha1.NodeCapture{Status: v1alpha1.NodeCaptureStatus{
		AppliedGeneration: 1, ObservedTime: &metav1.Time{Time: time.Unix(1_000_000, 0)},
		Rings: []v1alpha1.NodeRingStatus{{Name: "mirror", ObservedRevision: "1", Ready: true}},
	}}
	for what, test := range map[string]struct {
		change func(*v1alpha1.NodeCaptureStatus)
		passes bool
	}{
		"counters":           {func(s *v1alpha1.NodeCaptureStatus) { s.Rings[0].Seen++ }, false},
		"it does not work":   {func(s *v1alpha1.NodeCaptureStatus) { s.Rings[0].Ready = false }, true},
		"another generation": {func(s *v1alpha1.NodeCaptureStatus) { s.AppliedGeneration++ }, true},
	} {
		after := before.DeepCopy()
		after.Status.ObservedTime = &metav1.Time{Time: before.Status.ObservedTime.Add(counters.EveryWithLease)}
		test.change(&after.Status)
		require.Equal(t, test.passes, reportChanged{}.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}), what)
	}
}
