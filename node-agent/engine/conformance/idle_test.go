// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"net/netip"
	"slices"
	"time"

	"github.com/ringcap/ringcap/node-agent/capture"
)

const (
	// idle is the rules' idle time, in time a packet that comes well within it, over a wait after which the module, which
	// looks at its rules every quarter of it, has taken them away.
	idle   = 2 * time.Second
	inTime = idle / 3
	over   = 3 * idle
)

// tries is how often a row is tried on a machine that is too slow for its idle times. Each try has twice the times of
// the one before.
const tries = 5

// pace tells whether what must come within the idle time did, since the rules were made or the last packet came.
type pace struct {
	idle time.Duration
	last time.Time
	late bool
}

// made is called when the rules are there, with when the engine was told of them. The kernel module's idle times begin
// then. Those of the eBPF engine begin when its programs are in place, which is the last that it does: where the machine
// is emulated, the kernel takes seconds to verify a program.
func (p *pace) made(engine string, told time.Time) {
	p.last = told
	if engine == "EBPF" {
		p.last = time.Now()
	}
}

// reached is called after wait and all that was done since the last one, or since the rules were made.
func (p *pace) reached(wait time.Duration) {
	p.late = p.late || wait < p.idle && time.Since(p.last) >= p.idle
	p.last = time.Now()
}

// slower is the row with times that are a factor longer.
func (r row) slower(factor time.Duration) row {
	r.packets = slices.Clone(r.packets)
	for i := range r.packets {
		r.packets[i].wait *= factor
	}
	r.rings = slices.Clone(r.rings)
	for i := range r.rings {
		rules := &r.rings[i].Rules
		rules.Wildcard, rules.Exact = slices.Clone(rules.Wildcard), slices.Clone(rules.Exact)
		for j := range rules.Wildcard {
			rules.Wildcard[j].Idle *= factor
		}
		for j := range rules.Exact {
			rules.Exact[j].Idle *= factor
		}
	}
	return r
}

// later makes the first of packets wait.
func later(wait time.Duration, packets []packet) []packet {
	packets[0].wait = wait
	return packets
}

func idleRows() []row {
	a, b := udp("10.0.0.1", 1000, "10.1.0.1", 53), tcp("10.0.0.1", 1001, "10.1.0.1", 80, flagSYN)
	more, other := tcp("10.0.0.1", 1001, "10.1.0.1", 80, flagACK), tcp("10.0.0.1", 1002, "10.1.0.1", 80, flagACK)
	learnt, learntMore := tcp("10.0.0.1", 1003, "10.1.0.1", 80, flagSYN), tcp("10.0.0.1", 1003, "10.1.0.1", 80, flagACK)
	protocol := func(number uint8) capture.Match { return capture.Match{Protocol: &number} }
	syn := capture.Match{TCPFlags: &capture.TCPFlags{Flags: flagSYN, Mask: flagSYN | flagACK}}
	exact := capture.ExactRule{Source: netip.MustParseAddrPort("10.0.0.1:1001"), Destination: netip.MustParseAddrPort("10.1.0.1:80"), Protocol: 6, Action: capture.ActionPass, Idle: idle}
	forEver := exact
	forEver.Source, forEver.Idle = netip.MustParseAddrPort("10.0.0.1:1002"), 0
	return []row{
		{
			// Two rules have the same match: the second counts once the first has expired. The rule for UDP is kept by its packets.
			name: "a rule goes when it is idle", clusters: []capture.Cluster{{}}, gone: []uint32{1},
			rings: []capture.Ring{{Rules: capture.RuleSet{Default: capture.ActionDrop, Wildcard: []capture.WildcardRule{
				{ID: 1, Priority: 9, Match: protocol(6), Idle: idle}, {ID: 2, Priority: 5, Match: protocol(6), Action: capture.ActionDrop},
				{ID: 3, Match: protocol(17), Idle: idle},
			}}}},
			packets: slices.Concat(decided(1, passed(b)), later(inTime, decided(3, passed(a))), decided(1, passed(b)),
				later(inTime, decided(3, passed(a))), later(inTime, decided(3, passed(a))), later(inTime, decided(3, passed(a))),
				later(inTime, decided(3, passed(a))), later(inTime, decided(3, passed(a))), later(inTime, decided(3, passed(a))),
				later(inTime, decided(3, passed(a))), later(inTime, decided(3, passed(a))),
				decided(2, filtered(b))),
		},
		{
			// A learnt flow expires; the rule that learns stays.
			name: "exact rules and learnt flows go when they are idle", clusters: []capture.Cluster{{}},
			rings: []capture.Ring{{Rules: capture.RuleSet{Default: capture.ActionDrop, Exact: []capture.ExactRule{exact, forEver},
				Wildcard: []capture.WildcardRule{{ID: 1, Match: syn, Action: capture.ActionLearn, Idle: idle}}}}},
			packets: slices.Concat(passed(more, other), decided(1, passed(learnt)), passed(learntMore), later(inTime, passed(more, learntMore)),
				later(over, filtered(more, learntMore)), passed(other), decided(1, passed(learnt)), passed(learntMore), filtered(a)),
		},
	}
}
