// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// carrying is a UDP packet with a payload.
func carrying(payload string) []byte {
	return overEthernet(ip("10.0.0.1", "10.1.0.1", 17, udpHeader(1000, 53, []byte(payload))))
}

// matching are packets that the pattern of a number decides on, from 1 on.
func matching(pattern int, packets []packet) []packet {
	for i := range packets {
		packets[i].pattern = pattern
	}
	return packets
}

func searching(set capture.RuleSet, patterns ...capture.Pattern) []capture.Ring {
	set.Patterns = patterns
	return []capture.Ring{{Rules: set}}
}

func literal(text string) capture.Pattern { return capture.Pattern{Bytes: []byte(text)} }

func anyCase(text string) capture.Pattern {
	return capture.Pattern{Bytes: []byte(text), IgnoreCase: true}
}

// within must lie in depth bytes from offset on.
func within(text string, offset, depth uint32) capture.Pattern {
	return capture.Pattern{Bytes: []byte(text), Offset: offset, Depth: depth}
}

func payloadRows() []row {
	one := []capture.Cluster{{}}
	needle := literal("needle")
	rows := []row{
		{
			name: "payload patterns", rings: searching(capture.RuleSet{}, needle, anyCase("Host"), literal("\x00\xff\x00")), clusters: one,
			packets: slices.Concat(
				matching(1, passed(carrying("needle"), carrying("a needle in the stack"), carrying("needneedle"))),
				matching(2, passed(carrying("HOST: x"), carrying("ghost"))), matching(3, passed(carrying("\x00\x00\xff\x00"))),
				filtered(carrying("Needle"), carrying("needl"), carrying(""), carrying("\x00\xff\x01"))),
		},
		{
			name: "payload patterns that drop", rings: searching(capture.RuleSet{DropMatching: true}, needle, anyCase("host")), clusters: []capture.Cluster{{Queues: 3}},
			packets: slices.Concat(matching(1, filtered(carrying("a needle"))), matching(2, filtered(carrying("hOsT"))), passed(carrying("hay"), arp(), icmp("10.0.0.1", "10.1.0.1"))),
		},
		{
			name: "where payload begins and ends", rings: searching(capture.RuleSet{}, needle, within("start", 0, 5)), clusters: one,
			packets: payloadPlaces(),
		},
		{
			name: "which of several patterns counts", clusters: one,
			rings: searching(capture.RuleSet{}, literal("bcd"), literal("abcd"), anyCase("ABCD"), literal("abcd"), literal("abcdefgh"), literal("xbc"), anyCase("zABCD"), anyCase("qrs"), literal("qrs")),
			packets: slices.Concat(matching(2, passed(carrying("abcdefgh"))), matching(1, passed(carrying("bcd"))), matching(6, passed(carrying("xbcd"))),
				matching(7, passed(carrying("zabcd"))), matching(3, passed(carrying("aBcd"))), matching(9, passed(carrying("qrs"))), matching(8, passed(carrying("Qrs")))),
		},
		{
			name: "patterns with an offset and a depth", clusters: one,
			rings: searching(capture.RuleSet{}, within("aaa", 5, 4), within("aaa", 20, 0), within("head", 0, 6), capture.Pattern{Bytes: []byte("a"), Offset: 30, IgnoreCase: true}),
			packets: slices.Concat(
				matching(1, passed(carrying(".....aaa"), carrying("......aaa"), carrying("aaaaaaaaaaaa"))),
				matching(2, passed(carrying(".......aaa.............aaa"))), matching(3, passed(carrying("head"), carrying("..head"))),
				matching(4, passed(carrying(strings.Repeat(".", 30)+"A"))), filtered(carrying("...head"), carrying("aaa"), carrying(strings.Repeat("a.", 9)))),
		},
		{
			name: "rules come before patterns", clusters: []capture.Cluster{{Queues: 2}, {Queues: 2}},
			rings: []capture.Ring{{Outputs: []string{"a"}, Rules: capture.RuleSet{
				Patterns: []capture.Pattern{needle},
				Wildcard: []capture.WildcardRule{
					{ID: 1, Match: capture.Match{Protocol: pointer[uint8](6)}, Action: capture.ActionDrop},
					{ID: 2, Match: capture.Match{DestinationPorts: &capture.PortRange{First: 53, Last: 53}}, Action: capture.ActionQueue, Target: capture.Target{Queue: capture.QueueID{Cluster: "b", Queue: 1}}},
				},
			}}},
			packets: slices.Concat(decided(1, filtered(tcp("10.0.0.1", 1, "10.1.0.1", 2, flagSYN))), decided(2, filtered(carrying("hay"))),
				[]packet{{frame: carrying("needle"), fate: isDirected, to: capture.QueueID{Cluster: "b", Queue: 1}, rule: 2, pattern: 1}},
				filtered(arp()), matching(1, passed(append(arp()[:14], []byte("needle")...)))),
		},
		{
			name: "patterns behind the snap length", clusters: one, rings: []capture.Ring{{SnapLen: 64, Rules: capture.RuleSet{Patterns: []capture.Pattern{needle}}}},
			packets: slices.Concat(matching(1, passed(carrying(strings.Repeat(".", 8000)+"needle"), carrying(strings.Repeat("n", 3001)+"eedle"))), filtered(carrying(strings.Repeat("needl", 1600)))),
		},
		thousandPatterns(),
	}
	for mode := capture.TransparentMode(1); mode <= 2; mode++ {
		rows = append(rows, row{
			name: fmt.Sprintf("payload patterns in mode %d", mode), lacks: map[string]string{byModule: "capture-aware"}, clusters: one,
			rings:   []capture.Ring{{Mode: mode, Rules: capture.RuleSet{Patterns: []capture.Pattern{needle, anyCase("host")}}}},
			packets: slices.Concat(matching(1, passed(carrying("needle"), carrying(strings.Repeat(".", 3000)+"needle"))), matching(2, passed(carrying("HOST"))), filtered(carrying("hay"), arp())),
			stack:   pointer(int(2-mode) * 5),
		})
	}
	return rows
}

// payloadPlaces are packets of all kinds with "start" or "needle" at the edges of the payload.
func payloadPlaces() []packet {
	transport := func(header, payload string) []byte { return append([]byte(header), payload...) }
	tcpHeader := func(words byte) string {
		return string(ports(1, 2, 12)) + string([]byte{words << 4}) + strings.Repeat("o", int(words)*4-13)
	}
	over := func(protocol byte, header, payload string) []byte {
		return overEthernet(ip("10.0.0.1", "10.1.0.1", protocol, transport(header, payload)))
	}
	later := over(17, "", "start of a later fragment")
	binary.BigEndian.PutUint16(later[14+6:], 3)
	unsaid := carrying("no length needle")
	binary.BigEndian.PutUint16(unsaid[16:], 0)
	return slices.Concat(
		matching(2, passed(
			over(6, tcpHeader(5), "start"), over(6, tcpHeader(15), "start"), carrying("start"), over(136, strings.Repeat("u", 8), "start"),
			over(1, strings.Repeat("i", 8), "start"), over(132, strings.Repeat("s", 12), "start"), over(89, "", "start"), later,
			overEthernet(ip("2001:db8::1", "2001:db8::2", 17, udpHeader(1, 2, []byte("start")))),
			overEthernet(ip("2001:db8::1", "2001:db8::2", 6, transport(tcpHeader(6), "start"))),
			overEthernet(ip("2001:db8::1", "2001:db8::2", 58, transport(strings.Repeat("i", 8), "start"))),
			overEthernet(ip("2001:db8::1", "2001:db8::2", 0, append([]byte{17, 0, 1, 4, 0, 0, 0, 0}, udpHeader(1, 2, []byte("start"))...))),
			tagged(carrying("start"), 0x8100<<16|7), tagged(carrying("start"), 0x88a8<<16|100, 0x8100<<16|200),
			ethernet(0x88b5, []byte("start")), tagged(ethernet(0x88b5, []byte("start")), 0x8100<<16|7),
			tagged(ethernet(0x88b5, []byte("start")), 0x88a8<<16|100, 0x8100<<16|200),
		)),
		matching(1, passed(
			unsaid, vxlan(7, carrying("needle")), gre(5, ip("172.16.0.1", "172.16.0.3", 17, udpHeader(7, 9, []byte("needle")))),
			over(1, strings.Repeat("i", 8), "needle"), over(89, "", "a needle"),
		)),
		filtered(
			// In the headers, and in what the wire adds.
			append(carrying("hay"), []byte("needle")...), over(6, "needlestartneedlestart", ""),
			carrying(".start"), append(ethernet(0x0806, []byte("..start")), 0), over(17, "needle", ""),
		),
	)
}

func thousandPatterns() row {
	var patterns []capture.Pattern
	for i := range 1000 {
		patterns = append(patterns, capture.Pattern{Bytes: fmt.Appendf(nil, "Needle%03dend", i), IgnoreCase: i%2 == 1})
	}
	return row{
		name: "a thousand patterns", rings: searching(capture.RuleSet{}, patterns...), clusters: []capture.Cluster{{Queues: 4}},
		packets: slices.Concat(matching(1, passed(carrying("Needle000end"))), matching(1000, passed(carrying("NEEDLE999END"))), matching(501, passed(carrying(strings.Repeat("needle501en", 99)+"Needle500end"))),
			filtered(carrying("needle500end"), carrying("NeedleNeedle00"))),
	}
}

// tooManyStates are more than the eBPF engine's table holds.
func tooManyStates() []capture.Pattern {
	var patterns []capture.Pattern
	for i := range 2000 {
		text := make([]byte, 255)
		for at := range text {
			text[at] = byte(i*7 + at*at + i*at>>3)
		}
		patterns = append(patterns, capture.Pattern{Bytes: text})
	}
	return patterns
}
