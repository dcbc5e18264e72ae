// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// tap is a program attached to a hook.
type tap interface {
	// update replaces the program in one step.
	update(*ebpf.Program) error
	// alive reports whether the program is still attached: its interface may have gone.
	alive() bool
	// detach takes the program off; of a tap that is not alive, what is left of it.
	detach() error
	// close lets go of what the process holds.
	close()
}

// attacher is a way to attach programs to hooks. Programs run before those that others attached.
type attacher interface {
	attach(*ring, tapPoint, *ebpf.Program) (tap, error)
	// recover finds the tap that another process made; the error wraps os.ErrNotExist when there is none.
	recover(*ring, tapPoint) (tap, error)
}

// tcx attaches by links, which kernels from 6.6 on have.
type tcx struct{}

func (tcx) attach(r *ring, point tapPoint, program *ebpf.Program) (tap, error) {
	attach := ebpf.AttachTCXIngress
	if point.Hook == hookEgress {
		attach = ebpf.AttachTCXEgress
	}
	l, err := link.AttachTCX(link.TCXOptions{
		Interface: point.Index, Program: program, Attach: attach, Anchor: link.Head(),
	})
	if err != nil {
		return nil, fmt.Errorf("attach to %s of %s: %w", point.Hook, interfaceName(point.Index), explainAttach(err))
	}
	return pinTap(r, point, l)
}

func (tcx) recover(r *ring, point tapPoint) (tap, error) { return recoverTap(r, point) }

// linkTap is a tap by a link, which lives in its pin.
type linkTap struct {
	link  link.Link
	pin   string
	point tapPoint
}

func tapPin(r *ring, point tapPoint) string {
	return filepath.Join(r.folder, fmt.Sprintf("tap_%d_%s", point.Index, point.Hook))
}

// pinTap makes a tap of a link, which it closes when it fails.
func pinTap(r *ring, point tapPoint, l link.Link) (tap, error) {
	t := &linkTap{link: l, pin: tapPin(r, point), point: point}
	if err := l.Pin(t.pin); err != nil {
		l.Close()
		return nil, fmt.Errorf("pin %s: %w", t.pin, explainRights(err))
	}
	return t, nil
}

func recoverTap(r *ring, point tapPoint) (tap, error) {
	pin := tapPin(r, point)
	l, err := link.LoadPinnedLink(pin, nil)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", pin, err)
	}
	return &linkTap{link: l, pin: pin, point: point}, nil
}

func (t *linkTap) update(program *ebpf.Program) error { return t.link.Update(program) }

func (t *linkTap) alive() bool {
	info, err := t.link.Info()
	if err != nil {
		return false
	}
	index := 0
	if tcx := info.TCX(); tcx != nil {
		index = int(tcx.Ifindex)
	} else if xdp := info.XDP(); xdp != nil {
		index = int(xdp.Ifindex)
	}
	if index != t.point.Index {
		return false
	}
	// A device that moved to another network namespace keeps its program, but is not this node's any more.
	_, err = nameOf(index)
	return err == nil
}

func (t *linkTap) detach() error {
	if err := os.Remove(t.pin); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return t.link.Close()
}

func (t *linkTap) close() { t.link.Close() }

func explainAttach(err error) error {
	if errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("%w: there is no such interface", err)
	}
	return explainRights(err)
}
