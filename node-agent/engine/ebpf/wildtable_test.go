// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"math"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// find does the same as wild_search of bpf/wild.h. It returns the rank of the best rule for a packet's key.
func (t *wildTable) find(k key) uint32 {
	left := uint64(math.MaxUint64)
	for n, field := range sieveFieldsOf {
		left &= t.index.Passes[n][(k[field.word]&field.mask)*t.index.Odds[field.odd]>>(64-sieveRowsLog)]
	}
	best := uint32(math.MaxUint32)
	for i, shape := range t.index.Shapes {
		if left>>i&1 == 0 || shape.Best >= best || uint32(k[wordLink])&shape.Has != shape.Has {
			continue
		}
		if rule := t.findOfShape(uint64(i), k); rule.ID != 0 {
			best = min(best, rule.Rank)
		}
	}
	return best
}

func (t *wildTable) findOfShape(number uint64, k key) wildRule {
	shape := t.index.Shapes[number]
	for i := range k {
		k[i] &= shape.Mask.W[i]
	}
	if shape.IsBrief == 0 {
		return t.whole[wildKey{Shape: number, W: k}]
	}
	brief := briefOf(k, number)
	at := t.index.hash(brief)
	for _, number := range t.places[at : at+wildProbes] {
		if number == 0 {
			break
		}
		if entry := t.brief[number-1]; entry.Key == brief {
			return entry.Rule
		}
	}
	return wildRule{}
}

// randomRules returns rules about few values, so that many of them match the same packets. Some may ask for MAC
// addresses.
func randomRules(r *rand.Rand, n int, macs bool) []capture.WildcardRule {
	prefix := func() netip.Prefix {
		address := netip.AddrFrom4([4]byte{10, byte(r.IntN(3)), byte(r.IntN(3)), byte(r.IntN(3))})
		if r.IntN(4) == 0 {
			address = netip.AddrFrom16([16]byte{0x20, 1, 15: byte(r.IntN(4))})
			return netip.PrefixFrom(address, 32*(1+r.IntN(4))).Masked()
		}
		return netip.PrefixFrom(address, 8*(1+r.IntN(4))).Masked()
	}
	rules := make([]capture.WildcardRule, n)
	for i := range rules {
		protocol, port, vlan := uint8(6+11*r.IntN(2)), uint16(r.IntN(5)), uint16(r.IntN(2))
		m := &rules[i].Match
		rules[i].ID, rules[i].Priority = uint32(i)+1, uint32(r.IntN(n))
		if r.IntN(2) == 0 {
			m.Protocol, m.DestinationPorts = &protocol, &capture.PortRange{First: port, Last: port}
		}
		switch r.IntN(5) {
		case 0:
			m.Source = prefix()
		case 1:
			m.Destination = prefix()
		case 2:
			m.VLAN = &vlan
		case 3:
			if macs {
				m.SourceMAC = &[6]byte{2, 0, 0, 0, 0, byte(r.IntN(3))}
			}
		}
	}
	return rules
}

// TestTheTableHasWhatAPlainSearchFinds compares the table with all rules one by one, for keys that rules ask for.
func TestTheTableHasWhatAPlainSearchFinds(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 2))
		s, err := compile(capture.RuleSet{Wildcard: randomRules(r, 1+r.IntN(200), true)})
		require.NoError(t, err)
		table := newWildTable(s)
		var matches []wildKey
		for at := range s.wild {
			matches = append(matches, at)
		}
		for range 500 {
			// Two matches at once: bits of both, so that rules of several shapes apply.
			k := matches[r.IntN(len(matches))].W
			for i, word := range matches[r.IntN(len(matches))].W {
				k[i] |= word
			}
			want := uint32(math.MaxUint32)
			for at, rule := range s.wild {
				if matchesKey(s.shapes[at.Shape].Mask.W, at.W, k) {
					want = min(want, rule.Rank)
				}
			}
			require.Equal(t, want, table.find(k), "seed %d: %x", seed, k)
		}
	}
}

func matchesKey(mask, value, k key) bool {
	for i := range k {
		if k[i]&mask[i] != value[i] {
			return false
		}
	}
	return true
}

// hostRules returns n rules, each about another host.
func hostRules(n int) []capture.WildcardRule {
	rules := make([]capture.WildcardRule, n)
	for i := range rules {
		source := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
		rules[i] = capture.WildcardRule{ID: uint32(i) + 1, Match: capture.Match{Source: netip.PrefixFrom(source, 32)}}
	}
	return rules
}

// TestNoEntryIsFarFromItsPlace makes the table of as many rules as a ring may have.
func TestNoEntryIsFarFromItsPlace(t *testing.T) {
	s, err := compile(capture.RuleSet{Wildcard: hostRules(maxWildcard)})
	require.NoError(t, err)
	table := newWildTable(s)
	require.LessOrEqual(t, len(table.places), 2*wildSpace*maxWildcard)
	for at, rule := range s.wild {
		require.Equal(t, rule, table.findOfShape(at.Shape, at.W))
	}
}

// TestTheMapHasAllEntries fills the map in more than one call.
func TestTheMapHasAllEntries(t *testing.T) {
	newLab(t)
	for _, n := range []int{0, 1, entriesAtOnce, 2*entriesAtOnce + 1} {
		s, err := compile(capture.RuleSet{Wildcard: hostRules(n)})
		require.NoError(t, err)
		table := newWildTable(s)
		spec, err := loadSpec()
		require.NoError(t, err)
		spec.Maps[wildEntriesMap].MaxEntries = uint32(len(table.places))
		m, err := newMap(spec.Maps[wildEntriesMap])
		require.NoError(t, err)
		defer m.Close()
		require.NoError(t, table.fillEntries(m))
		for place, number := range table.places {
			var want, filled wildEntry
			if number != 0 {
				want = table.brief[number-1]
			}
			require.NoError(t, m.Lookup(uint32(place), &filled))
			require.Equal(t, want, filled)
		}
	}
}

func TestASetWithoutRulesHasATable(t *testing.T) {
	s, err := compile(capture.RuleSet{})
	require.NoError(t, err)
	table := newWildTable(s)
	require.Equal(t, uint32(math.MaxUint32), table.find(key{}))
	require.Len(t, table.places, 2+wildProbes)
}

// TestProgramsFindTheRuleThatAPlainSearchFinds activates sets one after the other, for the short path of bpf/ruled.h and
// for the general one, and sends them real packets.
func TestProgramsFindTheRuleThatAPlainSearchFinds(t *testing.T) {
	l := newLab(t)
	e := l.engine()
	var before capture.RingStats
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 3))
		plan := l.plan(1)
		if seed%3 == 0 {
			plan.Rings[0].VLANs = []uint16{0, 1}
		}
		rules := randomRules(r, 1+r.IntN(60), seed%3 == 1)
		for i := range rules {
			rules[i].Action = capture.Action(r.IntN(2))
		}
		plan.Rings[0].Rules = capture.RuleSet{Wildcard: rules, Default: capture.Action(seed % 2)}
		l.apply(e, plan)
		want, passed := map[uint32]capture.RuleStats{}, uint64(0)
		for _, rule := range rules {
			want[rule.ID] = capture.RuleStats{}
		}
		l.sendAll(e, "mirror", 80, func(int) []byte {
			sent, asked := randomPacket(r)
			action := plan.Rings[0].Rules.Default
			if rule := bestRule(rules, asked); rule != nil {
				sum := want[rule.ID]
				want[rule.ID] = capture.RuleStats{Packets: sum.Packets + 1, Bytes: sum.Bytes + uint64(len(sent))}
				action = rule.Action
			}
			passed += uint64(flag(action == capture.ActionPass))
			return sent
		})
		state := l.observe(e).Rings["mirror"]
		require.Equal(t, want, state.Rules, "seed %d", seed)
		require.Equal(t, passed, state.Stats.Passed-before.Passed, "seed %d", seed)
		before = state.Stats
	}
}

// randomPacket returns a TCP or UDP packet and what a rule would have to ask for to match only such packets.
func randomPacket(r *rand.Rand) ([]byte, capture.Match) {
	f := frame(0, 60)
	protocol, port, vlan := uint8(6+11*r.IntN(2)), uint16(r.IntN(5)), uint16(r.IntN(2))
	f[11], f[23], f[37] = byte(r.IntN(3)), protocol, byte(port)
	copy(f[26:], []byte{10, byte(r.IntN(3)), byte(r.IntN(3)), byte(r.IntN(3)), 10, byte(r.IntN(3)), byte(r.IntN(3)), byte(r.IntN(3))})
	is := capture.Match{
		Source: netip.PrefixFrom(netip.AddrFrom4([4]byte(f[26:30])), 32), Destination: netip.PrefixFrom(netip.AddrFrom4([4]byte(f[30:34])), 32),
		SourceMAC: (*[6]byte)(f[6:12]), Protocol: &protocol, DestinationPorts: &capture.PortRange{First: port, Last: port}, VLAN: &vlan,
	}
	if vlan != 0 {
		return tagged(f, 0x8100<<16|uint32(vlan)), is
	}
	return f, is
}

// bestRule returns the rule that decides on a packet of randomPacket, or nil.
func bestRule(rules []capture.WildcardRule, is capture.Match) *capture.WildcardRule {
	var best *capture.WildcardRule
	for i, rule := range rules {
		m := rule.Match
		if m.Source.IsValid() && !m.Source.Contains(is.Source.Addr()) || m.Destination.IsValid() && !m.Destination.Contains(is.Destination.Addr()) ||
			m.Protocol != nil && (*m.Protocol != *is.Protocol || *m.DestinationPorts != *is.DestinationPorts) ||
			m.VLAN != nil && *m.VLAN != *is.VLAN || m.SourceMAC != nil && *m.SourceMAC != *is.SourceMAC {
			continue
		}
		if best == nil || rule.Priority > best.Priority {
			best = &rules[i]
		}
	}
	return best
}
