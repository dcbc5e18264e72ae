// SPDX-License-Identifier: Apache-2.0

package status

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/ringcap/ringcap/operator/api/rules"
	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// advised is the advice on a generation of a ring's filter. It is kept because it is expensive to compute and filters seldom
// change.
type advised struct {
	generation int64
	advice     rules.Advice
}

// effective returns the condition whether each of the ring's rules and patterns can decide on some packet.
func (r *Reconciler) effective(s *subject, ring *v1alpha1.CaptureRing) outcome {
	if s.verdict.Reason == v1alpha1.ReasonInvalidFilter {
		return outcome{false, s.verdict.Reason, "not accepted: " + s.verdict.Message}
	}
	known, ok := r.advised[ring.UID]
	if !ok || known.generation != ring.Generation {
		known = advised{ring.Generation, rules.Advise(ring.Spec.Filter)}
		if r.advised == nil {
			r.advised = map[types.UID]advised{}
		}
		r.advised[ring.UID] = known
	}
	if known.advice == (rules.Advice{}) {
		return outcome{true, v1alpha1.ReasonEffective, "each rule and pattern can decide on some packet"}
	}
	return outcome{false, known.advice.Reason, known.advice.Message + "; it is captured all the same: correct the order, the priorities or the match"}
}

// forgetGone removes the advice on rings that are gone.
func (r *Reconciler) forgetGone(rings []v1alpha1.CaptureRing) {
	if len(r.advised) <= len(rings) {
		return
	}
	there := map[types.UID]bool{}
	for i := range rings {
		there[rings[i].UID] = true
	}
	for uid := range r.advised {
		if !there[uid] {
			delete(r.advised, uid)
		}
	}
}
