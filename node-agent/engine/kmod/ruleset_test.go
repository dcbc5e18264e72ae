// SPDX-License-Identifier: Apache-2.0

package kmod

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/node-agent/capture"
)

func pointer[T any](value T) *T { return &value }

// plain is the lab's plan without its filter: everything that is sent is asked about.
func (l *lab) plain(change func(*capture.Ring, *capture.Cluster)) capture.Plan {
	p := l.plan(2)
	p.Rings[0].Filter, p.Rings[0].Promiscuous = nil, true
	change(&p.Rings[0], &p.Clusters[0])
	return p
}

// udp is a packet of UDP, of a source address 10.0.0.n, with a payload.
func udp(n byte, payload string) []byte {
	packet := []byte{
		2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0,
		0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, n, 10, 1, 0, 1, 3, 0xe8, 0, 53, 0, 0, 0, 0,
	}
	binary.BigEndian.PutUint16(packet[16:], uint16(28+len(payload)))
	binary.BigEndian.PutUint16(packet[38:], uint16(8+len(payload)))
	return append(packet, payload...)
}

func (l *lab) sendPacket(packet []byte) {
	l.t.Helper()
	require.NoError(l.t, unix.Sendto(l.socket, packet, 0, &unix.SockaddrLinklayer{Ifindex: l.sender, Halen: 6}))
}

// requireAccount: all that the ring saw is accounted for, and its queues' account is what it passed and directed to them.
func (l *lab) requireAccount(o capture.Observation) {
	l.t.Helper()
	s := o.Rings["mirror"].Stats
	require.Equal(l.t, s.Seen, s.Filtered+s.SampledOut+s.Reflected+s.Absorbed+s.Directed+s.Passed, "%+v", s)
	var queues uint64
	for _, queue := range o.Clusters["ids"].Queues {
		queues += queue.Delivered + queue.Shunted
		for _, n := range queue.Dropped {
			queues += n
		}
	}
	require.Equal(l.t, s.Passed+s.Directed+o.Clusters["ids"].Duplicated, queues)
}

func TestModuleRules(t *testing.T) {
	l := newLab(t)
	source := netip.MustParsePrefix("10.0.0.0/30")
	p := l.plain(func(r *capture.Ring, _ *capture.Cluster) {
		r.Rules.Wildcard = []capture.WildcardRule{
			{ID: 1, Priority: 5, Match: capture.Match{Source: source, Protocol: pointer(uint8(17))}, Action: capture.ActionDrop},
			{ID: 2, Match: capture.Match{DestinationPorts: &capture.PortRange{First: 50, Last: 60}}, Action: capture.ActionPass},
			{ID: 3, Priority: 9, Match: capture.Match{Source: netip.MustParsePrefix("10.0.0.5/32")}, Action: capture.ActionQueue,
				Target: capture.Target{Queue: capture.QueueID{Cluster: "ids", Queue: 1}}},
		}
		r.Rules.Default = capture.ActionDrop
	})
	require.Empty(t, l.apply(p))
	l.send(160, 17) // 16 flows of 10: 4 of them in the prefix, 1 directed
	o := l.seen(160)
	l.requireAccount(o)
	assert.Equal(t, capture.RingStats{Seen: 160, SeenBytes: 160 * 60, Filtered: 40, Directed: 10, Passed: 110}, o.Rings["mirror"].Stats)
	assert.Equal(t, map[uint32]capture.RuleStats{1: {Packets: 40, Bytes: 2400}, 2: {Packets: 110, Bytes: 6600}, 3: {Packets: 10, Bytes: 600}}, o.Rings["mirror"].Rules)

	// The same plan touches nothing: counters go on.
	require.Empty(t, l.apply(p))
	require.EqualValues(t, 40, l.observe().Rings["mirror"].Rules[1].Packets)

	// Other rules take their place as a whole; the ring and its account go on.
	p.Rings[0].Rules.Wildcard = p.Rings[0].Rules.Wildcard[:1]
	require.Empty(t, l.apply(p))
	l.send(16, 17)
	o = l.seen(176)
	l.requireAccount(o)
	assert.EqualValues(t, 40+16, o.Rings["mirror"].Stats.Filtered, "the default is to drop")
	assert.Equal(t, map[uint32]capture.RuleStats{1: {Packets: 4, Bytes: 240}}, o.Rings["mirror"].Rules)

	// Without rules everything passes.
	p.Rings[0].Rules = capture.RuleSet{}
	require.Empty(t, l.apply(p))
	l.send(16, 17)
	o = l.seen(192)
	l.requireAccount(o)
	assert.EqualValues(t, 110+16, o.Rings["mirror"].Stats.Passed)
	assert.Empty(t, o.Rings["mirror"].Rules)
	require.Empty(t, l.apply(p))
}

// A rule that names a queue which is not there is refused in the module's words, and the ring does not capture without it.
func TestModuleRefusesRules(t *testing.T) {
	l := newLab(t)
	p := l.plain(func(r *capture.Ring, _ *capture.Cluster) {
		r.Rules.Wildcard = []capture.WildcardRule{{ID: 1, Action: capture.ActionQueue,
			Target: capture.Target{Queue: capture.QueueID{Cluster: "ids", Queue: 9}}}}
	})
	failed := l.apply(p)
	require.Error(t, failed["mirror"])
	t.Log(failed["mirror"])
	l.send(16, 17)
	time.Sleep(100 * time.Millisecond)
	require.Zero(t, l.observe().Rings["mirror"].Stats.Seen)

	p.Rings[0].Rules.Wildcard[0].Target.Queue.Queue = 1
	require.Empty(t, l.apply(p), "the next plan finds what the last one left")
	l.send(16, 17)
	require.EqualValues(t, 16, l.seen(16).Rings["mirror"].Stats.Directed)
}

// Sets of any size go in batches, and come back with their counters.
func TestModuleLargeRuleSet(t *testing.T) {
	l := newLab(t)
	const rules, patterns = 10000, 1000
	p := l.plain(func(r *capture.Ring, _ *capture.Cluster) {
		r.Rules.Default = capture.ActionDrop
		for i := range rules {
			address := netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})
			r.Rules.Wildcard = append(r.Rules.Wildcard, capture.WildcardRule{
				ID: uint32(i + 1), Match: capture.Match{Source: netip.PrefixFrom(address, 32)}, Both: i%2 == 0,
			})
		}
		for i := range patterns {
			r.Rules.Patterns = append(r.Rules.Patterns, capture.Pattern{Bytes: fmt.Appendf(nil, "needle %04d in the stack", i)})
		}
	})
	start := time.Now()
	require.Empty(t, l.apply(p))
	t.Logf("%d rules and %d patterns applied in %s", rules, patterns, time.Since(start))
	for i := range 16 {
		l.sendPacket(udp(byte(i), fmt.Sprintf("a needle %04d in the stack", 990+i)))
	}
	o := l.seen(16)
	l.requireAccount(o)
	assert.EqualValues(t, 10, o.Rings["mirror"].Stats.Passed, "there are patterns up to 999")
	require.Len(t, o.Rings["mirror"].Rules, rules)
	require.Len(t, o.Rings["mirror"].Patterns, patterns)
	for i := range 16 {
		assert.EqualValues(t, 1, o.Rings["mirror"].Rules[uint32(i+1)].Packets)
	}
	for i, matches := range o.Rings["mirror"].Patterns {
		assert.Equal(t, i >= 990, matches == 1, "pattern %d: %d", i, matches)
	}
	start = time.Now()
	p.Rings[0].Rules.Wildcard[0].Priority = 1
	require.Empty(t, l.apply(p))
	t.Logf("one of %d rules changed in %s", rules, time.Since(start))
}

func TestModulePayload(t *testing.T) {
	l := newLab(t)
	p := l.plain(func(r *capture.Ring, _ *capture.Cluster) {
		r.Rules.Patterns = []capture.Pattern{
			{Bytes: []byte("EVIL"), IgnoreCase: true}, {Bytes: []byte("at4"), Offset: 4, Depth: 3},
		}
	})
	payloads := []string{"some evil thing", "nothing to see", "0123at4", "01234at4", "EviL"}
	send := func() {
		for _, payload := range payloads {
			l.sendPacket(udp(1, payload))
		}
	}
	require.Empty(t, l.apply(p))
	send()
	o := l.seen(5)
	l.requireAccount(o)
	assert.EqualValues(t, 3, o.Rings["mirror"].Stats.Passed)
	assert.Equal(t, []uint64{2, 1}, o.Rings["mirror"].Patterns)

	p.Rings[0].Rules.DropMatching = true
	require.Empty(t, l.apply(p))
	send()
	o = l.seen(10)
	l.requireAccount(o)
	assert.EqualValues(t, 3+2, o.Rings["mirror"].Stats.Passed)
}

func TestModuleSampling(t *testing.T) {
	l := newLab(t)
	p := l.plain(func(r *capture.Ring, _ *capture.Cluster) { r.Sampling = capture.Sampling{OneIn: 4} })
	require.Empty(t, l.apply(p))
	l.send(800, 17)
	o := l.seen(800)
	l.requireAccount(o)
	passed := o.Rings["mirror"].Stats.Passed
	assert.InDelta(t, 200, float64(passed), 80, "one in four, at random")

	p.Rings[0].Sampling.ByFlow = true
	require.Empty(t, l.apply(p))
	l.send(800, 17)
	o = l.seen(1600)
	l.requireAccount(o)
	assert.Zero(t, (o.Rings["mirror"].Stats.Passed-passed)%50, "all 50 packets of a flow or none")
}

// Every balance type and policy is taken as asked for, with the account whole.
func TestModuleQueueSettings(t *testing.T) {
	for name, change := range map[string]func(*capture.Ring, *capture.Cluster){
		"TCPFiveTuple":   func(_ *capture.Ring, c *capture.Cluster) { c.Balance = capture.BalanceTCPFiveTuple },
		"BothEnds":       func(_ *capture.Ring, c *capture.Cluster) { c.Balance = capture.BalanceBothEnds },
		"RxQueue":        func(_ *capture.Ring, c *capture.Cluster) { c.Balance = capture.BalanceRxQueue },
		"Inner":          func(_ *capture.Ring, c *capture.Cluster) { c.Inner = true },
		"WithFlow":       func(_ *capture.Ring, c *capture.Cluster) { c.Fragments = capture.FragmentsWithFlow },
		"WhenFull":       func(_ *capture.Ring, c *capture.Cluster) { c.WhenFull = capture.PolicySpread },
		"WhenUnattended": func(_ *capture.Ring, c *capture.Cluster) { c.WhenUnattended = capture.PolicySpread },
		"LongHeader":     func(_ *capture.Ring, c *capture.Cluster) { c.LongHeader = true },
		"Quick":          func(r *capture.Ring, c *capture.Cluster) { r.Quick, c.Queues = true, 1 },
		"RxQueues":       func(r *capture.Ring, _ *capture.Cluster) { r.Taps[0].RxQueues = []uint16{0} },
		"Untagged":       func(r *capture.Ring, _ *capture.Cluster) { r.VLANs = []uint16{0, 7} },
		"HardwareTime":   func(r *capture.Ring, _ *capture.Cluster) { r.HardwareTime = true },
		"Defragment":     func(r *capture.Ring, _ *capture.Cluster) { r.Defragment = true },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			require.Empty(t, l.apply(l.plain(change)))
			l.send(160, 17)
			o := l.seen(160)
			l.requireAccount(o)
			assert.EqualValues(t, 160, o.Rings["mirror"].Stats.Passed)
			duplicated := o.Clusters["ids"].Duplicated
			assert.Equal(t, name == "BothEnds", duplicated > 0, "%d duplicated", duplicated)
			require.Empty(t, l.apply(l.plain(change)), "nothing is left to do")
		})
	}
}

func TestModuleVLANs(t *testing.T) {
	l := newLab(t)
	require.Empty(t, l.apply(l.plain(func(r *capture.Ring, _ *capture.Cluster) { r.VLANs = []uint16{7} })))
	l.send(16, 17)
	tagged := udp(1, "")
	tagged = append(append(append([]byte{}, tagged[:12]...), 0x81, 0, 0, 7), tagged[12:]...)
	l.sendPacket(tagged)
	o := l.seen(17)
	l.requireAccount(o)
	assert.EqualValues(t, 16, o.Rings["mirror"].Stats.Filtered)
	assert.EqualValues(t, 1, o.Rings["mirror"].Stats.Passed)
}

// A ring enters and leaves quick mode in place, whatever its queues are.
func TestModuleQuickModeChanges(t *testing.T) {
	l := newLab(t)
	plain := func(*capture.Ring, *capture.Cluster) {}
	quick := func(r *capture.Ring, _ *capture.Cluster) { r.Quick = true }
	require.Empty(t, l.apply(l.plain(plain)))
	l.send(16, 17)
	l.seen(16)
	require.Empty(t, l.apply(l.plain(quick)))
	l.send(16, 17)
	o := l.seen(32)
	assert.EqualValues(t, 32, o.Rings["mirror"].Stats.Seen, "the same ring")
	require.Empty(t, l.apply(l.plain(plain)))
	l.send(16, 17)
	assert.EqualValues(t, 48, l.seen(48).Rings["mirror"].Stats.Seen)
}

// What the module cannot do is refused in its words.
func TestModuleRefusesWhatItLacks(t *testing.T) {
	l := newLab(t)
	for name, test := range map[string]struct {
		change  func(*capture.Ring, *capture.Cluster)
		message string
	}{
		"a plugin that is not loaded": {func(r *capture.Ring, _ *capture.Cluster) {
			r.Plugins = []capture.Plugin{{Name: "nosuch", Config: []byte("x")}}
		}, "RINGCAP_A_PLUGIN"},
		"an RX queue that is not there": {func(r *capture.Ring, _ *capture.Cluster) { r.Taps[0].RxQueues = []uint16{500} }, "RINGCAP_A_TAP_RX_QUEUES"},
	} {
		t.Run(name, func(t *testing.T) {
			failed := l.apply(l.plain(test.change))
			require.ErrorContains(t, failed["mirror"], test.message)
		})
	}
}

// What the plan accepts the module does, too.
func TestPatternEndsAreTheModules(t *testing.T) {
	require.EqualValues(t, patternEndsMax, capture.MaxPatternEnds)
}
