// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

const bpfMapCreate = 0

// newDataTable makes a cluster's table of its queues' data maps. The template is one of these maps. If the library
// made its own, it would take the memory of one more queue.
func newDataTable(queues int, template *ebpf.Map, path string) (*ebpf.Map, error) {
	attributes := struct {
		mapType, keySize, valueSize, maxEntries, flags, innerMapFD, numaNode uint32
		name                                                                 [16]byte
	}{mapType: uint32(ebpf.ArrayOfMaps), keySize: 4, valueSize: 4, maxEntries: uint32(queues), innerMapFD: uint32(template.FD())}
	copy(attributes.name[:], "ringcap_table")
	fd, _, errno := unix.Syscall(unix.SYS_BPF, bpfMapCreate, uintptr(unsafe.Pointer(&attributes)), unsafe.Sizeof(attributes))
	if errno != 0 {
		return nil, fmt.Errorf("make a table of %d queues: %w", queues, explainRights(errno))
	}
	table, err := ebpf.NewMapFromFD(int(fd))
	if err != nil {
		return nil, err
	}
	if err := table.Pin(path); err != nil {
		table.Close()
		return nil, fmt.Errorf("pin %s: %w", path, explainRights(err))
	}
	return table, nil
}

// idAt returns the id of the map at an index of a map of maps, 0 if there is none.
func idAt(table *ebpf.Map, index uint32) (uint32, error) {
	var id uint32
	err := table.Lookup(index, &id)
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return 0, nil
	}
	return id, err
}

// deleteAt clears an index.
func deleteAt(table *ebpf.Map, index uint32) error {
	if err := table.Delete(index); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return err
	}
	return nil
}
