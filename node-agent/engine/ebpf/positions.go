// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// positions are the consumer's positions in its queue's lanes, mapped for writing. As long as they are mapped, nobody
// can freeze the map. The consumer may have written anything there.
type positions struct {
	pages []byte
	page  *consumerPage
}

func mapPositions(consumer *ebpf.Map) (*positions, error) {
	pages, err := unix.Mmap(consumer.FD(), 0, wholePages(int(unsafe.Sizeof(consumerPage{}))), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map a queue's positions: %w", err)
	}
	return &positions{pages: pages, page: (*consumerPage)(unsafe.Pointer(&pages[0]))}, nil
}

func (p *positions) unmap() {
	// Fails only for addresses that are not of a mapping.
	_ = unix.Munmap(p.pages)
}

// released returns how far the consumer has read a lane, as far as programs would believe it.
func (p *positions) released(h *laneHeads, lane int) (position, producer uint64) {
	last, claimed := h.released(lane), atomic.LoadUint64(&p.page.Lane[lane].Released)
	producer = h.producer(lane)
	if producer-last > h.laneSize {
		last = producer // programs never write this; other programs that a consumer loaded can
	}
	if claimed%8 != 0 || claimed-last > producer-last {
		return last, producer
	}
	return claimed, producer
}

// unread returns the number of bytes, over all lanes and in the fullest one, that are published and not released.
func (p *positions) unread(h *laneHeads) (sum, fullest uint64) {
	for lane := range h.lanes {
		position, producer := p.released(h, lane)
		sum += producer - position
		fullest = max(fullest, producer-position)
	}
	return sum, fullest
}

// begin resets the page for a consumer that is about to attach, and does not sleep. Packets no longer arrive, except
// from programs that have just seen the last consumer. What these publish a moment later counts for the next
// consumer.
func (p *positions) begin(h *laneHeads) {
	for lane := range h.lanes {
		position, producer := p.released(h, lane)
		atomic.StoreUint64(&p.page.Lane[lane].Released, position)
		atomic.StoreUint64(&p.page.Lane[lane].Left, producer)
	}
	atomic.StoreUint64(&p.page.Lane[0].TimeoutUs, 0)
	atomic.StoreUint64(&p.page.Sleep, 0)
	atomic.StoreUint64(&p.page.Noted, 0)
}
