// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringcap/ringcap/operator/api/heartbeat"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// trusted is how long after its last renewal a Lease counts. After that, there is still time to write a status.
const trusted = v1.StaleAfter - time.Minute

// OwnPause returns 40 to 60 seconds. So nodes that begin together do not stay in step.
func OwnPause() time.Duration { return time.Minute - rand.N(20*time.Second) }

// Heartbeat renews the Lease by which a node's NodeCapture stays valid. It is for one goroutine, that of the data
// path's loop. A node must not appear healthy if its loop hangs, or if its status cannot be written. A nil Heartbeat
// never works.
type Heartbeat struct {
	Client    client.Client
	Namespace string
	// Timeout bounds a request. The caller waits for its end.
	Timeout time.Duration
	// Pause returns the time from one try to the next. It is OwnPause except in tests.
	Pause func() time.Duration
	// Note gets the outcome of each try.
	Note func(error)

	renewed, next time.Time
}

// works reports whether the operator sees the node's renewed Lease.
func (h *Heartbeat) works(now time.Time) bool {
	return h != nil && !h.renewed.IsZero() && now.Sub(h.renewed) < trusted
}

// beat renews the Lease of a NodeCapture's node if it is due.
func (h *Heartbeat) beat(ctx context.Context, of *v1.NodeCapture, now time.Time) {
	if h == nil || now.Before(h.next) {
		return
	}
	h.next = now.Add(h.Pause())
	err := h.renew(ctx, of, now)
	if err == nil {
		h.renewed = now
	}
	if ctx.Err() == nil {
		h.Note(err)
	}
}

// renew writes all of the Lease without reading it. Only an earlier agent of the same node also writes it.
func (h *Heartbeat) renew(ctx context.Context, of *v1.NodeCapture, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, h.Timeout)
	defer cancel()
	lease := h.lease(of, now)
	text, err := json.Marshal(lease)
	if err != nil {
		return err
	}
	err = h.Client.Patch(ctx, lease.DeepCopy(), client.RawPatch(types.MergePatchType, text))
	if apierrors.IsNotFound(err) {
		err = h.Client.Create(ctx, lease)
	}
	if err != nil {
		return fmt.Errorf("renew Lease %s/%s: %w", lease.Namespace, lease.Name, err)
	}
	return nil
}

// lease returns a Lease owned by the NodeCapture, which is owned by its node. The agent's pod would be replaced too
// often to own it.
func (h *Heartbeat) lease(of *v1.NodeCapture, now time.Time) *coordinationv1.Lease {
	renewed, seconds := metav1.NewMicroTime(now), int32(v1.StaleAfter/time.Second)
	return &coordinationv1.Lease{
		TypeMeta: metav1.TypeMeta{APIVersion: coordinationv1.SchemeGroupVersion.String(), Kind: "Lease"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: h.Namespace, Name: heartbeat.Name(of.Name), Labels: heartbeat.Labels(),
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1.GroupVersion.String(), Kind: "NodeCapture", Name: of.Name, UID: of.UID,
			}},
		},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &of.Name, LeaseDurationSeconds: &seconds, RenewTime: &renewed},
	}
}
