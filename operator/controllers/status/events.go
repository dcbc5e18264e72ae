// SPDX-License-Identifier: Apache-2.0

package status

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/ringcap/ringcap/operator/api/event"
	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// announce emits events about what users wait for or must act on, for all nodes together: a ring that a hundred nodes refuse is
// one event. The events of a node's NodeCapture are about that node.
func (r *Reconciler) announce(object runtime.Object, before, after *v1alpha1.CaptureStatus) {
	for _, kind := range []string{v1alpha1.ConditionAccepted, v1alpha1.ConditionProgrammed, v1alpha1.ConditionReady, v1alpha1.ConditionRolledOut} {
		was, is := meta.FindStatusCondition(before.Conditions, kind), meta.FindStatusCondition(after.Conditions, kind)
		if is == nil || was != nil && was.Status == is.Status && was.Reason == is.Reason {
			continue
		}
		switch {
		case is.Status == metav1.ConditionTrue && kind == v1alpha1.ConditionReady:
			r.Recorder.Eventf(object, nil, corev1.EventTypeNormal, is.Reason, "Reconcile", "%s", event.Note(is.Message))
		case is.Status == metav1.ConditionFalse && (kind == v1alpha1.ConditionAccepted || kind == v1alpha1.ConditionProgrammed && refusedByNodes(is, after) ||
			is.Reason == v1alpha1.ReasonRolloutPaused):
			r.Recorder.Eventf(object, nil, corev1.EventTypeWarning, is.Reason, "Reconcile", "%s", event.Note(is.Message))
		}
	}
}

// refusedByNodes is false for problems that resolve by themselves, and for those that Accepted reports already.
func refusedByNodes(programmed *metav1.Condition, status *v1alpha1.CaptureStatus) bool {
	switch programmed.Reason {
	case v1alpha1.ReasonPending, v1alpha1.ReasonNodeNotReporting:
		return false
	}
	return meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionAccepted)
}
