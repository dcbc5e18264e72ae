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
	// alive reports whether the program is still attached. Its interface may be gone, or somebody may have replaced
	// it.
	alive() bool
	// detach detaches the program, or removes the remains of a tap that is not alive.
	detach() error
	// close releases the process's resources.
	close()
}

// attacher is a way to attach programs to hooks. Programs run before those that others attached.
type attacher interface {
	attach(*ring, tapPoint, *ebpf.Program) (tap, error)
	// recover finds the tap that another process made. The error wraps os.ErrNotExist if there is none.
	recover(*ring, tapPoint) (tap, error)
}

// tcx attaches programs by links, on kernels from 6.6 on.
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

// linkTap is a tap by a link, which exists as long as its pin.
type linkTap struct {
	link  link.Link
	pin   string
	point tapPoint
	// program is the program that it is to run.
	program ebpf.ProgramID
}

func tapPin(r *ring, point tapPoint) string {
	return filepath.Join(r.folder, fmt.Sprintf("tap_%d_%s", point.Index, point.Hook))
}

// pinTap makes a tap of a link. It closes the link on failure.
func pinTap(r *ring, point tapPoint, l link.Link) (tap, error) {
	t, err := newLinkTap(r, point, l)
	if err != nil {
		return nil, err
	}
	if err := l.Pin(t.pin); err != nil {
		l.Close()
		return nil, fmt.Errorf("pin %s: %w", t.pin, explainRights(err))
	}
	return t, nil
}

// newLinkTap makes the tap of a link with the program that it runs. It closes the link on failure.
func newLinkTap(r *ring, point tapPoint, l link.Link) (*linkTap, error) {
	info, err := l.Info()
	if err != nil {
		l.Close()
		return nil, fmt.Errorf("read what the link of tap %s is: %w", point.Hook, err)
	}
	return &linkTap{link: l, pin: tapPin(r, point), point: point, program: info.Program}, nil
}

func recoverTap(r *ring, point tapPoint) (tap, error) {
	pin := tapPin(r, point)
	l, err := link.LoadPinnedLink(pin, nil)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", pin, err)
	}
	return newLinkTap(r, point, l)
}

func (t *linkTap) update(program *ebpf.Program) error {
	id, err := programID(program)
	if err == nil {
		err = t.link.Update(program)
	}
	if err == nil {
		t.program = id
	}
	return err
}

func programID(program *ebpf.Program) (ebpf.ProgramID, error) {
	info, err := program.Info()
	if err != nil {
		return 0, fmt.Errorf("read a program's id: %w", err)
	}
	id, ok := info.ID()
	if !ok {
		return 0, errors.New("this kernel does not report the ids of programs")
	}
	return id, nil
}

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
	if index != t.point.Index || info.Program != t.program {
		return false
	}
	// A device that moved to another network namespace keeps its program, but is no longer this node's.
	_, err = nameOf(index)
	return err == nil
}

func (t *linkTap) detach() error {
	// Another process may hold the link, too.
	if err := t.link.Detach(); err != nil && t.alive() {
		return err
	}
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
