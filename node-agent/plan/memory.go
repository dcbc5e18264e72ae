// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/ringcap/ringcap/operator/api/sizing"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Taken is what a set of queues has now: bytes of the node's memory, and areas for each queue where the engine tells.
type Taken struct {
	Bytes uint64
	Lanes int
}

// ledger is what the sets of queues have of the node's memory, in bytes: taken by those that there are, by name, and promised
// to those that this plan makes.
type ledger struct {
	taken    map[string]uint64
	promised uint64
}

func newLedger(facts Facts) *ledger {
	l := &ledger{taken: map[string]uint64{}}
	for name, taken := range facts.Taken {
		l.taken[name] = taken.Bytes
	}
	return l
}

// sum is the bytes of all sets of queues, and names who has them, the greatest first.
func (l *ledger) sum() (sum uint64, names string) {
	sorted := slices.SortedFunc(maps.Keys(l.taken), func(a, b string) int {
		if l.taken[a] != l.taken[b] {
			return int(int64(l.taken[b]) - int64(l.taken[a]))
		}
		return strings.Compare(a, b)
	})
	const named = 5
	for i, name := range sorted {
		sum += l.taken[name]
		switch {
		case i < named:
			names += fmt.Sprintf(", %s %s", name, mebibytes(l.taken[name]))
		case i == named:
			names += fmt.Sprintf(", and %d more", len(sorted)-named)
		}
	}
	return sum, strings.TrimPrefix(names, ", ")
}

// memorySuffices sizes the queues and holds them against spec.memoryLimit. An engine with several areas for each queue makes
// fewer where the limit has no room for all; those that are there stay as many.
func memorySuffices(d *clusterDraft) *problem {
	s, fact := d.cluster.Spec, d.facts.Engines[d.engine]
	area := sizing.Area(s.Slots, d.slotBytes, fact.SlotOverhead)
	all := max(fact.Lanes, 1)
	var limit *int64
	if s.MemoryLimit != nil {
		bytes := s.MemoryLimit.Value()
		limit = &bytes
	}
	lane := area + fact.LaneTail
	d.lanes = sizing.Lanes(s.Queues, lane, all, limit)
	if fact.MaxQueue > 0 {
		d.lanes = max(min(d.lanes, int(fact.MaxQueue/lane)), min(d.lanes, 1))
	}
	if d.lanes == 0 {
		return problemf(v1.ReasonMemoryLimitExceeded, "%d queues of %s need %s, and spec.memoryLimit is %s: "+
			"raise it, or lower spec.slots (%d of %d bytes), spec.queues or the rings' spec.snapLength",
			s.Queues, quantity(lane), quantity(lane*uint64(s.Queues)), s.MemoryLimit, s.Slots, d.slotBytes)
	}
	if area > sizing.MaxArea {
		return problemf(v1.ReasonUnsupported, "spec.slots %d of %d bytes (spec.snapLength) need %s a queue; at most %s can be made: "+
			"lower spec.slots or the rings' spec.snapLength", s.Slots, d.slotBytes, quantity(area), quantity(sizing.MaxArea))
	}
	if now := d.present().Lanes; now > 0 && now < d.lanes {
		d.lanes = now
	}
	d.queueBytes, d.need = uint32(area), lane*uint64(d.lanes)*uint64(s.Queues)
	return nil
}

// present is what this set of queues has of its engine now.
func (d *clusterDraft) present() Taken {
	if d.facts.Queues[d.cluster.Name] != d.engine {
		return Taken{}
	}
	return d.facts.Taken[d.cluster.Name]
}

// nodeHasMemory holds what is new against the node's memory. What is there has its memory, and no newcomer takes it away. Queues
// of another size are made before the old ones go, so they need all of theirs.
func nodeHasMemory(d *clusterDraft) *problem {
	m := d.facts.Memory
	if m == nil || d.need <= d.present().Bytes {
		return nil
	}
	d.claim = sizing.WithTables(d.need)
	taken, names := d.ledger.sum()
	limit := m.Total - min(m.Total, m.Reserve)
	var why string
	switch {
	case taken+d.claim > limit:
		why = fmt.Sprintf("all queues of this node may have %s of its %s (it keeps --memory-reserve, %s)", mebibytes(limit), mebibytes(m.Total), mebibytes(m.Reserve))
	case m.Available < m.Reserve+d.ledger.promised+d.claim:
		why = fmt.Sprintf("the node has too little available at the moment besides what it keeps, --memory-reserve, %s", mebibytes(m.Reserve))
	case m.AgentRoom < d.ledger.promised+d.claim:
		why = "the memory limit of the agent's container (agent.resources.limits.memory), to which queues are charged, leaves too little"
	default:
		return nil
	}
	if d.ledger.promised > 0 {
		why += fmt.Sprintf("; other new queues get %s", mebibytes(d.ledger.promised))
	}
	if names != "" {
		why += "; those that are there take " + names
	}
	return problemf(v1.ReasonNodeMemoryInsufficient, "%d queues of %s%s need %s, and %s: lower spec.queues, spec.slots (%d of %d bytes) or the "+
		"rings' spec.snapLength, or delete what takes the memory", d.cluster.Spec.Queues, quantity(uint64(d.queueBytes)), lanesText(d.lanes),
		mebibytes(d.claim), why, d.cluster.Spec.Slots, d.slotBytes)
}

// enter notes what a set of queues that is planned gets.
func (l *ledger) enter(d clusterDraft) {
	l.promised += d.claim
	l.taken[d.cluster.Name] = max(l.taken[d.cluster.Name], d.claim)
}

func lanesText(lanes int) string {
	if lanes == 1 {
		return ""
	}
	return fmt.Sprintf(" times %d CPU lanes", lanes)
}

func quantity(bytes uint64) string {
	return resource.NewQuantity(int64(bytes), resource.BinarySI).String()
}

// mebibytes is rounded up, for messages.
func mebibytes(bytes uint64) string { return fmt.Sprintf("%d MiB", (bytes+1<<20-1)>>20) }
