// SPDX-License-Identifier: Apache-2.0

package kmod

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/netlink"
	"github.com/mdlayher/netlink/nlenc"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// A rule set goes to the module in several messages: BEGIN, ADDs of no more than a message holds, COMMIT. Nothing of it
// is in force before the last.

// batchBytes is the most that one message carries; an attribute ends at 64 KiB.
const batchBytes = 32 << 10

// putRules puts a ring's rule set in force, whole.
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
			// The socket is closed on the way out, and the set that is not committed goes with it.
			if err := c.do(cmdRulesAdd, message); err != nil {
				return err
			}
		}
	}
	return c.named(cmdRulesCommit, ring.Name)
}

// rulesGeneration is the mark of a rule set, 0 for none.
func rulesGeneration(rules capture.RuleSet) uint64 {
	if rules.Empty() {
		return 0
	}
	return generationOf(rules)
}

func encodeRulesBegin(ring capture.Ring, targets []capture.Target) ([]byte, error) {
	e := netlink.NewAttributeEncoder()
	e.String(attrName, ring.Name)
	e.Uint64(attrGeneration, rulesGeneration(ring.Rules))
	e.Uint32(attrDefaultAction, uint32(ring.Rules.Default))
	for _, target := range targets {
		e.Nested(attrTarget, func(nested *netlink.AttributeEncoder) error {
			if target.Interface != "" {
				nested.Uint32(attrTapIfindex, uint32(target.Index))
				return nil
			}
			nested.String(attrOutput, target.Queue.Cluster)
			nested.Uint32(attrQueue, uint32(target.Queue.Queue))
			return nil
		})
	}
	if ring.Rules.DropMatching {
		e.Uint32(attrPatternAction, uint32(capture.ActionDrop))
	}
	return e.Encode()
}

// encodeRules lays the wildcard rules out in messages.
func encodeRules(ring capture.Ring, targets []capture.Target) ([][]byte, error) {
	return encodeArrays(ring, attrRule, ruleSize, ring.Rules.Wildcard, targets, encodeRule)
}

// encodeExacts lays the exact rules out in messages.
func encodeExacts(ring capture.Ring, targets []capture.Target) ([][]byte, error) {
	return encodeArrays(ring, attrExact, exactSize, ring.Rules.Exact, targets, encodeExact)
}

// encodeArrays lays rules out as arrays of a structure of size bytes, one attribute a message.
func encodeArrays[R any](ring capture.Ring, attribute uint16, size int, rules []R, targets []capture.Target,
	encode func(R, []capture.Target) []byte) ([][]byte, error) {
	var messages [][]byte
	for some := range slices.Chunk(rules, batchBytes/size) {
		structs := make([]byte, 0, len(some)*size)
		for _, rule := range some {
			structs = append(structs, encode(rule, targets)...)
		}
		e := netlink.NewAttributeEncoder()
		e.String(attrName, ring.Name)
		e.Bytes(attribute, structs)
		message, err := e.Encode()
		if err != nil {
			return nil, fmt.Errorf("encode the rules of %s: %w", ring.Name, err)
		}
		messages = append(messages, message)
	}
	return messages, nil
}

// exactSize is sizeof(struct ringcap_exact).
const exactSize = 48

// encodeExact lays a rule out as struct ringcap_exact.
func encodeExact(r capture.ExactRule, targets []capture.Target) []byte {
	out := make([]byte, exactSize)
	copy(out[0:16], r.Source.Addr().AsSlice())
	copy(out[16:32], r.Destination.Addr().AsSlice())
	nlenc.PutUint16(out[32:34], r.Source.Port())
	nlenc.PutUint16(out[34:36], r.Destination.Port())
	nlenc.PutUint16(out[36:38], 0x86dd)
	if r.Source.Addr().Is4() {
		nlenc.PutUint16(out[36:38], 0x0800)
	}
	nlenc.PutUint16(out[38:40], r.VLAN)
	out[40], out[41] = r.Protocol, uint8(r.Action)
	nlenc.PutUint16(out[42:44], uint16(capture.TargetNumber(targets, r.Target)))
	nlenc.PutUint32(out[44:48], uint32(r.Idle/time.Second))
	return out
}

// ruleSize is sizeof(struct ringcap_rule).
const ruleSize = 136

// encodeRule lays a rule out as struct ringcap_rule.
func encodeRule(r capture.WildcardRule, targets []capture.Target) []byte {
	out := make([]byte, ruleSize)
	m := r.Match
	var fields uint32
	given := func(field uint32, is bool) bool {
		if is {
			fields |= field
		}
		return is
	}
	nlenc.PutUint32(out[0:4], r.ID)
	nlenc.PutUint32(out[4:8], r.Priority)
	nlenc.PutUint32(out[12:16], uint32(r.Idle/time.Second))
	nlenc.PutUint16(out[16:18], uint16(capture.TargetNumber(targets, r.Target)))
	out[18] = uint8(r.Action)
	if r.Both {
		out[19] = ruleBoth
	}
	if given(matchProtocol, m.Protocol != nil) {
		out[23] = *m.Protocol
	}
	if given(matchTCPFlags, m.TCPFlags != nil) {
		out[27], out[28] = m.TCPFlags.Flags, m.TCPFlags.Mask
	}
	if given(matchSourceMAC, m.SourceMAC != nil) {
		copy(out[32:38], m.SourceMAC[:])
	}
	if given(matchDestinationMAC, m.DestinationMAC != nil) {
		copy(out[38:44], m.DestinationMAC[:])
	}
	for _, number := range []struct {
		field uint32
		value *uint16
		at    int
	}{{matchEtherType, m.EtherType, 44}, {matchVLAN, m.VLAN, 46}, {matchInnerVLAN, m.InnerVLAN, 48}} {
		if given(number.field, number.value != nil) {
			nlenc.PutUint16(out[number.at:number.at+2], *number.value)
		}
	}
	for _, ports := range []struct {
		field uint32
		value *capture.PortRange
		at    int
	}{{matchSourcePort, m.SourcePorts, 50}, {matchDestinationPort, m.DestinationPorts, 54}} {
		if given(ports.field, ports.value != nil) {
			nlenc.PutUint16(out[ports.at:ports.at+2], ports.value.First)
			nlenc.PutUint16(out[ports.at+2:ports.at+4], ports.value.Last)
		}
	}
	if given(matchTunnelID, m.TunnelID != nil) {
		nlenc.PutUint32(out[60:64], *m.TunnelID)
	}
	for _, prefix := range []struct {
		field              uint32
		value              netip.Prefix
		family, length, at int
	}{
		{matchSource, m.Source, 20, 21, 64}, {matchDestination, m.Destination, 20, 22, 80},
		{matchInnerSource, m.InnerSource, 24, 25, 96}, {matchInnerDestination, m.InnerDestination, 24, 26, 112},
	} {
		if given(prefix.field, prefix.value.IsValid()) {
			out[prefix.family] = 6
			if prefix.value.Addr().Is4() {
				out[prefix.family] = 4
			}
			out[prefix.length] = uint8(prefix.value.Bits())
			copy(out[prefix.at:prefix.at+16], prefix.value.Masked().Addr().AsSlice())
		}
	}
	nlenc.PutUint32(out[8:12], fields)
	return out
}

// encodePatterns lays the payload patterns out in messages, in order: their counters come back in it.
func encodePatterns(ring capture.Ring, _ []capture.Target) ([][]byte, error) {
	var messages [][]byte
	for patterns := ring.Rules.Patterns; len(patterns) > 0; {
		e := netlink.NewAttributeEncoder()
		e.String(attrName, ring.Name)
		n := 0
		for size := 0; n < len(patterns) && size < batchBytes; n++ {
			e.Nested(attrPattern, encodePattern(patterns[n]))
			size += len(patterns[n].Bytes) + patternOverhead
		}
		message, err := e.Encode()
		if err != nil {
			return nil, fmt.Errorf("encode the payload patterns of %s: %w", ring.Name, err)
		}
		messages, patterns = append(messages, message), patterns[n:]
	}
	return messages, nil
}

// patternOverhead is what a pattern takes in a message besides its bytes: five attributes' heads, padding and numbers.
const patternOverhead = 40

func encodePattern(p capture.Pattern) func(*netlink.AttributeEncoder) error {
	return func(e *netlink.AttributeEncoder) error {
		e.Bytes(attrPatternBytes, p.Bytes)
		if p.IgnoreCase {
			e.Uint32(attrPatternFlags, patternNoCase)
		}
		e.Uint32(attrPatternOffset, p.Offset)
		e.Uint32(attrPatternDepth, p.Depth)
		return nil
	}
}

// ruleCounts is what a message of a rules dump says.
type ruleCounts struct {
	rules    map[uint32]capture.RuleStats
	patterns []uint64
}

// ruleStateSize is sizeof(struct ringcap_rule_state): the rule, packets, bytes, idle time and flags.
const ruleStateSize = ruleSize + 24

func decodeRules(m genetlink.Message) (counts ruleCounts, err error) {
	return counts, eachAttribute(m.Data, func(d *netlink.AttributeDecoder) {
		switch d.Type() {
		case attrRuleState:
			counts.rules = decodeRuleStates(d.Bytes())
		case attrPattern:
			d.Nested(func(nested *netlink.AttributeDecoder) error {
				for nested.Next() {
					if nested.Type() == attrPatternMatches {
						counts.patterns = append(counts.patterns, nested.Uint64())
					}
				}
				return nil
			})
		}
	})
}

func decodeRuleStates(array []byte) map[uint32]capture.RuleStats {
	states := map[uint32]capture.RuleStats{}
	for ; len(array) >= ruleStateSize; array = array[ruleStateSize:] {
		states[nlenc.Uint32(array[0:4])] = capture.RuleStats{
			Packets: nlenc.Uint64(array[ruleSize : ruleSize+8]), Bytes: nlenc.Uint64(array[ruleSize+8 : ruleSize+16]),
		}
	}
	return states
}

// rules reads what the rules and patterns of a ring counted.
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
