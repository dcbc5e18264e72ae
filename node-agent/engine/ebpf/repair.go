// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// pinAgain pins an object that a process holds at its former path.
type pinAgain func(path string) error

func pinMap(m *ebpf.Map) pinAgain {
	return func(path string) error {
		// The map still regards itself as pinned there.
		again, err := m.Clone()
		if err != nil {
			return err
		}
		defer again.Close()
		return again.Pin(path)
	}
}

func pinLink(l link.Link) pinAgain {
	return func(path string) error { return errors.Join(l.Unpin(), l.Pin(path)) }
}

// folderPins describes a folder of the bpffs: objects by name, and a description, which describe writes.
type folderPins struct {
	path     string
	objects  map[string]pinAgain
	describe func() error
	// described is the name of the description.
	described string
}

// repair restores files that somebody removed from the bpffs and from the run folder. The next engine and the next
// consumer need them. Capture and attached consumers do not.
func (e *Engine) repair(failed failures) error {
	err := errors.Join(e.env.tables.pins(e.env.pins.tables()).restore(), e.env.pins.makeFolders(), e.env.pins.restoreQdiscNotes())
	for _, r := range e.rings {
		for _, folder := range r.pins() {
			failed.add(r.Name, folder.restore())
		}
	}
	for _, c := range e.clusters {
		failed.add(c.Name, errors.Join(c.pins().restore(), e.handover.restore(c)))
	}
	for _, c := range e.retired {
		if !c.unreadable {
			failed.add(c.Name, c.pins().restore())
		}
	}
	return err
}

// restore pins missing objects again.
func (f folderPins) restore() error {
	have, err := namesIn(f.path)
	if err != nil {
		return err
	}
	var missing []string
	for name := range f.objects {
		if !slices.Contains(have, name) {
			missing = append(missing, name)
		}
	}
	undescribed := f.describe != nil && !slices.Contains(have, f.described)
	if len(missing) == 0 && !undescribed {
		return nil
	}
	if err := os.MkdirAll(f.path, 0o700); err != nil {
		return fmt.Errorf("make %s in the bpffs: %w", f.path, explainRights(err))
	}
	for _, name := range missing {
		path := filepath.Join(f.path, name)
		if err := f.objects[name](path); err != nil {
			return fmt.Errorf("pin %s again, which somebody removed: %w", path, explainRights(err))
		}
	}
	if undescribed {
		return f.describe()
	}
	return nil
}

// namesIn lists a folder. A missing folder has no names.
func namesIn(path string) ([]string, error) {
	folder, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	return folder.Readdirnames(-1)
}

// restoreQdiscNotes restores the notes about interfaces with a discipline that the engine added.
func (p pins) restoreQdiscNotes() error {
	for index := range p.qdiscs {
		if _, err := os.Stat(p.qdisc(index)); errors.Is(err, os.ErrNotExist) {
			if err := p.noteQdisc(index); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *tables) pins(folder string) folderPins {
	objects := map[string]pinAgain{}
	for own, field := range t.ownFields() {
		objects[strings.TrimPrefix(own.Name, "rc_")] = pinMap(*field)
	}
	for name, field := range t.fields() {
		objects[tablePin(name)] = pinMap(*field)
	}
	return folderPins{path: folder, objects: objects}
}

func (r *ring) pins() []folderPins {
	objects := map[string]pinAgain{"counters": pinMap(r.counters)}
	for _, t := range r.taps {
		if l, ok := t.(*linkTap); ok && l.alive() {
			objects[filepath.Base(l.pin)] = pinLink(l.link)
		}
	}
	folders := []folderPins{{path: r.folder, objects: objects, describe: r.describe, described: "description"}}
	if r.maps == nil {
		return folders
	}
	rules := folderPins{path: r.maps.folder, objects: map[string]pinAgain{}, described: complete}
	for name, m := range r.maps.maps {
		rules.objects[name] = pinMap(m)
	}
	rules.describe = func() error { return writeDescription(filepath.Join(rules.path, complete), true) }
	return append(folders, rules)
}

func (c *cluster) pins() folderPins {
	objects := map[string]pinAgain{filepath.Base(c.tablePin()): pinMap(c.table)}
	for _, q := range c.queues {
		q.mu.Lock()
		if q.area != nil {
			for i, kind := range kinds {
				objects[filepath.Base(q.pin(kind))] = q.pinAgain(i, kind)
			}
		}
		q.mu.Unlock()
	}
	return folderPins{path: c.folder, objects: objects, describe: c.describe, described: "description"}
}

// pinAgain pins a map of the queue. This process has no descriptor of it.
func (q *queue) pinAgain(i int, kind string) pinAgain {
	return func(path string) error {
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.area == nil {
			return nil
		}
		one, err := q.openMap(i, kind)
		if err != nil {
			return err
		}
		defer one.Close()
		return one.Pin(path)
	}
}
