// SPDX-License-Identifier: Apache-2.0

package networks

import (
	"context"
	"fmt"
	"maps"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
	"github.com/ringcap/ringcap/operator/plan"
)

// Problem is why a network is not as its ring asks; the zero value means none.
type Problem struct{ Reason, Message string }

// Writer writes the networks as planned, and keeps the results. One goroutine writes; any may read results.
type Writer struct {
	// Client must not read from a cache: the kind may be installed later, with Multus.
	Client client.Client
	// Plugin is where pools are written to.
	Plugin DevicePlugin

	mu       sync.Mutex
	outcomes map[plan.Network]Problem
	pools    pools
	changed  chan event.GenericEvent
	// clean means that none exist, and none are planned.
	clean bool
	// read is the checksum of the configuration that the device plugin has read.
	read string
}

// NewWriter returns a Writer.
func NewWriter(c client.Client, plugin DevicePlugin) *Writer {
	return &Writer{Client: c, Plugin: plugin, changed: make(chan event.GenericEvent, 1)}
}

// Changed signals that results of Outcome or PoolOutcome have changed.
func (w *Writer) Changed() <-chan event.GenericEvent { return w.changed }

// Outcome returns the result for a network at the last Write; false if it was not part of it.
func (w *Writer) Outcome(n plan.Network) (Problem, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, known := w.outcomes[n]
	return p, known
}

// Write writes the networks and pools as planned and deletes those that are no longer planned. A refused ring keeps what it had.
// A failure is reported for the ring, not to the caller. The caller must repeat it until it returns true: then nothing is left
// to do.
func (w *Writer) Write(ctx context.Context, p plan.Plan) (done bool) {
	if w.clean && len(p.Networks) == 0 && len(p.Pools) == 0 {
		return true
	}
	written, none := w.writePools(ctx, p.Pools)
	w.clean = w.removeOthers(ctx, p) && len(p.Networks) == 0 && none
	outcomes := map[plan.Network]Problem{}
	for _, n := range p.Networks {
		outcomes[n] = w.write(ctx, n)
	}
	w.publish(outcomes, written)
	return w.clean
}

func (w *Writer) publish(outcomes map[plan.Network]Problem, written pools) {
	w.mu.Lock()
	same := maps.Equal(w.outcomes, outcomes) && w.pools == written
	w.outcomes, w.pools = outcomes, written
	w.mu.Unlock()
	if same {
		return
	}
	select {
	case w.changed <- event.GenericEvent{Object: &v1alpha1.CaptureRing{}}:
	default:
	}
}

// removeOthers deletes what is no longer planned; none is true if nothing is left to do. If the kind or the right to it is
// missing, the operator has written nothing.
func (w *Writer) removeOthers(ctx context.Context, p plan.Plan) (none bool) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(definitionKind)
	err := w.Client.List(ctx, list, client.HasLabels{ringLabel})
	if meta.IsNoMatchError(err) || apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return true
	}
	none = err == nil
	for i := range list.Items {
		have := &list.Items[i]
		if !surplus(have, p) || client.IgnoreNotFound(w.Client.Delete(ctx, have, client.Preconditions{UID: new(have.GetUID())})) != nil {
			none = false
		}
	}
	return none
}

// surplus reports whether the operator wrote the definition and no ring asks for it any more.
func surplus(have *unstructured.Unstructured, p plan.Plan) bool {
	owner := metav1.GetControllerOf(have)
	if owner == nil || owner.Kind != "CaptureRing" || have.GetName() != owner.Name {
		return false
	}
	for _, n := range p.Networks {
		if n.UID == owner.UID && n.Namespace == have.GetNamespace() {
			return false
		}
	}
	ring, there := p.Rings[owner.Name]
	return !there || !ring.Keeps()
}

func (w *Writer) write(ctx context.Context, n plan.Network) Problem {
	key := types.NamespacedName{Namespace: n.Namespace, Name: n.Ring}
	have := object(definitionKind, key)
	err := w.Client.Get(ctx, key, have)
	switch {
	case apierrors.IsNotFound(err):
		err = w.Client.Create(ctx, definition(n))
	case err == nil && !ownedBy(have, n.UID):
		return Problem{v1alpha1.ReasonNetworkConflict, fmt.Sprintf(
			"the NetworkAttachmentDefinition %s/%s is somebody else's and stays as it is: remove it, or give the ring another name", n.Namespace, n.Ring)}
	case err == nil && update(have, n):
		err = w.Client.Update(ctx, have)
	}
	return explain(err, n)
}

func ownedBy(have *unstructured.Unstructured, uid types.UID) bool {
	owner := metav1.GetControllerOf(have)
	return owner != nil && owner.UID == uid
}

// explain returns what to do about an error.
func explain(err error, n plan.Network) Problem {
	where := fmt.Sprintf("the NetworkAttachmentDefinition %s/%s", n.Namespace, n.Ring)
	switch {
	case err == nil:
		return Problem{}
	case meta.IsNoMatchError(err):
		return Problem{v1alpha1.ReasonMultusMissing, "the cluster has no kind NetworkAttachmentDefinition: install Multus, or leave spec.interfaces[].network out"}
	case apierrors.IsForbidden(err) && !apierrors.HasStatusCause(err, "NamespaceTerminating"):
		return Problem{v1alpha1.ReasonNetworkForbidden, "the operator may not write " + where + ": set operator.networks.enabled in the chart's values"}
	case apierrors.IsNotFound(err):
		return Problem{v1alpha1.ReasonNamespaceNotFound, fmt.Sprintf("there is no namespace %q for %s: create it, or take it out of spec.interfaces[].network.namespaces", n.Namespace, where)}
	}
	return Problem{v1alpha1.ReasonNetworkNotWritten, fmt.Sprintf("%s could not be written; the operator tries again: %v", where, err)}
}
