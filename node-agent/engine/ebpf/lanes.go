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

// lanes is a queue's account by CPU, mapped read-only: with thousands of queues a system call for each number were too much.
type lanes struct {
	pages []byte
	byCPU []laneStats
}

func mapLanes(stats *ebpf.Map) (*lanes, error) {
	n, page := int(stats.MaxEntries()), os.Getpagesize()
	size := (n*int(unsafe.Sizeof(laneStats{})) + page - 1) / page * page
	pages, err := unix.Mmap(stats.FD(), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map a queue's counters: %w", err)
	}
	return &lanes{pages: pages, byCPU: unsafe.Slice((*laneStats)(unsafe.Pointer(&pages[0])), n)}, nil
}

func (l *lanes) unmap() {
	// Fails only for addresses that are not a mapping's.
	_ = unix.Munmap(l.pages)
}

// sum adds the CPUs' accounts to s.
func (l *lanes) sum(s *capture.QueueStats) {
	for cpu := range l.byCPU {
		lane := &l.byCPU[cpu]
		s.Delivered += atomic.LoadUint64(&lane.Delivered)
		s.DeliveredBytes += atomic.LoadUint64(&lane.DeliveredBytes)
		s.Truncated += atomic.LoadUint64(&lane.Truncated)
		s.TruncatedBytes += atomic.LoadUint64(&lane.TruncatedBytes)
		for i, reason := range capture.DropReasons {
			s.Dropped[reason] += atomic.LoadUint64(&lane.Dropped[i])
		}
	}
}
