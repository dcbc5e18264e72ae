// SPDX-License-Identifier: Apache-2.0

package status

import (
	"maps"
	"slices"
	"time"

	"github.com/ringcap/ringcap/node-agent/datapath"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// truncationMemory is how long truncated packets count as a problem of a ring, so that its state does not change with
// each packet.
const truncationMemory = 10 * time.Minute

// Truncation remembers for which sets of queues packets are truncated. The counters stay when the truncation ends,
// and when the agent restarts, so only their growth counts. The zero value is ready. It is for one goroutine.
type Truncation struct {
	// packets that were truncated, by the last report.
	packets map[queueSet]uint64
	// cut is when packets were found to be truncated although no ring asked for that.
	cut map[queueSet]time.Time
	// given means that the ring had a snap length at the last report.
	given map[string]bool
}

// queueSet is a set of queues of an engine.
type queueSet struct {
	engine v1.Engine
	name   string
}

// Refresh reads a report. It returns the rings with recently truncated packets although no snap length is given. A
// set of queues that also gets packets of a ring with a snap length does not count, because it is not known which
// ring's packets were truncated.
func (t *Truncation) Refresh(r datapath.Report, now time.Time) map[string]bool {
	grown, before := t.count(r), t.given
	t.given = map[string]bool{}
	for i := range r.Spec.Rings {
		t.given[r.Spec.Rings[i].Name] = r.Spec.Rings[i].Spec.SnapLength != 0
	}
	if len(grown)+len(t.cut) == 0 {
		return nil
	}
	feeders := feedersOf(r)
	asked := func(set queueSet, given map[string]bool) bool {
		return slices.ContainsFunc(feeders[set.name], func(ring string) bool { return given[ring] })
	}
	for _, set := range grown {
		// Packets since the last report may be from before a change of the spec.
		if !asked(set, before) {
			t.cut[set] = now
		}
	}
	rings := map[string]bool{}
	for set, at := range t.cut {
		if now.Sub(at) >= truncationMemory || asked(set, t.given) {
			delete(t.cut, set)
			continue
		}
		for _, ring := range feeders[set.name] {
			rings[ring] = true
		}
	}
	return rings
}

// count returns the sets of queues with more truncated packets than in the last report. It leaves out a set that
// cannot be read now.
func (t *Truncation) count(r datapath.Report) (grown []queueSet) {
	first := t.packets == nil
	if first {
		t.packets, t.cut = map[queueSet]uint64{}, map[queueSet]time.Time{}
	}
	maps.DeleteFunc(t.packets, func(set queueSet, _ uint64) bool { _, known := r.Clusters[set.name]; return !known })
	for engine, observed := range r.Observations {
		for name, state := range observed.Clusters {
			set, packets := queueSet{engine, name}, uint64(0)
			for _, queue := range state.Queues {
				packets += queue.Truncated
			}
			if packets > t.packets[set] && !first {
				grown = append(grown, set)
			}
			t.packets[set] = packets
		}
	}
	return grown
}

// feedersOf names the rings that feed each set of queues.
func feedersOf(r datapath.Report) map[string][]string {
	feeders := map[string][]string{}
	for _, p := range r.Plan.Plans {
		for _, ring := range p.Rings {
			for _, set := range ring.Outputs {
				feeders[set] = append(feeders[set], ring.Name)
			}
			for _, target := range ring.Rules.Targets() {
				if target.Queue.Cluster != "" {
					feeders[target.Queue.Cluster] = append(feeders[target.Queue.Cluster], ring.Name)
				}
			}
		}
	}
	return feeders
}
