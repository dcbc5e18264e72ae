// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// TestRulesDecideTheSameOnBothPaths gives two rings the same rules. The second one's list of VLANs, which are all,
// keeps its packets from the short path of bpf/ruled.h.
func TestRulesDecideTheSameOnBothPaths(t *testing.T) {
	l := newLab(t)
	e := l.engine()
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 5))
		plan := l.plan(1)
		plan.Rings[0].Rules = rulesOfAllKinds(r, capture.Action(seed%2))
		plan.Rings[0].SnapLen = []uint32{65535, 40}[seed/2%2]
		general := plan.Rings[0]
		general.Name, general.VLANs, general.Outputs = "general", allVLANs(), []string{"general"}
		plan.Rings = append(plan.Rings, general)
		other := plan.Clusters[0]
		other.Name = "general"
		plan.Clusters = append(plan.Clusters, other)
		l.apply(e, plan)
		before := l.observe(e)
		l.sendAll(e, "mirror", 300, func(int) []byte { return oddPacket(r) })
		after := l.settled(e, "general", before.Rings["general"].Stats.Seen+300)
		require.Equal(t, after.Rings["general"].Rules, after.Rings["mirror"].Rules, "seed %d", seed)
		short, long := growth(before, after, "mirror"), growth(before, after, "general")
		require.Equal(t, long, short, "seed %d", seed)
		require.NotZero(t, short.Passed)
		require.NotZero(t, short.Filtered)
		require.EqualValues(t, 300, short.Passed+short.Filtered)
	}
}

func growth(before, after capture.Observation, ring string) capture.RingStats {
	stats, last := after.Rings[ring].Stats, before.Rings[ring].Stats
	return capture.RingStats{
		Seen: stats.Seen - last.Seen, SeenBytes: stats.SeenBytes - last.SeenBytes,
		Filtered: stats.Filtered - last.Filtered, Passed: stats.Passed - last.Passed,
	}
}

func allVLANs() []uint16 {
	all := make([]uint16, 4095)
	for id := range all {
		all[id] = uint16(id)
	}
	return all
}

// rulesOfAllKinds returns wildcard rules, of which some look at TCP flags and some learn, and exact rules.
func rulesOfAllKinds(r *rand.Rand, otherwise capture.Action) capture.RuleSet {
	set := capture.RuleSet{Wildcard: randomRules(r, 1+r.IntN(40), false), Default: otherwise}
	for i := range set.Wildcard {
		rule := &set.Wildcard[i]
		rule.Action = capture.Action(r.IntN(2))
		if r.IntN(4) == 0 {
			rule.Action = capture.ActionLearn
		}
		if r.IntN(3) == 0 {
			flags := uint8(r.IntN(4))
			rule.Match.TCPFlags = &capture.TCPFlags{Flags: flags, Mask: 3}
		}
	}
	seen := map[exactKey]bool{}
	for range r.IntN(8) {
		end := func(port int) netip.AddrPort {
			return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(r.IntN(3))}), uint16(port))
		}
		rule := capture.ExactRule{
			Source: end(0x1000), Destination: end(r.IntN(5)), Protocol: uint8(6 + 11*r.IntN(2)),
			Action: capture.Action(r.IntN(2)),
		}
		if key := exactKeyOf(rule); !seen[key] {
			seen[key] = true
			set.Exact = append(set.Exact, rule)
		}
	}
	return set
}

// oddPacket returns a packet of randomPacket with few flows, of which many are cut, in fragments or with IP options.
func oddPacket(r *rand.Rand) []byte {
	f := frame(0, 60)
	f[11], f[23], f[35], f[37] = byte(r.IntN(3)), byte(6+11*r.IntN(2)), 0, byte(r.IntN(5))
	copy(f[26:], []byte{10, 0, 0, byte(r.IntN(3)), 10, 0, 0, byte(r.IntN(3))})
	f[47] = byte(r.IntN(4))
	switch r.IntN(8) {
	case 0:
		f[14] = 0x46 + byte(r.IntN(3)) // IP options
	case 1:
		f[20+r.IntN(2)] = byte(1 << r.IntN(8)) // fragments, or a flag
	case 2:
		f[23] = []byte{1, 47, 132}[r.IntN(3)]
	case 3:
		f[46] = byte(r.IntN(256)) // TCP's header length
	case 4:
		f[17] = byte(r.IntN(60)) // IP's length
	}
	f = f[:34+r.IntN(27)]
	for range r.IntN(3) {
		if r.IntN(3) == 0 {
			f = tagged(f, 0x8100<<16|uint32(r.IntN(3)))
		}
	}
	return f
}
