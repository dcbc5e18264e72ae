// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
)

// descriptionSize has room for several times the longest description, which is that of a ring with 64 taps.
const descriptionSize = 32 << 10

var descriptionSpec = ebpf.MapSpec{
	Name: "rc_description", Type: ebpf.Array, KeySize: 4, ValueSize: descriptionSize, MaxEntries: 1,
}

// writeDescription writes value as JSON into a new map pinned at path, or replaces the value of the existing map.
// Either takes one system call. A description has the lifetime of the kernel objects beside it. A file outside the
// bpffs does not.
func writeDescription(path string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encode %s: %w", path, err)
	}
	if len(text) > descriptionSize-4 {
		return fmt.Errorf("encode %s: %d bytes are more than the %d there is room for", path, len(text), descriptionSize-4)
	}
	content := make([]byte, descriptionSize)
	binary.NativeEndian.PutUint32(content, uint32(len(text)))
	copy(content[4:], text)

	if m, err := ebpf.LoadPinnedMap(path, nil); err == nil {
		defer m.Close()
		if err := m.Put(uint32(0), content); err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
		return nil
	}
	spec := descriptionSpec.Copy()
	spec.Contents = []ebpf.MapKV{{Key: uint32(0), Value: content}}
	m, err := ebpf.NewMap(spec)
	if err != nil {
		return fmt.Errorf("make %s: %w", path, explainRights(err))
	}
	defer m.Close()
	if err := m.Pin(path); err != nil {
		return fmt.Errorf("pin %s: %w", path, explainRights(err))
	}
	return nil
}

// readDescription reads what writeDescription wrote. The error wraps os.ErrNotExist if there is no description, and
// errNotDescription if it cannot be decoded.
func readDescription(path string, value any) error {
	m, err := ebpf.LoadPinnedMap(path, nil)
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	defer m.Close()
	var content []byte
	if content, err = m.LookupBytes(uint32(0)); err != nil {
		return fmt.Errorf("read %s: %w: %w", path, errNotDescription, err)
	}
	if len(content) != descriptionSize {
		return fmt.Errorf("read %s: %w", path, errNotDescription)
	}
	length := binary.NativeEndian.Uint32(content)
	if length > descriptionSize-4 {
		return fmt.Errorf("read %s: %w", path, errNotDescription)
	}
	if err := json.Unmarshal(content[4:4+length], value); err != nil {
		return fmt.Errorf("read %s: %w: %w", path, errNotDescription, err)
	}
	return nil
}

var errNotDescription = errors.New("this is not a description that ringcap wrote")
