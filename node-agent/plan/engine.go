// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"

	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// chooseAuto returns the engine for rings that leave the choice: the module if it is loaded, else eBPF.
func chooseAuto(engines map[v1.Engine]EngineFact) (v1.Engine, string) {
	module, ebpf := engines[v1.EngineKernelModule], engines[v1.EngineEBPF]
	switch {
	case module.Available:
		return v1.EngineKernelModule, why(module)
	case ebpf.Available:
		return v1.EngineEBPF, fmt.Sprintf("no kernel module: %s", why(module))
	default:
		return "", fmt.Sprintf("no kernel module: %s; no eBPF engine: %s", why(module), why(ebpf))
	}
}

func why(fact EngineFact) string {
	if fact.Why == "" {
		return "not known on this node"
	}
	return fact.Why
}

// engineIsAvailable decides which engine serves the ring.
func engineIsAvailable(d *ringDraft) *problem {
	if d.spec.Engine == v1.EngineAuto {
		if serving := d.facts.Serving[d.name]; serving != d.auto && d.facts.Engines[serving].Available {
			d.engine = serving
			d.engineReason = fmt.Sprintf("captures already, and its consumers stay; new rings get %s (delete and recreate the ring to change)", d.auto)
			return nil
		}
		d.engine, d.engineReason = d.auto, d.autoReason
		if d.auto == "" {
			return problemf(v1.ReasonEngineUnavailable, "no engine can be used on this node: %s", d.autoReason)
		}
		return nil
	}
	d.engine, d.engineReason = d.spec.Engine, "asked for by spec.engine"
	if fact := d.facts.Engines[d.spec.Engine]; !fact.Available {
		advice := "fix that"
		if d.auto != "" && len(missingFeatures(d.auto, askedByRing(&d.spec))) == 0 {
			advice += ", or set spec.engine to Auto"
		}
		return problemf(v1.ReasonEngineUnavailable, "spec.engine is %s, which this node cannot do: %s; %s", d.spec.Engine, why(fact), advice)
	}
	return nil
}

// engineServesRing refuses by name what the engine does not serve for rings.
func engineServesRing(d *ringDraft) *problem {
	return serves(d.facts.Engines, d.engine, askedByRing(&d.spec))
}

// engineServesQueues refuses by name what the engine does not serve for queues.
func engineServesQueues(d *clusterDraft) *problem {
	return serves(d.facts.Engines, d.engine, askedByQueues(&d.cluster.Spec))
}

func serves(engines map[v1.Engine]EngineFact, by v1.Engine, asked []feature) *problem {
	missing := missingFeatures(by, asked)
	if len(missing) == 0 {
		return nil
	}
	var names []string
	for _, f := range missing {
		names = append(names, string(f))
	}
	advice := "leave it out"
	if others := enginesFor(asked); len(others) > 0 {
		if other := engines[others[0]]; other.Available {
			advice += fmt.Sprintf(", or set spec.engine to %s, which does it", others[0])
		} else {
			advice += fmt.Sprintf("; engine %s does it, which this node cannot do: %s", others[0], why(other))
		}
	}
	return problemf(v1.ReasonUnsupported, "%s: engine %s does not do it: %s", strings.Join(names, ", "), by, advice)
}
