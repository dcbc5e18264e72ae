// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"path"
	"slices"
	"strings"

	"golang.org/x/net/bpf"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/ringcap/ringcap/node-agent/capture"
	"github.com/ringcap/ringcap/node-agent/filter"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// The limits of the data path, from the UAPI header.
const (
	maxTaps       = 64
	maxOutputs    = 8
	maxQueues     = 256
	maxSnapLength = 65535
)

// ringDraft is a ring on its way through the checks, which fill in the lower half.
type ringDraft struct {
	name       string
	spec       v1.CaptureRingSpec
	facts      Facts
	auto       v1.Engine
	autoReason string

	engine       v1.Engine
	engineReason string
	taps         []capture.Tap
	filter       []bpf.RawInstruction
}

var ringChecks = []check[ringDraft]{
	engineIsAvailable,
	engineServesRing,
	ringSettingsInRange,
	interfacesExist,
	filterCompiles,
}

// ringSettingsInRange repeats the CRD's bounds: manifests of a standalone node pass no API server.
func ringSettingsInRange(d *ringDraft) *problem {
	if d.spec.SnapLength < 1 || d.spec.SnapLength > maxSnapLength {
		return problemf(v1.ReasonUnsupported, "spec.snapLength %d: must be between 1 and %d", d.spec.SnapLength, maxSnapLength)
	}
	if q := d.spec.Queues; q != nil && *q != intstr.FromString(v1.QueuesPerRxQueue) && (q.Type == intstr.String || q.IntVal < 1 || q.IntVal > maxQueues) {
		return problemf(v1.ReasonUnsupported, "spec.queues %s: must be between 1 and %d, or PerRxQueue", q, maxQueues)
	}
	if _, ok := directions[d.spec.Direction]; !ok {
		return problemf(v1.ReasonUnsupported, "spec.direction %q: must be Receive, Transmit or Both", d.spec.Direction)
	}
	if len(d.spec.Interfaces) == 0 {
		return problemf(v1.ReasonInterfaceNotFound, "spec.interfaces is empty: name at least one interface")
	}
	return nil
}

var directions = map[v1.Direction]capture.Direction{
	v1.DirectionReceive:  capture.Receive,
	v1.DirectionTransmit: capture.Transmit,
	v1.DirectionBoth:     capture.Both,
}

// interfacesExist finds the taps: each selector must match at least one interface.
func interfacesExist(d *ringDraft) *problem {
	tapped := map[int]bool{}
	for i, selector := range d.spec.Interfaces {
		matches, err := matchInterfaces(selector.Name, d.facts.Interfaces)
		if err != nil {
			return problemf(v1.ReasonInterfaceNotFound, "spec.interfaces[%d].name %q is not a name or a glob: %v", i, selector.Name, err)
		}
		if len(matches) == 0 {
			return problemf(v1.ReasonInterfaceNotFound, "spec.interfaces[%d].name %q matches none of this node's interfaces: %s",
				i, selector.Name, listInterfaces(d.facts.Interfaces))
		}
		for _, match := range matches {
			if !tapped[match.Index] {
				tapped[match.Index] = true
				d.taps = append(d.taps, capture.Tap{Interface: match.Name, Index: match.Index, Direction: directions[d.spec.Direction]})
			}
		}
	}
	if len(d.taps) > maxTaps {
		return problemf(v1.ReasonUnsupported, "spec.interfaces matches %d interfaces of this node; a ring taps at most %d", len(d.taps), maxTaps)
	}
	slices.SortFunc(d.taps, func(x, y capture.Tap) int { return x.Index - y.Index })
	return nil
}

func matchInterfaces(glob string, interfaces []Interface) ([]Interface, error) {
	var matches []Interface
	for _, candidate := range interfaces {
		ok, err := path.Match(glob, candidate.Name)
		if err != nil {
			return nil, err
		}
		if ok {
			matches = append(matches, candidate)
		}
	}
	return matches, nil
}

// listInterfaces names what is there, cut so that the message stays readable on nodes with hundreds of veths.
func listInterfaces(interfaces []Interface) string {
	const most = 24
	var names []string
	for _, i := range interfaces {
		names = append(names, i.Name)
	}
	slices.Sort(names)
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", ..."
	}
	return strings.Join(names, ", ")
}

// filterCompiles makes the ring's program.
func filterCompiles(d *ringDraft) *problem {
	if d.spec.Filter == nil || strings.TrimSpace(d.spec.Filter.BPF) == "" {
		return nil
	}
	program, err := d.facts.Compile(d.spec.Filter.BPF, uint32(d.spec.SnapLength))
	switch {
	case errors.Is(err, filter.ErrCompilerUnavailable):
		return problemf(v1.ReasonEngineError, "spec.filter.bpf could not be compiled: %v", err)
	case errors.Is(err, capture.ErrUnsupported):
		return problemf(v1.ReasonUnsupported, "spec.filter.bpf: %v", err)
	case err != nil:
		return problemf(v1.ReasonInvalidFilter, "spec.filter.bpf does not compile: %v", err)
	case len(program) > filter.MaxInstructions:
		return problemf(v1.ReasonInvalidFilter, "spec.filter.bpf compiles to %d instructions; at most %d can be loaded", len(program), filter.MaxInstructions)
	}
	d.filter = program
	return nil
}

func (d *ringDraft) planned() plannedRing {
	return plannedRing{
		engine: d.engine, engineReason: d.engineReason,
		ring: capture.Ring{
			Name: d.name, Taps: d.taps, Filter: d.filter,
			SnapLen: uint32(d.spec.SnapLength), Promiscuous: d.promiscuous(),
		},
		nic: d.nic(),
	}
}

func (d *ringDraft) promiscuous() bool {
	return d.spec.NIC.Promiscuous == nil || *d.spec.NIC.Promiscuous
}

// nic is how the ring wishes its interfaces to be set. Promiscuous for the eBPF engine only: the module sees to it itself,
// by a reference that goes with the ring.
func (d *ringDraft) nic() NICSettings {
	return nicWishes(d.name, d.spec.NIC, d.promiscuous() && d.engine == v1.EngineEBPF)
}
