// SPDX-License-Identifier: Apache-2.0

// Package status tells in CaptureRings and Clusters what was decided about them and how they do on the nodes.
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

// gather is how long nodes' reports are gathered before they are added up: many nodes report, each at a time of its own.
const gather = time.Second

// recheck finds nodes that have become silent.
const recheck = v1alpha1.StaleAfter / 6

// +kubebuilder:rbac:groups=ringcap.io,resources=capturerings;clusters;nodecaptures,verbs=get;list;watch
// +kubebuilder:rbac:groups=ringcap.io,resources=capturerings/status;clusters/status,verbs=patch
// +kubebuilder:rbac:groups="";events.k8s.io,resources=events,verbs=create;patch

// Reconciler writes the status of all CaptureRings and Clusters.
type Reconciler struct {
	Client   client.Client
	Recorder events.EventRecorder
	// Planner makes the plan that nodes are told by.
	Planner *snapshot.Planner
	// Publish gets what all nodes report; nil for nobody.
	Publish func(metrics.Fleet)
	// Networks tells how those of rings do.
	Networks *networks.Writer

	// advised is by ring; one reconciliation runs at a time.
	advised map[types.UID]advised
	// sums are paced by object.
	sums sums
	// took is how long the last reconciliation took, nanoseconds.
	took atomic.Int64
}

// SetupWithManager registers the reconciler. Everything is added up at once, so every event leads to the same request.
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

// gathered leads to the request after a while; until then more events are for free. Of a large fleet, where adding up takes
// long, the while is longer: it takes a tenth of a CPU at most.
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

// anyAccepted says whether an accepted Cluster is over the ring.
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

// write patches the status where it changed, and tells of changes that people wait for.
func (r *Reconciler) write(ctx context.Context, old, changed client.Object, before, after *v1alpha1.CaptureStatus) error {
	if !r.sums.due(old.GetUID(), before, after) {
		return nil
	}
	// A plain merge patch: nobody else writes the status, and it need not fail when the spec changes meanwhile, for
	// the conditions name the generation that they are about.
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
