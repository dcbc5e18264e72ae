// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"net/netip"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// key holds the values of a packet that rules match: the words of struct rc_key of kmod/classify/rule.h.
type key [13]uint64

// match is struct rc_match: packets match when key & mask == value.
type match struct{ mask, value key }

// The words of a key.
const (
	wordLink       = 0
	wordPorts      = 1
	wordSource     = 2
	wordTarget     = 4
	wordSourceMAC  = 6
	wordTargetMAC  = 7
	wordInner      = 8
	wordInnerEnd   = 10
	wordTunnel     = 12
	shiftSource    = 48 // in wordPorts
	shiftTarget    = 32
	shiftProtocol  = 24
	shiftTCPFlags  = 16
	shiftEtherType = 48 // in wordLink
	shiftVLAN      = 32
	shiftInnerVLAN = 16
)

// hasAll has every RC_HAS_* bit of the first word.
const hasAll = hasInnerIPv6<<1 - 1

func (m *match) put(word int, mask, value uint64) {
	m.mask[word] |= mask
	m.value[word] |= value & mask
}

func (m *match) has(what uint64) { m.put(wordLink, what, what) }

// matchesOf returns the matches of a valid rule. A port range, or both directions, needs more than one.
func matchesOf(rule capture.WildcardRule) []match {
	var matches []match
	for _, source := range prefixesOf(rule.Match.SourcePorts) {
		for _, destination := range prefixesOf(rule.Match.DestinationPorts) {
			there := matchOf(rule.Match, source, destination, false)
			matches = append(matches, there)
			if back := matchOf(rule.Match, source, destination, true); rule.Both && back != there {
				matches = append(matches, back)
			}
		}
	}
	return matches
}

// portPrefix matches ports with port & mask == value. Rules that do not match the port have a mask of 0.
type portPrefix struct{ value, mask uint16 }

// prefixesOf returns the fewest prefixes that together make up the range. Each is the largest aligned block that
// begins where the last one ended.
func prefixesOf(ports *capture.PortRange) []portPrefix {
	if ports == nil {
		return []portPrefix{{}}
	}
	var prefixes []portPrefix
	for at, end := uint32(ports.First), uint32(ports.Last)+1; at < end; {
		size := uint32(1)
		for at&size == 0 && size < 1<<16 && at+2*size <= end {
			size *= 2
		}
		prefixes = append(prefixes, portPrefix{value: uint16(at), mask: uint16(^(size - 1))})
		at += size
	}
	return prefixes
}

func matchOf(asked capture.Match, source, destination portPrefix, reverse bool) match {
	var m match
	way := func(there, back int) int {
		if reverse {
			return back
		}
		return there
	}
	m.putLink(asked, way)
	m.putAddress(way(wordSource, wordTarget), asked.Source, hasIPv4, hasIPv6)
	m.putAddress(way(wordTarget, wordSource), asked.Destination, hasIPv4, hasIPv6)
	m.putAddress(way(wordInner, wordInnerEnd), asked.InnerSource, hasInnerIPv4, hasInnerIPv6)
	m.putAddress(way(wordInnerEnd, wordInner), asked.InnerDestination, hasInnerIPv4, hasInnerIPv6)
	if asked.Protocol != nil {
		m.has(hasIP)
		m.put(wordPorts, 0xff<<shiftProtocol, uint64(*asked.Protocol)<<shiftProtocol)
	}
	if asked.SourcePorts != nil {
		m.putPort(source, way(shiftSource, shiftTarget))
	}
	if asked.DestinationPorts != nil {
		m.putPort(destination, way(shiftTarget, shiftSource))
	}
	if asked.TCPFlags != nil {
		m.has(hasTCP)
		m.put(wordPorts, uint64(asked.TCPFlags.Mask)<<shiftTCPFlags, uint64(asked.TCPFlags.Flags)<<shiftTCPFlags)
	}
	if asked.TunnelID != nil {
		m.has(hasTunnelID)
		m.put(wordTunnel, 0xffffffff, uint64(*asked.TunnelID))
	}
	return m
}

func (m *match) putLink(asked capture.Match, way func(there, back int) int) {
	m.putMAC(way(wordSourceMAC, wordTargetMAC), asked.SourceMAC)
	m.putMAC(way(wordTargetMAC, wordSourceMAC), asked.DestinationMAC)
	for _, field := range []struct {
		value *uint16
		shift int
		mask  uint64
	}{
		{asked.EtherType, shiftEtherType, 0xffff}, {asked.VLAN, shiftVLAN, 0xfff}, {asked.InnerVLAN, shiftInnerVLAN, 0xfff},
	} {
		if field.value != nil {
			m.put(wordLink, field.mask<<field.shift, uint64(*field.value)<<field.shift)
		}
	}
}

func (m *match) putMAC(word int, address *[6]byte) {
	if address == nil {
		return
	}
	m.has(hasMACs)
	m.put(word, 1<<48-1, binary.BigEndian.Uint64(append([]byte{0, 0}, address[:]...)))
}

// putAddress puts a prefix into two words. An IPv4 prefix takes the first half of the first word.
func (m *match) putAddress(word int, prefix netip.Prefix, ipv4, ipv6 uint64) {
	if !prefix.IsValid() {
		return
	}
	high, low := addressWords(prefix.Addr())
	if prefix.Addr().Is4() {
		m.has(ipv4)
	} else {
		m.has(ipv6)
	}
	m.put(word, firstBits(prefix.Bits()), high)
	m.put(word+1, firstBits(prefix.Bits()-64), low)
}

func firstBits(n int) uint64 {
	if n <= 0 {
		return 0
	}
	return ^uint64(0) << (64 - min(n, 64))
}

// addressWords returns the halves of an address. An IPv4 address is followed by zeroes.
func addressWords(address netip.Addr) (high, low uint64) {
	if address.Is4() {
		a := address.As4()
		return uint64(binary.BigEndian.Uint32(a[:])) << 32, 0
	}
	a := address.As16()
	return binary.BigEndian.Uint64(a[:8]), binary.BigEndian.Uint64(a[8:])
}

func (m *match) putPort(prefix portPrefix, shift int) {
	m.has(hasPorts)
	m.put(wordPorts, uint64(prefix.mask)<<shift, uint64(prefix.value)<<shift)
}

// exactKeyOf returns the key of a flow, which is the same in either direction: the smaller end comes first.
func exactKeyOf(rule capture.ExactRule) exactKey {
	first, second := rule.Source, rule.Destination
	if first.Compare(second) > 0 {
		first, second = second, first
	}
	var ipv6 uint64
	if first.Addr().Is6() {
		ipv6 = 1
	}
	w := [5]uint64{ipv6<<60 | uint64(rule.VLAN)<<40 | uint64(rule.Protocol)<<32 | uint64(first.Port())<<16 |
		uint64(second.Port())}
	firstHigh, firstLow := addressWords(first.Addr())
	secondHigh, secondLow := addressWords(second.Addr())
	if ipv6 == 0 {
		w[1] = firstHigh | secondHigh>>32
	} else {
		w[1], w[2], w[3], w[4] = firstHigh, firstLow, secondHigh, secondLow
	}
	return exactKey{W: w}
}

// validateRules checks that a rule set is valid.
func validateRules(set capture.RuleSet) error {
	if set.Default == capture.ActionLearn || set.Default == capture.ActionQueue || set.Default > capture.ActionReflect {
		return fmt.Errorf("default action %d: where no rule matches packets can be passed, dropped or reflected", set.Default)
	}
	if err := validateTarget(set.Default, set.DefaultTarget); err != nil {
		return fmt.Errorf("default %w", err)
	}
	for i, rule := range set.Exact {
		if err := validateExact(rule); err != nil {
			return fmt.Errorf("exact rule %d: %w", i, err)
		}
	}
	ids := map[uint32]bool{}
	for _, rule := range set.Wildcard {
		if rule.ID == 0 || ids[rule.ID] {
			return fmt.Errorf("wildcard rule %d: an id is unique and not 0", rule.ID)
		}
		ids[rule.ID] = true
		if err := validateMatch(rule); err != nil {
			return fmt.Errorf("wildcard rule %d: %w", rule.ID, err)
		}
	}
	for i, pattern := range set.Patterns {
		if err := validatePattern(pattern); err != nil {
			return fmt.Errorf("payload pattern %d: %w", i, err)
		}
	}
	if i := capture.GroupPatterns(set.Patterns).Crowded(); i >= 0 {
		return fmt.Errorf("payload pattern %d: more than %d may have to be compared where it ends: use fewer of the same text, or of "+
			"the same end", i, capture.MaxPatternEnds)
	}
	return nil
}

func validateExact(rule capture.ExactRule) error {
	switch {
	case !rule.Source.Addr().IsValid() || rule.Source.Addr().Is4() != rule.Destination.Addr().Is4():
		return fmt.Errorf("source %s and destination %s: must be addresses of one family", rule.Source, rule.Destination)
	case rule.VLAN > 4095:
		return fmt.Errorf("VLAN id %d: must be 0 (untagged) to 4095", rule.VLAN)
	case rule.Source.Port()|rule.Destination.Port() != 0 && !hasPortsProtocol(rule.Protocol):
		return fmt.Errorf("protocol %d: only TCP, UDP and SCTP have ports", rule.Protocol)
	case rule.Action == capture.ActionLearn || rule.Action > capture.ActionReflect:
		return fmt.Errorf("action %d: must be pass, drop, queue or reflect", rule.Action)
	}
	return validateTarget(rule.Action, rule.Target)
}

func validateTarget(action capture.Action, target capture.Target) error {
	if needs := action == capture.ActionQueue || action == capture.ActionReflect; needs != (target != capture.Target{}) {
		return fmt.Errorf("action %d with target %+v: queue and reflect need one, others have none", action, target)
	}
	return nil
}

func hasPortsProtocol(protocol uint8) bool { return protocol == 6 || protocol == 17 || protocol == 132 }

func validateMatch(rule capture.WildcardRule) error {
	m := rule.Match
	for _, pair := range [][2]netip.Prefix{{m.Source, m.Destination}, {m.InnerSource, m.InnerDestination}} {
		if pair[0].IsValid() && pair[1].IsValid() && pair[0].Addr().Is4() != pair[1].Addr().Is4() {
			return fmt.Errorf("source %s and destination %s: must be of one family", pair[0], pair[1])
		}
	}
	for _, ports := range []*capture.PortRange{m.SourcePorts, m.DestinationPorts} {
		if ports != nil && ports.First > ports.Last {
			return fmt.Errorf("ports %d to %d: a range begins with the least", ports.First, ports.Last)
		}
	}
	for _, id := range []*uint16{m.VLAN, m.InnerVLAN} {
		if id != nil && *id > 4095 {
			return fmt.Errorf("VLAN id %d: must be 0 (no tag) to 4095", *id)
		}
	}
	switch {
	case m.TCPFlags != nil && m.TCPFlags.Flags&^m.TCPFlags.Mask != 0:
		return fmt.Errorf("TCP flags %#x have one that the mask %#x has not: that never matches", m.TCPFlags.Flags, m.TCPFlags.Mask)
	case rule.Action > capture.ActionReflect:
		return fmt.Errorf("action %d is unknown", rule.Action)
	}
	return validateTarget(rule.Action, rule.Target)
}

// hasOf returns the RC_HAS_* bits that a mask asks for.
func hasOf(mask key) uint32 { return uint32(mask[wordLink] & hasAll) }

// matchesInner reports whether a mask matches headers inside of tunnels.
func matchesInner(mask key) bool {
	return bits.OnesCount64(mask[wordLink]&(hasTunnelID|hasInnerIPv4|hasInnerIPv6)) > 0
}
