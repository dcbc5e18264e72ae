// SPDX-License-Identifier: Apache-2.0

package podcapture

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// A PodCapture always has its own conditions, and those of copied that its ring has.
var (
	own    = []string{v1alpha1.ConditionAccepted, v1alpha1.ConditionProgrammed, v1alpha1.ConditionReady}
	copied = []string{v1alpha1.ConditionRolledOut, v1alpha1.ConditionRulesEffective, v1alpha1.ConditionPacketsWhole}
)

// redacted replaces messages that name other objects of a node: rings of other namespaces, and the administrator's.
var redacted = map[string]string{
	v1alpha1.ReasonNodeMemoryInsufficient: "a node has too little memory for its queues beside those that are there: lower queues, slots or snapLength, or ask the " +
		"cluster's administrator, who finds details in the CaptureRing",
	// The message quotes nodes, possibly with one of these reasons.
	v1alpha1.ReasonRolloutPaused: "it does not work on as many nodes as may be unavailable, and the others keep what they had: see the messages of Programmed and Ready; " +
		"change it, or ask the cluster's administrator, who finds details in the CaptureRing",
	v1alpha1.ReasonEngineError: "a node's agent cannot make the data path: ask the cluster's administrator, who finds details in the CaptureRing",
}

// writeStatus writes the status if it has changed.
func (r *Reconciler) writeStatus(ctx context.Context, d decision, ring *v1alpha1.CaptureRing, on podNodes) error {
	changed := d.capture.DeepCopy()
	status := &changed.Status
	*status = v1alpha1.PodCaptureStatus{ObservedGeneration: changed.Generation, Conditions: status.Conditions, Pods: on.pods[d.ring]}
	if ring != nil {
		of := &ring.Status
		status.Resource = v1alpha1.ResourcePrefix + ring.Name
		status.NodesDesired, status.NodesReady = of.NodesDesired, of.NodesReady
		status.Queues, status.QueuesAttached = of.Queues, of.QueuesAttached
		status.Seen, status.Delivered, status.Dropped = of.Seen, of.Delivered, of.Dropped
		status.Truncated = of.Truncated
	}
	for _, kind := range slices.Concat(own, copied) {
		if c := d.condition(kind, ring); c != nil {
			c.Type, c.ObservedGeneration, c.LastTransitionTime = kind, changed.Generation, metav1.Time{}
			if !d.quotesSpec(kind, ring) {
				c.Message = on.redact(d.ring, c.Message)
			}
			meta.SetStatusCondition(&status.Conditions, *c)
		} else {
			meta.RemoveStatusCondition(&status.Conditions, kind)
		}
	}
	if equality.Semantic.DeepEqual(&d.capture.Status, status) {
		return nil
	}
	err := r.Client.Status().Patch(ctx, changed, client.MergeFrom(d.capture))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("patch the status: %w", err)
	}
	return nil
}

// condition returns the PodCapture's condition of a type: its own refusal, else the ring's condition if it describes the ring's
// present spec.
func (d *decision) condition(kind string, ring *v1alpha1.CaptureRing) *metav1.Condition {
	var of *metav1.Condition
	if ring != nil && d.refused == nil {
		of = meta.FindStatusCondition(ring.Status.Conditions, kind)
	}
	switch {
	case of != nil && of.ObservedGeneration == ring.Generation:
		same := *of
		if text, known := redacted[same.Reason]; known && same.Status == metav1.ConditionFalse {
			same.Message = text
		}
		return &same
	case slices.Contains(copied, kind):
		return nil
	case d.refused != nil:
		return &metav1.Condition{Status: metav1.ConditionFalse, Reason: d.refused.reason, Message: d.refused.message}
	}
	return &metav1.Condition{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonPending,
		Message: fmt.Sprintf("its CaptureRing %s has no status yet", d.ring)}
}

// quotesSpec reports whether the message of a condition is about the user's spec: it names no node, and may quote what the user
// wrote. If that were redacted, users could guess a node's name, write it, and see whether there is such a node.
func (d *decision) quotesSpec(kind string, ring *v1alpha1.CaptureRing) bool {
	if d.refused != nil || ring == nil || kind == v1alpha1.ConditionRulesEffective {
		return true
	}
	accepted := meta.FindStatusCondition(ring.Status.Conditions, v1alpha1.ConditionAccepted)
	if accepted == nil || accepted.Status == metav1.ConditionTrue || kind == v1alpha1.ConditionPacketsWhole {
		return false
	}
	switch accepted.Reason {
	case v1alpha1.ReasonDeleting, v1alpha1.ReasonSuspending, v1alpha1.ReasonSuspended:
		return false // these list nodes
	}
	return true
}

// podsChanged passes updates of a NodeCapture that change which pods are captured on the node.
type podsChanged struct{ predicate.Funcs }

// Update implements predicate.Predicate.
func (podsChanged) Update(e event.UpdateEvent) bool {
	before, ok := e.ObjectOld.(*v1alpha1.NodeCapture)
	after, ok2 := e.ObjectNew.(*v1alpha1.NodeCapture)
	if !ok || !ok2 {
		return true
	}
	return !slices.EqualFunc(before.Status.Interfaces, after.Status.Interfaces, func(a, b v1alpha1.InterfaceStatus) bool {
		return a.Pod == b.Pod && slices.Equal(a.Rings, b.Rings)
	})
}
