// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"context"
	"errors"
	"time"

	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Signal wakes a loop. Several signals raised before the loop wakes count as one.
type Signal chan struct{}

// NewSignal makes a Signal.
func NewSignal() Signal { return make(Signal, 1) }

// Raise never blocks. Any goroutine may call it.
func (s Signal) Raise() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// Loop reconciles when it is told that something changed, and at intervals in any case.
type Loop struct {
	Reconciler *Reconciler
	// Desired returns the spec and its generation; false while the spec is not known. Until then the agent adopts the
	// objects of an earlier agent and changes nothing, except that it undoes lost trials.
	Desired func() (spec v1.NodeCaptureSpec, generation int64, known bool)
	// Changed signals that the desired state or the node changed. Activity signals that only counters and consumers
	// did.
	Changed, Activity Signal
	// Resync is the shortest interval of reconciliations, Refresh that of observations; see pace.
	Resync, Refresh time.Duration
	// Publish gets each report.
	Publish func(context.Context, Report)
	// Reconciled gets the duration and the error of each reconciliation; it may be nil.
	Reconciled func(took time.Duration, err error)
}

// Run returns when ctx ends. Capture continues.
func (l *Loop) Run(ctx context.Context) {
	resync, refresh := time.NewTimer(l.Resync), time.NewTimer(l.Refresh)
	defer resync.Stop()
	defer refresh.Stop()
	report, known := l.reconcile(ctx)
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-l.Changed:
			report, known = l.reconcile(ctx)
		case began := <-resync.C:
			report, known = l.reconcile(ctx)
			resync.Reset(pace(l.Resync, time.Since(began), report))
		case <-l.Activity:
			report, known = l.observe(ctx, report, known)
		case began := <-refresh.C:
			report, known = l.observe(ctx, report, known)
			refresh.Reset(pace(l.Refresh, time.Since(began), report))
		}
	}
}

// pace returns the time until periodic work is done again, from the time that it took. An agent without anything to
// change spends at most a hundredth of a CPU on this work, even on a node with many objects. The time is measured by
// the clock, and a busy machine makes it longer. So the result has a bound, which only many queues raise: a node that
// is silent for three minutes counts as lost.
func pace(interval, took time.Duration, report Report) time.Duration {
	const (
		share    = 250 // there are two such tasks, and garbage collection takes as much again
		limit    = 5   // intervals
		perQueue = 3 * time.Millisecond
		silence  = 45 * time.Second
	)
	bound := min(limit*interval+time.Duration(report.queues())*perQueue, max(silence, limit*interval))
	return min(max(interval, share*took), bound)
}

// reconcile does not stop when ctx ends. It completes what it began.
func (l *Loop) reconcile(ctx context.Context) (Report, bool) {
	spec, generation, known := l.Desired()
	if !known {
		l.Reconciler.Adopt(context.WithoutCancel(ctx))
		report, undone := l.Reconciler.Undo(context.WithoutCancel(ctx))
		if undone {
			l.Publish(ctx, report)
		}
		return report, undone
	}
	begun := time.Now()
	report := l.Reconciler.Reconcile(context.WithoutCancel(ctx), spec, generation)
	if l.Reconciled != nil {
		l.Reconciled(time.Since(begun), errors.Join(report.Err, report.ObserveErr))
	}
	l.Publish(ctx, report)
	return report, true
}

// observe reads counters and consumers. It reconciles if a consumer has ended that a change waited for.
func (l *Loop) observe(ctx context.Context, last Report, known bool) (Report, bool) {
	if !known || ctx.Err() != nil {
		return last, known
	}
	report := l.Reconciler.Observe(ctx, last)
	if report.Blocked() {
		return l.reconcile(ctx)
	}
	l.Publish(ctx, report)
	return report, true
}
