// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"context"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
	"github.com/ringcap/ringcap/operator/report"
)

// holdOn puts the finalizer on what nodes are about to be told of, before they are.
func (s *scope) holdOn(ctx context.Context) error {
	for i := range s.state.Rings {
		ring := &s.state.Rings[i]
		if !s.state.Plan.Rings[ring.Name].Accepted() {
			continue
		}
		if err := s.setFinalizer(ctx, ring, true); err != nil {
			return describe(err, "add the finalizer to CaptureRing %s", ring.Name)
		}
	}
	for i := range s.state.Clusters {
		cluster := &s.state.Clusters[i]
		if !s.state.Plan.Clusters[cluster.Name].Accepted() {
			continue
		}
		if err := s.setFinalizer(ctx, cluster, true); err != nil {
			return describe(err, "add the finalizer to Cluster %s", cluster.Name)
		}
	}
	return nil
}

// letGo takes the finalizer off what is being deleted or suspended and no node has any more.
func (s *scope) letGo(ctx context.Context) error {
	for i := range s.state.Rings {
		ring := &s.state.Rings[i]
		if !s.leaves(ring) || s.held(ctx, report.Object{Name: ring.Name, Ring: true}) {
			continue
		}
		if err := s.setFinalizer(ctx, ring, false); err != nil {
			return describe(err, "take the finalizer off CaptureRing %s", ring.Name)
		}
	}
	for i := range s.state.Clusters {
		cluster := &s.state.Clusters[i]
		if !s.leaves(cluster) || s.held(ctx, report.Object{Name: cluster.Name}) {
			continue
		}
		if err := s.setFinalizer(ctx, cluster, false); err != nil {
			return describe(err, "take the finalizer off Cluster %s", cluster.Name)
		}
	}
	return nil
}

// leaves says whether the object is to be taken off all nodes.
func (s *scope) leaves(object client.Object) bool {
	return s.state.Mark.Marked || object.GetDeletionTimestamp() != nil
}

// held says whether any node still has the object.
func (s *scope) held(ctx context.Context, object report.Object) bool {
	for _, name := range slices.Sorted(maps.Keys(s.state.Captures)) {
		if holder, holds := report.HolderOf(s.state.Captures[name], object, s.Planner.Now()); holds {
			ctrl.LoggerFrom(ctx).Info("deletion waits", "object", object.Name, "node", holder.Node, "why", holder.Why)
			s.again = cmp.Or(s.again, recheck)
			return true
		}
	}
	return false
}

// setFinalizer adds or removes the finalizer where that was not done yet.
func (s *scope) setFinalizer(ctx context.Context, object client.Object, present bool) error {
	if controllerutil.ContainsFinalizer(object, v1alpha1.FinalizerNodes) == present {
		return nil
	}
	changed := object.DeepCopyObject().(client.Object)
	if present {
		controllerutil.AddFinalizer(changed, v1alpha1.FinalizerNodes)
	} else {
		controllerutil.RemoveFinalizer(changed, v1alpha1.FinalizerNodes)
	}
	err := s.Client.Patch(ctx, changed, client.MergeFromWithOptions(object, client.MergeFromWithOptimisticLock{}))
	if !present && apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// reportChanged passes updates of a NodeCapture by which a node may have become rid of something, or may have got what it was told,
// or failed to, and those by which one is silent no more.
type reportChanged struct{ predicate.Funcs }

// Update implements predicate.Predicate.
func (reportChanged) Update(e event.UpdateEvent) bool {
	before, ok := e.ObjectOld.(*v1alpha1.NodeCapture)
	after, ok2 := e.ObjectNew.(*v1alpha1.NodeCapture)
	if !ok || !ok2 {
		return true
	}
	at := after.Status.ObservedTime
	return before.Status.AppliedGeneration != after.Status.AppliedGeneration || at != nil && !report.Fresh(before, at.Time) ||
		!slices.EqualFunc(before.Status.Rings, after.Status.Rings, func(a, b v1alpha1.NodeRingStatus) bool {
			return a.Name == b.Name && a.ObservedRevision == b.ObservedRevision && a.Ready == b.Ready
		}) ||
		!slices.EqualFunc(before.Status.Clusters, after.Status.Clusters, func(a, b v1alpha1.NodeClusterStatus) bool {
			return a.Name == b.Name && a.Ready == b.Ready
		})
}
