// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"
)

// shuntingTable holds what each queue of the node has of shunted flows, mapped. Programs add to the first two counters.
type shuntingTable struct{ mappedTable }

func mapShunting(m *ebpf.Map) (*shuntingTable, error) {
	t := &shuntingTable{}
	if err := t.mapPages(m); err != nil {
		return nil, fmt.Errorf("map the table of shunted packets: %w", err)
	}
	return t, nil
}

// with calls do with a queue's entry, unless the table is unmapped.
func (t *shuntingTable) with(index uint32, do func(*shuntingState)) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.pages != nil {
		do((*shuntingState)(unsafe.Pointer(&t.pages[uintptr(index)*unsafe.Sizeof(shuntingState{})])))
	}
}

// read returns a queue's entry.
func (t *shuntingTable) read(index uint32) shuntingState {
	var state shuntingState
	t.with(index, func(s *shuntingState) {
		state.Packets, state.Bytes = atomic.LoadUint64(&s.Packets), atomic.LoadUint64(&s.Bytes)
		state.Lost = atomic.LoadUint64(&s.Lost)
		state.Flows, state.Unread = atomic.LoadUint32(&s.Flows), atomic.LoadUint32(&s.Unread)
	})
	return state
}

// set sets how many flows programs look for, and how many ends are unread.
func (t *shuntingTable) set(index, flows, unread uint32) {
	t.with(index, func(s *shuntingState) {
		atomic.StoreUint32(&s.Flows, flows)
		atomic.StoreUint32(&s.Unread, unread)
	})
}

// lose counts flows whose end no consumer is told of.
func (t *shuntingTable) lose(index uint32, flows uint64) {
	t.with(index, func(s *shuntingState) { atomic.AddUint64(&s.Lost, flows) })
}

// reset resets a queue's entry. No program feeds the queue.
func (t *shuntingTable) reset(index uint32) {
	t.with(index, func(s *shuntingState) {
		for _, counter := range []*uint64{&s.Packets, &s.Bytes, &s.Lost} {
			atomic.StoreUint64(counter, 0)
		}
	})
	t.set(index, 0, 0)
}
