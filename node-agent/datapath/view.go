// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ringcap/ringcap/node-agent/capture"
	"github.com/ringcap/ringcap/node-agent/driver"
	"github.com/ringcap/ringcap/node-agent/node"
	"github.com/ringcap/ringcap/node-agent/plan"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// view is the state of the node before a plan is made. The plan depends only on its Facts.
type view struct {
	plan.Facts
	// engines holds what each open engine has. An engine that could not be observed is missing.
	engines    map[v1.Engine]capture.Observation
	interfaces []node.Interface
	drivers    map[string]plan.DriverFact
	// err holds the errors of what could not be read. The plan is made without it, or with the last known value.
	err error
}

// inspect reads everything that a plan for a report's spec depends on, each thing once. It copies the parts that
// others need into the report. It fails if no plan can be made.
func (r *Reconciler) inspect(ctx context.Context, report *Report) (view, error) {
	spec, seen := report.Spec, view{Facts: plan.Facts{Engines: r.Adopt(ctx), Good: r.Accepted.Load(), Unsupported: r.unsupported}}
	complete := r.inspectEngines(ctx, &seen)
	r.acceptRunning(spec, &seen.Facts)
	// If the list of queues is incomplete, missing queues would count as new. In that case memory is not checked
	// here; the engines refuse what does not fit.
	if r.Memory != nil && complete {
		memory, err := r.Memory()
		if err != nil {
			seen.err = fmt.Errorf("read how much memory the node has: %w", err)
		} else {
			seen.Memory = &memory
		}
	}
	if seen.NoPods = r.Pods == nil; !seen.NoPods {
		seen.Pods, seen.PodsUnknown = r.Pods()
	}
	err := r.inspectInterfaces(spec, &seen)
	r.inspectPools(ctx, spec, &seen.Facts)
	report.Engines, report.Memory, report.plannedWith = seen.Engines, seen.Memory, seen.taken()
	report.Interfaces, report.RxQueues, report.Drivers = seen.interfaces, seen.rxQueues(), seen.drivers
	return seen, err
}

// inspectEngines reads what the engines have now. complete tells whether all of them could be read.
func (r *Reconciler) inspectEngines(ctx context.Context, seen *view) (complete bool) {
	facts := &seen.Facts
	facts.Serving, facts.Queues = map[string]v1.Engine{}, map[string]v1.Engine{}
	facts.QueueCounts, facts.Taps = map[string]int{}, map[string][]capture.Tap{}
	facts.Taken = map[string]plan.Taken{}
	seen.engines, complete = map[v1.Engine]capture.Observation{}, true
	for _, p := range r.Providers {
		if p.engine == nil {
			continue
		}
		observation, err := p.engine.Observe(ctx)
		if err != nil {
			complete = false
			continue
		}
		seen.engines[p.Kind] = observation
		for name, state := range observation.Rings {
			facts.Serving[name], facts.Taps[name] = p.Kind, state.Taps
		}
		for name, state := range observation.Clusters {
			facts.Queues[name], facts.QueueCounts[name] = p.Kind, len(state.Queues)
			most := max(state.Memory, state.MemoryMost)
			facts.Taken[name] = plan.Taken{Bytes: most, ToCome: most - state.Memory, Lanes: state.Lanes}
		}
	}
	return complete
}

// acceptRunning counts running rings that can cut the node off as accepted. It does so in the first run after an
// agent of a release that recorded nothing. These rings existed before a node could refuse or try them. An operator
// of that release wrote their entries.
func (r *Reconciler) acceptRunning(spec v1.NodeCaptureSpec, facts *plan.Facts) {
	if r.inspected || len(facts.Good.Rings)+len(facts.Good.Clusters) > 0 {
		return
	}
	for _, ring := range spec.Rings {
		if _, served := facts.Serving[ring.Name]; served && plan.Intrusive(ring.Spec) && !r.Trials.knows(ring.Name) {
			ring.Version = 0
			facts.Good.Rings = append(facts.Good.Rings, ring)
		}
	}
}

// inspectInterfaces reads the node's interfaces, with their drivers and the node traffic that they carry.
func (r *Reconciler) inspectInterfaces(spec v1.NodeCaptureSpec, seen *view) (err error) {
	if seen.interfaces, err = r.Interfaces(); err != nil {
		return err
	}
	if r.Drivers != nil {
		if seen.drivers, err = r.drivers.read(seen, r.Drivers.Describe); err != nil {
			return err
		}
	}
	traffic := map[string]string{}
	if r.asksForTraffic(slices.Concat(spec.Rings, seen.Good.Rings)) {
		if traffic, err = r.traffic.read(seen, r.Traffic); err != nil {
			return err
		}
	}
	for _, i := range seen.interfaces {
		known := interfaceFact(i, seen.drivers[i.Name])
		known.NodeTraffic = traffic[i.Name]
		seen.Interfaces = append(seen.Interfaces, known)
	}
	return nil
}

// rxQueues of each interface by name.
func (v view) rxQueues() map[string]int {
	queues := map[string]int{}
	for _, i := range v.Interfaces {
		queues[i.Name] = i.RxQueues
	}
	return queues
}

// taken returns the number of bytes that all queues take.
func (v view) taken() (bytes uint64) {
	for _, taken := range v.Taken {
		bytes += taken.Bytes
	}
	return bytes
}

// asksForTraffic reports whether a ring depends on which node traffic its interfaces carry. The traffic is only
// looked up in that case, because a node may have very many routes.
func (r *Reconciler) asksForTraffic(rings []v1.NodeRing) bool {
	return r.Traffic != nil && slices.ContainsFunc(rings, func(ring v1.NodeRing) bool { return plan.Intrusive(ring.Spec) })
}

// lastKnown keeps the last value for the time in which it cannot be read. A ring that cuts the node off must be
// undone then, too.
type lastKnown[T any] struct {
	value T
	known bool
}

// read fails if the value was never read. Otherwise it adds the failure to the view.
func (l *lastKnown[T]) read(seen *view, read func() (T, error)) (T, error) {
	value, err := read()
	switch {
	case err == nil:
		l.value, l.known = value, true
	case !l.known:
		return value, err
	default:
		seen.err = errors.Join(seen.err, fmt.Errorf("what was known last is used: %w", err))
	}
	return l.value, nil
}

// inspectPools reads the pools, but only while a ring is over one.
func (r *Reconciler) inspectPools(ctx context.Context, spec v1.NodeCaptureSpec, facts *plan.Facts) {
	if r.Pools == nil || !slices.ContainsFunc(spec.Rings, func(ring v1.NodeRing) bool { return plan.OverPool(ring.Spec) }) {
		return
	}
	var err error
	if facts.Pools, facts.Seen, err = r.Pools(ctx, facts.Interfaces); err != nil {
		facts.PoolsUnknown = err.Error()
	}
}

// interfaceFact returns an interface in the form of a plan. Selectors find a device by its driver's name even if that
// driver is capture-aware.
func interfaceFact(i node.Interface, fact plan.DriverFact) plan.Interface {
	device := node.DeviceOf(i.Name)
	return plan.Interface{
		Name: i.Name, Index: i.Index, RxQueues: device.RxQueues, Driver: strings.TrimSuffix(device.Driver, driver.Suffix),
		PCIAddress: device.PCIAddress, DriverFact: fact, Unpairable: i.Unpairable, OtherEnd: i.OtherEnd,
	}
}
