// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// laneHeads are the programs' counters and positions of a queue's lanes, mapped read-only. With thousands of queues,
// one system call for each number would take too long. The map exists as long as the mapping.
type laneHeads struct {
	pages    []byte
	lanes    []laneKernel
	laneSize uint64 // bytes
}

func wholePages(bytes int) int {
	page := os.Getpagesize()
	return (bytes + page - 1) / page * page
}

func mapHead(data *ebpf.Map, s queueShape) (*laneHeads, error) {
	pages, err := unix.Mmap(data.FD(), 0, wholePages(int(s.headSize)), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map a queue's data: %w", err)
	}
	lanes := unsafe.Slice((*laneKernel)(unsafe.Pointer(&pages[0])), s.lanes)
	return &laneHeads{pages: pages, lanes: lanes, laneSize: uint64(s.laneSize)}, nil
}

func (h *laneHeads) unmap() {
	// Fails only for addresses that are not of a mapping.
	_ = unix.Munmap(h.pages)
}

func (h *laneHeads) producer(lane int) uint64 { return atomic.LoadUint64(&h.lanes[lane].Producer) }

// released returns the consumer's position as programs last saw it.
func (h *laneHeads) released(lane int) uint64 {
	at := unsafe.Add(unsafe.Pointer(&h.lanes[lane]), 8*(1+laneReleased))
	return atomic.LoadUint64((*uint64)(at))
}

// sum returns the sum of the lanes' accounts.
func (h *laneHeads) sum() laneStats {
	var sum laneStats
	for i := range h.lanes {
		sum.add(&h.lanes[i].Stats)
	}
	return sum
}

// add adds an account that programs may be writing to at the same time.
func (s *laneStats) add(lane *laneStats) {
	s.Delivered += atomic.LoadUint64(&lane.Delivered)
	s.DeliveredBytes += atomic.LoadUint64(&lane.DeliveredBytes)
	s.Truncated += atomic.LoadUint64(&lane.Truncated)
	s.TruncatedBytes += atomic.LoadUint64(&lane.TruncatedBytes)
	for i := range s.Dropped {
		s.Dropped[i] += atomic.LoadUint64(&lane.Dropped[i])
	}
}

func (s *laneStats) report(stats *capture.QueueStats) {
	stats.Delivered, stats.DeliveredBytes = s.Delivered, s.DeliveredBytes
	stats.Truncated, stats.TruncatedBytes = s.Truncated, s.TruncatedBytes
	for i, reason := range capture.DropReasons {
		stats.Dropped[reason] = s.Dropped[i]
	}
}
