// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"math/bits"

	"k8s.io/apimachinery/pkg/api/resource"

	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// The size of a queue's data (of each lane, in the module), from the UAPI header.
const (
	minQueueBytes = 128 << 10
	maxQueueBytes = 1 << 30
)

// memorySuffices sizes the queues and holds them against spec.memoryLimit.
func memorySuffices(d *clusterDraft) *problem {
	s, fact := d.cluster.Spec, d.facts.Engines[d.engine]
	size := queueBytes(uint64(s.Slots), d.snapLen, fact.SlotOverhead)
	if size > maxQueueBytes {
		return problemf(v1.ReasonUnsupported, "spec.slots %d of %d bytes (spec.snapLength) need %s a queue; at most %s can be made: "+
			"lower spec.slots or the rings' spec.snapLength", s.Slots, d.snapLen, quantity(size), quantity(maxQueueBytes))
	}
	lanes := uint64(max(fact.Lanes, 1))
	need := size * lanes * uint64(s.Queues)
	if s.MemoryLimit != nil && need > uint64(max(s.MemoryLimit.Value(), 0)) {
		return problemf(v1.ReasonMemoryLimitExceeded, "%d queues of %s%s need %s, and spec.memoryLimit is %s: "+
			"raise it, or lower spec.slots (%d), spec.queues or the rings' spec.snapLength (%d)",
			s.Queues, quantity(size), lanesText(lanes), quantity(need), s.MemoryLimit, s.Slots, d.snapLen)
	}
	d.queueBytes = uint32(size)
	return nil
}

// queueBytes is the size of a queue that holds at least slots packets of snapLen bytes: a power of two.
func queueBytes(slots uint64, snapLen, overhead uint32) uint64 {
	slot := uint64(overhead) + (uint64(snapLen)+7)&^7
	return roundUpPowerOfTwo(max(slots*slot, minQueueBytes))
}

func roundUpPowerOfTwo(n uint64) uint64 { return 1 << bits.Len64(n-1) }

func lanesText(lanes uint64) string {
	if lanes == 1 {
		return ""
	}
	return " times " + resource.NewQuantity(int64(lanes), resource.DecimalSI).String() + " CPU lanes"
}

func quantity(bytes uint64) string {
	return resource.NewQuantity(int64(bytes), resource.BinarySI).String()
}
