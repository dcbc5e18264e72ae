// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	eventsv1 "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"

	"github.com/ringcap/ringcap/node-agent/status"
	"github.com/ringcap/ringcap/operator/api/event"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// controllerName is the reporting controller of the Events.
const controllerName = "ringcap-node-agent"

// newAnnouncer returns a function that makes Events on the NodeCapture of a node's transitions, in the background,
// until ctx ends. Events of one reason about one ring within a few minutes become one, with a count.
func newAnnouncer(ctx context.Context, config *rest.Config) (func(*v1.NodeCapture, []status.Transition), error) {
	scheme, err := Scheme()
	if err != nil {
		return nil, err
	}
	client, err := eventsv1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of the API server %s: %w", config.Host, err)
	}
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client})
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return nil, fmt.Errorf("record events: %w", err)
	}
	recorder := broadcaster.NewRecorder(scheme, controllerName)
	return func(object *v1.NodeCapture, transitions []status.Transition) {
		for _, t := range transitions {
			kind := corev1.EventTypeNormal
			if t.Warning {
				kind = corev1.EventTypeWarning
			}
			recorder.Eventf(regarding(object), related(object, t.Ring), kind, t.Reason, "Reconcile", "%s", event.Note(t.Message))
		}
	}, nil
}

// regarding leaves out the version. With it, Events that are alike would not be recognized.
func regarding(object *v1.NodeCapture) runtime.Object {
	return &v1.NodeCapture{ObjectMeta: metav1.ObjectMeta{Name: object.Name, UID: object.UID}}
}

// related returns the ring that a transition concerns; nil for none.
func related(object *v1.NodeCapture, ring string) runtime.Object {
	if ring == "" {
		return nil
	}
	found := &v1.CaptureRing{ObjectMeta: metav1.ObjectMeta{Name: ring}}
	if i := slices.IndexFunc(object.Spec.Rings, func(r v1.NodeRing) bool { return r.Name == ring }); i >= 0 {
		found.UID = types.UID(object.Spec.Rings[i].UID)
	}
	return found
}
