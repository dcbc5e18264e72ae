// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"errors"
	"fmt"
	"net"
	"os"

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

// tcx attaches by links, which kernels from 6.6 on have. Links live in pins.
type tcx struct{}

type tcxTap struct {
	link  link.Link
	pin   string
	point tapPoint
}

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
	pin := tapPin(r, point)
	if err := l.Pin(pin); err != nil {
		l.Close()
		return nil, fmt.Errorf("pin %s: %w", pin, explainRights(err))
	}
	return &tcxTap{link: l, pin: pin, point: point}, nil
}

func (tcx) recover(r *ring, point tapPoint) (tap, error) {
	pin := tapPin(r, point)
	l, err := link.LoadPinnedLink(pin, nil)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", pin, err)
	}
	return &tcxTap{link: l, pin: pin, point: point}, nil
}

func (t *tcxTap) update(program *ebpf.Program) error {
	return t.link.Update(program)
}

func (t *tcxTap) alive() bool {
	info, err := t.link.Info()
	if err != nil || info.TCX() == nil || int(info.TCX().Ifindex) != t.point.Index {
		return false
	}
	// A device that moved to another network namespace keeps its program, but is not this node's any more.
	_, err = net.InterfaceByIndex(t.point.Index)
	return err == nil
}

func (t *tcxTap) detach() error {
	if err := os.Remove(t.pin); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return t.link.Close()
}

func (t *tcxTap) close() {
	t.link.Close()
}

func explainAttach(err error) error {
	if errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("%w: there is no such interface", err)
	}
	return explainRights(err)
}
