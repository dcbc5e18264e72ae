// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"github.com/ringcap/ringcap/node-agent/capture"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// refuseQuickRivals refuses a quick ring that wants RX queues which another quick ring has: the first in the spec stays.
// In a cluster the operator has decided before, by age; it cannot see, however, what globs match on a node.
func (b *builder) refuseQuickRivals(rings []v1.NodeRing) {
	var kept []string
	for _, ring := range rings {
		mine, planned := b.rings[ring.Name]
		if !planned || slices.Contains(kept, ring.Name) {
			continue
		}
		i := slices.IndexFunc(kept, func(name string) bool { return rivals(mine.ring, b.rings[name].ring) })
		if i < 0 {
			kept = append(kept, ring.Name)
			continue
		}
		verdict := b.result.Rings[ring.Name]
		p := problemf(v1.ReasonQuickModeConflict, "ring %q taps the same RX queues of the same interface, and both have "+
			"spec.quickMode: give them other interfaces or RX queues, or set spec.quickMode of one to false", kept[i])
		verdict.Planned, verdict.Reason, verdict.Message = false, p.reason, p.message
		b.result.Rings[ring.Name] = verdict
		delete(b.rings, ring.Name)
	}
}

// rivals reports whether two quick rings want the same packets of one device.
func rivals(a, b capture.Ring) bool {
	if !a.Quick || !b.Quick {
		return false
	}
	for _, mine := range a.Taps {
		for _, other := range b.Taps {
			if mine.Index == other.Index && overlap(mine.RxQueues, other.RxQueues) {
				return true
			}
		}
	}
	return false
}

// overlap reports whether two lists of RX queues have one in common; an empty list is all.
func overlap(a, b []uint16) bool {
	if len(a) == 0 || len(b) == 0 {
		return true
	}
	return slices.ContainsFunc(a, func(queue uint16) bool { return slices.Contains(b, queue) })
}

// quickRingsFeedTheirOwn: a quick ring has no Clusters.
func quickRingsFeedTheirOwn(d *clusterDraft) *problem {
	for _, name := range d.feeds {
		if d.rings[name].ring.Quick && name != d.cluster.Name {
			return problemf(v1.ReasonQuickModeConflict, "spec.rings names %q, which delivers to its own queues only (spec.quickMode): "+
				"name another ring, or set its spec.quickMode to false", name)
		}
	}
	return nil
}
