// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"errors"
	"maps"
	"slices"

	"github.com/ringcap/ringcap/node-agent/capture"
	"github.com/ringcap/ringcap/node-agent/plan"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Some of what an engine cannot do shows only when it is told to, such as an interface without native XDP. By then it may have
// taken away what it had. A change that is refused leaves what was there: the plan is made again with the spec that was accepted
// before, and the other one is not tried again by this process. The next agent tries it once: it may know more, and so may its
// node.

// noteUnsupported notes which changes an engine has refused for what they ask. It says whether there are any: then the plan is to be
// made again, with what it has noted.
func (r *Reconciler) noteUnsupported(report Report, seen *view) (any bool) {
	for name, key := range report.Plan.Changed(report.Spec, seen.Good) {
		problem := report.Outcome.unsupported(report.Plan, name)
		// A key that is noted is that of another object of this name.
		if _, noted := r.unsupported[key]; problem == nil || noted {
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

// unsupported is why an engine cannot make a ring or set of queues whatever happens; nil for other reasons too, which may pass.
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
	if len(r.unsupported) == 0 {
		return
	}
	var asked []string
	for _, ring := range spec.Rings {
		asked = append(asked, plan.SpecKey(ring))
	}
	for _, cluster := range spec.Clusters {
		asked = append(asked, plan.SpecKey(cluster))
	}
	maps.DeleteFunc(r.unsupported, func(key string, _ plan.Refusal) bool { return !slices.Contains(asked, key) })
}
