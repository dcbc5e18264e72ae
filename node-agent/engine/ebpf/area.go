// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cilium/ebpf"
)

// kinds names the maps of a queue, in the order in which a consumer gets them. They are pinned by these names.
var kinds = [...]string{"data", "consumer", "doorbell"}

// queueMaps holds the descriptors of a queue's maps, by kind.
type queueMaps [len(kinds)]*ebpf.Map

func (m queueMaps) close() {
	for _, one := range m {
		if one != nil {
			one.Close()
		}
	}
}

// area is a queue's memory in this process: the mapped parts and the maps' ids. It holds no descriptor.
type area struct {
	ids       [len(kinds)]uint32
	head      *laneHeads
	positions *positions
	bell      *bellPage
}

// newArea maps the parts of a queue's maps that this process uses.
func newArea(m queueMaps, s queueShape) (*area, error) {
	a := &area{}
	var err error
	for i, one := range m {
		if a.ids[i], err = mapID(one); err != nil {
			return nil, err
		}
	}
	if a.head, err = mapHead(m[0], s); err != nil {
		return nil, err
	}
	if a.positions, err = mapPositions(m[1]); err != nil {
		a.unmap()
		return nil, err
	}
	if a.bell, err = mapBell(m[2]); err != nil {
		a.unmap()
		return nil, err
	}
	return a, nil
}

func (a *area) unmap() {
	if a.head != nil {
		a.head.unmap()
	}
	if a.positions != nil {
		a.positions.unmap()
	}
	if a.bell != nil {
		a.bell.unmap()
	}
}

// id returns the id of the data map. Consumers identify the area by it.
func (a *area) id() uint32 { return a.ids[0] }

func (q *queue) pin(kind string) string {
	return filepath.Join(q.folder, fmt.Sprintf("q%d_%s", q.id.Queue, kind))
}

// nextPin returns the path of a map that is not yet the queue's.
func (q *queue) nextPin(kind string) string { return q.pin("next_" + kind) }

// makeMaps makes and pins a queue's maps.
func (q *queue) makeMaps(pin func(kind string) string) (queueMaps, error) {
	var m queueMaps
	for i, spec := range [...]*ebpf.MapSpec{q.shape.dataSpec(), q.tables.consumerSpec, q.tables.doorbellSpec} {
		one, err := newPinned(spec, pin(kinds[i]))
		if err != nil {
			m.close()
			return m, err
		}
		m[i] = one
	}
	// From here on only programs write to it. A consumer can get a descriptor that it can map.
	if err := m[0].Freeze(); err != nil {
		m.close()
		return m, fmt.Errorf("freeze %s: %w", pin(kinds[0]), err)
	}
	return m, nil
}

// openMaps opens the maps at their pins. The error wraps os.ErrNotExist if one is missing.
func openMaps(pin func(kind string) string) (queueMaps, error) {
	var m queueMaps
	for i, kind := range kinds {
		one, err := ebpf.LoadPinnedMap(pin(kind), nil)
		if err != nil {
			m.close()
			return m, fmt.Errorf("open %s: %w", pin(kind), err)
		}
		m[i] = one
	}
	return m, nil
}

// open opens the maps of the queue's area, wherever they are pinned. Caller holds q.mu.
func (q *queue) open() (queueMaps, error) {
	var m queueMaps
	for i, kind := range kinds {
		one, err := q.openMap(i, kind)
		if err != nil {
			m.close()
			return m, err
		}
		m[i] = one
	}
	return m, nil
}

func (q *queue) openMap(i int, kind string) (*ebpf.Map, error) {
	var failed error
	for _, path := range []string{q.pin(kind), q.nextPin(kind)} {
		one, err := ebpf.LoadPinnedMap(path, nil)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		if id, err := mapID(one); err == nil && id == q.area.ids[i] {
			return one, nil
		}
		one.Close()
	}
	// Somebody has removed the pins. A process with all capabilities on this machine still finds the map.
	one, err := ebpf.NewMapFromID(ebpf.MapID(q.area.ids[i]))
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", q.pin(kind), errors.Join(failed, err))
	}
	return one, nil
}

// rename moves the maps from the next pins to the queue's pins. The data map is the last: while its next pin exists,
// the change is incomplete.
func (q *queue) rename() error {
	for i := len(kinds) - 1; i >= 0; i-- {
		err := os.Rename(q.nextPin(kinds[i]), q.pin(kinds[i]))
		if err != nil && !(errors.Is(err, os.ErrNotExist) && i > 0) {
			return fmt.Errorf("pin a queue's new maps: %w", err)
		}
	}
	return nil
}

func removeMaps(pin func(kind string) string) error {
	var failed error
	for _, kind := range kinds {
		failed = errors.Join(failed, removePin(pin(kind)))
	}
	return failed
}

func removePin(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
