// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/safchain/ethtool"
	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// xdp attaches before there is an skb: transparent modes 1 and 2. An interface has one XDP program, whosever it is.
type xdp struct{}

type xdpTap struct {
	link  link.Link
	pin   string
	point tapPoint
}

// xdpPass and xdpDrop are what the programs of the modes return.
const (
	xdpDrop = 1
	xdpPass = 2
)

func (xdp) attach(r *ring, point tapPoint, program *ebpf.Program) (tap, error) {
	l, err := attachXDP(point, program)
	if err != nil {
		return nil, err
	}
	pin := tapPin(r, point)
	if err := l.Pin(pin); err != nil {
		l.Close()
		return nil, fmt.Errorf("pin %s: %w", pin, explainRights(err))
	}
	return &xdpTap{link: l, pin: pin, point: point}, nil
}

func attachXDP(point tapPoint, program *ebpf.Program) (link.Link, error) {
	name := interfaceName(point.Index)
	if err := keepsTags(name); err != nil {
		return nil, err
	}
	options := link.XDPOptions{Program: program, Interface: point.Index, Flags: link.XDPDriverMode}
	l, err := link.AttachXDP(options)
	if errors.Is(err, unix.EOPNOTSUPP) && point.Hook == hookXDPAny {
		options.Flags = link.XDPGenericMode
		l, err = link.AttachXDP(options)
	}
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, unix.EBUSY):
		return nil, fmt.Errorf("%s has an XDP program already, another ring's of mode 1 or 2 or somebody else's, and can have one "+
			"only: use transparent mode 0 there: %w", name, capture.ErrUnsupported)
	case errors.Is(err, unix.EOPNOTSUPP):
		return nil, fmt.Errorf("transparent modes 1 and 2 on %s: its driver has no native XDP: use mode 0, or allow generic XDP, "+
			"which comes after the driver has made an skb (xdp: GenericAllowed): %w", name, capture.ErrUnsupported)
	default:
		return nil, fmt.Errorf("attach XDP to %s: %w", name, explainAttach(err))
	}
}

// keepsTags: a VLAN tag that the device takes off is beside the frame, where XDP does not see it.
func keepsTags(name string) error {
	const feature = "rx-vlan-hw-parse"
	tool, err := ethtool.NewEthtool()
	if err != nil {
		return fmt.Errorf("open an ethtool socket: %w", err)
	}
	defer tool.Close()
	features, err := tool.Features(name)
	if err != nil {
		return fmt.Errorf("read the features of %s: %w", name, err)
	}
	if features[feature] {
		return fmt.Errorf("transparent modes 1 and 2 on %s: it takes VLAN tags off frames before XDP sees them: turn that off "+
			"(ethtool -K %s rxvlan off): %w", name, name, capture.ErrUnsupported)
	}
	return nil
}

func (xdp) recover(r *ring, point tapPoint) (tap, error) {
	pin := tapPin(r, point)
	l, err := link.LoadPinnedLink(pin, nil)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", pin, err)
	}
	return &xdpTap{link: l, pin: pin, point: point}, nil
}

func (t *xdpTap) update(program *ebpf.Program) error { return t.link.Update(program) }

func (t *xdpTap) alive() bool {
	info, err := t.link.Info()
	if err != nil || info.XDP() == nil || int(info.XDP().Ifindex) != t.point.Index {
		return false
	}
	_, err = net.InterfaceByIndex(t.point.Index)
	return err == nil
}

func (t *xdpTap) detach() error {
	if err := os.Remove(t.pin); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return t.link.Close()
}

func (t *xdpTap) close() { t.link.Close() }

// tapPin is where a tap's link is pinned.
func tapPin(r *ring, point tapPoint) string {
	return filepath.Join(r.folder, fmt.Sprintf("tap_%d_%s", point.Index, point.Hook))
}

// attachers are XDP beside a way to attach to tc.
type attachers struct{ tc attacher }

func (a attachers) at(point tapPoint) attacher {
	if point.Hook.isXDP() {
		return xdp{}
	}
	return a.tc
}

func (a attachers) attach(r *ring, point tapPoint, program *ebpf.Program) (tap, error) {
	return a.at(point).attach(r, point, program)
}

func (a attachers) recover(r *ring, point tapPoint) (tap, error) {
	return a.at(point).recover(r, point)
}
