// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// wordTable holds a number for each queue of the node. It is one element, which programs read without a look-up. This
// process writes to it through a mapping.
type wordTable struct {
	mu    sync.RWMutex
	pages []byte // nil once unmapped: a consumer's grace may end later
}

func mapWords(m *ebpf.Map) (*wordTable, error) {
	pages, err := unix.Mmap(m.FD(), 0, wholePages(int(m.ValueSize())), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map a table of queues: %w", err)
	}
	return &wordTable{pages: pages}, nil
}

func (t *wordTable) unmap() {
	t.mu.Lock()
	defer t.mu.Unlock()
	// Fails only for addresses that are not of a mapping.
	_ = unix.Munmap(t.pages)
	t.pages = nil
}

func (t *wordTable) at(index uint32) *uint32 { return (*uint32)(unsafe.Pointer(&t.pages[4*index])) }

func (t *wordTable) set(index, word uint32) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.pages != nil {
		atomic.StoreUint32(t.at(index), word)
	}
}

func (t *wordTable) get(index uint32) uint32 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.pages == nil {
		return 0
	}
	return atomic.LoadUint32(t.at(index))
}
