// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringcap/ringcap/operator/api/counters"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// eager is how many changes of state are written without a pause. After that, one is written every Interval.
const eager = 10

// retries is how often a write is repeated because there is a newer object.
const retries = 3

// Writer writes the status of one node's NodeCapture. It writes at once when the state changed, and every five
// minutes (see counters.Beat) when only counters changed, or nothing. In between, its Heartbeat keeps the status
// valid. If that does not work, it writes the status once a minute, because otherwise the operator regards the node
// as silent. It reads nothing before it writes: the object is from the cache, or is what it wrote last. It tries a
// failed write again after Interval. It is for one goroutine.
type Writer struct {
	Client client.Client
	// Cached returns the NodeCapture from a watch.
	Cached client.Reader
	Node   string
	// Agent is where others ask the node's agent for counters; nil if they cannot.
	Agent    *v1.NodeAgent
	Interval time.Duration
	// Timeout bounds a write. The caller waits for its end.
	Timeout time.Duration
	// Heartbeat may be nil.
	Heartbeat *Heartbeat
	// Announce gets, with each write, what changed since the previous write, even that of another agent. It may be
	// nil. The receiver may keep the object.
	Announce func(*v1.NodeCapture, []Transition)
	// Count gets the counters of each status, even if that is not written. It may be nil.
	Count func(counters.Report)
	// Now is time.Now except in tests.
	Now func() time.Time

	// latest is the last status that was made. written is the last one that was written, into the object last.
	latest, written v1.NodeCaptureStatus
	writtenTime     time.Time
	last            *v1.NodeCapture
	pace            *rate.Limiter
	// failure of the last try; nil if it succeeded.
	failure    error
	failedTime time.Time
}

// Write writes what is due. Without a NodeCapture it does nothing. After a failure it returns the same error until it
// has tried again.
func (w *Writer) Write(ctx context.Context, in Input) error {
	now := w.Now()
	status := w.make(in, now)
	if w.failure != nil && now.Sub(w.failedTime) < w.Interval {
		return w.failure
	}
	err := w.writeDue(ctx, status, in, now)
	w.failure = nil
	if apierrors.IsNotFound(err) {
		w.forget()
		return nil
	}
	if err != nil {
		w.failure, w.failedTime = fmt.Errorf("write the status of NodeCapture %s: %w", w.Node, err), w.Now()
		return w.failure
	}
	w.Heartbeat.beat(ctx, w.last, now)
	return nil
}

// make makes the status except its conditions' transition times.
func (w *Writer) make(in Input, now time.Time) v1.NodeCaptureStatus {
	status := Build(in)
	keepConsumers(&status, w.latest, in.ConsumersUnknown)
	bound(&status, v1.MaxListedQueues)
	status.ObservedTime, status.Agent = &metav1.Time{Time: now}, w.Agent
	w.latest = status
	if w.Count != nil {
		w.Count(counters.Of(w.Node, status, metav1.NewMicroTime(now)))
	}
	return status
}

// forget drops what was written, because the object does not exist, or is another one.
func (w *Writer) forget() {
	w.written, w.writtenTime, w.last = v1.NodeCaptureStatus{}, time.Time{}, nil
}

func (w *Writer) writeDue(ctx context.Context, status v1.NodeCaptureStatus, in Input, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, w.Timeout)
	defer cancel()
	have, err := w.newest(ctx)
	if err != nil {
		return err
	}
	if w.last != nil && w.last.UID != have.UID {
		w.forget()
	}
	status.Conditions = Conditions(w.written.DeepCopy().Conditions, in)
	if w.failure == nil && !w.due(status, now) {
		return nil
	}
	err = w.patch(ctx, have, status, in, now)
	for tries := 1; apierrors.IsConflict(err) && tries < retries; tries++ {
		if have, err = w.newerThan(ctx, have); err == nil {
			err = w.patch(ctx, have, status, in, now)
		}
	}
	return err
}

// due decides whether a status is worth a write.
func (w *Writer) due(status v1.NodeCaptureStatus, now time.Time) bool {
	if w.pace == nil {
		w.pace = rate.NewLimiter(rate.Every(w.Interval), eager)
	}
	period := counters.Every
	if w.Heartbeat.works(now) {
		period = counters.EveryWithLease
	}
	switch {
	case w.writtenTime.IsZero(), counters.Beat(w.Node, now, period) != counters.Beat(w.Node, w.writtenTime, period):
		return true
	case equality.Semantic.DeepEqual(counters.Without(status), counters.Without(w.written)):
		return false
	}
	return w.pace.AllowN(now, 1)
}

// newest returns the object from the watch, or from the last write: a watch may be behind.
func (w *Writer) newest(ctx context.Context) (*v1.NodeCapture, error) {
	var have v1.NodeCapture
	if err := w.Cached.Get(ctx, client.ObjectKey{Name: w.Node}, &have); err != nil {
		return nil, err
	}
	if w.last != nil && w.last.UID == have.UID {
		if order, err := resourceversion.CompareResourceVersion(w.last.ResourceVersion, have.ResourceVersion); err == nil && order > 0 {
			return w.last, nil
		}
	}
	return &have, nil
}

// newerThan returns a newer object to write to: the watch's, or the API server's while the watch is behind.
func (w *Writer) newerThan(ctx context.Context, tried *v1.NodeCapture) (*v1.NodeCapture, error) {
	have, err := w.newest(ctx)
	if err == nil && have.ResourceVersion == tried.ResourceVersion {
		have = &v1.NodeCapture{}
		err = w.Client.Get(ctx, client.ObjectKey{Name: w.Node}, have)
	}
	return have, err
}

// patch writes the status into an object, if that has not changed since. It leaves out the spec, which may be large.
func (w *Writer) patch(ctx context.Context, have *v1.NodeCapture, status v1.NodeCaptureStatus, in Input, now time.Time) error {
	// The object's own conditions have the transition times, even of an earlier agent.
	status.Conditions = Conditions(have.Status.DeepCopy().Conditions, in)
	if w.writtenTime.IsZero() {
		keepConsumers(&status, have.Status, in.ConsumersUnknown)
	}
	before := v1.NodeCapture{TypeMeta: have.TypeMeta, ObjectMeta: have.ObjectMeta, Status: have.Status}
	after := before.DeepCopy()
	after.Status = status
	if err := w.Client.Status().Patch(ctx, after, client.MergeFromWithOptions(&before, client.MergeFromWithOptimisticLock{})); err != nil {
		return err
	}
	w.last = &v1.NodeCapture{TypeMeta: after.TypeMeta, ObjectMeta: after.ObjectMeta, Status: *after.Status.DeepCopy()}
	w.latest, w.written, w.writtenTime = status, status, now
	if transitions := Transitions(have.Status, status, in.Report.Drivers); w.Announce != nil && len(transitions) > 0 {
		w.Announce(after, transitions)
	}
	return nil
}

// WriteEvent announces something that is not a change of the status. Any goroutine may call it.
func (w *Writer) WriteEvent(ctx context.Context, what Transition) error {
	ctx, cancel := context.WithTimeout(ctx, w.Timeout)
	defer cancel()
	var have v1.NodeCapture
	if err := w.Cached.Get(ctx, client.ObjectKey{Name: w.Node}, &have); err != nil {
		return fmt.Errorf("read NodeCapture %s: %w", w.Node, err)
	}
	if w.Announce != nil {
		w.Announce(&have, []Transition{what})
	}
	return nil
}
