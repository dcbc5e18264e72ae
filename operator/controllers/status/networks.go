// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"slices"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
	"github.com/ringcap/ringcap/operator/networks"
	"github.com/ringcap/ringcap/operator/plan"
)

// networksWritten returns the condition whether the ring's NetworkAttachmentDefinitions exist, and its pool if the operator owns
// it; pools is the outcome of writing all pools.
func (r *Reconciler) networksWritten(s *subject, spec *v1alpha1.CaptureRingSpec, decided *plan.Plan, pools outcome) outcome {
	if !s.verdict.Accepted() {
		return outcome{false, s.verdict.Reason, "not accepted: " + s.verdict.Message}
	}
	pool := r.pool(s.Name, spec, decided.Pools, pools)
	if pool.reason != "" && !pool.ok {
		return pool
	}
	count := 0
	for _, n := range decided.Networks {
		if n.Ring != s.Name {
			continue
		}
		if o := unwritten(r.Networks.Outcome(n)); o.reason != "" {
			return o
		}
		count++
	}
	switch {
	case count == 0 && pool.ok:
		return pool
	case count == 0:
		return outcome{true, v1alpha1.ReasonNoNetwork, "spec.interfaces asks for no network"}
	}
	return outcome{true, v1alpha1.ReasonWritten, fmt.Sprintf("a pod with the annotation k8s.v1.cni.cncf.io/networks: %s gets a virtual function: NetworkAttachmentDefinitions written: %d", s.Name, count)}
}

// pool returns the outcome for the ring's pool; the zero value if it asks the operator to own none.
func (r *Reconciler) pool(name string, spec *v1alpha1.CaptureRingSpec, all []plan.Pool, pools outcome) outcome {
	i := slices.IndexFunc(spec.Interfaces, func(s v1alpha1.InterfaceSelector) bool { return s.Pool != nil })
	if i < 0 {
		return outcome{}
	}
	resource := spec.Interfaces[i].ResourceName
	for _, p := range all {
		if p.Resource == resource && p.Ring != name {
			return outcome{false, v1alpha1.ReasonPoolConflict, fmt.Sprintf("the pool %s is defined by CaptureRing %s, which is older: leave spec.interfaces[].pool out", resource, p.Ring)}
		}
	}
	if pools.reason != "" {
		return pools
	}
	return outcome{true, v1alpha1.ReasonWritten, fmt.Sprintf("the ConfigMap %s defines the pool %s; spec.interfaces asks for no network", r.Networks.Plugin.ConfigMap, resource)}
}

// unwritten returns the outcome of a write; the zero value if there was no problem.
func unwritten(problem networks.Problem, known bool) outcome {
	switch {
	case !known:
		return outcome{false, v1alpha1.ReasonPending, "they are about to be written"}
	case problem.Reason != "":
		return outcome{false, problem.Reason, shorten(problem.Message)}
	}
	return outcome{}
}
