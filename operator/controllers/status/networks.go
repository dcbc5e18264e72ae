// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
	"github.com/ringcap/ringcap/operator/plan"
)

// networksWritten says whether the ring's NetworkAttachmentDefinitions are there.
func (r *Reconciler) networksWritten(s *subject, all []plan.Network) outcome {
	if !s.verdict.Accepted() {
		return outcome{false, s.verdict.Reason, "not accepted: " + s.verdict.Message}
	}
	count := 0
	for _, n := range all {
		if n.Ring != s.Name {
			continue
		}
		problem, known := r.Networks.Outcome(n)
		switch {
		case !known:
			return outcome{false, v1alpha1.ReasonPending, "they are about to be written"}
		case problem.Reason != "":
			return outcome{false, problem.Reason, shorten(problem.Message)}
		}
		count++
	}
	if count == 0 {
		return outcome{true, v1alpha1.ReasonNoNetwork, "spec.interfaces asks for no network"}
	}
	return outcome{true, v1alpha1.ReasonWritten, fmt.Sprintf("a pod with the annotation k8s.v1.cni.cncf.io/networks: %s gets a virtual function: NetworkAttachmentDefinitions written: %d", s.Name, count)}
}
