// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Advice is a problem of a filter that does not prevent the capture.
type Advice struct{ Reason, Message string }

// Advise finds rules and patterns that can never decide on a packet, because no packet matches them or because others come
// first. It may miss some, but never reports a rule that can decide. It returns the zero Advice if it finds none. Its work grows
// with the square of the number of rules: 4,096 take a fraction of a second.
func Advise(f *v1.Filter) Advice {
	if f == nil {
		return Advice{}
	}
	entries := read(f.Rules)
	if found := neverMatching(entries); len(found) > 0 {
		return Advice{v1.ReasonNeverMatches, list(found)}
	}
	if found := append(shadowedRules(entries), shadowedPatterns(f.Payload)...); len(found) > 0 {
		return Advice{v1.ReasonShadowed, list(found)}
	}
	return Advice{}
}

// entry is a rule with its position.
type entry struct {
	Match
	priority int32
	// lasting is set if the rule has no idleTimeout.
	lasting bool
	label   string
}

// read returns the valid rules, in the order in which they decide.
func read(rules []v1.Rule) []entry {
	var entries []entry
	for i := range rules {
		match, err := Parse(rules[i].Match)
		if err != nil {
			continue // refused elsewhere
		}
		entries = append(entries, entry{match, rules[i].Priority, rules[i].IdleTimeout == nil, label("spec.filter.rules", i, rules[i].Name)})
	}
	slices.SortStableFunc(entries, func(a, b entry) int { return -cmp.Compare(a.priority, b.priority) })
	return entries
}

func label(list string, i int, name string) string {
	if name == "" {
		return fmt.Sprintf("%s[%d]", list, i)
	}
	return fmt.Sprintf("%s[%d] (%s)", list, i, name)
}

func list(found []string) string {
	const maxListed = 5
	if more := len(found) - maxListed; more > 0 {
		found = append(found[:maxListed:maxListed], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(found, "; ")
}

func neverMatching(entries []entry) []string {
	var found []string
	for _, e := range entries {
		if why := e.contradiction(); why != "" {
			found = append(found, fmt.Sprintf("%s matches no packet: %s", e.label, why))
		}
	}
	return found
}

const etherIPv4, etherIPv6 = 0x0800, 0x86dd

// contradiction returns why no packet can match, empty if one can.
func (m *Match) contradiction() string {
	isIP := m.EtherType == nil || *m.EtherType == etherIPv4 || *m.EtherType == etherIPv6
	hasPorts := m.SourcePorts != nil || m.DestinationPorts != nil
	switch {
	case !isIP && (m.Protocol != nil || hasPorts || m.TCPFlags != nil || m.Source.IsValid() || m.Destination.IsValid()):
		return fmt.Sprintf("etherType %d is not IP, which addresses, protocol and ports belong to", *m.EtherType)
	case m.EtherType != nil && otherFamily(*m.EtherType, m.Source, m.Destination):
		return fmt.Sprintf("etherType %d is not of the addresses' IP version", *m.EtherType)
	case hasPorts && m.Protocol != nil && slices.Contains([]uint8{ICMP, ICMPv6, GRE}, *m.Protocol):
		return fmt.Sprintf("protocol %d has no ports", *m.Protocol)
	case m.TCPFlags != nil && m.Protocol != nil && *m.Protocol != TCP:
		return fmt.Sprintf("protocol %d has no TCP flags", *m.Protocol)
	case m.VLAN != nil && *m.VLAN == 0 && m.InnerVLAN != nil && *m.InnerVLAN != 0:
		return "a packet without a VLAN tag (vlan 0) has no second one"
	}
	return ""
}

func otherFamily(etherType uint16, prefixes ...netip.Prefix) bool {
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool {
		return p.IsValid() && p.Addr().Is4() != (etherType == etherIPv4)
	})
}

func shadowedRules(entries []entry) []string {
	var found []string
	for i := range entries {
		for j := range i {
			if entries[j].lasting && entries[j].Covers(&entries[i].Match) {
				found = append(found, fmt.Sprintf("%s never decides: %s matches all that it matches, and comes before it",
					entries[i].label, entries[j].label))
				break
			}
		}
	}
	return found
}

// Covers reports whether m matches every packet that other matches. It may return false if that is so, but never true if it is
// not.
func (m *Match) Covers(other *Match) bool {
	switch swapped := other.swapped(); {
	case m.Both:
		return m.includes(other) || m.includes(&swapped)
	case other.Both:
		return m.includes(other) && m.includes(&swapped)
	}
	return m.includes(other)
}

// swapped returns the match with source and destination exchanged.
func (m *Match) swapped() Match {
	s := *m
	s.SourceMAC, s.DestinationMAC = m.DestinationMAC, m.SourceMAC
	s.Source, s.Destination = m.Destination, m.Source
	s.SourcePorts, s.DestinationPorts = m.DestinationPorts, m.SourcePorts
	s.InnerSource, s.InnerDestination = m.InnerDestination, m.InnerSource
	return s
}

// includes compares field by field: each requirement of m is a requirement of other, too.
func (m *Match) includes(other *Match) bool {
	return includesPrefix(m.Source, other.Source) && includesPrefix(m.Destination, other.Destination) &&
		includesPorts(m.SourcePorts, other.SourcePorts) && includesPorts(m.DestinationPorts, other.DestinationPorts) &&
		sameOrAny(m.Protocol, other.Protocol) && sameOrAny(m.EtherType, other.EtherType) &&
		sameOrAny(m.VLAN, other.VLAN) && sameOrAny(m.InnerVLAN, other.InnerVLAN) &&
		sameOrAny(m.SourceMAC, other.SourceMAC) && sameOrAny(m.DestinationMAC, other.DestinationMAC) &&
		sameOrAny(m.TunnelID, other.TunnelID) && includesFlags(m.TCPFlags, other.TCPFlags) &&
		includesPrefix(m.InnerSource, other.InnerSource) && includesPrefix(m.InnerDestination, other.InnerDestination)
}

func sameOrAny[T comparable](a, b *T) bool { return a == nil || b != nil && *a == *b }

func includesPrefix(a, b netip.Prefix) bool {
	return !a.IsValid() || b.IsValid() && a.Bits() <= b.Bits() && a.Contains(b.Addr())
}

func includesPorts(a, b *Ports) bool {
	return a == nil || b != nil && a.First <= b.First && b.Last <= a.Last
}

func includesFlags(a, b *TCPFlags) bool {
	return a == nil || b != nil && a.Mask&^b.Mask == 0 && b.Flags&a.Mask == a.Flags
}

// shadowedPatterns finds duplicate patterns: the first of equal ones counts.
func shadowedPatterns(patterns []v1.PayloadPattern) []string {
	var found []string
	first := map[v1.PayloadPattern]int{}
	for i, p := range patterns {
		name := p.Name
		p.Name, p.Hex = "", strings.ToLower(p.Hex)
		if j, twice := first[p]; twice {
			found = append(found, fmt.Sprintf("%s never decides: it is the same as %s",
				label("spec.filter.payload", i, name), label("spec.filter.payload", j, patterns[j].Name)))
		} else {
			first[p] = i
		}
	}
	return found
}
