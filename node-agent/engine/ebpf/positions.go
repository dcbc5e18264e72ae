// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// positions is a ring buffer's first two pages, mapped read-only: how far its consumer and its producers are, in bytes
// since it was made.
type positions struct {
	pages              []byte
	consumer, producer *uint64
}

func mapPositions(ring *ebpf.Map) (*positions, error) {
	page := os.Getpagesize()
	pages, err := unix.Mmap(ring.FD(), 0, 2*page, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map a ring buffer's positions: %w", err)
	}
	return &positions{
		pages:    pages,
		consumer: (*uint64)(unsafe.Pointer(&pages[0])),
		producer: (*uint64)(unsafe.Pointer(&pages[page])),
	}, nil
}

func (p *positions) unmap() {
	// Fails only for addresses that are not a mapping's.
	_ = unix.Munmap(p.pages)
}

// unread returns the bytes that are published and not released, at most size. The consumer may have written anything
// as its position.
func (p *positions) unread(size uint32) uint64 {
	consumer := atomic.LoadUint64(p.consumer)
	unread := atomic.LoadUint64(p.producer) - consumer
	return min(unread, uint64(size))
}

// plausible reports whether the consumer's position is one that a consumer comes to.
func (p *positions) plausible(size uint32) bool {
	consumer := atomic.LoadUint64(p.consumer)
	return consumer%8 == 0 && atomic.LoadUint64(p.producer)-consumer <= uint64(size)
}
