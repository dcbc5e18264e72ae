// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

func filter(t *testing.T, text string) *v1.Filter {
	t.Helper()
	var f v1.Filter
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), &f))
	return &f
}

func TestAdvise(t *testing.T) {
	for text, want := range map[string]Advice{
		`{}`: {},
		`{rules: [{action: Drop, match: {protocol: UDP}}, {action: Pass}]}`: {},
		`{rules: [{action: Pass}, {name: dns, action: Drop, match: {protocol: UDP}}]}`: {v1.ReasonShadowed,
			"spec.filter.rules[1] (dns) never decides: spec.filter.rules[0] matches all that it matches, and comes before it"},
		`{rules: [{action: Drop, match: {source: 10.1.0.0/16}}, {action: Pass, priority: 1, match: {source: 10.0.0.0/8}}]}`: {v1.ReasonShadowed,
			"spec.filter.rules[0] never decides: spec.filter.rules[1] matches all that it matches, and comes before it"},
		`{rules: [{action: Pass, match: {source: 10.0.0.0/8}}, {action: Drop, match: {destination: 10.1.0.0/16}}]}`: {},
		// Removed when idle, it leaves the second alone.
		`{rules: [{action: Pass, idleTimeout: 1m, match: {protocol: UDP}}, {action: Drop, match: {protocol: UDP}}]}`: {},
		`{rules: [{action: Pass, match: {source: 10.0.0.0/8, bidirectional: true}}, {action: Drop, match: {destination: 10.1.0.0/16}}]}`: {v1.ReasonShadowed,
			"spec.filter.rules[1] never decides: spec.filter.rules[0] matches all that it matches, and comes before it"},
		`{rules: [{action: Pass, match: {source: 10.0.0.0/8}}, {action: Drop, match: {source: 10.1.0.0/16, bidirectional: true}}]}`: {},
		`{rules: [{action: Pass, match: {destinationPort: 1-99}}, {action: Drop, match: {destinationPort: 80-100}}]}`:               {},
		`{rules: [{action: Pass, match: {tcpFlagsSet: [SYN]}}, {action: Drop, match: {tcpFlagsSet: [SYN], tcpFlagsClear: [ACK]}}]}`: {v1.ReasonShadowed,
			"spec.filter.rules[1] never decides: spec.filter.rules[0] matches all that it matches, and comes before it"},
		`{rules: [{action: Drop, match: {protocol: ICMP, destinationPort: 1}}]}`: {v1.ReasonNeverMatches,
			"spec.filter.rules[0] matches no packet: protocol 1 has no ports"},
		`{rules: [{action: Drop, match: {protocol: UDP, tcpFlagsSet: [SYN]}}]}`: {v1.ReasonNeverMatches,
			"spec.filter.rules[0] matches no packet: protocol 17 has no TCP flags"},
		`{rules: [{action: Drop, match: {etherType: 2054, source: 10.0.0.1}}]}`: {v1.ReasonNeverMatches,
			"spec.filter.rules[0] matches no packet: etherType 2054 is not IP, which addresses, protocol and ports belong to"},
		`{rules: [{action: Drop, match: {etherType: 34525, source: 10.0.0.1}}]}`: {v1.ReasonNeverMatches,
			"spec.filter.rules[0] matches no packet: etherType 34525 is not of the addresses' IP version"},
		`{rules: [{action: Drop, match: {vlan: 0, innerVLAN: 5}}]}`: {v1.ReasonNeverMatches,
			"spec.filter.rules[0] matches no packet: a packet without a VLAN tag (vlan 0) has no second one"},
		`{payload: [{text: a}, {text: b}, {name: again, text: a}]}`: {v1.ReasonShadowed,
			"spec.filter.payload[2] (again) never decides: it is the same as spec.filter.payload[0]"},
	} {
		assert.Equal(t, want, Advise(filter(t, text)), text)
	}
	assert.Zero(t, Advise(nil))
}

// packet is what rules look at; matches is the slow, plain meaning of a match.
type packet struct {
	source, destination netip.Addr
	sport, dport        uint16
	protocol            uint8
}

func (m *Match) matches(p packet) bool {
	one := func(p packet) bool {
		return (!m.Source.IsValid() || m.Source.Contains(p.source)) && (!m.Destination.IsValid() || m.Destination.Contains(p.destination)) &&
			(m.Protocol == nil || *m.Protocol == p.protocol) &&
			(m.SourcePorts == nil || m.SourcePorts.First <= p.sport && p.sport <= m.SourcePorts.Last) &&
			(m.DestinationPorts == nil || m.DestinationPorts.First <= p.dport && p.dport <= m.DestinationPorts.Last)
	}
	return one(p) || m.Both && one(packet{p.destination, p.source, p.dport, p.sport, p.protocol})
}

// TestCoversIsNeverWrong: if it returns true, no packet of the other is missed.
func TestCoversIsNeverWrong(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	address := func() netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(random.IntN(4))}) }
	match := func() Match {
		var m Match
		if random.IntN(2) == 0 {
			m.Source = netip.PrefixFrom(address(), 30+random.IntN(3)).Masked()
		}
		if random.IntN(2) == 0 {
			m.Destination = netip.PrefixFrom(address(), 30+random.IntN(3)).Masked()
		}
		if random.IntN(3) == 0 {
			low := uint16(random.IntN(3))
			m.SourcePorts = &Ports{low, low + uint16(random.IntN(2))}
		}
		if random.IntN(3) == 0 {
			protocol := uint8(6 + 11*random.IntN(2))
			m.Protocol = &protocol
		}
		m.Both = random.IntN(2) == 0
		return m
	}
	covered := 0
	for range 3000 {
		a, b := match(), match()
		if !a.Covers(&b) {
			continue
		}
		covered++
		for range 300 {
			p := packet{address(), address(), uint16(random.IntN(4)), uint16(random.IntN(4)), uint8(6 + 11*random.IntN(2))}
			require.False(t, b.matches(p) && !a.matches(p), "%+v covers %+v, but for %+v", a, b, p)
		}
	}
	require.Greater(t, covered, 300)
}

func TestAdviceOnManyRulesIsQuick(t *testing.T) {
	var f v1.Filter
	for i := range 4096 {
		f.Rules = append(f.Rules, v1.Rule{Action: v1.RuleDrop, Match: v1.RuleMatch{Source: fmt.Sprintf("10.0.%d.%d", i>>8, i&255)}})
	}
	start := time.Now()
	require.Zero(t, Advise(&f))
	t.Logf("%d rules in %s", len(f.Rules), time.Since(start))
}
