// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/ringcap/ringcap/operator/api/counters"
	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

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
