// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"errors"
	"maps"

	"github.com/ringcap/ringcap/node-agent/capture"
	"github.com/ringcap/ringcap/node-agent/plan"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Some of what an engine cannot do shows only when it is told to, such as an interface without native XDP. By then it may have
// taken away what it had. A change that is refused leaves what was there: the plan is made again with the spec that was accepted
// before, and the other one is not tried again by this process. The next agent tries it once: it may know more, and so may its
// node. Where the engine says the same of the spec that was accepted before, as of an interface that carries no Ethernet frames, the
// change is not to blame, and goes on as what cannot be had of a new ring does.

// noteUnsupported notes which changes an engine has refused for what they ask. It tells whether there are any: then the plan is to be
// made again, with what it has noted.
func (r *Reconciler) noteUnsupported(report Report, seen *view) (any bool) {
	for name, key := range report.Plan.Changed(report.Spec, seen.Good) {
		problem := report.Outcome.unsupported(report.Plan, name)
		// A key that is noted is that of another object of this name.
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

// acquit finds changes that are withheld for what the engine refuses of the accepted spec as well. It tells whether there are any: then
// the plan is to be made again, with them.
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

// unsupported returns why an engine can never make a ring or set of queues; nil where it can, or may later.
func (o Outcome) unsupported(p plan.Result, name string) error {
	for _, verdict := range []plan.Verdict{p.Rings[name], p.Clusters[name]} {
		if problem := o.Failed[verdict.Engine][name]; errors.Is(problem, capture.ErrUnsupported) {
			return problem
		}
	}
	return nil
}

// forgetUnsupported forgets the specs that are not asked for any more.
func (r *Reconciler) forgetUnsupported(spec v1.NodeCaptureSpec) {
	if len(r.unsupported)+len(r.blameless) == 0 {
		return
	}
	asked := namesByKey(spec)
	gone := func(key string) bool { _, there := asked[key]; return !there }
	maps.DeleteFunc(r.unsupported, func(key string, _ plan.Refusal) bool { return gone(key) })
	maps.DeleteFunc(r.blameless, func(key string, _ bool) bool { return gone(key) })
}

// namesByKey are the names of a spec's objects by plan.SpecKey.
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
