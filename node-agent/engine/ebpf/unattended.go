// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// unattendedTable holds the programs' counters of queues without a consumer, mapped. For each CPU, or group of CPUs
// that share it, it has a number for each queue.
type unattendedTable struct {
	pages  []byte // nil once unmapped: an engine may be closed twice, and then its addresses may be another mapping's
	counts []uint64
}

func mapUnattended(m *ebpf.Map) (*unattendedTable, error) {
	pages, err := unix.Mmap(m.FD(), 0, wholePages(int(m.ValueSize())), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map the table of unattended packets: %w", err)
	}
	return &unattendedTable{pages: pages, counts: unsafe.Slice((*uint64)(unsafe.Pointer(&pages[0])), m.ValueSize()/8)}, nil
}

func (t *unattendedTable) unmap() {
	// Fails only for addresses that are not of a mapping.
	_ = unix.Munmap(t.pages)
	t.pages, t.counts = nil, nil
}

// sum returns the sum of a queue's counters over all CPUs.
func (t *unattendedTable) sum(index uint32) uint64 {
	var sum uint64
	for i := int(index); i < len(t.counts); i += maxNodeQueues {
		sum += atomic.LoadUint64(&t.counts[i])
	}
	return sum
}

// reset resets a queue's counters. No program feeds the queue.
func (t *unattendedTable) reset(index uint32) {
	for i := int(index); i < len(t.counts); i += maxNodeQueues {
		atomic.StoreUint64(&t.counts[i], 0)
	}
}
