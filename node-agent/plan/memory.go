// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/ringcap/ringcap/operator/api/sizing"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Taken is what a set of queues has now. Bytes counts the node's memory, including what the set may yet take. Lanes
// is the number of areas of each queue, if the engine reports it.
type Taken struct {
	Bytes uint64
	// ToCome is the part of Bytes that it has not taken yet. This part still counts as available.
	ToCome uint64
	Lanes  int
}

// ledger holds the sets of queues' shares of the node's memory, in bytes. It has what existing sets took, by name,
// including what some of them may yet take. It also has what this plan promises to the sets that it makes.
type ledger struct {
	taken    map[string]uint64
	toCome   uint64
	promised uint64
}

func newLedger(facts Facts) *ledger {
	l := &ledger{taken: map[string]uint64{}}
	for name, taken := range facts.Taken {
		l.taken[name] = taken.Bytes
		l.toCome += taken.ToCome
	}
	return l
}

// sum returns the bytes of all sets of queues. names lists the sets, the greatest first.
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

// memorySuffices computes the size of the queues, and compares it with spec.memoryLimit. An engine with several areas
// for each queue makes fewer if the limit has no room for all. The number of areas of an existing queue stays.
func memorySuffices(d *clusterDraft) *problem {
	s, fact := d.cluster.Spec, d.facts.Engines[d.engine]
	area := sizing.Area(s.Slots, d.slotBytes, fact.SlotOverhead)
	if d.inline != nil { // one lane keeps the order of its packets
		fact.Lanes, area = 1, min(area, sizing.MaxInlineArea)
	}
	var limit *int64
	if s.MemoryLimit != nil {
		bytes := s.MemoryLimit.Value()
		limit = &bytes
	}
	d.mostLanes = mostLanes(fact, s.Queues, area, limit)
	if d.mostLanes == 0 {
		return problemf(v1.ReasonMemoryLimitExceeded, "%d queues of %s need %s, and spec.memoryLimit is %s: "+
			"raise it, or lower spec.slots (%d of %d bytes), spec.queues or the rings' spec.snapLength",
			s.Queues, quantity(area), quantity(area*uint64(s.Queues)), s.MemoryLimit, s.Slots, d.slotBytes)
	}
	if largest := largestArea(fact); area > largest {
		return problemf(v1.ReasonUnsupported, "spec.slots %d of %d bytes (spec.snapLength) need %s a queue; at most %s can be made: "+
			"lower spec.slots or the rings' spec.snapLength", s.Slots, d.slotBytes, quantity(area), quantity(largest))
	}
	if now := d.present().Lanes; now > 0 {
		d.mostLanes = min(now, d.mostLanes)
	}
	d.queueBytes = uint32(area)
	return nil
}

// largestArea returns the size of the largest area that an engine can make, a power of two as all areas are.
func largestArea(fact EngineFact) uint64 {
	if fact.MaxQueue == 0 {
		return sizing.MaxArea
	}
	return min(sizing.MaxArea, uint64(1)<<(bits.Len64(fact.MaxQueue-fact.LaneTail)-1))
}

// mostLanes returns how many areas of a queue fit into limit and into the engine's largest queue. It includes what
// the engine needs behind each area. A single area may use the whole limit without that, because the limit is for
// packets.
func mostLanes(fact EngineFact, queues int32, area uint64, limit *int64) int {
	lane := area + fact.LaneTail
	lanes := sizing.Lanes(queues, lane, max(fact.Lanes, 1), limit)
	if fact.MaxQueue > 0 {
		lanes = min(lanes, int(fact.MaxQueue/lane))
	}
	return max(lanes, sizing.Lanes(queues, area, 1, limit))
}

func (d *clusterDraft) setLanes(lanes int) {
	lane := uint64(d.queueBytes) + d.facts.Engines[d.engine].LaneTail
	d.lanes, d.claim = lanes, 0
	d.need = lane * uint64(lanes) * uint64(d.cluster.Spec.Queues)
}

// present returns what this set of queues has of its engine now.
func (d *clusterDraft) present() Taken {
	if d.facts.Queues[d.cluster.Name] != d.engine {
		return Taken{}
	}
	return d.facts.Taken[d.cluster.Name]
}

// nodeHasMemory compares the need of new queues with the node's free memory. Existing queues keep theirs. Queues that
// change their size are made before the old ones are removed, so they need all of their memory. It asks for a few
// lanes only: all sets of the plan get these before one gets more (raiseLanes).
func nodeHasMemory(d *clusterDraft) *problem {
	d.setLanes(d.mostLanes)
	if d.need > d.present().Bytes {
		d.setLanes(min(d.mostLanes, sizing.EnoughLanes))
	}
	return d.nodeHasRoom()
}

// raiseLanes raises the draft's lanes as far as the draft permits and the node has room. The ledger has the draft
// with a few lanes.
func (d *clusterDraft) raiseLanes() {
	few := d.lanes
	d.ledger.leave(*d)
	d.setLanes(d.mostLanes)
	for d.nodeHasRoom() != nil && d.lanes > few {
		d.setLanes(d.lanes - 1)
	}
	d.ledger.enter(*d)
}

// nodeHasRoom returns nil if the node has memory for all lanes of the draft.
func (d *clusterDraft) nodeHasRoom() *problem {
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
	case m.Available < m.Reserve+d.ledger.toCome+d.ledger.promised+d.claim:
		why = fmt.Sprintf("the node has too little available at the moment besides what it keeps, --memory-reserve, %s", mebibytes(m.Reserve))
	case m.AgentRoom < d.ledger.toCome+d.ledger.promised+d.claim:
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

// enter records the memory of a planned set of queues.
func (l *ledger) enter(d clusterDraft) {
	l.promised += d.claim
	l.taken[d.cluster.Name] = max(l.taken[d.cluster.Name], d.claim)
}

// leave undoes enter.
func (l *ledger) leave(d clusterDraft) {
	l.promised -= d.claim
	l.taken[d.cluster.Name] = d.facts.Taken[d.cluster.Name].Bytes
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

// mebibytes returns bytes in MiB, rounded up, for messages.
func mebibytes(bytes uint64) string { return fmt.Sprintf("%d MiB", (bytes+1<<20-1)>>20) }
