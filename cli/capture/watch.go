// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

const (
	// watchPeriod is the time between two looks at the objects that the packets come from.
	watchPeriod = 5 * time.Second
	// lastLook is the timeout for finding what was deleted in the last seconds of a capture.
	lastLook = 10 * time.Second
)

// Watch returns an error when an object that the packets come from is deleted: nodes then feed the queue no more, which looks as if
// there were no traffic. When ctx is done it looks once more, for at most 10 s, and returns nil if nothing is known to be
// deleted. Start must have succeeded.
func (s *Session) Watch(ctx context.Context) error {
	ticker := time.NewTicker(watchPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			late, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastLook)
			defer cancel()
			return s.deleted(late)
		case <-ticker.C:
			if err := s.deleted(ctx); err != nil {
				return err
			}
		}
	}
}

// deleted returns an error that names the object that is being deleted or is gone. An API server that does not answer is no reason
// to stop: the nodes go on without it.
func (s *Session) deleted(ctx context.Context) error {
	for _, source := range s.sources() {
		is, ok := source.DeepCopyObject().(client.Object)
		if !ok {
			continue
		}
		err := s.Client.Get(ctx, client.ObjectKeyFromObject(source), is)
		another := source.GetUID() != "" && is.GetUID() != source.GetUID()
		if apierrors.IsNotFound(err) || err == nil && (another || is.GetDeletionTimestamp() != nil) {
			return fmt.Errorf("%s %s was deleted: what came later is not in the file", kindOf(source), source.GetName())
		}
	}
	return nil
}

// sources returns the objects that the packets come from.
func (s *Session) sources() []client.Object {
	if s.own != nil {
		return []client.Object{s.own}
	}
	ring := s.ring
	if ring == nil {
		ring = &v1.CaptureRing{ObjectMeta: metav1.ObjectMeta{Name: s.Plan.Ring, UID: s.Plan.RingUID}}
	}
	return []client.Object{ring, s.cluster}
}
