// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"time"

	"github.com/ringcap/ringcap/node-agent/capture"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// A ring in line stands between pairs of interfaces. The other pairs of a ring go on if one cannot be made: without its
// ring, a pair carries nothing. For the same reason, a pair stays that is in the data path already and would be refused
// now, because somebody gave an interface an address, for example. The ring's status says so.

const (
	maxPairs     = 32
	maxHungAfter = time.Minute
	maxSlots     = 4096
)

// inlineInRange repeats the CRD's rules, because manifests of a standalone node pass no API server.
func inlineInRange(d *ringDraft) *problem {
	s, in := &d.spec, d.spec.Inline
	good, changed := goodRing(d.facts.Good, v1.NodeRing{Name: d.name, UID: d.uid})
	if changed && (good.Spec.Inline == nil) != (in == nil) {
		return problemf(v1.ReasonUnsupported, "spec.inline: a ring is in line or not from the beginning, because its queues are: delete it, and create it again")
	}
	if in == nil {
		return nil
	}
	for _, rule := range []struct {
		broken  bool
		message string
	}{
		{len(s.Interfaces) > 0, "give spec.interfaces, or spec.inline for a ring in line: one of the two"},
		{v1.QueueCount(s.Queues) == 0, "the consumers of the ring's own queues decide on the packets: set spec.queues to their number"},
		{s.Direction != v1.DirectionReceive, "it takes what both interfaces of a pair receive: leave spec.direction out"},
		{s.Mode() != v1.TransparentModeStack, "it works with any driver, in mode 0, and the stack gets none of the packets: leave spec.transparentMode out"},
		{s.Sampling != nil, "consumers decide on each packet that the filter passes: leave spec.sampling out"},
		{s.Defragment, "it sends fragments on as they are: leave spec.defragment out"},
		{s.Balance == v1.BalanceRoundRobin || s.Balance == v1.BalanceBothEnds,
			"it keeps the order of a flow, so a flow stays in its queue: choose another spec.balance than RoundRobin and BothEnds"},
		{s.WhenFull != v1.QueuePolicyDrop || s.WhenUnattended != v1.QueuePolicyDrop,
			"set spec.inline.whenFull and spec.inline.whenUnattended, and leave spec.whenFull and spec.whenUnattended out"},
		{s.Slots > maxSlots, "a queue has at most 4Mi of memory: set spec.slots to 4096 or less"},
		{!d.promiscuous(), "it takes all packets, so both interfaces of a pair are promiscuous: leave spec.nic.promiscuous out"},
		{len(in.Pairs) < 1 || len(in.Pairs) > maxPairs, "give 1 to 32 pairs"},
		{!pairsAreSound(in.Pairs), "each pair has two different interfaces, and each interface is in one pair"},
		{!policyIsKnown(in.WhenUnattended) || !policyIsKnown(in.WhenFull) || !policyIsKnown(in.WhenHung),
			"whenUnattended, whenFull and whenHung are Bypass or Block"},
		{in.HungAfter == nil || in.HungAfter.Duration < time.Millisecond || in.HungAfter.Duration > maxHungAfter,
			"hungAfter is between 1ms and 1m"},
	} {
		if rule.broken {
			return problemf(v1.ReasonUnsupported, "spec.inline: %s", rule.message)
		}
	}
	return nil
}

func pairsAreSound(pairs []v1.InterfacePair) bool {
	seen := map[string]bool{}
	for _, pair := range pairs {
		if len(pair.Interfaces) != 2 {
			return false
		}
		for _, name := range pair.Interfaces {
			if name == "" || seen[name] {
				return false
			}
			seen[name] = true
		}
	}
	return true
}

func policyIsKnown(policy v1.InlinePolicy) bool {
	return policy == v1.InlineBypass || policy == v1.InlineBlock
}

// inPairs returns which ring gets an interface that several rings have in a pair: the one that has it already, else the
// first of the spec.
func (f *Facts) inPairs(spec v1.NodeCaptureSpec) map[string]string {
	rings := map[string]string{}
	for _, running := range []bool{true, false} {
		for _, ring := range spec.Rings {
			if ring.Spec.Inline == nil {
				continue
			}
			for _, pair := range ring.Spec.Inline.Pairs {
				for _, name := range pair.Interfaces {
					if _, taken := rings[name]; !taken && (!running || f.hasInPair(ring.Name, name)) {
						rings[name] = ring.Name
					}
				}
			}
		}
	}
	return rings
}

// hasInPair reports whether a ring has an interface in a pair now.
func (f *Facts) hasInPair(ring, name string) bool {
	iface, there := f.named(name)
	return there && slices.ContainsFunc(f.Taps[ring], func(t capture.Tap) bool { return t.Index == iface.Index && t.Peer != 0 })
}

// tapPairs finds the taps of a ring in line.
func (d *ringDraft) tapPairs() *problem {
	var first *problem
	for i, pair := range d.spec.Inline.Pairs {
		problem := d.tapPair(i, pair)
		if problem != nil && (first == nil || first.reason == v1.ReasonInterfaceAbsent) {
			first = problem
		}
	}
	if len(d.taps) == 0 {
		return first
	}
	slices.SortFunc(d.taps, func(x, y capture.Tap) int { return x.Index - y.Index })
	if first != nil && first.reason != v1.ReasonInterfaceAbsent {
		d.incomplete = first
	}
	return nil
}

// tapPair adds the taps of a pair, and returns what is wrong with it.
func (d *ringDraft) tapPair(i int, pair v1.InterfacePair) *problem {
	a, hasA := d.facts.named(pair.Interfaces[0])
	b, hasB := d.facts.named(pair.Interfaces[1])
	switch {
	case !hasA && !hasB:
		return problemf(d.missingNamed(pair.WhenMissing, true), "spec.inline.pairs[%d]: this node has neither %s nor %s: %s",
			i, pair.Interfaces[0], pair.Interfaces[1], listInterfaces(d.facts.Interfaces))
	case !hasA:
		return d.half(i, b.Name, pair.Interfaces[0])
	case !hasB:
		return d.half(i, a.Name, pair.Interfaces[1])
	}
	problem := d.unpairable(i, a, b)
	if problem == nil || d.runsPair(a, b) {
		d.pairs = append(d.pairs, a.Name+"-"+b.Name)
		d.taps = append(d.taps,
			capture.Tap{Interface: a.Name, Index: a.Index, Direction: capture.Receive, Peer: b.Index},
			capture.Tap{Interface: b.Name, Index: b.Index, Direction: capture.Receive, Peer: a.Index})
	}
	if problem != nil && d.runsPair(a, b) {
		problem.message += "; the pair goes on as it is until the ring is changed or deleted"
	}
	return problem
}

func (d *ringDraft) half(i int, there, missing string) *problem {
	return problemf(v1.ReasonInterfaceNotFound, "spec.inline.pairs[%d]: this node has %s and not %s, and a pair needs both: "+
		"until %s is there, %s belongs to the node's stack and nothing is sent on", i, there, missing, missing, there)
}

// unpairable returns why two interfaces cannot be a pair.
func (d *ringDraft) unpairable(i int, a, b Interface) *problem {
	if a.OtherEnd == b.Index || b.OtherEnd == a.Index {
		return problemf(v1.ReasonUnsupported, "spec.inline.pairs[%d]: what leaves by %s comes in by %s, so packets would go round for ever: "+
			"pair interfaces that are not connected", i, a.Name, b.Name)
	}
	for _, iface := range []Interface{a, b} {
		switch other := d.others[iface.Name]; {
		case other != "" && other != d.name:
			return problemf(v1.ReasonModeConflict, "spec.inline.pairs[%d]: ring %q has %s in a pair, and an interface is in one: "+
				"take it out of one of the two", i, other, iface.Name)
		case iface.Unpairable != "":
			return problemf(v1.ReasonUnsupported, "spec.inline.pairs[%d]: %s %s", i, iface.Name, iface.Unpairable)
		case iface.NodeTraffic != "" && d.spec.NodeTraffic != v1.NodeTrafficAllow:
			return problemf(v1.ReasonNodeTrafficRefused, "spec.inline.pairs[%d]: %s %s, and in a pair the node would not get its packets: "+
				"use another interface, or set spec.nodeTraffic to Allow if the node can do without it", i, iface.Name, iface.NodeTraffic)
		}
	}
	return nil
}

// runsPair reports whether the ring has this pair now.
func (d *ringDraft) runsPair(a, b Interface) bool {
	return slices.ContainsFunc(d.facts.Taps[d.name], func(t capture.Tap) bool { return t.Index == a.Index && t.Peer == b.Index })
}

// inlineOf returns the settings of the queues of a ring in line; nil for other queues.
func inlineOf(in *v1.Inline) *capture.Inline {
	if in == nil {
		return nil
	}
	settings := &capture.Inline{HungAfter: (in.HungAfter.Duration + time.Millisecond - 1).Truncate(time.Millisecond)}
	for event, policy := range []v1.InlinePolicy{in.WhenUnattended, in.WhenFull, in.WhenHung} {
		if policy == v1.InlineBypass {
			settings.Bypass = append(settings.Bypass, capture.Event(event))
		}
	}
	return settings
}
