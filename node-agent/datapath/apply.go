// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/ringcap/ringcap/node-agent/nic"
	"github.com/ringcap/ringcap/node-agent/plan"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Outcome is the result of applying a plan.
type Outcome struct {
	// NICs holds the results for the captured interfaces, by name, and for others that could not be restored.
	NICs map[string]nic.Outcome
	// Failed holds the errors of objects that an engine could not make, change or remove, by engine and name.
	Failed map[v1.Engine]map[string]error
	// Broken holds errors that concern an engine as a whole, and so all of its objects.
	Broken map[v1.Engine]error
	// Err holds all errors that do not concern a single object.
	Err error
}

// problem returns why an object is not as planned; nil if it is.
func (o Outcome) problem(engine v1.Engine, name string) error {
	if problem := o.Failed[engine][name]; problem != nil {
		return problem
	}
	return o.Broken[engine]
}

// NICs sets the captured interfaces and restores the others.
type NICs interface {
	Apply(wanted map[string]plan.NICSettings) (map[string]nic.Outcome, error)
}

// apply applies a plan to the node. It sets interfaces before it makes taps, so that the settings apply to a ring's
// first packets. It writes the names of interfaces before there are packets.
func (r *Reconciler) apply(ctx context.Context, p plan.Result, seen view) Outcome {
	o := Outcome{Failed: map[v1.Engine]map[string]error{}, Broken: map[v1.Engine]error{}}
	o.NICs, o.Err = r.NICs.Apply(p.NICs)
	o.Err = errors.Join(o.Err, notRestored(p, o.NICs))
	if r.Names != nil {
		o.Err = errors.Join(o.Err, r.Names.Write(p))
	}
	for _, provider := range r.Providers {
		if provider.engine == nil {
			continue
		}
		kind := provider.Kind
		o.Failed[kind], o.Broken[kind] = provider.engine.Apply(ctx, p.Plans[kind], seen.engines[kind])
		if err := o.Broken[kind]; err != nil {
			o.Err = errors.Join(o.Err, fmt.Errorf("engine %s: %w", kind, err))
		}
	}
	return o
}

// notRestored returns the errors for interfaces that could not be restored. No ring taps these, so no ring can report
// them.
func notRestored(p plan.Result, outcomes map[string]nic.Outcome) (err error) {
	tapped := map[string]bool{}
	for _, verdict := range p.Rings {
		for _, name := range verdict.Interfaces {
			tapped[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(outcomes)) {
		if problem := outcomes[name].Err; problem != nil && !tapped[name] {
			err = errors.Join(err, fmt.Errorf("restore interface %s: %w", name, problem))
		}
	}
	return err
}
