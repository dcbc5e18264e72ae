// SPDX-License-Identifier: Apache-2.0

// Package sizing computes the memory of queues. The operator and the nodes' agents use the same numbers, so that the agents do
// not refuse for its size what the operator accepted.
package sizing

import (
	"cmp"
	"math/bits"

	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// A queue has a memory area for each of its lanes. Its size is a power of two, from the UAPI header.
const (
	MinArea = 128 << 10
	MaxArea = 1 << 30
	// MaxInlineArea is the maximum of a queue of a ring in line, which has one lane.
	MaxInlineArea = 4 << 20
	// MaxLanes is the maximum number of lanes of a queue in the module: one for each of 16 CPUs that produce, and one that further
	// ones share. Lanes that no CPU wants take no memory.
	MaxLanes = 17
	// EBPFLanes is the maximum in the eBPF engine. Its lanes take memory from the beginning.
	EBPFLanes = 4
	// EnoughLanes is the minimum to which a node without memory for more reduces the number of lanes.
	EnoughLanes = 4
)

// Bytes of an area that a packet needs besides its own.
const (
	// ModuleSlot is sizeof(struct ringcap_slot).
	ModuleSlot = 48
	// EBPFSlot is the same: the slots are.
	EBPFSlot = ModuleSlot
	// EBPFTail is RINGCAP_LANE_TAIL: what the eBPF engine needs behind each area.
	EBPFTail = 68 << 10
)

// Bytes of packets.
const (
	// MaxSnapLength is the maximum number of bytes to capture of a packet.
	MaxSnapLength = 65535
	// DefaultSlotBytes is the size of a slot if spec.snapLength is not set: a frame of an MTU of 1500 with its headers. Packets
	// take only the bytes that they have, so longer ones leave room for fewer.
	DefaultSlotBytes = 1536
)

// SnapLength returns the maximum number of bytes to capture of a packet; snapLength is the spec's, 0 if it is not set.
func SnapLength(snapLength int32) int32 { return cmp.Or(snapLength, MaxSnapLength) }

// SlotBytes returns the size of a slot of a queue; snapLength is as for SnapLength.
func SlotBytes(snapLength int32) int32 { return cmp.Or(snapLength, DefaultSlotBytes) }

// SlotOverhead returns the overhead of an engine; of EngineAuto, the minimum.
func SlotOverhead(engine v1.Engine) uint32 {
	if engine == v1.EngineEBPF {
		return EBPFSlot
	}
	return ModuleSlot
}

// Area returns the bytes of a memory area that holds at least slots packets of slotBytes.
func Area(slots, slotBytes int32, slotOverhead uint32) uint64 {
	slot := uint64(slotOverhead) + (uint64(max(slotBytes, 0))+7)&^7
	return roundUpPowerOfTwo(max(uint64(max(slots, 0))*slot, MinArea))
}

// Lanes returns the number of areas of each queue, with an engine that makes up to maxLanes: as many of laneBytes as fit into limit,
// bytes. 0: not even one fits.
func Lanes(queues int32, laneBytes uint64, maxLanes int, limit *int64) int {
	if limit == nil {
		return maxLanes
	}
	return int(min(uint64(maxLanes), uint64(max(*limit, 0))/(uint64(max(queues, 1))*laneBytes)))
}

// WithTables returns the memory that areas of this size take, including the kernel's tables of their pages, in which each page
// appears twice.
func WithTables(bytes uint64) uint64 { return bytes + bytes/128 }

func roundUpPowerOfTwo(n uint64) uint64 { return 1 << bits.Len64(n-1) }
