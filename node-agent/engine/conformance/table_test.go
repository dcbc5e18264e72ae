// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/bpf"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// The engines, as the API calls them.
const (
	byEBPF   = "EBPF"
	byModule = "KernelModule"
)

func table() []row {
	return slices.Concat(wireRows(), filterRows(), balanceRows(), policyRows(), fragmentRows(), ruleRows(), idleRows(), payloadRows(), sampleRows(),
		tapRows(), quickRows(), modeRows(), shuntRows(), refusedRows())
}

// mixed is a packet of each kind that the parser tells apart.
func mixed() []packet {
	return passed(
		udp("10.0.0.1", 1000, "10.1.0.1", 53), udp("10.1.0.1", 53, "10.0.0.1", 1000),
		tcp("10.0.0.2", 1001, "10.1.0.1", 80, flagSYN), tcp("10.1.0.1", 80, "10.0.0.2", 1001, flagSYN|flagACK),
		udp("2001:db8::1", 1000, "2001:db8::2", 53), tcp("2001:db8::2", 443, "2001:db8::1", 2000, flagACK),
		icmp("10.0.0.1", "10.1.0.1"), arp(),
		tagged(udp("10.0.0.3", 1002, "10.1.0.1", 53), 0x8100<<16|7),
		tagged(udp("10.0.0.3", 1002, "10.1.0.1", 53), 0x88a8<<16|100, 0x8100<<16|200),
		vxlan(9, udp("172.16.0.1", 7, "172.16.0.2", 8)), gre(5, ip("172.16.0.1", "172.16.0.3", 17, udpHeader(7, 9, nil))),
		datagram(1, "10.0.0.1", 1000, "10.1.0.1", 53)[0], datagram(1, "10.0.0.1", 1000, "10.1.0.1", 53)[1],
		datagram6(2, "2001:db8::1", 1000, "2001:db8::2", 53)[0], datagram6(2, "2001:db8::1", 1000, "2001:db8::2", 53)[1],
	)
}

func flows(n int) []packet {
	return many(n, func(i int) []byte {
		return udp(fmt.Sprintf("10.0.%d.%d", i/200, i%200+1), uint16(1000+i), "10.1.0.1", 53)
	})
}

func wireRows() []row {
	return []row{
		{name: "every kind of packet comes whole", packets: mixed(), clusters: []capture.Cluster{{}}},
		{name: "snap length", rings: []capture.Ring{{SnapLen: 64}}, packets: mixed(), clusters: []capture.Cluster{{}}},
		{name: "large packets", clusters: []capture.Cluster{{}}, packets: passed(append(udp("10.0.0.1", 1, "10.0.0.2", 2), make([]byte, 8000)...))},
		{name: "three clusters get a copy each", packets: mixed(), clusters: []capture.Cluster{{}, {Queues: 4}, {Queues: 3, Balance: capture.BalanceTwoTuple}}},
		{
			name: "two rings feed one cluster", clusters: []capture.Cluster{{Queues: 4}},
			rings: []capture.Ring{
				{Name: "one", Taps: []capture.Tap{{Interface: "tapped", Direction: capture.Receive}}},
				{Name: "two", Taps: []capture.Tap{{Interface: "tapped2", Direction: capture.Receive}}},
			},
			packets: append(flows(20), packet{frame: arp(), from: "sender2"}, packet{frame: icmp("10.0.0.1", "10.0.0.9"), from: "sender2"}),
		},
		{
			name: "one ring with two taps", clusters: []capture.Cluster{{}},
			rings: []capture.Ring{{Taps: []capture.Tap{
				{Interface: "tapped", Direction: capture.Receive}, {Interface: "tapped2", Direction: capture.Receive},
			}}},
			packets: []packet{{frame: arp()}, {frame: icmp("10.0.0.1", "10.0.0.9"), from: "sender2"}, {frame: udp("10.0.0.1", 1, "10.0.0.2", 2)}},
		},
	}
}

func filterRows() []row {
	onlyUDP := program(
		bpf.LoadAbsolute{Off: 12, Size: 2}, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0x800, SkipTrue: 3},
		bpf.LoadAbsolute{Off: 23, Size: 1}, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 17, SkipTrue: 1},
		bpf.RetConstant{Val: 65535}, bpf.RetConstant{},
	)
	short := program(bpf.LoadExtension{Num: bpf.ExtLen}, bpf.JumpIf{Cond: bpf.JumpGreaterThan, Val: 61, SkipTrue: 1},
		bpf.RetConstant{Val: 1}, bpf.RetConstant{})
	a, b := udp("10.0.0.1", 1, "10.0.0.2", 2), tcp("10.0.0.1", 1, "10.0.0.2", 2, flagSYN)
	return []row{
		{name: "BPF", rings: []capture.Ring{{Filter: onlyUDP}}, clusters: []capture.Cluster{{}}, packets: slices.Concat(passed(a), filtered(b, arp()), passed(a))},
		{name: "BPF by length", rings: []capture.Ring{{Filter: short}}, clusters: []capture.Cluster{{}}, packets: slices.Concat(passed(a, arp()), filtered(b))},
		{
			name: "VLANs", rings: []capture.Ring{{VLANs: []uint16{0, 7, 4094}}}, clusters: []capture.Cluster{{}},
			packets: slices.Concat(passed(a, tagged(a, 0x8100<<16|7), tagged(a, 0x88a8<<16|4094, 0x8100<<16|9), tagged(a, 0x8100<<16|0xe007)),
				filtered(tagged(a, 0x8100<<16|8), tagged(a, 0x8100<<16|9, 0x8100<<16|7))),
		},
	}
}

func balanceRows() []row {
	var rows []row
	for name, balance := range map[string]capture.Balance{
		"Flow": capture.BalanceFlow, "FiveTuple": capture.BalanceFiveTuple, "FourTuple": capture.BalanceFourTuple,
		"TwoTuple": capture.BalanceTwoTuple, "RoundRobin": capture.BalanceRoundRobin, "TCPFiveTuple": capture.BalanceTCPFiveTuple,
		"BothEnds": capture.BalanceBothEnds, "RxQueue": capture.BalanceRxQueue,
	} {
		packets := append(mixed(), flows(60)...)
		packets = append(packets, passed(by(1, arp()), by(2, arp()), by(2, icmp("10.0.0.1", "10.0.0.7")))...)
		r := row{name: "balance " + name, clusters: []capture.Cluster{{Queues: 5, Balance: balance}}, packets: packets}
		rows = append(rows, r)
		if balance != capture.BalanceRoundRobin && balance != capture.BalanceRxQueue {
			inner := r
			inner.name, inner.clusters = "inner "+name, []capture.Cluster{{Queues: 5, Balance: balance, Inner: true}}
			inner.packets = append(many(30, func(i int) []byte {
				return vxlan(uint32(i), tcp(fmt.Sprintf("172.16.0.%d", i), 80, "172.16.1.1", 1000, flagACK))
			}), packets...)
			rows = append(rows, inner)
		}
	}
	slices.SortFunc(rows, func(x, y row) int { return slices.Compare([]byte(x.name), []byte(y.name)) })
	return rows
}

func policyRows() []row {
	a := func(queues ...int) []capture.QueueID {
		var ids []capture.QueueID
		for _, queue := range queues {
			ids = append(ids, capture.QueueID{Cluster: "a", Queue: queue})
		}
		return ids
	}
	oneFlow := many(150, func(i int) []byte {
		return append(udp("10.0.0.1", 1, "10.0.0.2", 2), append([]byte{byte(i)}, make([]byte, 1400)...)...)
	})
	return []row{
		{name: "unattended queues drop", clusters: []capture.Cluster{{Queues: 4}}, unattended: a(1, 3), packets: flows(80)},
		{name: "all unattended drop", clusters: []capture.Cluster{{Queues: 2}}, unattended: a(0, 1), packets: flows(20)},
		{name: "unattended queues have stand-ins", clusters: []capture.Cluster{{Queues: 6, WhenUnattended: capture.PolicySpread}}, unattended: a(1, 3), packets: flows(150)},
		{name: "nobody to stand in", clusters: []capture.Cluster{{Queues: 3, WhenUnattended: capture.PolicySpread}}, unattended: a(0, 1, 2), packets: flows(20)},
		{name: "stand-ins with BothEnds", clusters: []capture.Cluster{{Queues: 5, Balance: capture.BalanceBothEnds, WhenUnattended: capture.PolicySpread}}, unattended: a(2), packets: flows(100)},
		{
			name: "a full queue drops", clusters: []capture.Cluster{{Queues: 2, QueueBytes: 128 << 10}}, packets: oneFlow,
			check: func(t *testing.T, r result) {
				state := r.observed.Clusters["a"]
				delivered, full := sum(state, func(q capture.QueueStats) uint64 { return q.Delivered }), sum(state, func(q capture.QueueStats) uint64 { return q.Dropped[capture.DropFull] })
				require.EqualValues(t, 150, delivered+full)
				require.InDelta(t, 89, delivered, 3, "as many as fit")
				require.Zero(t, state.Spread)
			},
		},
		{
			name: "a full queue has a stand-in", clusters: []capture.Cluster{{Queues: 2, QueueBytes: 128 << 10, WhenFull: capture.PolicySpread}}, packets: oneFlow,
			check: func(t *testing.T, r result) {
				state := r.observed.Clusters["a"]
				require.EqualValues(t, 150, sum(state, func(q capture.QueueStats) uint64 { return q.Delivered }))
				require.EqualValues(t, state.Spread, min(state.Queues[0].Delivered, state.Queues[1].Delivered))
				require.InDelta(t, 61, state.Spread, 3)
			},
		},
	}
}

func sum(state capture.ClusterState, what func(capture.QueueStats) uint64) uint64 {
	var n uint64
	for _, q := range state.Queues {
		n += what(q)
	}
	return n
}

func fragmentRows() []row {
	const n = 24
	var together, withFlow, reversed []packet
	for i := range n {
		address := fmt.Sprintf("10.0.1.%d", i+1)
		whole := udp(address, uint16(2000+i), "10.1.0.1", 53)
		parts := datagram(uint16(i+1), address, uint16(2000+i), "10.1.0.1", 53)
		together = append(together, passed(whole, parts[0], parts[1])...)
		withFlow = append(withFlow, packet{frame: whole}, packet{frame: parts[0], hashedAs: whole}, packet{frame: parts[1], hashedAs: whole})
		// The second fragment comes first. Nobody knows the flow, and all of the datagram stays together.
		reversed = append(reversed, passed(parts[1], parts[0])...)
		address = fmt.Sprintf("2001:db8::1:%x", i+1)
		whole = udp(address, uint16(2000+i), "2001:db8::2", 53)
		parts = datagram6(uint32(i+1), address, uint16(2000+i), "2001:db8::2", 53)
		together = append(together, passed(whole, parts[0], parts[1])...)
		withFlow = append(withFlow, packet{frame: whole}, packet{frame: parts[0], hashedAs: whole}, packet{frame: parts[1], hashedAs: whole})
		reversed = append(reversed, passed(parts[1], parts[0])...)
	}
	withFlows := []capture.Cluster{{Queues: 8, Fragments: capture.FragmentsWithFlow}}
	// Datagrams with the same identification, one after the other: a complete one is forgotten.
	var reused []packet
	for i := range 3 {
		parts, whole := datagram(77, "10.0.0.1", uint16(3000+i), "10.1.0.1", 53), udp("10.0.0.1", uint16(3000+i), "10.1.0.1", 53)
		reused = append(reused, packet{frame: parts[0], hashedAs: whole}, packet{frame: parts[1], hashedAs: whole})
	}
	return []row{
		{name: "fragments stay together", clusters: []capture.Cluster{{Queues: 8}}, packets: together},
		{name: "fragments go with their flow", clusters: withFlows, packets: withFlow},
		{name: "fragments without their first", clusters: withFlows, packets: reversed},
		{name: "fragments of an identification that comes again", clusters: withFlows, packets: reused},
		{name: "fragments, for two clusters", clusters: []capture.Cluster{{Queues: 8, Fragments: capture.FragmentsWithFlow}, {Queues: 5, Fragments: capture.FragmentsWithFlow, Balance: capture.BalanceFourTuple}}, packets: withFlow},
	}
}

func pointer[T any](value T) *T { return &value }

func rules(set ...capture.WildcardRule) []capture.Ring {
	return []capture.Ring{{Rules: capture.RuleSet{Wildcard: set}}}
}

// decided are packets that a wildcard rule decides on.
func decided(rule uint32, packets []packet) []packet {
	for i := range packets {
		packets[i].rule = rule
	}
	return packets
}

func ruleRows() []row {
	a, b := udp("10.0.0.1", 1000, "10.1.0.1", 53), tcp("10.0.0.1", 1001, "10.1.0.1", 80, flagSYN)
	back := tcp("10.1.0.1", 80, "10.0.0.1", 1001, flagSYN|flagACK)
	more := tcp("10.0.0.1", 1001, "10.1.0.1", 80, flagACK)
	six := tcp("2001:db8::1", 1001, "2001:db8:1::1", 80, flagSYN)
	one, net10 := netip.MustParsePrefix("10.0.0.1/32"), netip.MustParsePrefix("10.0.0.0/16")
	drop := func(m capture.Match) capture.RuleSet {
		return capture.RuleSet{Wildcard: []capture.WildcardRule{{ID: 5, Match: m, Action: capture.ActionDrop}}}
	}
	// matching is a row for a field: which of the packets match.
	matching := func(name string, m capture.Match, yes, no [][]byte) row {
		return row{
			name: "rule on " + name, rings: []capture.Ring{{Rules: drop(m)}}, clusters: []capture.Cluster{{Queues: 2}},
			packets: slices.Concat(decided(5, filtered(yes...)), passed(no...)),
		}
	}
	frames := func(frames ...[]byte) [][]byte { return frames }
	toQueue := capture.Target{Queue: capture.QueueID{Cluster: "b", Queue: 1}}
	exact := func(action capture.Action) capture.ExactRule {
		return capture.ExactRule{Source: netip.MustParseAddrPort("10.0.0.1:1001"), Destination: netip.MustParseAddrPort("10.1.0.1:80"), Protocol: 6, Action: action}
	}
	tunnelled := gre(5, ip("172.16.0.1", "172.16.0.3", 17, udpHeader(7, 9, nil)))
	rows := []row{
		matching("a source network", capture.Match{Source: net10}, frames(a, b, more), frames(back, six, arp())),
		matching("a destination address", capture.Match{Destination: one}, frames(back), frames(a, b, six)),
		matching("an IPv6 prefix", capture.Match{Destination: netip.MustParsePrefix("2001:db8:1::/48")}, frames(six), frames(a, udp("2001:db8::1", 1, "2001:db8::2", 2))),
		matching("source and destination", capture.Match{Source: one, Destination: netip.MustParsePrefix("10.1.0.0/24")}, frames(a, b), frames(back, six)),
		matching("a protocol", capture.Match{Protocol: pointer[uint8](6)}, frames(b, back, six), frames(a, icmp("10.0.0.1", "10.1.0.1"), arp())),
		matching("a range of source ports", capture.Match{SourcePorts: &capture.PortRange{First: 1000, Last: 1001}}, frames(a, b, six), frames(back, udp("10.0.0.1", 1002, "10.1.0.1", 53), icmp("10.0.0.1", "10.1.0.1"))),
		matching("destination ports from 1", capture.Match{DestinationPorts: &capture.PortRange{First: 1, Last: 65534}}, frames(a, b, back), frames(udp("10.0.0.1", 5, "10.1.0.1", 65535), arp())),
		matching("TCP flags", capture.Match{TCPFlags: &capture.TCPFlags{Flags: flagSYN, Mask: flagSYN | flagACK}}, frames(b, six), frames(back, more, a)),
		matching("a MAC address", capture.Match{SourceMAC: &[6]byte{2, 0, 0, 0, 0, 2}}, frames(by(1, a), by(1, arp())), frames(a, b)),
		matching("a destination MAC address", capture.Match{DestinationMAC: &[6]byte{2, 0, 0, 0, 0, 2}}, frames(a, arp()), frames(append([]byte{2, 0, 0, 0, 0, 3}, a[6:]...))),
		matching("an ethertype", capture.Match{EtherType: pointer[uint16](0x806)}, frames(arp(), tagged(arp(), 0x8100<<16|3)), frames(a, six)),
		matching("a VLAN", capture.Match{VLAN: pointer[uint16](7)}, frames(tagged(a, 0x8100<<16|7), tagged(a, 0x8100<<16|7, 0x8100<<16|8)), frames(a, tagged(a, 0x8100<<16|8))),
		matching("no VLAN", capture.Match{VLAN: pointer[uint16](0)}, frames(a, arp()), frames(tagged(a, 0x8100<<16|7))),
		matching("a second VLAN", capture.Match{InnerVLAN: pointer[uint16](8)}, frames(tagged(a, 0x8100<<16|7, 0x8100<<16|8)), frames(tagged(a, 0x8100<<16|8), a)),
		matching("a tunnel's id", capture.Match{TunnelID: pointer[uint32](5)}, frames(tunnelled, vxlan(5, a)), frames(vxlan(6, a), a)),
		matching("an inner address", capture.Match{InnerSource: netip.MustParsePrefix("172.16.0.0/24"), InnerDestination: netip.MustParsePrefix("172.16.0.3/32")}, frames(tunnelled), frames(vxlan(5, a), udp("172.16.0.1", 7, "172.16.0.3", 9))),
		{
			name: "a rule in both directions", rings: rules(capture.WildcardRule{ID: 9, Both: true, Action: capture.ActionDrop,
				Match: capture.Match{Source: one, DestinationPorts: &capture.PortRange{First: 80, Last: 80}}}),
			clusters: []capture.Cluster{{}}, packets: slices.Concat(decided(9, filtered(b, back, more)), passed(a, six)),
		},
		{
			name: "priorities, and the smaller id among equals",
			rings: []capture.Ring{{Rules: capture.RuleSet{Default: capture.ActionDrop, Wildcard: []capture.WildcardRule{
				{ID: 1, Priority: 1, Match: capture.Match{Source: net10}, Action: capture.ActionDrop},
				{ID: 4, Priority: 7, Match: capture.Match{Protocol: pointer[uint8](17)}},
				{ID: 3, Priority: 7, Match: capture.Match{DestinationPorts: &capture.PortRange{First: 53, Last: 53}}},
				{ID: 2, Priority: 9, Match: capture.Match{DestinationPorts: &capture.PortRange{First: 99, Last: 99}}, Action: capture.ActionDrop},
			}}}},
			clusters: []capture.Cluster{{Queues: 2}},
			packets: slices.Concat(decided(3, passed(a)), decided(1, filtered(b)), decided(2, filtered(udp("10.0.0.1", 1, "10.1.0.1", 99))),
				decided(4, passed(udp("10.9.0.1", 1, "10.1.0.1", 98))), filtered(six, arp())),
		},
		{name: "default drop", rings: []capture.Ring{{Rules: capture.RuleSet{Default: capture.ActionDrop, Exact: []capture.ExactRule{exact(capture.ActionPass)}}}},
			clusters: []capture.Cluster{{}}, packets: slices.Concat(passed(b, back, more), filtered(a, six, arp()))},
		{
			name: "exact rules come before wildcard rules",
			rings: []capture.Ring{{Rules: capture.RuleSet{
				Exact: []capture.ExactRule{exact(capture.ActionPass), {Source: netip.MustParseAddrPort("[2001:db8::1]:1001"),
					Destination: netip.MustParseAddrPort("[2001:db8:1::1]:80"), Protocol: 6, Action: capture.ActionDrop}},
				Wildcard: []capture.WildcardRule{{ID: 1, Priority: 100, Match: capture.Match{Protocol: pointer[uint8](6)}, Action: capture.ActionDrop}},
			}}},
			clusters: []capture.Cluster{{Queues: 3}},
			packets:  slices.Concat(passed(b, back, more, a), filtered(six), decided(1, filtered(tcp("10.0.0.1", 1002, "10.1.0.1", 80, flagSYN), tagged(b, 0x8100<<16|7)))),
		},
		{
			name: "a flow is learnt",
			rings: []capture.Ring{{Rules: capture.RuleSet{Default: capture.ActionDrop, Wildcard: []capture.WildcardRule{
				{ID: 1, Match: capture.Match{TCPFlags: &capture.TCPFlags{Flags: flagSYN, Mask: flagSYN | flagACK}}, Action: capture.ActionLearn},
			}}}},
			clusters: []capture.Cluster{{Queues: 2}},
			packets:  slices.Concat(filtered(more), decided(1, passed(b)), passed(back, more, b), filtered(a)),
		},
		{
			name: "to a queue and nowhere else", rings: []capture.Ring{{Outputs: []string{"a"}, Rules: capture.RuleSet{
				Wildcard: []capture.WildcardRule{{ID: 8, Match: capture.Match{Protocol: pointer[uint8](17)}, Action: capture.ActionQueue, Target: toQueue}}}}},
			clusters: []capture.Cluster{{Queues: 2}, {Queues: 2}},
			packets:  slices.Concat([]packet{{frame: a, fate: isDirected, to: toQueue.Queue, rule: 8}}, passed(b, six), []packet{{frame: a, fate: isDirected, to: toQueue.Queue, rule: 8}}),
		},
		{
			name: "out of an interface and nowhere else", rings: []capture.Ring{{Rules: capture.RuleSet{
				Wildcard: []capture.WildcardRule{{ID: 8, Match: capture.Match{Protocol: pointer[uint8](17)}, Action: capture.ActionReflect, Target: capture.Target{Interface: "tapped2"}}}}}},
			clusters: []capture.Cluster{{}},
			packets:  slices.Concat([]packet{{frame: a, fate: isReflected, rule: 8}}, passed(b)),
		},
	}
	var all []capture.WildcardRule
	for i := range 2000 {
		all = append(all, capture.WildcardRule{ID: uint32(i + 1), Priority: uint32(i % 7), Action: capture.ActionDrop,
			Match: capture.Match{Source: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 2, byte(i >> 8), byte(i)}), 32)}})
	}
	return append(rows, row{
		name: "two thousand rules", rings: rules(all...), clusters: []capture.Cluster{{}},
		packets: slices.Concat(decided(1000, filtered(udp("10.2.3.231", 1, "10.1.0.1", 2))), decided(2000, filtered(udp("10.2.7.207", 1, "10.1.0.1", 2))), passed(udp("10.2.7.208", 1, "10.1.0.1", 2))),
	})
}

func sampleRows() []row {
	const n = 4000
	packets := many(n, func(i int) []byte { return udp("10.0.0.1", uint16(i%200), "10.1.0.1", uint16(i%2+1)) })
	consistent := func(t *testing.T, r result) {
		s := r.observed.Rings["ring"].Stats
		require.EqualValues(t, n, s.SampledOut+s.Passed)
		require.Zero(t, s.Filtered)
	}
	return []row{
		{name: "a sample of packets", rings: []capture.Ring{{Sampling: capture.Sampling{OneIn: 10}}}, clusters: []capture.Cluster{{QueueBytes: 4 << 20}}, packets: packets,
			check: func(t *testing.T, r result) {
				consistent(t, r)
				require.InDelta(t, n/10, r.observed.Rings["ring"].Stats.Passed, 5*19, "five standard deviations")
			}},
		{name: "a sample of flows", rings: []capture.Ring{{Sampling: capture.Sampling{OneIn: 4, ByFlow: true}}}, clusters: []capture.Cluster{{QueueBytes: 4 << 20}}, packets: packets,
			check: func(t *testing.T, r result) {
				consistent(t, r)
				byFlow := map[string]int{}
				for _, p := range r.queues[capture.QueueID{Cluster: "a"}] {
					byFlow[string(p.data[26:38])]++
				}
				require.InDelta(t, 50, len(byFlow), 5*6.2, "of 200 flows")
				for flow, packets := range byFlow {
					require.Equal(t, n/200, packets, "all packets of flow % x", flow)
				}
			}},
	}
}

func tapRows() []row {
	both := []capture.Tap{{Interface: "sender", Direction: capture.Both}}
	sent := []capture.Tap{{Interface: "sender", Direction: capture.Transmit}}
	a, b := udp("10.0.0.1", 1, "10.0.0.2", 2), tcp("10.0.0.3", 1, "10.0.0.2", 2, flagSYN)
	return []row{
		{name: "what is sent", rings: []capture.Ring{{Taps: sent}}, clusters: []capture.Cluster{{Queues: 2}}, packets: []packet{{frame: a}, {frame: b, from: "tapped", fate: isUnseen}, {frame: b}}},
		{name: "both directions", rings: []capture.Ring{{Taps: both}}, clusters: []capture.Cluster{{Queues: 1}}, packets: []packet{{frame: a}, {frame: b, from: "tapped"}, {frame: b}}},
		{name: "some receive queues", rings: []capture.Ring{{Taps: []capture.Tap{{Interface: "tapped", Direction: capture.Receive, RxQueues: []uint16{1}}}}},
			clusters: []capture.Cluster{{}},
			packets:  []packet{{frame: by(0, a), fate: isUnseen}, {frame: by(1, a)}, {frame: by(2, b), fate: isUnseen}, {frame: by(1, b)}}},
	}
}

// quickRows: quick mode is accepted by both engines, and nothing is different.
func quickRows() []row {
	both := []packet{{frame: udp("10.0.0.1", 1, "10.0.0.2", 2)}, {frame: udp("10.0.0.3", 3, "10.0.0.4", 4)}, {frame: udp("10.0.0.2", 2, "10.0.0.1", 1)}}
	return []row{
		{name: "quick mode", rings: []capture.Ring{{Quick: true}}, clusters: []capture.Cluster{{Queues: 1}}, packets: both},
		{name: "quick mode beside queues by flow", rings: []capture.Ring{{Quick: true}}, clusters: []capture.Cluster{{Queues: 4}}, packets: both},
	}
}

func modeRows() []row {
	onlyUDP := program(
		bpf.LoadAbsolute{Off: 12, Size: 2}, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0x800, SkipTrue: 3},
		bpf.LoadAbsolute{Off: 23, Size: 1}, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 17, SkipTrue: 1},
		bpf.RetConstant{Val: 65535}, bpf.RetConstant{},
	)
	needsAware := map[string]string{byModule: "capture-aware"}
	var rows []row
	for mode := capture.TransparentMode(1); mode <= 2; mode++ {
		rows = append(rows,
			row{name: fmt.Sprintf("mode %d", mode), rings: []capture.Ring{{Mode: mode}}, clusters: []capture.Cluster{{Queues: 4}}, packets: append(mixed(), flows(40)...), stack: pointer(int(2-mode) * (len(mixed()) + 40)), lacks: needsAware},
			row{name: fmt.Sprintf("mode %d with a filter, rules and a snap length", mode), lacks: needsAware, stack: pointer(int(2-mode) * 5),
				rings: []capture.Ring{{Mode: mode, Filter: onlyUDP, SnapLen: 64, Rules: capture.RuleSet{Wildcard: []capture.WildcardRule{
					{ID: 3, Match: capture.Match{DestinationPorts: &capture.PortRange{First: 53, Last: 53}}, Action: capture.ActionDrop}}}}},
				clusters: []capture.Cluster{{Queues: 4, Inner: true, Fragments: capture.FragmentsWithFlow}},
				packets: slices.Concat(passed(udp("10.0.0.1", 1, "10.0.0.2", 2)), filtered(arp(), tcp("10.0.0.1", 1, "10.0.0.2", 2, 0)),
					decided(3, filtered(udp("10.0.0.1", 1, "10.0.0.2", 53))), passed(vxlan(1, tcp("10.0.0.1", 1, "10.0.0.2", 2, 0))))},
			row{name: fmt.Sprintf("mode %d of what is sent", mode), rings: []capture.Ring{{Mode: mode, Taps: []capture.Tap{{Interface: "sender", Direction: capture.Transmit}}}},
				clusters: []capture.Cluster{{}}, lacks: map[string]string{byEBPF: "XDP sees what is received", byModule: "capture-aware"}},
			row{name: fmt.Sprintf("mode %d and reflecting", mode), rings: []capture.Ring{{Mode: mode, Rules: capture.RuleSet{Default: capture.ActionReflect, DefaultTarget: capture.Target{Interface: "tapped2"}}}},
				clusters: []capture.Cluster{{}}, lacks: map[string]string{byEBPF: "reflecting", byModule: "capture-aware"}},
		)
	}
	onBridge := capture.Ring{Mode: 2, Taps: []capture.Tap{{Interface: "bridge", Direction: capture.Receive}}}
	generic := onBridge
	generic.XDP = capture.XDPGenericAllowed
	two := []capture.Ring{{Name: "one", Mode: 1}, {Name: "two", Mode: 1}}
	return append(rows,
		row{name: "mode 0 and the stack", clusters: []capture.Cluster{{}}, packets: mixed(), stack: pointer(len(mixed()))},
		row{name: "a driver without native XDP", rings: []capture.Ring{onBridge}, clusters: []capture.Cluster{{}}, lacks: map[string]string{byEBPF: "no native XDP", byModule: "capture-aware"}},
		row{name: "generic XDP, allowed by name", rings: []capture.Ring{generic}, clusters: []capture.Cluster{{}}, lacks: needsAware,
			packets: []packet{{frame: broadcast(arp()), from: "sender3"}, {frame: append(broadcast(arp()), 1), from: "sender3"}}},
		row{name: "two rings of mode 1 on an interface", rings: two, clusters: []capture.Cluster{{}}, lacks: map[string]string{byEBPF: `has an XDP program already, of ring "one"`, byModule: "capture-aware"}},
	)
}

func broadcast(frame []byte) []byte {
	return append([]byte{255, 255, 255, 255, 255, 255}, frame[6:]...)
}

// refusedRows are what the eBPF engine has not: that the module has it, its own tests show.
func refusedRows() []row {
	var rows []row
	for words, ring := range map[string]capture.Ring{
		"defragmentation":      {Defragment: true},
		"hardware time stamps": {HardwareTime: true},
		"payload patterns":     {Rules: capture.RuleSet{Patterns: tooManyStates()}},
	} {
		rows = append(rows, row{name: "lacks " + words, rings: []capture.Ring{ring}, clusters: []capture.Cluster{{}}, lacks: map[string]string{byEBPF: words}})
	}
	var shapes []capture.WildcardRule
	for i := range 65 {
		prefix := netip.PrefixFrom(netip.MustParseAddr("2001:db8::"), 33+i).Masked()
		shapes = append(shapes, capture.WildcardRule{ID: uint32(i + 1), Match: capture.Match{Source: prefix}})
	}
	// The module has none loaded here.
	rows = append(rows, row{name: "lacks plugins", only: byEBPF, rings: []capture.Ring{{Plugins: []capture.Plugin{{Name: "dns"}}}}, clusters: []capture.Cluster{{}},
		lacks: map[string]string{byEBPF: "plugins"}})
	rows = append(rows, row{name: "lacks more than 64 shapes", rings: rules(shapes...), clusters: []capture.Cluster{{}}, lacks: map[string]string{byEBPF: "mask shapes"}})
	slices.SortFunc(rows, func(x, y row) int { return slices.Compare([]byte(x.name), []byte(y.name)) })
	return rows
}
