// SPDX-License-Identifier: Apache-2.0

// Package datapath makes a node's engines and interfaces as a NodeCaptureSpec asks, and observes them. It is the same
// in a cluster and standalone: its callers provide the spec and use the report.
//
// A reconciliation has four steps. Each makes a value that no later step changes:
//
//	inspect    view         what the node has
//	plan.Make  plan.Result  what each engine and interface is to have, and a verdict for each ring and set of queues
//	apply      Outcome      the result of each part
//	conclude   Object       verdict and outcome of each ring and set of queues: for status, metrics, the kubelet
package datapath

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	"golang.org/x/net/bpf"

	"github.com/ringcap/ringcap/node-agent/capture"
	"github.com/ringcap/ringcap/node-agent/node"
	"github.com/ringcap/ringcap/node-agent/plan"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Drivers knows the drivers of the node's interfaces, and replaces them.
type Drivers interface {
	// Describe returns the facts of each driver that a plan needs, by interface name.
	Describe() (map[string]plan.DriverFact, error)
	// Apply binds the desired drivers and restores those of other interfaces. moved reports that some interfaces were
	// recreated with other indexes. From then on, the facts contain failures.
	Apply(wanted map[string]plan.DesiredDriver) (moved bool, err error)
}

// Names tells consumers the names of a plan's interfaces, before the plan is applied.
type Names interface {
	Write(plan.Result) error
}

// Reconciler makes the node's data path as the spec asks. All its methods except Engine are for one goroutine.
type Reconciler struct {
	Providers []*Provider
	NICs      NICs
	// Drivers of the interfaces. If it is nil, drivers stay as they are, and none is known to be capture-aware.
	Drivers Drivers
	// Compile makes a kernel-side program from a filter expression.
	Compile func(expression string, snapLen uint32) ([]bpf.RawInstruction, error)
	// Interfaces lists the node's interfaces. It is node.Interfaces except in tests.
	Interfaces func() ([]node.Interface, error)
	// Pods of this node; nil for a machine without Kubernetes. unknown is the reason why they are not known.
	Pods func() (pods []plan.Pod, unknown string)
	// Pools of virtual functions; nil for a machine without Kubernetes.
	Pools func(context.Context, []plan.Interface) (pools map[string][]plan.PoolDevice, seen map[string]plan.Function, err error)
	// Memory of the node. If it is nil, plans ignore memory.
	Memory func() (capture.Memory, error)
	// Names writes the names of interfaces for consumers; nil writes none.
	Names Names
	// Accepted has the specs that a refused change falls back to.
	Accepted Accepted
	// Traffic reports which interfaces carry the node's own traffic, as node.Traffic does; nil for none.
	Traffic func() (map[string]string, error)
	// Trials of rings that can cut the node off; nil for a machine without an API server.
	Trials *Trials

	programs programCache
	// inspected means that this process has read what the engines had when it started. traffic and drivers are the
	// last known values.
	inspected bool
	traffic   lastKnown[map[string]string]
	drivers   lastKnown[map[string]plan.DriverFact]
	// unsupported holds the currently asked specs that engines have refused, by plan.SpecKey. blameless holds those
	// that an engine refused for the same reason before the change.
	unsupported map[string]plan.Refusal
	blameless   map[string]bool
	// mu guards the opened engines, for Engine.
	mu     sync.Mutex
	opened map[v1.Engine]capture.Engine
}

// Adopt opens the usable engines, with the objects that an earlier process left in them. It changes nothing there. So
// consumers can get their queues before the agent has read the spec.
func (r *Reconciler) Adopt(ctx context.Context) map[v1.Engine]plan.EngineFact {
	facts := map[v1.Engine]plan.EngineFact{}
	for _, p := range r.Providers {
		facts[p.Kind] = p.fact(ctx)
	}
	r.noteOpened()
	return facts
}

// Reconcile plans, applies and observes.
func (r *Reconciler) Reconcile(ctx context.Context, spec v1.NodeCaptureSpec, generation int64) Report {
	forgetErr := r.Trials.forget(spec)
	r.forgetUnsupported(spec)
	report := r.reconcile(ctx, spec, generation)
	report.Err = errors.Join(forgetErr, report.Err)
	return report
}

// Undo is called while the desired state is not known. If a trial that an earlier process of this boot began has cut
// the node off, Undo undoes it. It returns false if there is nothing to undo.
func (r *Reconciler) Undo(ctx context.Context) (Report, bool) {
	spec, generation, lost := r.Trials.unfinished()
	if !lost {
		return Report{}, false
	}
	return r.reconcile(ctx, spec, generation), true
}

// reconcile inspects the node, makes a plan, applies it, and observes the result. It observes the engines before and
// after, but not in between. A plan depends on what they have, and only the kernel knows the result.
func (r *Reconciler) reconcile(ctx context.Context, spec v1.NodeCaptureSpec, generation int64) Report {
	report := Report{Spec: spec, Generation: generation}
	compile := r.programs.through(r.Compile)
	seen, err := r.decide(ctx, &report, compile)
	if report.Plan.Plans == nil {
		report.Err = err
		return report
	}
	var good v1.NodeCaptureSpec
	for again := true; again; {
		good = r.Trials.proven(report.Plan.Good(spec, seen.Good), seen.Good)
		_ = r.Accepted.Save(plan.Unchanged(good, seen.Good)) // the last Save's error tells whether the file can be written
		report.Outcome = r.apply(ctx, report.Plan, seen)
		if again = r.noteUnsupported(report, &seen) || r.acquit(report); again {
			var planErr error
			report.Plan, planErr = r.plan(ctx, report, &seen)
			err, seen.engines = errors.Join(err, planErr), nil // the engines have changed since
		}
	}
	acceptedErr := r.Accepted.Save(good)
	r.programs.forget()
	r.inspected = true
	report = r.Observe(ctx, report)
	report.Rings, report.Clusters = conclude(report.Plan, report.Outcome, report.Observations)
	report.Err = errors.Join(err, acceptedErr, report.Outcome.Err, r.Trials.applied(report))
	return report
}

// decide makes a report's plan, if it can make one, from what it returns. It replaces drivers on the way. This
// recreates interfaces, so decide inspects the node and plans once more.
func (r *Reconciler) decide(ctx context.Context, report *Report, compile compileFunc) (seen view, err error) {
	if seen, err = r.inspect(ctx, report); err != nil {
		return seen, err
	}
	seen.Compile = compile
	decision, trialErr := r.plan(ctx, *report, &seen)
	moved, driverErr := r.replaceDrivers(decision)
	if moved {
		// Only the first inspection shows what ran before this process. By now this process's own trials are
		// recorded.
		refused, good := seen.Refused, seen.Good
		if seen, err = r.inspect(ctx, report); err != nil {
			return seen, errors.Join(trialErr, driverErr, err)
		}
		seen.Compile, seen.Refused, seen.Good = compile, refused, good
		decision = plan.Make(report.Spec, seen.Facts)
	}
	report.Plan = decision
	return seen, errors.Join(trialErr, driverErr, seen.err)
}

func (r *Reconciler) replaceDrivers(decision plan.Result) (moved bool, err error) {
	if r.Drivers == nil {
		return false, nil
	}
	return r.Drivers.Apply(decision.Drivers)
}

// plan makes a plan, and then another without what cannot be tried now. Only a plan shows what this is.
func (r *Reconciler) plan(ctx context.Context, report Report, seen *view) (plan.Result, error) {
	var admitErr error
	refused, refusedErr := r.Trials.refused()
	seen.Refused = refused
	for {
		report.Plan = plan.Make(report.Spec, seen.Facts)
		held, err := r.Trials.admit(ctx, report, seen.Facts, !r.inspected)
		if err != nil {
			admitErr = err
		}
		if len(held) == 0 {
			return report.Plan, errors.Join(refusedErr, admitErr)
		}
		maps.Copy(seen.Refused, held)
	}
}

// Observe reads the state and the counters. The decision and its outcome stay.
func (r *Reconciler) Observe(ctx context.Context, last Report) Report {
	last.Observations, last.ObserveErr = map[v1.Engine]capture.Observation{}, nil
	if interfaces, err := r.Interfaces(); err == nil {
		last.Interfaces = interfaces
	}
	for _, p := range r.Providers {
		if p.engine == nil {
			continue
		}
		observation, err := p.engine.Observe(ctx)
		if err != nil {
			last.ObserveErr = errors.Join(last.ObserveErr, fmt.Errorf("observe engine %s: %w", p.Kind, err))
			continue
		}
		last.Observations[p.Kind] = observation
	}
	return last
}

// Engine returns an engine that is in use, or nil. Any goroutine may call it.
func (r *Reconciler) Engine(kind v1.Engine) capture.Engine {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.opened[kind]
}

// Close releases the process's resources of the engines. Capture continues.
func (r *Reconciler) Close() error {
	var errs []error
	for _, p := range r.Providers {
		if p.engine != nil {
			errs = append(errs, p.engine.Close())
			p.engine = nil
		}
	}
	return errors.Join(errs...)
}

func (r *Reconciler) noteOpened() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.opened = map[v1.Engine]capture.Engine{}
	for _, p := range r.Providers {
		if p.engine != nil {
			r.opened[p.Kind] = p.engine
		}
	}
}
