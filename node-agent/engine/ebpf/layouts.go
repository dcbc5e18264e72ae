// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/pin"
	"github.com/vishvananda/netlink"

	"github.com/ringcap/ringcap/node-agent/node"
)

// layoutName matches the names of layouts' folders.
var layoutName = regexp.MustCompile(`^v[0-9]+$`)

// others returns the folders of other layouts: of agents before an upgrade, or before a rollback.
func (p pins) others() ([]string, error) {
	entries, err := os.ReadDir(filepath.Dir(p.root))
	if err != nil {
		return nil, fmt.Errorf("list pinned layouts: %w", err)
	}
	var folders []string
	for _, entry := range entries {
		if entry.IsDir() && entry.Name() != layout && layoutName.MatchString(entry.Name()) {
			folders = append(folders, filepath.Join(filepath.Dir(p.root), entry.Name()))
		}
	}
	return folders, nil
}

// inheritQdiscs takes over the notes of other layouts about clsact disciplines that the agent added.
func (p pins) inheritQdiscs() error {
	folders, err := p.others()
	for _, folder := range folders {
		notes, _ := os.ReadDir(filepath.Join(folder, filepath.Base(filepath.Dir(p.qdisc(0))))) // there may be none
		for _, note := range notes {
			if index, e := strconv.Atoi(note.Name()); e == nil {
				err = errors.Join(err, p.noteQdisc(index))
			}
		}
	}
	return err
}

// retireLayouts detaches and unpins the objects of agents with other layouts, and reports whether there were any. At
// that time the plan is in the data path. Consumers of another layout's queues are told to attach again when they
// come back. All layouts pin their links and mark their filters in the same way. Nothing else is known of another
// layout.
func (e *Engine) retireLayouts() (bool, error) {
	folders, err := e.env.pins.others()
	if err != nil || len(folders) == 0 {
		return false, err
	}
	for _, folder := range folders {
		e.log.Warn("an agent with another layout of pins left captures, which end now; their consumers have to attach again", "folder", folder)
		err = errors.Join(err, detachLinks(folder))
	}
	if err = errors.Join(err, e.removeOtherFilters()); err != nil {
		return true, fmt.Errorf("end what an agent with another layout of pins left: %w", err)
	}
	for _, folder := range folders {
		err = errors.Join(err, removePins(folder))
	}
	return true, errors.Join(err, e.env.pins.removeIdleQdiscs())
}

// detachLinks detaches all links that are pinned below the folder. Without the pin, a descriptor of another process
// could keep them attached.
func detachLinks(folder string) error {
	var failed error
	for pinned, err := range pin.WalkDir(folder, nil) {
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		if l, is := pinned.Object.(link.Link); is {
			if err := (&linkTap{link: l, pin: pinned.Path}).detach(); err != nil {
				failed = errors.Join(failed, fmt.Errorf("detach %s: %w", pinned.Path, err))
			}
			continue
		}
		pinned.Object.Close()
	}
	return failed
}

// removeOtherFilters removes the agent's filters that are not taps of this engine's rings. They have no pins.
func (e *Engine) removeOtherFilters() error {
	type filterKey struct {
		point  tapPoint
		handle uint32
	}
	mine := map[filterKey]bool{}
	for _, r := range e.rings {
		for point, t := range r.taps {
			if c, is := t.(*clsactTap); is {
				mine[filterKey{point, c.filter.Handle}] = true
			}
		}
	}
	links, err := node.Links()
	if err != nil {
		return fmt.Errorf("list the network interfaces: %w", err)
	}
	for _, l := range links {
		for _, h := range []hook{hookIngress, hookEgress} {
			point := tapPoint{Index: l.Attrs().Index, Hook: h}
			filters, e := filtersAt(point)
			if e != nil {
				continue // the interface is gone, or can have none
			}
			for _, f := range filters {
				b, is := f.(*netlink.BpfFilter)
				if is && b.Handle&^handleMask == handleMark && !mine[filterKey{point, b.Handle}] {
					err = errors.Join(err, netlink.FilterDel(b))
				}
			}
		}
	}
	return err
}
