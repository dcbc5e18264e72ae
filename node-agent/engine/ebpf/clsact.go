// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

const (
	// handleMark is the upper half of our filters' handles.
	handleMark = 0x7263 << 16
	handleMask = 0xffff
)

// clsact attaches programs as filters of the clsact queueing discipline, on kernels without tcx. Filters exist as
// long as their interface, without a pin. The engine's filters have their own names and handles. It does not touch
// other filters. They are not in direct-action mode: a program that returns 0 then just does not match, which costs the
// kernel less than the action TC_ACT_UNSPEC.
type clsact struct{ pins pins }

type clsactTap struct {
	filter netlink.BpfFilter
	pins   pins
}

func (p pins) qdisc(index int) string {
	return filepath.Join(p.root, "qdiscs", strconv.Itoa(index))
}

func (h hook) parent() uint32 {
	if h == hookIngress {
		return netlink.HANDLE_MIN_INGRESS
	}
	return netlink.HANDLE_MIN_EGRESS
}

func (a clsact) attach(r *ring, point tapPoint, program *ebpf.Program) (tap, error) {
	t, err := a.tryAttach(r, point, program)
	if err != nil {
		return nil, fmt.Errorf("attach to %s of %s: %w", point.Hook, interfaceName(point.Index), explainAttach(err))
	}
	return t, nil
}

func (a clsact) tryAttach(r *ring, point tapPoint, program *ebpf.Program) (tap, error) {
	if err := a.ensureQdisc(point); err != nil {
		return nil, err
	}
	others, err := filtersAt(point)
	if err != nil {
		return nil, err
	}
	priority, handle := freeFilter(others)
	t := &clsactTap{pins: a.pins, filter: netlink.BpfFilter{
		FilterAttrs: netlink.FilterAttrs{
			LinkIndex: point.Index, Parent: point.Hook.parent(), Handle: handle, Priority: priority,
			Protocol: unix.ETH_P_ALL,
		},
		Fd: program.FD(), Name: filterName(r.Name, point.Hook),
	}}
	id, err := programID(program)
	if err != nil {
		return nil, err
	}
	t.filter.Id = int(id)
	if err := netlink.FilterAdd(&t.filter); err != nil {
		return nil, err
	}
	return t, nil
}

// ensureQdisc adds a clsact discipline to the interface if it has none, and notes that the engine added it.
func (a clsact) ensureQdisc(point tapPoint) error {
	kind, err := ingressQdisc(point.Index)
	if err != nil {
		return err
	}
	switch {
	case kind == "clsact", kind == "ingress" && point.Hook == hookIngress:
		return nil
	case kind != "":
		return fmt.Errorf("it has the queueing discipline %q, with which what is sent cannot be tapped: replace it by "+
			"clsact, or tap only what is received", kind)
	}
	if err := a.pins.noteQdisc(point.Index); err != nil {
		return err
	}
	if err := netlink.QdiscAdd(clsactQdisc(point.Index)); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("add a clsact queueing discipline: %w", err)
	}
	return nil
}

// noteQdisc notes that the engine added an interface's discipline.
func (p pins) noteQdisc(index int) error {
	p.qdiscs[index] = true
	if err := os.MkdirAll(filepath.Dir(p.qdisc(index)), 0o700); err != nil {
		return err
	}
	return writeDescription(p.qdisc(index), index)
}

func clsactQdisc(index int) netlink.Qdisc {
	return &netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{
		LinkIndex: index, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT,
	}}
}

// ingressQdisc returns the kind of the interface's discipline with handle ffff:, which ingress and clsact have.
func ingressQdisc(index int) (string, error) {
	qdiscs, err := netlink.QdiscList(&netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: index}})
	if err != nil {
		return "", fmt.Errorf("list queueing disciplines: %w", err)
	}
	for _, q := range qdiscs {
		if q.Attrs().Parent == netlink.HANDLE_CLSACT {
			return q.Type(), nil
		}
	}
	return "", nil
}

func filtersAt(point tapPoint) ([]netlink.Filter, error) {
	filters, err := netlink.FilterList(&netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: point.Index}},
		point.Hook.parent())
	if err != nil {
		return nil, fmt.Errorf("list filters: %w", err)
	}
	return filters, nil
}

// freeFilter finds the first priority that is free for BPF filters or has them already, and a free handle.
func freeFilter(others []netlink.Filter) (priority uint16, handle uint32) {
	foreign, handles := map[uint16]bool{}, map[uint32]bool{}
	for _, other := range others {
		attrs := other.Attrs()
		if other.Type() != "bpf" || attrs.Protocol != unix.ETH_P_ALL {
			foreign[attrs.Priority] = true
		}
		handles[attrs.Handle] = true
	}
	for priority = 1; foreign[priority]; priority++ {
	}
	for handle = handleMark + 1; handles[handle]; handle++ {
	}
	return priority, handle
}

func (a clsact) recover(r *ring, point tapPoint) (tap, error) {
	found, err := findFilter(filterName(r.Name, point.Hook), point)
	if err != nil {
		return nil, err
	}
	return &clsactTap{filter: *found, pins: a.pins}, nil
}

// findFilter finds a filter of the engine. The error wraps os.ErrNotExist if the filter or its interface does not
// exist.
func findFilter(name string, point tapPoint) (*netlink.BpfFilter, error) {
	filters, err := filtersAt(point)
	if errors.Is(err, unix.ENODEV) || errors.Is(err, unix.EINVAL) {
		err = os.ErrNotExist
	}
	if err != nil {
		return nil, err
	}
	for _, f := range filters {
		if b, ok := f.(*netlink.BpfFilter); ok && b.Name == name && b.Handle&^handleMask == handleMark {
			return b, nil
		}
	}
	return nil, os.ErrNotExist
}

func (t *clsactTap) point() tapPoint {
	h := hookIngress
	if t.filter.Parent == netlink.HANDLE_MIN_EGRESS {
		h = hookEgress
	}
	return tapPoint{Index: t.filter.LinkIndex, Hook: h}
}

func (t *clsactTap) update(program *ebpf.Program) error {
	id, err := programID(program)
	if err != nil {
		return err
	}
	t.filter.Fd, t.filter.DirectAction, t.filter.Id = program.FD(), false, int(id) // an older agent's was in that mode
	return netlink.FilterReplace(&t.filter)
}

func (t *clsactTap) alive() bool {
	found, err := findFilter(t.filter.Name, t.point())
	return err == nil && found.Handle == t.filter.Handle && found.Id == t.filter.Id
}

func (t *clsactTap) detach() error {
	// This includes a filter that now runs another program.
	if found, err := findFilter(t.filter.Name, t.point()); err == nil {
		if err := netlink.FilterDel(found); err != nil {
			return err
		}
	}
	return t.pins.removeQdisc(t.filter.LinkIndex)
}

// removeQdisc removes the discipline that the engine added to an interface once it has no filters.
func (p pins) removeQdisc(index int) error {
	if _, err := os.Stat(p.qdisc(index)); errors.Is(err, os.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	for _, h := range []hook{hookIngress, hookEgress} {
		filters, err := filtersAt(tapPoint{Index: index, Hook: h})
		if err == nil && len(filters) > 0 {
			return nil
		}
	}
	// If the interface is gone, only the note is left to remove.
	if kind, err := ingressQdisc(index); err == nil && kind == "clsact" {
		if err := netlink.QdiscDel(clsactQdisc(index)); err != nil {
			return fmt.Errorf("remove the clsact queueing discipline: %w", err)
		}
	}
	delete(p.qdiscs, index)
	return os.Remove(p.qdisc(index))
}

// removeIdleQdiscs removes disciplines of a former process that ended before it added their filters.
func (p pins) removeIdleQdiscs() error {
	notes, err := os.ReadDir(filepath.Dir(p.qdisc(0)))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("list queueing disciplines of ours: %w", err)
	}
	for _, note := range notes {
		index, err := strconv.Atoi(note.Name())
		if err != nil {
			continue
		}
		p.qdiscs[index] = true
		if err := p.removeQdisc(index); err != nil {
			return err
		}
	}
	return nil
}

func (t *clsactTap) close() {}
