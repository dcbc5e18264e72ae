// SPDX-License-Identifier: Apache-2.0

package kmod

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/mdlayher/genetlink"
	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// A rule set takes several messages to the module: BEGIN, ADDs of limited size, COMMIT. No rule applies before
// COMMIT, and all of them apply after it.

// batchBytes is the most that one message carries. An attribute ends at 64 KiB.
const batchBytes = 32 << 10

// putRules replaces a ring's whole rule set.
func putRules(c *client, ring capture.Ring) error {
	targets := ring.Rules.Targets()
	begin, err := encodeRulesBegin(ring, targets)
	if err != nil {
		return err
	}
	if err := c.do(cmdRulesBegin, begin); err != nil {
		return err
	}
	for _, encode := range []func(capture.Ring, []capture.Target) ([][]byte, error){encodeExacts, encodeRules, encodePatterns} {
		messages, err := encode(ring, targets)
		if err != nil {
			return err
		}
		for _, message := range messages {
			// Closing the socket discards the uncommitted set.
			if err := c.do(cmdRulesAdd, message); err != nil {
				return err
			}
		}
	}
	return c.named(cmdRulesCommit, ring.Name)
}

// rulesGeneration returns the mark of a rule set, 0 for none.
func rulesGeneration(rules capture.RuleSet) uint64 {
	if rules.Empty() {
		return 0
	}
	return generationOf(rules)
}

func encodeRulesBegin(ring capture.Ring, targets []capture.Target) ([]byte, error) {
	request := rulesBeginRequest{
		Name: &ring.Name, Generation: new(rulesGeneration(ring.Rules)), DefaultAction: new(uint32(ring.Rules.Default)),
	}
	for _, target := range targets {
		if target.Interface != "" {
			request.Target = append(request.Target, targetRequest{TapIfindex: new(uint32(target.Index))})
		} else {
			request.Target = append(request.Target, targetRequest{
				Output: []string{target.Queue.Cluster}, Queue: new(uint32(target.Queue.Queue)),
			})
		}
	}
	if ring.Rules.DropMatching {
		request.PatternAction = new(uint32(actionDrop))
	}
	return marshal(request)
}

// encodeRules encodes the wildcard rules into messages.
func encodeRules(ring capture.Ring, targets []capture.Target) ([][]byte, error) {
	return encodeBatches(ring.Name, batchBytes/binary.Size(rawRule{}), ring.Rules.Wildcard, func(some []capture.WildcardRule) rulesAddRequest {
		request := rulesAddRequest{Name: &ring.Name}
		for _, rule := range some {
			request.Rule = append(request.Rule, newRawRule(rule, targets))
		}
		return request
	})
}

// encodeExacts encodes the exact rules into messages.
func encodeExacts(ring capture.Ring, targets []capture.Target) ([][]byte, error) {
	return encodeBatches(ring.Name, batchBytes/binary.Size(rawExact{}), ring.Rules.Exact, func(some []capture.ExactRule) rulesAddRequest {
		request := rulesAddRequest{Name: &ring.Name}
		for _, rule := range some {
			request.Exact = append(request.Exact, newRawExact(rule, targets))
		}
		return request
	})
}

// encodeBatches encodes one request for each batch of size rules.
func encodeBatches[R any](ring string, size int, rules []R, request func([]R) rulesAddRequest) ([][]byte, error) {
	var messages [][]byte
	for some := range slices.Chunk(rules, size) {
		message, err := marshal(request(some))
		if err != nil {
			return nil, fmt.Errorf("encode the rules of %s: %w", ring, err)
		}
		messages = append(messages, message)
	}
	return messages, nil
}

func newRawExact(r capture.ExactRule, targets []capture.Target) rawExact {
	raw := rawExact{
		Sport: r.Source.Port(), Dport: r.Destination.Port(), L3Proto: unix.ETH_P_IPV6, VLANID: r.VLAN, L4Proto: r.Protocol,
		Action: uint8(r.Action), Target: uint16(capture.TargetNumber(targets, r.Target)), IdleS: uint32(r.Idle / time.Second),
	}
	if r.Source.Addr().Is4() {
		raw.L3Proto = unix.ETH_P_IP
	}
	copy(raw.Saddr[:], r.Source.Addr().AsSlice())
	copy(raw.Daddr[:], r.Destination.Addr().AsSlice())
	return raw
}

func newRawRule(r capture.WildcardRule, targets []capture.Target) rawRule {
	raw := rawRule{
		ID: r.ID, Priority: r.Priority, IdleS: uint32(r.Idle / time.Second), Target: uint16(capture.TargetNumber(targets, r.Target)),
		Action: uint8(r.Action),
	}
	if r.Both {
		raw.Flags = ruleBoth
	}
	m := r.Match
	fields := &raw.Fields
	match(fields, matchSMAC, m.SourceMAC, &raw.SMAC)
	match(fields, matchDMAC, m.DestinationMAC, &raw.DMAC)
	match(fields, matchEtherType, m.EtherType, &raw.EtherType)
	match(fields, matchVLAN, m.VLAN, &raw.VLANID)
	match(fields, matchInnerVLAN, m.InnerVLAN, &raw.InnerVLANID)
	match(fields, matchProto, m.Protocol, &raw.L4Proto)
	match(fields, matchSport, (*rawPortRange)(m.SourcePorts), &raw.Sport)
	match(fields, matchDport, (*rawPortRange)(m.DestinationPorts), &raw.Dport)
	match(fields, matchTunnelID, m.TunnelID, &raw.TunnelID)
	if m.TCPFlags != nil {
		*fields |= matchTCPFlags
		raw.TCPFlags, raw.TCPMask = m.TCPFlags.Flags, m.TCPFlags.Mask
	}
	matchPrefix(fields, matchSaddr, m.Source, &raw.Family, &raw.Splen, &raw.Saddr)
	matchPrefix(fields, matchDaddr, m.Destination, &raw.Family, &raw.Dplen, &raw.Daddr)
	matchPrefix(fields, matchInnerSaddr, m.InnerSource, &raw.InnerFamily, &raw.InnerSplen, &raw.InnerSaddr)
	matchPrefix(fields, matchInnerDaddr, m.InnerDestination, &raw.InnerFamily, &raw.InnerDplen, &raw.InnerDaddr)
	return raw
}

// match makes a rule compare a field, unless value is nil.
func match[T any](fields *uint32, field uint32, value, into *T) {
	if value != nil {
		*fields |= field
		*into = *value
	}
}

// matchPrefix makes a rule compare an address, unless prefix is zero.
func matchPrefix(fields *uint32, field uint32, prefix netip.Prefix, family, length *uint8, address *[16]byte) {
	if !prefix.IsValid() {
		return
	}
	*fields |= field
	*family = 6
	if prefix.Addr().Is4() {
		*family = 4
	}
	*length = uint8(prefix.Bits())
	copy(address[:], prefix.Masked().Addr().AsSlice())
}

// encodePatterns encodes the payload patterns into messages, in order. The module reports their counters in that
// order.
func encodePatterns(ring capture.Ring, _ []capture.Target) ([][]byte, error) {
	var messages [][]byte
	for patterns := ring.Rules.Patterns; len(patterns) > 0; {
		request := rulesAddRequest{Name: &ring.Name}
		n := 0
		for size := 0; n < len(patterns) && size < batchBytes; n++ {
			request.Pattern = append(request.Pattern, newPatternRequest(patterns[n]))
			size += len(patterns[n].Bytes) + patternOverhead
		}
		message, err := marshal(request)
		if err != nil {
			return nil, fmt.Errorf("encode the payload patterns of %s: %w", ring.Name, err)
		}
		messages, patterns = append(messages, message), patterns[n:]
	}
	return messages, nil
}

// patternOverhead is the size of a pattern in a message besides its bytes: five attributes' heads, padding and
// numbers.
const patternOverhead = 40

func newPatternRequest(p capture.Pattern) patternRequest {
	request := patternRequest{PatternBytes: p.Bytes, PatternOffset: &p.Offset, PatternDepth: &p.Depth}
	if p.IgnoreCase {
		request.PatternFlags = new(uint32(patternNoCase))
	}
	return request
}

// ruleCounts is the content of a message of a rules dump.
type ruleCounts struct {
	rules    map[uint32]capture.RuleStats
	patterns []uint64
}

func decodeRules(m genetlink.Message) (counts ruleCounts, err error) {
	reply, err := unmarshal(m.Data, parseRulesGetReply)
	counts.rules = map[uint32]capture.RuleStats{}
	for _, state := range reply.RuleState.all() {
		counts.rules[state.Rule.ID] = capture.RuleStats{Packets: state.Counts.Packets, Bytes: state.Counts.Bytes}
	}
	for _, pattern := range reply.Pattern {
		counts.patterns = append(counts.patterns, pattern.PatternMatches)
	}
	return counts, err
}

// rules reads the counters of a ring's rules and patterns.
func (c *client) rules(ring string) (map[uint32]capture.RuleStats, []uint64, error) {
	attributes, err := encodeName(ring)
	if err != nil {
		return nil, nil, err
	}
	messages, err := collect(c, cmdRulesGet, attributes, decodeRules)
	if err != nil {
		return nil, nil, err
	}
	all := map[uint32]capture.RuleStats{}
	var patterns []uint64
	for _, m := range messages {
		for id, stats := range m.rules {
			all[id] = stats
		}
		patterns = append(patterns, m.patterns...)
	}
	return all, patterns, nil
}
