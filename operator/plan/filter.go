// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"

	"github.com/ringcap/ringcap/operator/api/rules"
	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

func (d *draft) ringFilterCompiles(ring *v1alpha1.CaptureRing) *Verdict {
	return d.filterCompiles(ring.Spec.Filter)
}

func (d *draft) clusterFilterCompiles(cluster *v1alpha1.Cluster) *Verdict {
	return d.filterCompiles(cluster.Spec.Filter)
}

// filterCompiles refuses expressions that do not compile, and invalid rules.
func (d *draft) filterCompiles(f *v1alpha1.Filter) *Verdict {
	if f == nil {
		return nil
	}
	for i := range f.Rules {
		if _, err := rules.Parse(f.Rules[i].Match); err != nil {
			return refuse(v1alpha1.ReasonInvalidFilter, "spec.filter.rules[%d].%v", i, err)
		}
	}
	if f.BPF == "" || d.in.CheckFilter == nil {
		return nil
	}
	err := d.in.CheckFilter(f.BPF)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrFilterUnknown):
		return refuse(v1alpha1.ReasonPending, "spec.filter.bpf: %v", err)
	}
	return refuse(v1alpha1.ReasonInvalidFilter, "spec.filter.bpf %q: %v; see pcap-filter(7)", shorten(f.BPF), err)
}

// shorten cuts a filter to what fits into a condition's message.
func shorten(expression string) string {
	const maxLength = 200
	if len(expression) <= maxLength {
		return expression
	}
	return expression[:maxLength] + "..."
}
