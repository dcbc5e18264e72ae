// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// heartbeat is the longest time between two writes: the API promises that observedTime is renewed once a minute, and the
// operator takes a node that does not for silent.
const heartbeat = 30 * time.Second

// Writer writes the status of one node's NodeCapture: at once when the state changed, not more often than Interval when
// only counters did, and at each heartbeat when nothing did. A write that failed is tried again after Interval. It is for
// one goroutine.
type Writer struct {
	Client   client.Client
	Node     string
	Interval time.Duration
	// Timeout bounds a write, for whose end the caller waits.
	Timeout time.Duration
	// Announce is told of what changed with each write, since whoever wrote before; nil if nobody wants to hear. The object is
	// the receiver's to keep.
	Announce func(*v1.NodeCapture, []Transition)
	// Now is time.Now but in tests.
	Now func() time.Time

	written     v1.NodeCaptureStatus
	writtenTime time.Time
	// failure of the last try, nil when that succeeded.
	failure    error
	failedTime time.Time
}

// Write writes what is to be written by now. Without a NodeCapture there is nothing to do. After a failure it returns the
// same error until it has tried again.
func (w *Writer) Write(ctx context.Context, in Input) error {
	now := w.Now()
	if w.failure != nil && now.Sub(w.failedTime) < w.Interval {
		return w.failure
	}
	status := Build(in)
	keepConsumers(&status, w.written, in.ConsumersUnknown)
	bound(&status, v1.MaxListedQueues)
	status.Conditions = Conditions(w.written.DeepCopy().Conditions, in)
	if w.failure == nil && !w.due(status, now) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, w.Timeout)
	defer cancel()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error { return w.update(ctx, status, in, now) })
	w.failure = nil
	if apierrors.IsNotFound(err) {
		w.written, w.writtenTime = v1.NodeCaptureStatus{}, time.Time{}
		return nil
	}
	if err != nil {
		w.failure, w.failedTime = fmt.Errorf("write the status of NodeCapture %s: %w", w.Node, err), w.Now()
	}
	return w.failure
}

// due decides whether a status is worth a write.
func (w *Writer) due(status v1.NodeCaptureStatus, now time.Time) bool {
	switch {
	case w.writtenTime.IsZero():
		return true
	case !equality.Semantic.DeepEqual(stateOf(status), stateOf(w.written)):
		return true
	default:
		age := now.Sub(w.writtenTime)
		return age >= heartbeat || age >= w.Interval && !equality.Semantic.DeepEqual(untimed(status), untimed(w.written))
	}
}

func (w *Writer) update(ctx context.Context, status v1.NodeCaptureStatus, in Input, now time.Time) error {
	var have v1.NodeCapture
	if err := w.Client.Get(ctx, client.ObjectKey{Name: w.Node}, &have); err != nil {
		return err
	}
	// The object's own conditions carry the transition times, of an earlier agent too.
	status.Conditions = Conditions(have.Status.Conditions, in)
	status.ObservedTime = &metav1.Time{Time: now}
	before := have.Status
	if w.writtenTime.IsZero() {
		keepConsumers(&status, before, in.ConsumersUnknown)
	}
	have.Status = status
	if err := w.Client.Status().Update(ctx, &have); err != nil {
		return err
	}
	w.written, w.writtenTime = status, now
	if transitions := Transitions(before, status, in.Report.Drivers); w.Announce != nil && len(transitions) > 0 {
		w.Announce(&have, transitions)
	}
	return nil
}

// Tell announces what is no change of the status. Any goroutine may call it.
func (w *Writer) Tell(ctx context.Context, what Transition) error {
	ctx, cancel := context.WithTimeout(ctx, w.Timeout)
	defer cancel()
	var have v1.NodeCapture
	if err := w.Client.Get(ctx, client.ObjectKey{Name: w.Node}, &have); err != nil {
		return fmt.Errorf("read NodeCapture %s: %w", w.Node, err)
	}
	if w.Announce != nil {
		w.Announce(&have, []Transition{what})
	}
	return nil
}

func untimed(status v1.NodeCaptureStatus) v1.NodeCaptureStatus {
	status.ObservedTime = nil
	return status
}

// stateOf is a status without what changes with every packet.
func stateOf(status v1.NodeCaptureStatus) v1.NodeCaptureStatus {
	state := untimed(*status.DeepCopy())
	for i := range state.Rings {
		r := &state.Rings[i]
		r.Seen, r.SeenBytes, r.Filtered, r.SampledOut, r.Passed = 0, 0, 0, 0, 0
		r.Reflected, r.Absorbed, r.Directed = 0, 0, 0
	}
	for i := range state.Clusters {
		c := &state.Clusters[i]
		c.Duplicated, c.Spread = 0, 0
		if c.Unlisted != nil {
			// Which queues are listed changes with the counters.
			all := c.Totals()
			c.Queues, c.Unlisted = nil, &v1.QueueTotals{Queues: all.Queues, Attached: all.Attached}
		}
		for j := range c.Queues {
			q := &c.Queues[j]
			q.Delivered, q.DeliveredBytes, q.UnreadBytes, q.Dropped = 0, 0, 0, nil
		}
	}
	return state
}
