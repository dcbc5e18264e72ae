// SPDX-License-Identifier: Apache-2.0

// Package datapath makes a node's engines and interfaces as a NodeCaptureSpec asks, and observes them. It is the same
// in a cluster and standalone: where the spec comes from and where the report goes is its callers' business.
package datapath

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/net/bpf"

	"github.com/ringcap/ringcap/node-agent/capture"
	"github.com/ringcap/ringcap/node-agent/nic"
	"github.com/ringcap/ringcap/node-agent/node"
	"github.com/ringcap/ringcap/node-agent/plan"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Report is what a node was asked for, what was decided, and what it has.
type Report struct {
	Spec v1.NodeCaptureSpec
	// Generation of the spec, for the caller.
	Generation int64
	// Plan with its verdicts; what an engine or an interface refused is in the verdicts too.
	Plan plan.Result
	// Facts of the engines by kind.
	Engines map[v1.Engine]plan.EngineFact
	// Observations by engine.
	Observations map[v1.Engine]capture.Observation
	Interfaces   []node.Interface
	// RxQueues of each interface by name.
	RxQueues map[string]int
	// Drivers by interface name; empty where they are not known.
	Drivers map[string]plan.DriverFact
	// NICs says how the captured interfaces are set, by name.
	NICs map[string]nic.Outcome
	// Err concerns the node as a whole: something could not be read or set that is no single ring's.
	Err error
	// Memory of the node when it was planned; nil where it is not known.
	Memory *capture.Memory
	// plannedWith is the bytes that the queues took then.
	plannedWith uint64
	// stale says what could not be read, and is planned with as it was known last.
	stale error
	// ObserveErr: the counters of an engine could not be read.
	ObserveErr error
}

// Names tells consumers what the interfaces of a plan are called, before it is applied.
type Names interface {
	Tell(plan.Result) error
}

// Reconciler makes the node's data path as asked. Its methods but Engine are for one goroutine.
type Reconciler struct {
	Providers []*Provider
	NICs      NICs
	// Drivers of the interfaces; nil leaves them alone, and none is known to be capture-aware.
	Drivers Drivers
	// Compile makes a kernel-side program from a filter expression.
	Compile func(expression string, snapLen uint32) ([]bpf.RawInstruction, error)
	// Interfaces lists the node's; node.Interfaces but in tests.
	Interfaces func() ([]node.Interface, error)
	// Pods of this node; nil for a machine without Kubernetes. unknown says why they are not known.
	Pods func() (pods []plan.Pod, unknown string)
	// Pools of virtual functions; nil for a machine without Kubernetes.
	Pools func(context.Context, []plan.Interface) (pools map[string][]plan.PoolDevice, seen map[string]plan.Function, err error)
	// Memory of the node; nil leaves it out of account.
	Memory func() (capture.Memory, error)
	// Names tells the consumers; nil tells nobody.
	Names Names
	// Accepted is what a change goes back to that is refused.
	Accepted Accepted
	// Traffic says which interfaces carry the node's own, as node.Traffic does; nil for none.
	Traffic func() (map[string]string, error)
	// Trials of what can cut the node off; nil for a machine without an API server.
	Trials *Trials

	programs programCache
	// looked: this process has looked at what the engines had when it began. traffic and drivers are what was known last.
	looked  bool
	traffic lastKnown[map[string]string]
	drivers lastKnown[map[string]plan.DriverFact]
	// engines that were opened, for Engine.
	mu     sync.Mutex
	opened map[v1.Engine]capture.Engine
}

// Adopt opens the engines that can be used, with what an earlier process left in them, and changes nothing of that:
// consumers find whom to get their queues from, before it is known what is wanted.
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
	report := r.reconcile(ctx, spec, generation)
	report.Err = errors.Join(forgetErr, report.Err)
	return report
}

// Undo is for as long as it is not known what is wanted. It undoes what an earlier process has tried in this boot, once that has
// cut the node off; false where there is nothing to undo.
func (r *Reconciler) Undo(ctx context.Context) (Report, bool) {
	spec, generation, lost := r.Trials.unfinished()
	if !lost {
		return Report{}, false
	}
	return r.reconcile(ctx, spec, generation), true
}

func (r *Reconciler) reconcile(ctx context.Context, spec v1.NodeCaptureSpec, generation int64) Report {
	report := Report{Spec: spec, Generation: generation}
	report.Engines = r.Adopt(ctx)
	facts := plan.Facts{
		Engines: report.Engines, Compile: r.programs.through(r.Compile), Good: r.Accepted.Load(),
	}
	presentErr := r.present(ctx, &facts)
	r.acceptRunning(spec, &facts)
	memoryErr := r.readMemory(&report, &facts, presentErr == nil)
	if facts.NoPods = r.Pods == nil; !facts.NoPods {
		facts.Pods, facts.PodsUnknown = r.Pods()
	}
	driverErr, err := r.planWithDrivers(ctx, &report, spec, facts)
	if err != nil {
		report.Err = err
		return report
	}
	r.programs.forget()
	acceptedErr := r.Accepted.Save(r.Trials.proven(report.Plan.Good(spec, facts.Good), facts.Good))
	nicErr := r.applyNICs(&report)
	var namesErr error
	if r.Names != nil {
		namesErr = r.Names.Tell(report.Plan)
	}
	failed, engineErr := r.applyEngines(ctx, &report)
	report.Err = errors.Join(driverErr, memoryErr, acceptedErr, nicErr, namesErr, engineErr, report.stale, r.Trials.applied(&report))
	r.looked = true
	report = r.Observe(ctx, report)
	noteUnfed(&report)
	addLeftovers(&report, failed)
	return report
}

// Observe reads the state and the counters anew; what was decided stays.
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

// Engine is an engine that is in use, nil when it is not. Any goroutine may ask.
func (r *Reconciler) Engine(kind v1.Engine) capture.Engine {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.opened[kind]
}

// Queues is what the engines have of a set of queues that was asked for, by whichever engine serves it.
func (r Report) Queues(name string) (capture.ClusterState, bool) {
	verdict, ok := r.Plan.Clusters[name]
	if !ok {
		return capture.ClusterState{}, false
	}
	state, ok := r.Observations[verdict.Engine].Clusters[name]
	return state, ok
}

// queueMemory is the bytes that the observed queues take.
func (r Report) queueMemory() (bytes uint64) {
	for _, observation := range r.Observations {
		for _, cluster := range observation.Clusters {
			bytes += cluster.Memory
		}
	}
	return bytes
}

// queues is how many were observed.
func (r Report) queues() (n int) {
	for _, observation := range r.Observations {
		for _, cluster := range observation.Clusters {
			n += len(cluster.Queues)
		}
	}
	return n
}

// Close releases what the process holds of the engines; capture goes on.
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

// present says what the engines have now. An error is of one that does not tell.
func (r *Reconciler) present(ctx context.Context, facts *plan.Facts) (failed error) {
	facts.Serving, facts.Queues = map[string]v1.Engine{}, map[string]v1.Engine{}
	facts.QueueCounts, facts.Taps = map[string]int{}, map[string][]capture.Tap{}
	facts.Taken = map[string]plan.Taken{}
	for _, p := range r.Providers {
		if p.engine == nil {
			continue
		}
		observation, err := p.engine.Observe(ctx)
		if err != nil {
			failed = err
			continue
		}
		for name, state := range observation.Rings {
			facts.Serving[name], facts.Taps[name] = p.Kind, state.Taps
		}
		for name, state := range observation.Clusters {
			facts.Queues[name], facts.QueueCounts[name] = p.Kind, len(state.Queues)
			facts.Taken[name] = plan.Taken{Bytes: state.Memory, Lanes: state.Lanes}
		}
	}
	return failed
}

// acceptRunning takes rings that can cut the node off for accepted where an agent runs for the first time after one of a release
// that noted nothing, and left them running: they were there before the node could refuse or try them. An operator of that
// release wrote their entries.
func (r *Reconciler) acceptRunning(spec v1.NodeCaptureSpec, facts *plan.Facts) {
	if r.looked || len(facts.Good.Rings)+len(facts.Good.Clusters) > 0 {
		return
	}
	for _, ring := range spec.Rings {
		if _, served := facts.Serving[ring.Name]; served && plan.Intrusive(ring.Spec) && !r.Trials.knows(ring.Name) {
			ring.Version = 0
			facts.Good.Rings = append(facts.Good.Rings, ring)
		}
	}
}

// readMemory says what the node has for queues. Where it is not complete which there are, those would be taken for newcomers:
// then nothing is refused for want of memory here, but by the engines.
func (r *Reconciler) readMemory(report *Report, facts *plan.Facts, complete bool) error {
	for _, taken := range facts.Taken {
		report.plannedWith += taken.Bytes
	}
	if r.Memory == nil || !complete {
		return nil
	}
	memory, err := r.Memory()
	if err != nil {
		return fmt.Errorf("read how much memory the node has: %w", err)
	}
	report.Memory, facts.Memory = &memory, &memory
	return nil
}

// applyEngines returns what single objects failed with, by engine, and what engines as a whole did.
func (r *Reconciler) applyEngines(ctx context.Context, report *Report) (map[v1.Engine]map[string]error, error) {
	var errs []error
	all := map[v1.Engine]map[string]error{}
	for _, p := range r.Providers {
		if p.engine == nil {
			continue
		}
		failed, err := p.engine.Apply(ctx, report.Plan.Plans[p.Kind])
		all[p.Kind] = failed
		refuse(report.Plan.Rings, p.Kind, failed, err)
		refuse(report.Plan.Clusters, p.Kind, failed, err)
		if err != nil {
			errs = append(errs, fmt.Errorf("engine %s: %w", p.Kind, err))
		}
	}
	return all, errors.Join(errs...)
}
