// SPDX-License-Identifier: Apache-2.0

// Package rollout writes the desired state of the nodes: one NodeCapture for each node, from all CaptureRings and Clusters.
package rollout

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
	"github.com/ringcap/ringcap/operator/networks"
	"github.com/ringcap/ringcap/operator/snapshot"
	"github.com/ringcap/ringcap/operator/suspend"
)

// recheck is the interval of checks that depend on the clock or on another program: silent nodes that a deletion waits for, and
// filters that could not be checked.
const recheck = 15 * time.Second

// +kubebuilder:rbac:groups=ringcap.io,resources=capturerings;clusters,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=ringcap.io,resources=capturerings/finalizers;clusters/finalizers,verbs=update
// +kubebuilder:rbac:groups=ringcap.io,resources=nodecaptures,verbs=get;list;watch;create;update;delete
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch

// Reconciler rolls out the plan.
type Reconciler struct {
	Client client.Client
	// Planner makes the plan, which the status reconciler uses too.
	Planner *snapshot.Planner
	// Networks writes the networks and pools that rings ask for.
	Networks *networks.Writer

	captures captures
	// took is how long the last run took to find the differences, nanoseconds.
	took atomic.Int64
}

// Reports of nodes are collected for this time: in a wave many nodes report at about the same time, and the next plan uses all
// of these reports. In a large fleet planning takes longer, and so does the collection, so that planning takes at most a fifth
// of a CPU; gatherMax limits how long nodes wait.
const (
	gather     = 50 * time.Millisecond
	gatherMost = 2 * time.Second
)

// SetupWithManager registers the reconciler. One plan covers everything, so every event leads to the same request.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	var err error
	if r.captures, err = newCaptures(mgr); err != nil {
		return err
	}
	all := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{everything}
	})
	generation := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	b := ctrl.NewControllerManagedBy(mgr).Named("rollout")
	if r.Planner.Mark != nil {
		b = b.WatchesMetadata(suspend.Metadata(), all, builder.WithPredicates(predicate.AnnotationChangedPredicate{}))
	}
	return b.
		Watches(&v1alpha1.CaptureRing{}, all, generation).
		Watches(&v1alpha1.Cluster{}, all, generation).
		Watches(&v1alpha1.NodeCapture{}, r.gathered(), builder.WithPredicates(predicate.Or[client.Object](
			predicate.GenerationChangedPredicate{}, reportChanged{}))).
		WatchesMetadata(snapshot.NodeMetadata(), all, builder.WithPredicates(predicate.LabelChangedPredicate{})).
		Complete(r)
}

var everything = reconcile.Request{NamespacedName: client.ObjectKey{Name: "all"}}

// gathered enqueues the request after a delay.
func (r *Reconciler) gathered() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	later := func(q queue) { q.AddAfter(everything, min(max(gather, 4*time.Duration(r.took.Load())), gatherMost)) }
	return handler.Funcs{
		CreateFunc: func(_ context.Context, _ event.CreateEvent, q queue) { later(q) },
		UpdateFunc: func(_ context.Context, _ event.UpdateEvent, q queue) { later(q) },
		DeleteFunc: func(_ context.Context, _ event.DeleteEvent, q queue) { later(q) },
	}
}

// scope is one run of Reconcile.
type scope struct {
	*Reconciler
	state *snapshot.Snapshot
	// different are the nodes with a NodeCapture that must be written.
	different []string
	// again is the time after which to run again, 0 to wait for events.
	again time.Duration
}

// Reconcile plans, and writes the API's objects as planned.
func (r *Reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	begun := time.Now()
	state, err := r.Planner.Latest(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	mark := state.Mark
	if mark.Gone {
		ctrl.LoggerFrom(ctx).Info("the operator's Deployment is deleted: nothing is written any more")
		return ctrl.Result{}, nil
	}
	if !mark.Marked {
		r.Planner.Mark.Settle(mark)
	}
	s := &scope{Reconciler: r, state: state, different: different(state)}
	r.took.Store(int64(time.Since(begun)))
	for _, phase := range []func(context.Context) error{
		s.addFinalizers,
		s.writeNodes,
		s.removeNodes,
		s.writeNetworks,
		s.removeFinalizers,
	} {
		if err := phase(ctx); err != nil {
			if outdated(err) {
				return ctrl.Result{RequeueAfter: time.Second}, nil
			}
			return ctrl.Result{}, err
		}
	}
	if state.Plan.Unchecked() || state.Plan.Waiting() { // the nodes that are waited for may become silent
		s.runAgain(recheck)
	}
	if mark.Marked && s.again == 0 {
		r.Planner.Mark.Settle(mark)
	}
	return ctrl.Result{RequeueAfter: s.again}, nil
}

// writeNetworks repeats its check: the kind is installed with Multus, and others may change its objects.
func (s *scope) writeNetworks(ctx context.Context) error {
	if !s.Networks.Write(ctx, s.state.Plan) {
		s.runAgain(recheck)
	}
	return nil
}

// runAgain makes the next run start after that time at the latest.
func (s *scope) runAgain(after time.Duration) {
	if s.again == 0 || after < s.again {
		s.again = after
	}
}

// outdated reports whether the cache is behind what was written: the watch will update it.
func outdated(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }

func describe(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}
