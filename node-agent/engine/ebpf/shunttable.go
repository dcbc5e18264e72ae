// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"errors"
	"fmt"
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// The least and the greatest number of flows that a table has room for, and how many times larger the next one is: all
// powers of two.
const (
	shuntRoomMin = 1024
	shuntRoomMax = maxShunts
	shuntGrowth  = 8
)

// errShuntList: the flow's list is as long as programs look through it.
var errShuntList = errors.New("too many flows have the same hash")

// shuntTable is a table of bpf/shunt.h, mapped. This process is the only one that adds and removes flows. Not for
// concurrent use.
type shuntTable struct {
	m      *ebpf.Map
	pages  []byte
	places []shuntPlace // the first one is the hash
	// free holds elements whose flows are gone. From fresh on, elements never had a flow.
	free  []uint32
	fresh uint32
}

// makeShuntTable makes a table with room for so many flows, a power of two, and pins it.
func makeShuntTable(spec *ebpf.MapSpec, room uint32, path string) (*shuntTable, error) {
	spec = spec.Copy()
	spec.MaxEntries = 1 + room
	m, err := newPinned(spec, path)
	if err != nil {
		return nil, err
	}
	t, err := mapShuntTable(m)
	if err != nil {
		return nil, errors.Join(err, m.Close(), removePin(path))
	}
	draw(t.hash().Secrets[:])
	t.hash().Shift = uint32(64 - bits.TrailingZeros32(room))
	return t, nil
}

// recoverShuntTable opens a table that another process made. The error wraps os.ErrNotExist if there is none.
func recoverShuntTable(path string) (*shuntTable, error) {
	m, err := ebpf.LoadPinnedMap(path, nil)
	if err != nil {
		return nil, err
	}
	room := m.MaxEntries() - 1
	if m.ValueSize() != uint32(unsafe.Sizeof(shuntPlace{})) || room < shuntRoomMin || room > shuntRoomMax {
		m.Close()
		return nil, fmt.Errorf("%s: %w", path, errNotDescription)
	}
	t, err := mapShuntTable(m)
	if err != nil {
		m.Close()
		return nil, err
	}
	if err := t.recover(); err != nil {
		t.close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

func mapShuntTable(m *ebpf.Map) (*shuntTable, error) {
	size := int(m.MaxEntries()) * int(unsafe.Sizeof(shuntPlace{}))
	pages, err := unix.Mmap(m.FD(), 0, wholePages(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map a table of shunted flows: %w", err)
	}
	return &shuntTable{
		m: m, pages: pages, places: unsafe.Slice((*shuntPlace)(unsafe.Pointer(&pages[0])), m.MaxEntries()), fresh: 1,
	}, nil
}

// close releases the process's resources.
func (t *shuntTable) close() {
	// Fails only for addresses that are not of a mapping.
	_ = unix.Munmap(t.pages)
	t.m.Close()
}

func (t *shuntTable) hash() *shuntHash { return (*shuntHash)(unsafe.Pointer(&t.places[0])) }

// room returns how many flows the table has room for.
func (t *shuntTable) room() uint32 { return uint32(len(t.places)) - 1 }

// isFull reports whether there is no element for another flow.
func (t *shuntTable) isFull() bool { return len(t.free) == 0 && t.fresh > t.room() }

// bytes returns how much memory the table takes.
func (t *shuntTable) bytes() uint64 { return uint64(len(t.pages)) }

// recover finds the elements that have flows.
func (t *shuntTable) recover() error {
	if bits.OnesCount32(t.room()) != 1 || t.hash().Shift != uint32(64-bits.TrailingZeros32(t.room())) {
		return errNotDescription
	}
	used := make([]bool, len(t.places))
	for head := 1; head < len(t.places); head++ {
		for at := t.places[head].Head; at != 0; at = t.places[at].Next {
			if at > t.room() || used[at] {
				return errNotDescription
			}
			used[at] = true
		}
	}
	for at := t.room(); at > 0; at-- {
		if !used[at] {
			t.free = append(t.free, at)
		}
	}
	t.fresh = t.room() + 1
	return nil
}

// head returns the element with the list of flows with the key: shunt_head of bpf/shunt.h.
func (t *shuntTable) head(key exactKey) uint32 {
	h := t.hash()
	times := func(word uint64, a, b int) uint64 { return (word>>32 + h.Secrets[a]) * (word&(1<<32-1) + h.Secrets[b]) }
	sum := times(key.W[0], 0, 1) + times(key.W[1], 2, 3)
	if key.W[0]>>60 != 0 {
		sum += times(key.W[2], 4, 5) + times(key.W[3], 6, 7) + times(key.W[4], 8, 0)
	}
	return uint32((sum^sum>>32)*0x9e3779b97f4a7c15>>h.Shift) + 1
}

// find returns the element of a flow, or 0.
func (t *shuntTable) find(key exactKey) uint32 {
	for at := t.places[t.head(key)].Head; at != 0; at = t.places[at].Next {
		if t.places[at].W == key.W {
			return at
		}
	}
	return 0
}

// add adds a flow that the table does not have, and has room for. Its Next and Head mean nothing. Packets see it.
func (t *shuntTable) add(flow shuntPlace) (uint32, error) {
	head := &t.places[t.head(exactKey{W: flow.W})].Head
	length := 0
	for at := *head; at != 0; at = t.places[at].Next {
		length++
	}
	if length >= maxShuntList {
		return 0, errShuntList
	}
	at := t.fresh
	if n := len(t.free); n > 0 {
		at, t.free = t.free[n-1], t.free[:n-1]
	} else {
		t.fresh++
	}
	place := &t.places[at]
	place.W, place.Packets, place.Bytes, place.Last = flow.W, flow.Packets, flow.Bytes, flow.Last
	place.IdleS, place.Swapped = flow.IdleS, flow.Swapped
	atomic.StoreUint32(&place.Next, *head)
	atomic.StoreUint32(head, at)
	return at, nil
}

// remove removes a flow. Programs that look for it now may still count in it. The element is not free yet.
func (t *shuntTable) remove(flow uint32) {
	link := &t.places[t.head(exactKey{W: t.places[flow].W})].Head
	for *link != flow {
		link = &t.places[*link].Next
	}
	atomic.StoreUint32(link, t.places[flow].Next)
}

// release makes the element of a removed flow free.
func (t *shuntTable) release(flow uint32) { t.free = append(t.free, flow) }

// read returns what the element has now.
func (t *shuntTable) read(flow uint32) shuntPlace {
	place := &t.places[flow]
	return shuntPlace{
		W: place.W, Packets: atomic.LoadUint64(&place.Packets), Bytes: atomic.LoadUint64(&place.Bytes),
		Last: atomic.LoadUint64(&place.Last), IdleS: place.IdleS, Swapped: place.Swapped,
	}
}

// flows calls do for the element of each flow. It may remove that flow.
func (t *shuntTable) flows(do func(flow uint32)) {
	for head := 1; head < len(t.places); head++ {
		for at := t.places[head].Head; at != 0; {
			next := t.places[at].Next
			do(at)
			at = next
		}
	}
}

// credit adds what was counted in another table for the flow.
func (t *shuntTable) credit(flow uint32, counted shuntPlace) {
	place := &t.places[flow]
	atomic.AddUint64(&place.Packets, counted.Packets)
	atomic.AddUint64(&place.Bytes, counted.Bytes)
	if last := atomic.LoadUint64(&place.Last); int64(counted.Last-last) > 0 {
		atomic.CompareAndSwapUint64(&place.Last, last, counted.Last) // else a packet has come since
	}
}
