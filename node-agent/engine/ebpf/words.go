// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"
)

// wordTable holds a number for each queue of the node. This process writes to it.
type wordTable struct{ mappedTable }

func mapWords(m *ebpf.Map) (*wordTable, error) {
	t := &wordTable{}
	if err := t.mapPages(m); err != nil {
		return nil, fmt.Errorf("map a table of queues: %w", err)
	}
	return t, nil
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
