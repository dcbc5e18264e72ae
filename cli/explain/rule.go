// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/ringcap/ringcap/operator/api/rules"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// answer is whether a rule matches.
type answer int

const (
	no answer = iota
	yes
	// perhaps: only the kernel's classifier knows it.
	perhaps
)

// rule is a rule of a filter that is ready to use.
type rule struct {
	v1.Rule
	name  string
	match rules.Match
}

// readRules returns the rules in the order in which they decide.
func readRules(specs []v1.Rule) ([]rule, error) {
	list := make([]rule, len(specs))
	for i, spec := range specs {
		match, err := rules.Parse(spec.Match)
		if err != nil {
			return nil, fmt.Errorf("filter.rules[%d].%w", i, err)
		}
		list[i] = rule{spec, fmt.Sprintf("rule %d", i+1), match}
		if spec.Name != "" {
			list[i].name = fmt.Sprintf("rule %q", spec.Name)
		}
	}
	slices.SortStableFunc(list, func(a, b rule) int { return int(b.Priority) - int(a.Priority) })
	return list, nil
}

// decide returns the rule that decides on a packet, nil for none. unknown is a rule before it that may match.
func decide(list []rule, h headers) (decided, unknown *rule) {
	for i := range list {
		switch matches(list[i].match, h) {
		case yes:
			return &list[i], unknown
		case perhaps:
			if unknown == nil {
				unknown = &list[i]
			}
		}
	}
	return nil, unknown
}

func matches(m rules.Match, h headers) answer {
	there := matchesOneWay(m, h)
	if !m.Both || there == yes {
		return there
	}
	if back := matchesOneWay(m, h.exchanged()); back != no {
		return back
	}
	return there
}

func matchesOneWay(m rules.Match, h headers) answer {
	if !matchesLink(m, h) || !matchesNetwork(m, h) {
		return no
	}
	if m.TunnelID != nil || m.InnerSource.IsValid() || m.InnerDestination.IsValid() {
		return perhaps
	}
	if m.SourcePorts == nil && m.DestinationPorts == nil && m.TCPFlags == nil {
		return yes
	}
	if h.unsure != "" {
		return perhaps
	}
	if matchesTransport(m, h) {
		return yes
	}
	return no
}

func matchesLink(m rules.Match, h headers) bool {
	return sameOrAny(m.SourceMAC, h.sourceMAC) && sameOrAny(m.DestinationMAC, h.destinationMAC) &&
		sameOrAny(m.EtherType, h.etherType) && sameOrAny(m.VLAN, h.vlan(0)) && sameOrAny(m.InnerVLAN, h.vlan(1))
}

func matchesNetwork(m rules.Match, h headers) bool {
	return within(m.Source, h.source) && within(m.Destination, h.destination) &&
		(m.Protocol == nil || int(*m.Protocol) == h.protocol)
}

func matchesTransport(m rules.Match, h headers) bool {
	if m.TCPFlags != nil && (h.protocol != rules.TCP || h.flags&m.TCPFlags.Mask != m.TCPFlags.Flags) {
		return false
	}
	return portIs(m.SourcePorts, h.ports, h.sourcePort) && portIs(m.DestinationPorts, h.ports, h.destinationPort)
}

func sameOrAny[T comparable](want *T, is T) bool { return want == nil || *want == is }

func within(want netip.Prefix, is netip.Addr) bool { return !want.IsValid() || want.Contains(is) }

func portIs(want *rules.Ports, there bool, is uint16) bool {
	return want == nil || there && is >= want.First && is <= want.Last
}
