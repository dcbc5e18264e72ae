// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"slices"
	"strings"

	"golang.org/x/net/bpf"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/ringcap/ringcap/filter"
	"github.com/ringcap/ringcap/node-agent/capture"
	"github.com/ringcap/ringcap/operator/api/sizing"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// The limits of the data path, from the UAPI header.
const (
	maxTaps    = 64
	maxOutputs = 8
	maxQueues  = 256
)

// ringDraft is a ring during the checks, which fill in the lower half.
type ringDraft struct {
	name    string
	uid     string
	version int32
	// key is the TryKey of a ring that may have to be tried; empty for others.
	key string
	// unsupported is the problem that the engine reported for this spec.
	unsupported *problem
	spec        v1.CaptureRingSpec
	facts       Facts
	auto        v1.Engine
	autoReason  string
	// queueCounts is the number of queues that each Cluster and ring with queues is to have on the node.
	queueCounts map[string]int32

	engine       v1.Engine
	engineReason string
	taps         []capture.Tap
	filter       []bpf.RawInstruction
	vlans        []uint16
	rules        capture.RuleSet
	plugins      []capture.Plugin
	// mode is the effective mode. modeReason is the reason if it is not the spec's.
	mode       int32
	modeReason string
	drivers    map[string]DesiredDriver
	// pods by the name of their tapped interface, and the selected ones that are not tapped.
	pods     map[string]string
	untapped []untapped
	// away holds tapped interfaces that are not in the node's network namespace, by name.
	away map[string]bool
	// incomplete is why a ring in line lacks some of its pairs, or should not have one that it has. pairs are those
	// that it gets, as a-b. others holds the interfaces of all pairs, with the ring that gets them.
	incomplete *problem
	pairs      []string
	others     map[string]string
}

var ringChecks = []check[ringDraft]{
	func(d *ringDraft) *problem { return versionIsKnown(d.version) },
	engineIsAvailable,
	engineServesRing,
	ringSettingsInRange,
	inlineInRange,
	podsCanBeTapped,
	poolsCanBeTapped,
	interfacesExist,
	filterCompiles,
	rulesAreSound,
	func(d *ringDraft) *problem { return d.unsupported },
	notRefused,
	devicesGoOn,
	driversAreAware,
	stackKeepsPackets,
}

// ringSettingsInRange repeats the CRD's bounds, because manifests of a standalone node pass no API server.
func ringSettingsInRange(d *ringDraft) *problem {
	if d.spec.SnapLength < 0 || d.spec.SnapLength > sizing.MaxSnapLength {
		return problemf(v1.ReasonUnsupported, "spec.snapLength %d: must be between 1 and %d", d.spec.SnapLength, sizing.MaxSnapLength)
	}
	if q := d.spec.Queues; q != nil && *q != intstr.FromString(v1.QueuesPerRxQueue) && (q.Type == intstr.String || q.IntVal < 1 || q.IntVal > maxQueues) {
		return problemf(v1.ReasonUnsupported, "spec.queues %s: must be between 1 and %d, or PerRxQueue", q, maxQueues)
	}
	if _, ok := directions[d.spec.Direction]; !ok {
		return problemf(v1.ReasonUnsupported, "spec.direction %q: must be Receive, Transmit or Both", d.spec.Direction)
	}
	if s := d.spec.Sampling; s != nil && s.OneIn < 1 {
		return problemf(v1.ReasonUnsupported, "spec.sampling.oneIn %d: must be at least 1", s.OneIn)
	}
	if len(d.spec.Interfaces) == 0 && d.spec.Inline == nil {
		return problemf(v1.ReasonInterfaceNotFound, "spec.interfaces is empty: name at least one interface")
	}
	return nil
}

var directions = map[v1.Direction]capture.Direction{
	v1.DirectionReceive:  capture.Receive,
	v1.DirectionTransmit: capture.Transmit,
	v1.DirectionBoth:     capture.Both,
}

// interfacesExist finds the taps. Each selector, except those of pods, must match at least one interface.
func interfacesExist(d *ringDraft) *problem {
	if d.spec.Inline != nil {
		return d.tapPairs()
	}
	var absent *problem
	found := false
	for i, selector := range d.spec.Interfaces {
		queues, err := parseRxQueues(selector.RxQueues)
		if err != nil {
			return problemf(v1.ReasonUnsupported, "spec.interfaces[%d].rxQueues: %v", i, err)
		}
		find := d.tapInterfaces
		switch {
		case selector.PodSelector != nil:
			find = d.tapPods
		case selector.ResourceName != "":
			find = d.tapPool
		}
		problem := find(i, selector, queues)
		switch {
		case problem == nil:
			found = true
		case problem.reason != v1.ReasonInterfaceAbsent:
			return problem
		case absent == nil:
			absent = problem
		}
	}
	if !found {
		return absent
	}
	slices.SortFunc(d.taps, func(x, y capture.Tap) int { return x.Index - y.Index })
	d.cutPods()
	if len(d.taps) > maxTaps {
		return problemf(v1.ReasonUnsupported, "spec.interfaces matches %d interfaces of this node; a ring taps at most %d: select fewer, and the others in a second ring", len(d.taps), maxTaps)
	}
	return nil
}

// missing returns the reason for a selector that matches nothing. A user who names an interface and its nodes wants
// to know. A machine without Kubernetes is the only node.
func (d *ringDraft) missing(s v1.InterfaceSelector) string {
	return d.missingNamed(s.WhenMissing, s.Name != "" && !strings.ContainsAny(s.Name, "*?"))
}

func (d *ringDraft) missingNamed(when v1.WhenMissing, named bool) string {
	report := d.spec.NodeSelector != nil && named
	if when == v1.WhenMissingReport || when == "" && (report || d.facts.NoPods) {
		return v1.ReasonInterfaceNotFound
	}
	return v1.ReasonInterfaceAbsent
}

// tapInterfaces finds the taps of a selector by name, driver or PCI address.
func (d *ringDraft) tapInterfaces(i int, selector v1.InterfaceSelector, queues []uint16) *problem {
	matches, err := matchInterfaces(selector, d.facts.Interfaces)
	if err != nil {
		return problemf(v1.ReasonInterfaceNotFound, "spec.interfaces[%d].%v", i, err)
	}
	if len(matches) == 0 {
		return problemf(d.missing(selector), "spec.interfaces[%d].%s matches none of this node's interfaces: %s",
			i, describeSelector(selector), listInterfaces(d.facts.Interfaces))
	}
	for _, match := range matches {
		if problem := d.tap(i, match, queues); problem != nil {
			return problem
		}
	}
	return nil
}

// tap adds an interface that selector i matches. An interface that two selectors match is tapped once, with the RX
// queues of both.
func (d *ringDraft) tap(i int, match Interface, queues []uint16) *problem {
	if len(queues) > 0 && int(queues[len(queues)-1]) >= max(match.RxQueues, 1) {
		return problemf(v1.ReasonUnsupported, "spec.interfaces[%d].rxQueues %s: %s has %d RX queues, from 0 on",
			i, d.spec.Interfaces[i].RxQueues, match.Name, max(match.RxQueues, 1))
	}
	there := slices.IndexFunc(d.taps, func(t capture.Tap) bool { return t.Index == match.Index })
	if there < 0 {
		d.taps = append(d.taps, capture.Tap{
			Interface: match.Name, Index: match.Index, Direction: directions[d.spec.Direction], RxQueues: queues,
		})
		return nil
	}
	tap := &d.taps[there]
	if len(queues) == 0 || len(tap.RxQueues) == 0 {
		tap.RxQueues = nil // all
		return nil
	}
	both := slices.Concat(tap.RxQueues, queues)
	slices.Sort(both)
	tap.RxQueues = slices.Compact(both)
	return nil
}

func matchInterfaces(s v1.InterfaceSelector, interfaces []Interface) ([]Interface, error) {
	var matches []Interface
	for _, candidate := range interfaces {
		ok, err := selects(s, candidate)
		if err != nil {
			return nil, err
		}
		if ok {
			matches = append(matches, candidate)
		}
	}
	return matches, nil
}

// listInterfaces lists the names of the interfaces. It cuts the list so that the message stays readable on nodes with
// hundreds of veths.
func listInterfaces(interfaces []Interface) string {
	const limit = 24
	var names []string
	for _, i := range interfaces {
		names = append(names, i.Name)
	}
	slices.Sort(names)
	if len(names) > limit {
		return strings.Join(names[:limit], ", ") + ", ..."
	}
	return strings.Join(names, ", ")
}

// filterCompiles compiles the ring's filter.
func filterCompiles(d *ringDraft) *problem {
	if d.spec.Filter == nil || strings.TrimSpace(d.spec.Filter.BPF) == "" {
		return nil
	}
	program, err := d.facts.Compile(d.spec.Filter.BPF, uint32(sizing.SnapLength(d.spec.SnapLength)))
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
		engine: d.engine, engineReason: d.engineReason, slotBytes: sizing.SlotBytes(d.spec.SnapLength),
		ring: capture.Ring{
			Name: d.name, Taps: d.taps, Filter: d.filter,
			SnapLen: uint32(sizing.SnapLength(d.spec.SnapLength)), Promiscuous: d.promiscuous(),
			XDP: xdpModes[d.spec.XDP], Mode: capture.TransparentMode(d.mode),
			Quick: d.spec.QuickMode, VLANs: d.vlans, Sampling: d.sampling(), Rules: d.rules, Plugins: d.plugins,
			Defragment: d.spec.Defragment, HardwareTime: d.spec.Timestamps == v1.TimestampsHardware,
			Addressed: d.spec.Inline != nil && d.spec.NodeTraffic == v1.NodeTrafficAllow,
		},
		nic: d.nic(),
	}
}

var xdpModes = map[v1.XDP]capture.XDPMode{v1.XDPNative: capture.XDPNative, v1.XDPGenericAllowed: capture.XDPGenericAllowed}

func (d *ringDraft) sampling() capture.Sampling {
	if d.spec.Sampling == nil {
		return capture.Sampling{}
	}
	return capture.Sampling{OneIn: uint32(d.spec.Sampling.OneIn), ByFlow: d.spec.Sampling.By == v1.SampleByFlow}
}

func (d *ringDraft) promiscuous() bool {
	return d.spec.NIC.Promiscuous == nil || *d.spec.NIC.Promiscuous
}

// nic returns the settings that the ring asks for. It includes promiscuous mode for the eBPF engine only. The module
// sets this itself, by a reference that it drops with the ring.
func (d *ringDraft) nic() NICSettings {
	return nicSettings(d.name, d.spec.NIC, d.promiscuous() && d.engine == v1.EngineEBPF)
}
