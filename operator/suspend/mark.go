// SPDX-License-Identifier: Apache-2.0

// Package suspend lets an uninstall that keeps CaptureRings and Clusters make the operator remove them from the nodes, with a
// mark on the operator's own Deployment. The mark is deleted with the Deployment: the operator of a later install finds none,
// and captures again.
package suspend

import (
	"context"
	"fmt"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Annotation of the operator's Deployment is the mark; its value is the time at which it was set, in RFC 3339.
const Annotation = "ringcap.io/suspended"

// State is the state of the Deployment.
type State struct {
	// Marked: nodes should have nothing, and objects no finalizer.
	Marked bool
	// Since is the mark's value.
	Since string
	// Gone: the Deployment is deleted, and this process ends soon. It writes nothing any more, because nobody would remove it
	// again.
	Gone bool
}

// Mark reads the mark, and holds whether it is carried out. A nil Mark is never set. It is safe for concurrent use.
type Mark struct {
	reader     client.Reader
	deployment client.ObjectKey

	mu      sync.Mutex
	settled State
	changed chan event.GenericEvent
}

// New returns a Mark; reader may be a cache with CacheOption.
func New(reader client.Reader, deployment client.ObjectKey) *Mark {
	return &Mark{reader: reader, deployment: deployment, changed: make(chan event.GenericEvent, 1)}
}

// Metadata is the type with which the Deployment is read.
func Metadata() *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	return object
}

// CacheOption restricts a cache to this one Deployment: the operator may read no other.
func CacheOption(deployment client.ObjectKey) cache.ByObject {
	return cache.ByObject{Namespaces: map[string]cache.Config{
		deployment.Namespace: {FieldSelector: fields.OneTermEqualSelector("metadata.name", deployment.Name)},
	}}
}

// State reads the mark.
func (m *Mark) State(ctx context.Context) (State, error) {
	if m == nil {
		return State{}, nil
	}
	deployment := Metadata()
	err := m.reader.Get(ctx, m.deployment, deployment)
	switch {
	case apierrors.IsNotFound(err), err == nil && deployment.DeletionTimestamp != nil:
		return State{Gone: true}, nil
	case err != nil:
		return State{}, fmt.Errorf("read Deployment %s for the mark of an uninstall: %w", m.deployment, err)
	}
	since, marked := deployment.Annotations[Annotation]
	return State{Marked: marked, Since: since}, nil
}

// There fails if there is no Deployment at the start: with a wrong name nothing would ever be captured.
func (m *Mark) There(ctx context.Context) error {
	state, err := m.State(ctx)
	if err == nil && state.Gone {
		return fmt.Errorf("there is no Deployment %s, or it is being deleted: give --deployment the name of the one that runs this", m.deployment)
	}
	return err
}

// Settle records that everything is as this state asks.
func (m *Mark) Settle(s State) {
	if m == nil {
		return
	}
	m.mu.Lock()
	same := m.settled == s
	m.settled = s
	m.mu.Unlock()
	if same {
		return
	}
	select {
	case m.changed <- event.GenericEvent{Object: &v1alpha1.CaptureRing{}}:
	default:
	}
}

// Settled reports whether this state was settled last.
func (m *Mark) Settled(s State) bool {
	if m == nil {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.settled == s
}

// Changed signals that results of Settled have changed.
func (m *Mark) Changed() <-chan event.GenericEvent { return m.changed }
