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

// trusted is how long after its last renewal a Lease is relied on: after that a status can still be written in time.
const trusted = v1.StaleAfter - time.Minute

// OwnPause is from 40 to 60 seconds: nodes that begin together do not go on together.
func OwnPause() time.Duration { return time.Minute - rand.N(20*time.Second) }

// Heartbeat renews the Lease by which a node's NodeCapture stays valid. It is for one goroutine, that of the data path's
// loop: a node with a loop that hangs, or with a status that cannot be written, must not appear healthy. A nil one never works.
type Heartbeat struct {
	Client    client.Client
	Namespace string
	// Timeout bounds a request. The caller waits for its end.
	Timeout time.Duration
	// Pause is the time from one try to the next, OwnPause but in tests.
	Pause func() time.Duration
	// Note is told the outcome of each try.
	Note func(error)

	renewed, next time.Time
}

// works reports whether the operator sees the node's renewed Lease.
func (h *Heartbeat) works(now time.Time) bool {
	return h != nil && !h.renewed.IsZero() && now.Sub(h.renewed) < trusted
}

// beat renews the Lease of a NodeCapture's node if it is time to.
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

// renew writes all of the Lease without reading it: nobody else writes it but an earlier agent of the same node.
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

// lease goes with the NodeCapture, which goes with its node. The agent's pod would be replaced too often to own it.
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
