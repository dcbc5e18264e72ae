// SPDX-License-Identifier: Apache-2.0

// Package sizing says how much memory queues need. The operator and the nodes' agents use the same figures, so that what the
// one accepts the others have no other reason to refuse.
package sizing

import (
	"cmp"
	"math/bits"

	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// A queue has a memory area for each of its lanes, of a size that is a power of two, from the UAPI header.
const (
	MinArea = 128 << 10
	MaxArea = 1 << 30
	// MaxLanes is the most lanes that the module's queues get: one for each CPU, and more CPUs share them. The eBPF engine's
	// have one.
	MaxLanes = 4
)

// What a packet takes in an area besides its own bytes.
const (
	// ModuleSlot is sizeof(struct ringcap_slot).
	ModuleSlot = 48
	// EBPFSlot is that and the header of a record in a BPF ring buffer.
	EBPFSlot = ModuleSlot + 8
)

// Bytes of packets.
const (
	// MaxSnapLength is the most that can be captured of one.
	MaxSnapLength = 65535
	// DefaultSlotBytes is what a slot is reckoned with where spec.snapLength is not given: a frame of an MTU of 1500 with its
	// headers. Packets take the bytes that they have, so that longer ones only leave room for fewer.
	DefaultSlotBytes = 1536
)

// SnapLength is the greatest number of bytes captured of a packet; snapLength is the spec's, 0 where it is not given.
func SnapLength(snapLength int32) int32 { return cmp.Or(snapLength, MaxSnapLength) }

// SlotBytes is how many bytes of a packet each slot of a queue is reckoned with; snapLength is as for SnapLength.
func SlotBytes(snapLength int32) int32 { return cmp.Or(snapLength, DefaultSlotBytes) }

// SlotOverhead is that of an engine; where the choice is left to nodes, the least that it can be.
func SlotOverhead(engine v1.Engine) uint32 {
	if engine == v1.EngineEBPF {
		return EBPFSlot
	}
	return ModuleSlot
}

// Area is the bytes of a memory area that holds at least slots packets of slotBytes.
func Area(slots, slotBytes int32, slotOverhead uint32) uint64 {
	slot := uint64(slotOverhead) + (uint64(max(slotBytes, 0))+7)&^7
	return roundUpPowerOfTwo(max(uint64(max(slots, 0))*slot, MinArea))
}

// Lanes is the number of areas that each queue gets of an engine that makes up to most: as many as limit, bytes, has room for.
// 0: not even one.
func Lanes(queues int32, area uint64, most int, limit *int64) int {
	if limit == nil {
		return most
	}
	return int(min(uint64(most), uint64(max(*limit, 0))/(uint64(max(queues, 1))*area)))
}

// WithTables is what areas of so many bytes take of a node's memory: the kernel's tables of their pages, in which each page is
// twice, are with them.
func WithTables(bytes uint64) uint64 { return bytes + bytes/128 }

func roundUpPowerOfTwo(n uint64) uint64 { return 1 << bits.Len64(n-1) }
