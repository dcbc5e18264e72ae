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
	// Probe reports whether the engine can be used now. It is called at every reconciliation, because a module may be
	// loaded later.
	Probe func(context.Context) plan.EngineFact
	// Present reports whether the engine exists although Probe rules it out. Then its remaining objects are removed.
	// nil means never.
	Present func() bool
	// Open is called once, when the engine can be used or is present.
	Open func(context.Context) (capture.Engine, error)

	engine capture.Engine
	// failure of the last Open. It serves to log a change and not a state.
	failure string
}

// fact probes the engine and opens it when that is due. It closes an engine that is gone, for example because the
// module was unloaded.
func (p *Provider) fact(ctx context.Context) plan.EngineFact {
	fact := p.Probe(ctx)
	wanted := fact.Available || p.Present != nil && p.Present()
	switch {
	case wanted && p.engine == nil:
		return p.open(ctx, fact)
	case !wanted && p.engine != nil:
		if err := p.engine.Close(); err != nil {
			slog.Warn("An engine that is gone could not be closed", "engine", p.Kind, "error", err)
		}
		p.engine = nil
	}
	return fact
}

func (p *Provider) open(ctx context.Context, fact plan.EngineFact) plan.EngineFact {
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
