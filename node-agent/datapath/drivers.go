// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ringcap/ringcap/node-agent/driver"
	"github.com/ringcap/ringcap/node-agent/node"
	"github.com/ringcap/ringcap/node-agent/plan"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Drivers knows the drivers of the node's interfaces, and replaces them.
type Drivers interface {
	// Describe says what a plan must know of each, by interface name.
	Describe() (map[string]plan.DriverFact, error)
	// Apply gives the wished interfaces their drivers and the others the ones that they had; moved says that some were made
	// anew, and have other indexes. What could not be had is in the facts from then on.
	Apply(wanted map[string]plan.DriverWish) (moved bool, err error)
}

// planWithDrivers plans, changes drivers as the plan asks, and plans again where interfaces were made again by that. It fails
// when there is no plan; what else went wrong is in partErr.
func (r *Reconciler) planWithDrivers(ctx context.Context, report *Report, spec v1.NodeCaptureSpec, facts plan.Facts) (partErr, err error) {
	var refusedErr, admitErr error
	facts.Refused, refusedErr = r.Trials.refused()
	for again := true; again; {
		if err = r.plan(ctx, report, spec, facts); err != nil {
			return nil, errors.Join(refusedErr, admitErr, err)
		}
		if again, err = r.Trials.admit(ctx, report, facts, !r.looked); err != nil {
			admitErr = err
		}
	}
	partErr = errors.Join(refusedErr, admitErr)
	if r.Drivers == nil {
		return partErr, nil
	}
	moved, driverErr := r.Drivers.Apply(report.Plan.Drivers)
	partErr = errors.Join(partErr, driverErr)
	if !moved {
		return partErr, nil
	}
	return partErr, r.plan(ctx, report, spec, facts)
}

// plan makes the plan from the interfaces as they are now.
func (r *Reconciler) plan(ctx context.Context, report *Report, spec v1.NodeCaptureSpec, facts plan.Facts) error {
	var err error
	if report.Interfaces, err = r.Interfaces(); err != nil {
		return err
	}
	report.stale = nil
	if r.Drivers != nil {
		if report.Drivers, err = r.drivers.read(report, r.Drivers.Describe); err != nil {
			return err
		}
	}
	traffic := map[string]string{}
	if r.asksForTraffic(slices.Concat(spec.Rings, facts.Good.Rings)) {
		if traffic, err = r.traffic.read(report, r.Traffic); err != nil {
			return err
		}
	}
	facts.Interfaces, report.RxQueues = nil, map[string]int{}
	for _, i := range report.Interfaces {
		known := interfaceFact(i, report.Drivers[i.Name])
		known.NodeTraffic = traffic[i.Name]
		facts.Interfaces, report.RxQueues[i.Name] = append(facts.Interfaces, known), known.RxQueues
	}
	r.addPools(ctx, spec, &facts)
	report.Plan = plan.Make(spec, facts)
	return nil
}

// asksForTraffic says whether it matters to a ring whose traffic interfaces carry. Only then it is asked: a node may have very
// many routes.
func (r *Reconciler) asksForTraffic(rings []v1.NodeRing) bool {
	return r.Traffic != nil && slices.ContainsFunc(rings, func(ring v1.NodeRing) bool { return plan.Intrusive(ring.Spec) })
}

// lastKnown keeps what was read last for when it cannot be read: what cuts the node off must be undone all the same.
type lastKnown[T any] struct {
	value T
	known bool
}

// read fails where nothing was ever read; else a failure is the report's.
func (l *lastKnown[T]) read(report *Report, read func() (T, error)) (T, error) {
	value, err := read()
	switch {
	case err == nil:
		l.value, l.known = value, true
	case !l.known:
		return value, err
	default:
		report.stale = errors.Join(report.stale, fmt.Errorf("what was known last is used: %w", err))
	}
	return l.value, nil
}

// addPools asks for pools while a ring is over one, and only then.
func (r *Reconciler) addPools(ctx context.Context, spec v1.NodeCaptureSpec, facts *plan.Facts) {
	if r.Pools == nil || !slices.ContainsFunc(spec.Rings, func(ring v1.NodeRing) bool { return plan.OverPool(ring.Spec) }) {
		return
	}
	var err error
	if facts.Pools, facts.Seen, err = r.Pools(ctx, facts.Interfaces); err != nil {
		facts.PoolsUnknown = err.Error()
	}
}

// interfaceFact is an interface as a plan sees it. Selectors find a device by its driver's name also where that is capture-aware.
func interfaceFact(i node.Interface, fact plan.DriverFact) plan.Interface {
	device := node.DeviceOf(i.Name)
	return plan.Interface{
		Name: i.Name, Index: i.Index, RxQueues: device.RxQueues, Driver: strings.TrimSuffix(device.Driver, driver.Suffix),
		PCIAddress: device.PCIAddress, DriverFact: fact,
	}
}
