// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"maps"
	"slices"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
	"github.com/ringcap/ringcap/operator/plan"
	"github.com/ringcap/ringcap/operator/report"
)

// object is a CaptureRing or a Cluster.
type object struct {
	client.Object
	kind    string
	verdict plan.Verdict
}

// objects returns the CaptureRings, and then the Clusters.
func (s *scope) objects() []object {
	var all []object
	for i := range s.state.Rings {
		ring := &s.state.Rings[i]
		all = append(all, object{ring, "CaptureRing", s.state.Plan.Rings[ring.Name]})
	}
	for i := range s.state.Clusters {
		cluster := &s.state.Clusters[i]
		all = append(all, object{cluster, "Cluster", s.state.Plan.Clusters[cluster.Name]})
	}
	return all
}

// addFinalizers adds the finalizer to each object before the first node gets it.
func (s *scope) addFinalizers(ctx context.Context) error {
	for _, o := range s.objects() {
		if !o.verdict.Accepted() || controllerutil.ContainsFinalizer(o, v1alpha1.FinalizerNodes) {
			continue
		}
		err := s.patch(ctx, o, func(changed client.Object) { controllerutil.AddFinalizer(changed, v1alpha1.FinalizerNodes) })
		if err != nil {
			return describe(err, "add the finalizer to %s %s", o.kind, o.GetName())
		}
	}
	return nil
}

// removeFinalizers removes the finalizer from objects that are being deleted or suspended when no node has them any more.
func (s *scope) removeFinalizers(ctx context.Context) error {
	for _, o := range s.objects() {
		leaves := s.state.Mark.Marked || o.GetDeletionTimestamp() != nil
		if !leaves || s.held(ctx, o) || !controllerutil.ContainsFinalizer(o, v1alpha1.FinalizerNodes) {
			continue
		}
		err := s.patch(ctx, o, func(changed client.Object) { controllerutil.RemoveFinalizer(changed, v1alpha1.FinalizerNodes) })
		if client.IgnoreNotFound(err) != nil {
			return describe(err, "take the finalizer off %s %s", o.kind, o.GetName())
		}
	}
	return nil
}

// held reports whether any node still has the object.
func (s *scope) held(ctx context.Context, o object) bool {
	for _, name := range slices.Sorted(maps.Keys(s.state.Captures)) {
		asked := report.Object{Name: o.GetName(), Ring: o.kind == "CaptureRing"}
		now := s.Planner.Now()
		if holder, holds := report.HolderOf(s.state.Captures[name], asked, s.state.Since, now); holds {
			ctrl.LoggerFrom(ctx).Info("deletion waits", "object", o.GetName(), "node", holder.Node, "why", holder.Why)
			s.runAgain(recheck)
			if !holder.Until.IsZero() {
				s.runAgain(holder.Until.Sub(now) + time.Millisecond)
			}
			return true
		}
	}
	return false
}

// patch changes the object; it fails with a conflict if the cache is behind.
func (s *scope) patch(ctx context.Context, o object, change func(client.Object)) error {
	changed := o.DeepCopyObject().(client.Object)
	change(changed)
	return s.Client.Patch(ctx, changed, client.MergeFromWithOptions(o.Object, client.MergeFromWithOptimisticLock{}))
}

// reportChanged passes updates of a NodeCapture with which a node may have removed an object, or applied its spec, or failed to.
// A node that reports again after a silence renews its agent's Lease only: recheck finds it while it waits for its turn.
type reportChanged struct{ predicate.Funcs }

// Update implements predicate.Predicate.
func (reportChanged) Update(e event.UpdateEvent) bool {
	before, ok := e.ObjectOld.(*v1alpha1.NodeCapture)
	after, ok2 := e.ObjectNew.(*v1alpha1.NodeCapture)
	if !ok || !ok2 {
		return true
	}
	return before.Status.AppliedGeneration != after.Status.AppliedGeneration ||
		!slices.EqualFunc(before.Status.Rings, after.Status.Rings, func(a, b v1alpha1.NodeRingStatus) bool {
			return a.Name == b.Name && a.ObservedRevision == b.ObservedRevision && a.Ready == b.Ready
		}) ||
		!slices.EqualFunc(before.Status.Clusters, after.Status.Clusters, func(a, b v1alpha1.NodeClusterStatus) bool {
			return a.Name == b.Name && a.Ready == b.Ready
		})
}
