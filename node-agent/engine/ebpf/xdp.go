// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/safchain/ethtool"
	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// xdp attaches before there is an skb, in transparent modes 1 and 2. An interface has only one XDP program, of any
// owner.
type xdp struct{}

// xdpPass and xdpDrop are what the programs of the modes return.
const (
	xdpDrop = 1
	xdpPass = 2
)

// errTaken means that the interface already has an XDP program.
var errTaken = errors.New("there is an XDP program already")

// explainTaken names the ring that has the interface's XDP program. The owners of other programs are not known.
func explainTaken(point tapPoint, rings map[string]*ring) error {
	owner := "of no ring of ringcap (see: bpftool net)"
	for _, name := range slices.Sorted(maps.Keys(rings)) {
		for tapped := range rings[name].taps {
			if tapped.Index == point.Index && tapped.Hook.isXDP() {
				owner = fmt.Sprintf("of ring %q", name)
			}
		}
	}
	return fmt.Errorf("spec.transparentMode 1 and 2: %s has an XDP program already, %s, and can have one only: use mode 0 there, "+
		"or engine KernelModule: %w", interfaceName(point.Index), owner, capture.ErrUnsupported)
}

func (xdp) attach(r *ring, point tapPoint, program *ebpf.Program) (tap, error) {
	l, err := attachXDP(point, program)
	if err != nil {
		return nil, err
	}
	return pinTap(r, point, l)
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
		return nil, errTaken
	case errors.Is(err, unix.EOPNOTSUPP):
		return nil, fmt.Errorf("transparent modes 1 and 2 on %s: its driver has no native XDP: use mode 0, or allow generic XDP, "+
			"which comes after the driver has made an skb (xdp: GenericAllowed): %w", name, capture.ErrUnsupported)
	default:
		return nil, fmt.Errorf("attach XDP to %s: %w", name, explainAttach(err))
	}
}

// keepsTags checks that the device does not remove VLAN tags. A removed tag is beside the frame, where XDP does not
// see it.
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
		return fmt.Errorf("transparent modes 1 and 2 on %s: it takes VLAN tags off frames before XDP sees them: set "+
			"spec.nic.vlanOffload to Disable: %w", name, capture.ErrUnsupported)
	}
	return nil
}

func (xdp) recover(r *ring, point tapPoint) (tap, error) { return recoverTap(r, point) }

// attachers combines XDP with a way to attach to tc.
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
