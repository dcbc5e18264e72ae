// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"errors"
	"maps"

	"github.com/ringcap/ringcap/node-agent/capture"
	"github.com/ringcap/ringcap/node-agent/plan"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Some limits of an engine show only when it applies a plan, such as an interface without native XDP. By then it may
// have removed the old object. A refused change must leave the old object. So the plan is made again with the last
// accepted spec, and this process does not try the new one again. The next agent tries it once, because the agent or
// the node may have got the feature. The engine may refuse the accepted spec for the same reason, for example for an
// interface without Ethernet frames. Then the change is not at fault, and counts as an unsupported new ring.

// noteUnsupported records changes that an engine does not support. It reports whether there are new ones. If so, the
// plan must be made again.
func (r *Reconciler) noteUnsupported(report Report, seen *view) (any bool) {
	for name, key := range report.Plan.Changed(report.Spec, seen.Good) {
		problem := report.Outcome.unsupported(report.Plan, name)
		// A recorded key is that of another object of this name.
		if _, noted := r.unsupported[key]; problem == nil || noted || r.blameless[key] {
			continue
		}
		if r.unsupported == nil {
			r.unsupported = map[string]plan.Refusal{}
		}
		r.unsupported[key] = plan.Refusal{Reason: v1.ReasonUnsupported, Message: problem.Error()}
		any = true
	}
	seen.Unsupported = r.unsupported
	return any
}

// acquit finds withheld changes for which the engine refuses the accepted spec for the same reason. It reports
// whether there are any. If so, the plan must be made again, with those changes.
func (r *Reconciler) acquit(report Report) (any bool) {
	if len(r.unsupported) == 0 {
		return false
	}
	for key, name := range namesByKey(report.Spec) {
		refusal, noted := r.unsupported[key]
		problem := report.Outcome.unsupported(report.Plan, name)
		if !noted || problem == nil || problem.Error() != refusal.Message {
			continue
		}
		if r.blameless == nil {
			r.blameless = map[string]bool{}
		}
		delete(r.unsupported, key)
		r.blameless[key], any = true, true
	}
	return any
}

// unsupported returns why an engine can never make a ring or set of queues. It is nil if the engine can, or may
// later.
func (o Outcome) unsupported(p plan.Result, name string) error {
	for _, verdict := range []plan.Verdict{p.Rings[name], p.Clusters[name]} {
		if problem := o.Failed[verdict.Engine][name]; errors.Is(problem, capture.ErrUnsupported) {
			return problem
		}
	}
	return nil
}

// forgetUnsupported removes the specs that are no longer asked for.
func (r *Reconciler) forgetUnsupported(spec v1.NodeCaptureSpec) {
	if len(r.unsupported)+len(r.blameless) == 0 {
		return
	}
	asked := namesByKey(spec)
	gone := func(key string) bool { _, there := asked[key]; return !there }
	maps.DeleteFunc(r.unsupported, func(key string, _ plan.Refusal) bool { return gone(key) })
	maps.DeleteFunc(r.blameless, func(key string, _ bool) bool { return gone(key) })
}

// namesByKey returns the names of a spec's objects by plan.SpecKey.
func namesByKey(spec v1.NodeCaptureSpec) map[string]string {
	names := map[string]string{}
	for _, ring := range spec.Rings {
		names[plan.SpecKey(ring)] = ring.Name
	}
	for _, cluster := range spec.Clusters {
		names[plan.SpecKey(cluster)] = cluster.Name
	}
	return names
}
