// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/node-agent/capture"
	"github.com/ringcap/ringcap/node-agent/memory"
)

// newPinned makes a map and pins it.
func newPinned(spec *ebpf.MapSpec, path string) (*ebpf.Map, error) {
	m, err := newMap(spec)
	if err != nil {
		return nil, fmt.Errorf("make a map of %d x %d bytes: %w", spec.MaxEntries, max(spec.ValueSize, 1), err)
	}
	if err := m.Pin(path); err != nil {
		m.Close()
		return nil, fmt.Errorf("pin %s: %w", path, explainRights(err))
	}
	return m, nil
}

func newMap(spec *ebpf.MapSpec) (*ebpf.Map, error) {
	if err := memory.RoomFor(mapBytes(spec)); err != nil {
		return nil, err
	}
	m, err := ebpf.NewMap(spec)
	if errors.Is(err, unix.ENOMEM) {
		return nil, fmt.Errorf("%w: %w: %w", capture.ErrNoMemory, err, memory.ErrLimit)
	}
	return m, explainRights(err)
}

// hashedBytes is about what the kernel takes for an entry of a hash table besides key and value: 48 bytes in front of
// the key, and up to two heads of lists.
const hashedBytes = 48 + 2*16

// mapBytes returns about how much memory a map takes when it is made.
func mapBytes(spec *ebpf.MapSpec) uint64 {
	const aligned = 8
	align := func(size uint32) uint64 { return (uint64(size) + aligned - 1) / aligned * aligned }
	entry := uint64(max(spec.ValueSize, 1))
	switch spec.Type {
	case ebpf.Hash, ebpf.LRUHash:
		entry = hashedBytes + align(spec.KeySize) + align(spec.ValueSize)
	case ebpf.PerCPUArray:
		entry = align(spec.ValueSize) * uint64(possibleCPUs())
	}
	return uint64(spec.MaxEntries) * entry
}
