// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"github.com/cilium/ebpf"

	"github.com/ringcap/ringcap/node-agent/capture"
	"github.com/ringcap/ringcap/node-agent/node"
)

// queueShape is the size of a queue's maps.
type queueShape struct {
	lanes    uint32
	laneSize uint32 // bytes
	headSize uint32 // bytes of the data map before the first lane
}

// maxDataSize is the verifier's bound for an offset in a map's value. The offset must be less.
const maxDataSize = 1 << 29

// newQueueShape returns the shape of queues with the given number of lanes and bytes per lane, on a machine with the
// given number of possible CPUs.
func newQueueShape(lanes int, laneSize uint32, cpus int) queueShape {
	head := uint32(lanes)*uint32(unsafe.Sizeof(laneKernel{})) + laneLine + queueOwners(cpus)
	return queueShape{lanes: uint32(lanes), laneSize: laneSize, headSize: head}
}

// queueOwners returns the number of bytes that tell the CPUs' lanes: whole cache lines, before the first lane.
func queueOwners(cpus int) uint32 {
	const line = 64
	return (cpuSlots(cpus) + line - 1) / line * line
}

// slotAlignment is the unit of positions in a lane, in bytes.
const slotAlignment = 8

// cpuSlots returns a power of two, so that the verifier can bound a CPU's number by a mask.
func cpuSlots(cpus int) uint32 {
	slots := uint32(1)
	for int(slots) < cpus {
		slots *= 2
	}
	return slots
}

// dataSize returns the number of bytes of the data map's value.
func (s queueShape) dataSize() uint64 {
	return uint64(s.headSize) + uint64(s.lanes)*(uint64(s.laneSize)+laneTail)
}

// MaxQueue is how many bytes the lanes of a queue may have together. It is the verifier's bound, less the most that
// can precede the lanes.
const MaxQueue = maxDataSize - 64<<10

// check rejects shapes that the kernel would refuse.
func (s queueShape) check() error {
	if s.lanes < 1 || s.lanes > maxLanes {
		return fmt.Errorf("%d lanes a queue: must be 1 to %d", s.lanes, maxLanes)
	}
	if s.dataSize() >= maxDataSize {
		return fmt.Errorf("%d lanes of %d bytes a queue need %d bytes, and programs reach less than %d: lower spec.slots or spec.snapLength: %w",
			s.lanes, s.laneSize, s.dataSize(), uint64(maxDataSize), capture.ErrUnsupported)
	}
	return nil
}

// memory returns the number of bytes that the maps of a queue take. It counts whole pages, a page for each array's
// own account, three for that of the doorbell, and the tables of their pages.
func (s queueShape) memory() uint64 {
	page := uint64(os.Getpagesize())
	pages := func(bytes uint64) uint64 { return (bytes+page-1)/page + 1 }
	const pointer, doorbell, doorbellTwice = 8, 4, 1
	count := pages(s.dataSize()) + pages(uint64(unsafe.Sizeof(consumerPage{}))) + doorbell
	return count*(page+pointer) + doorbellTwice*pointer
}

func (s queueShape) dataSpec() *ebpf.MapSpec {
	return &ebpf.MapSpec{
		Name: "ringcap_queue", Type: ebpf.Array, KeySize: 4, ValueSize: uint32(s.dataSize()), MaxEntries: 1, Flags: mmapable,
	}
}

// mmapable is BPF_F_MMAPABLE.
const mmapable = 1 << 10

// possibleCPUs returns the number of CPUs that may capture a packet, now or later.
func possibleCPUs() int {
	cpus, err := node.PossibleCPUs()
	if err != nil {
		return runtime.NumCPU() // loadSpec reports the error
	}
	return cpus
}
