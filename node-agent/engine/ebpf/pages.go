// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"sync"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// mappedTable is a table of one element that has something for each queue of the node. Programs read it without a
// look-up, and this process through a mapping. Users of pages hold mu for reading.
type mappedTable struct {
	mu    sync.RWMutex
	pages []byte // nil once unmapped: a consumer's grace may end later
}

func (t *mappedTable) mapPages(m *ebpf.Map) (err error) {
	t.pages, err = unix.Mmap(m.FD(), 0, wholePages(int(m.ValueSize())), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	return err
}

func (t *mappedTable) unmap() {
	t.mu.Lock()
	defer t.mu.Unlock()
	// Fails only for addresses that are not of a mapping.
	_ = unix.Munmap(t.pages)
	t.pages = nil
}
