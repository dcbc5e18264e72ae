// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// judgeRing runs the checks of a ring in order; the first that refuses decides.
func (d *draft) judgeRing(ring *v1alpha1.CaptureRing) Verdict {
	for _, check := range []func(*v1alpha1.CaptureRing) *Verdict{
		d.ringIsWanted,
		d.ringHasItsName,
		d.ringIsWithinTheLimit,
		d.ringFilterCompiles,
		d.ringFitsItsMemory,
	} {
		if refused := check(ring); refused != nil {
			return *refused
		}
	}
	d.accepted.rings++
	if ring.Spec.Queues != nil {
		d.outputs[ring.Name]++
	}
	return Verdict{Reason: v1alpha1.ReasonAccepted, Message: "the spec is valid"}
}

func (d *draft) ringIsWanted(ring *v1alpha1.CaptureRing) *Verdict {
	if ring.DeletionTimestamp != nil {
		return refuse(v1alpha1.ReasonDeleting, "it is being deleted")
	}
	return nil
}

func (d *draft) ringHasItsName(ring *v1alpha1.CaptureRing) *Verdict {
	return d.nameIsFree(kindRing, ring.Name)
}

func (d *draft) ringIsWithinTheLimit(*v1alpha1.CaptureRing) *Verdict {
	if d.accepted.rings < v1alpha1.MaxRings {
		return nil
	}
	return refuse(v1alpha1.ReasonLimitExceeded, "there are %d older CaptureRings already, the most there can be: delete one", v1alpha1.MaxRings)
}

func (d *draft) ringFilterCompiles(ring *v1alpha1.CaptureRing) *Verdict {
	if ring.Spec.Filter == nil || ring.Spec.Filter.BPF == "" || d.in.CheckFilter == nil {
		return nil
	}
	err := d.in.CheckFilter(ring.Spec.Filter.BPF)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrFilterUnknown):
		return refuse(v1alpha1.ReasonPending, "spec.filter.bpf: %v", err)
	}
	return refuse(v1alpha1.ReasonInvalidFilter, "spec.filter.bpf %q: %v; see pcap-filter(7)", shorten(ring.Spec.Filter.BPF), err)
}

func (d *draft) ringFitsItsMemory(ring *v1alpha1.CaptureRing) *Verdict {
	if ring.Spec.Queues == nil {
		return nil
	}
	// Of PerRxQueue each node knows the number: there is one at least.
	return fitsMemory(max(v1alpha1.QueueCount(ring.Spec.Queues), 1), ring.Spec.SnapLength, ring.Spec.QueueSettings)
}

// shorten keeps a message that quotes a filter within the bounds of a condition.
func shorten(expression string) string {
	const most = 200
	if len(expression) <= most {
		return expression
	}
	return expression[:most] + "..."
}
