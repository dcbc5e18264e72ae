// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/ringcap/ringcap/node-agent/capture"
	"github.com/ringcap/ringcap/node-agent/plan"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Provider is an engine that a node may have.
type Provider struct {
	Kind v1.Engine
	// Probe says whether it can be used now. It is asked at every reconciliation: a module may be loaded later.
	Probe func(context.Context) plan.EngineFact
	// Open is called once, when Probe says that it can be used.
	Open func(context.Context) (capture.Engine, error)

	engine capture.Engine
	// failure of the last Open, to log a change and not a state.
	failure string
}

// fact probes the engine and opens it when that is due.
func (p *Provider) fact(ctx context.Context) plan.EngineFact {
	fact := p.Probe(ctx)
	if !fact.Available || p.engine != nil {
		return fact
	}
	engine, err := p.Open(ctx)
	if err != nil {
		if p.failure != err.Error() {
			slog.Warn("An engine cannot be used", "engine", p.Kind, "why", err)
		}
		p.failure = err.Error()
		return plan.EngineFact{Why: fmt.Sprintf("it cannot be opened: %v", err)}
	}
	p.engine, p.failure = engine, ""
	return fact
}
