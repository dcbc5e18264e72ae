// SPDX-License-Identifier: Apache-2.0

// Package podcapture creates a CaptureRing for each PodCapture, keeps it up to date, and reports its state in the PodCapture. A
// user who may write PodCaptures in a namespace can capture the pods of that namespace, and needs no right in the cluster.
package podcapture

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
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
	"github.com/ringcap/ringcap/operator/plan"
	"github.com/ringcap/ringcap/operator/snapshot"
)

// gather is how long reports of nodes are collected before pods are counted.
const gather = time.Second

// Pause between changes of rings, for each node of the cluster: each change is written to all nodes' NodeCaptures, and many
// users may edit PodCaptures all the time. Edits in the meantime are one change. With 5,000 nodes, all of them are written once
// in 50 s.
const Pause = 10 * time.Millisecond

// +kubebuilder:rbac:groups=ringcap.io,resources=podcaptures,verbs=get;list;watch
// +kubebuilder:rbac:groups=ringcap.io,resources=podcaptures/status,verbs=patch
// +kubebuilder:rbac:groups=ringcap.io,resources=capturerings,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=ringcap.io,resources=nodecaptures,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch

// Reconciler reconciles the CaptureRings of all PodCaptures.
type Reconciler struct {
	Client client.Client
	Limits Limits
	// Pause defaults to the constant Pause.
	Pause time.Duration

	// nodes is the last number of nodes, and wrote the time of the last change of a ring. now is true if this run may change
	// rings.
	nodes int
	wrote time.Time
	now   bool
}

// SetupWithManager registers the reconciler. One run decides on all PodCaptures, so every event leads to the same request.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	request := reconcile.Request{NamespacedName: client.ObjectKey{Name: "all"}}
	all := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{request}
	})
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	later := handler.Funcs{
		CreateFunc: func(_ context.Context, _ event.CreateEvent, q queue) { q.AddAfter(request, gather) },
		UpdateFunc: func(_ context.Context, _ event.UpdateEvent, q queue) { q.AddAfter(request, gather) },
		DeleteFunc: func(_ context.Context, _ event.DeleteEvent, q queue) { q.AddAfter(request, gather) },
	}
	// Only a Node's name counts, which does not change.
	named := predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}
	return ctrl.NewControllerManagedBy(mgr).Named("podcapture").
		Watches(&v1alpha1.PodCapture{}, all, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.CaptureRing{}, all, builder.WithPredicates(made())).
		Watches(&v1alpha1.NodeCapture{}, later, builder.WithPredicates(podsChanged{})).
		WatchesMetadata(snapshot.NodeMetadata(), later, builder.WithPredicates(named)).
		Complete(r)
}

// made passes events of rings that are or were made for a PodCapture, and of every deletion, which frees a name.
func made() predicate.Predicate {
	is := func(o client.Object) bool { return plan.NamespaceOf(o) != "" }
	funcs := predicate.NewPredicateFuncs(is)
	funcs.UpdateFunc = func(e event.UpdateEvent) bool { return is(e.ObjectOld) || is(e.ObjectNew) }
	funcs.DeleteFunc = nil
	return funcs
}

// Reconcile changes the rings as decided, and writes the status of each PodCapture if it has changed.
func (r *Reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	var captures v1alpha1.PodCaptureList
	var list v1alpha1.CaptureRingList
	if err := errors.Join(r.Client.List(ctx, &captures), r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy)); err != nil {
		return ctrl.Result{}, fmt.Errorf("list PodCaptures and CaptureRings: %w", err)
	}
	there := rings{}
	for i := range list.Items {
		there[list.Items[i].Name] = &list.Items[i]
	}
	r.now = time.Since(r.wrote) >= time.Duration(r.nodes)*cmp.Or(r.Pause, Pause)
	decisions := decide(captures.Items, there, r.Limits)
	errs := []error{r.removeOthers(ctx, there, decisions)}
	on, err := r.findPods(ctx)
	if err != nil {
		// Without the nodes' names no message could be redacted.
		return ctrl.Result{}, errors.Join(append(errs, err)...)
	}
	for _, d := range decisions {
		ring, err := r.make(ctx, d, there[d.ring])
		if apierrors.IsInvalid(err) {
			// The PodCapture was stored before its spec had to be valid as a new ring's.
			d.refused, ring, err = &refusal{v1alpha1.ReasonUnsupported, err.Error()}, there[d.ring], nil
		}
		if err == nil {
			err = r.writeStatus(ctx, d, ring, on)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("PodCapture %s: %w", client.ObjectKeyFromObject(d.capture), err))
		}
	}
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(errs) > 0 && !slices.ContainsFunc(errs, func(err error) bool { return !outdated(err) }) {
		return ctrl.Result{RequeueAfter: time.Second}, nil
	}
	return ctrl.Result{}, errors.Join(errs...)
}

// errLater is the error of a change that must wait. Until then the status describes the PodCapture's previous spec.
var errLater = errors.New("rings were changed a moment ago")

// outdated reports whether to retry soon: the cache is behind what was written and the watch will update it, or the error is
// errLater.
func outdated(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || errors.Is(err, errLater)
}

// change runs a change of a ring, unless it must wait.
func (r *Reconciler) change(do func() error) error {
	if !r.now {
		return errLater
	}
	r.wrote = time.Now()
	return do()
}

// removeOthers deletes the rings of PodCaptures that are gone or should have none.
func (r *Reconciler) removeOthers(ctx context.Context, there rings, decisions []decision) error {
	for _, name := range slices.Sorted(maps.Keys(there)) {
		ring := there[name]
		if plan.NamespaceOf(ring) == "" || ring.DeletionTimestamp != nil ||
			slices.ContainsFunc(decisions, func(d decision) bool { return d.ring == name }) {
			continue
		}
		err := r.change(func() error { return r.Client.Delete(ctx, ring, client.Preconditions{UID: &ring.UID}) })
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete CaptureRing %s: %w", name, err)
		}
	}
	return nil
}

// make creates or corrects the ring, and returns it as it is now: nil for none. A ring that is being deleted is created again
// when it is gone.
func (r *Reconciler) make(ctx context.Context, d decision, ring *v1alpha1.CaptureRing) (*v1alpha1.CaptureRing, error) {
	if d.want == nil || ring != nil && ring.DeletionTimestamp != nil {
		return ring, nil
	}
	if ring == nil {
		if err := r.change(func() error { return r.Client.Create(ctx, d.want) }); err != nil {
			return nil, fmt.Errorf("create CaptureRing %s: %w", d.ring, err)
		}
		return d.want, nil
	}
	changed := ring.DeepCopy()
	changed.Spec = d.want.Spec
	if changed.Annotations == nil {
		changed.Annotations = map[string]string{}
	}
	maps.Copy(changed.Labels, d.want.Labels)
	maps.Copy(changed.Annotations, d.want.Annotations)
	if equality.Semantic.DeepEqual(ring, changed) {
		return ring, nil
	}
	err := r.change(func() error {
		return r.Client.Patch(ctx, changed, client.MergeFromWithOptions(ring, client.MergeFromWithOptimisticLock{}))
	})
	if err != nil {
		return nil, fmt.Errorf("put CaptureRing %s right: %w", d.ring, err)
	}
	return changed, nil
}
