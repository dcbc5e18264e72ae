// SPDX-License-Identifier: Apache-2.0

// Package status writes the status of CaptureRings and Clusters: the decision about each, and its state on the nodes.
package status

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/ringcap/ringcap/operator/api/consumers"
	"github.com/ringcap/ringcap/operator/api/v1alpha1"
	"github.com/ringcap/ringcap/operator/metrics"
	"github.com/ringcap/ringcap/operator/networks"
	"github.com/ringcap/ringcap/operator/plan"
	"github.com/ringcap/ringcap/operator/report"
	"github.com/ringcap/ringcap/operator/snapshot"
	"github.com/ringcap/ringcap/operator/suspend"
)

// gather is how long reports of nodes are collected before they are summed up: many nodes report, at different times.
const gather = time.Second

// recheck is the interval of the check for nodes that have become silent.
const recheck = v1alpha1.StaleAfter / 6

// +kubebuilder:rbac:groups=ringcap.io,resources=capturerings;clusters;nodecaptures,verbs=get;list;watch
// +kubebuilder:rbac:groups=ringcap.io,resources=capturerings/status;clusters/status,verbs=patch
// +kubebuilder:rbac:groups="";events.k8s.io,resources=events,verbs=create;patch

// Reconciler writes the status of all CaptureRings and Clusters.
type Reconciler struct {
	Client   client.Client
	Recorder events.EventRecorder
	// Planner makes the plan that the rollout reconciler uses too.
	Planner *snapshot.Planner
	// Publish receives the sums of what all nodes report; may be nil.
	Publish func(metrics.Fleet)
	// Networks reports whether the networks of rings are written.
	Networks *networks.Writer

	// advised is the advice for each ring; only one reconciliation runs at a time.
	advised map[types.UID]advised
	// sums limits how often each object's status is written.
	sums sums
	// took is how long the last reconciliation took, nanoseconds.
	took atomic.Int64
}

// SetupWithManager registers the reconciler. One run sums up everything, so every event leads to the same request.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	all := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{everything}
	})
	generation := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	b := ctrl.NewControllerManagedBy(mgr).Named("status")
	if mark := r.Planner.Mark; mark != nil {
		b = b.WatchesMetadata(suspend.Metadata(), all, builder.WithPredicates(predicate.AnnotationChangedPredicate{})).
			WatchesRawSource(source.Channel(mark.Changed(), all))
	}
	return b.
		Watches(&v1alpha1.CaptureRing{}, all, generation).
		Watches(&v1alpha1.Cluster{}, all, generation).
		Watches(&v1alpha1.NodeCapture{}, r.gathered()).
		WatchesMetadata(snapshot.NodeMetadata(), all, builder.WithPredicates(predicate.LabelChangedPredicate{})).
		WatchesRawSource(source.Channel(r.Networks.Changed(), all)).
		Complete(r)
}

var everything = reconcile.Request{NamespacedName: client.ObjectKey{Name: "all"}}

// gathered enqueues the request after a delay, in which more events cost nothing. In a large fleet summing up takes longer, and
// so does the delay: the reconciler takes at most a tenth of a CPU.
func (r *Reconciler) gathered() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	later := func(q queue) { q.AddAfter(everything, max(gather, 9*time.Duration(r.took.Load()))) }
	return handler.Funcs{
		CreateFunc: func(_ context.Context, _ event.CreateEvent, q queue) { later(q) },
		UpdateFunc: func(_ context.Context, _ event.UpdateEvent, q queue) { later(q) },
		DeleteFunc: func(_ context.Context, _ event.DeleteEvent, q queue) { later(q) },
	}
}

// Reconcile writes the status of every object whose status has changed.
func (r *Reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	begun := time.Now()
	defer func() { r.took.Store(int64(time.Since(begun))) }()
	state, err := r.Planner.Latest(ctx)
	if err != nil || state.Mark.Gone {
		return ctrl.Result{}, err
	}
	decided, reports, now := &state.Plan, report.ByName(state.Captures), r.Planner.Now()

	r.sums.begin(now)
	var errs []error
	pools := unwritten(r.Networks.PoolOutcome(decided.Pools))
	fleet := metrics.Fleet{Reporting: reporting(state.Captures, now)}
	for i := range state.Rings {
		ring := &state.Rings[i]
		object := report.Object{Name: ring.Name, Ring: true, OwnQueues: ring.Spec.Queues != nil}
		changed := ring.DeepCopy()
		s := &subject{
			Object: object, meta: ring, verdict: decided.Rings[ring.Name], state: state, reports: reports,
			fed: object.OwnQueues || anyAccepted(state.Clusters, decided, ring.Name),
		}
		r.fill(&changed.Status, s)
		s.set(&changed.Status, v1alpha1.ConditionRolledOut, r.rolledOut(s))
		s.set(&changed.Status, v1alpha1.ConditionRulesEffective, r.effective(s, ring))
		s.set(&changed.Status, v1alpha1.ConditionConsumersEffective, permits(consumers.Rule{consumers.OfRing(ring.Name, ring.Spec.Consumers)}))
		s.set(&changed.Status, v1alpha1.ConditionPacketsWhole, s.packetsWhole(ring.Spec.SnapLength))
		s.set(&changed.Status, v1alpha1.ConditionNetworksWritten, r.networksWritten(s, &ring.Spec, decided, pools))
		errs = append(errs, r.write(ctx, ring, changed, &ring.Status, &changed.Status))
		fleet.Objects = append(fleet.Objects, counts("CaptureRing", ring.Name, &changed.Status))
	}
	r.forgetGone(state.Rings)
	for i := range state.Clusters {
		cluster := &state.Clusters[i]
		changed := cluster.DeepCopy()
		s := &subject{
			Object: report.Object{Name: cluster.Name}, meta: cluster, verdict: decided.Clusters[cluster.Name],
			state: state, reports: reports, fed: true,
		}
		r.fill(&changed.Status, s)
		s.set(&changed.Status, v1alpha1.ConditionConsumersEffective, permits(ruleOf(cluster, state.Rings)))
		errs = append(errs, r.write(ctx, cluster, changed, &cluster.Status, &changed.Status))
		fleet.Objects = append(fleet.Objects, counts("Cluster", cluster.Name, &changed.Status))
	}
	r.sums.end()
	if r.Publish != nil {
		r.Publish(fleet)
	}
	return ctrl.Result{RequeueAfter: recheck}, errors.Join(errs...)
}

// anyAccepted reports whether an accepted Cluster is over the ring.
func anyAccepted(clusters []v1alpha1.Cluster, decided *plan.Plan, ring string) bool {
	for _, c := range clusters {
		for _, name := range c.Spec.Rings {
			if name == ring && decided.Clusters[c.Name].Accepted() {
				return true
			}
		}
	}
	return false
}

// write patches the status if it has changed, and emits events.
func (r *Reconciler) write(ctx context.Context, old, changed client.Object, before, after *v1alpha1.CaptureStatus) error {
	if !r.sums.due(old.GetUID(), before, after) {
		return nil
	}
	// A plain merge patch: nobody else writes the status, and it need not fail when the spec changes in the meantime, because
	// each condition has its observedGeneration.
	err := r.Client.Status().Patch(ctx, changed, client.MergeFrom(old))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("patch the status of %T %s: %w", old, old.GetName(), err)
	}
	if err == nil {
		r.sums.wrote(old.GetUID())
		r.announce(old, before, after)
	}
	return nil
}
