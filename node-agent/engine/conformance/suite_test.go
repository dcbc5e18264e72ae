// SPDX-License-Identifier: Apache-2.0

// Package conformance defines parity: a table of rings, clusters and packets, with the required result for each
// packet, runs over every engine. The row and docs/engines.md list what an engine lacks. The engine refuses it with
// an error that wraps capture.ErrUnsupported, which becomes the condition reason Unsupported.
package conformance

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/bpf"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// fate is what becomes of a packet in its ring.
type fate int

const (
	isPassed fate = iota
	isFiltered
	isReflected
	isDirected // to the queue that the packet names
	isUnseen
)

// packet is sent, and what must become of it.
type packet struct {
	frame []byte
	fate  fate
	// to is the queue of a packet that is directed.
	to capture.QueueID
	// rule is the id of the wildcard rule that decides on it.
	rule uint32
	// pattern is the number of the payload pattern that decides on it, from 1 on.
	pattern int
	// hashedAs is another frame by which the packet must be hashed: that of its flow.
	hashedAs []byte
	// wait is the time before it is sent.
	wait time.Duration
	// from is the interface that it is written to; "sender" without it.
	from string
}

func (p packet) sender() string {
	if p.from == "" {
		return "sender"
	}
	return p.from
}

// arrives is where what is written to an interface comes out.
var arrives = map[string]string{
	"sender": "tapped", "sender2": "tapped2", "tapped": "sender", "tapped2": "sender2", "sender3": "bridge",
}

// row is a line of the table. By default, its ring is called "ring" and taps what "tapped" receives. Its clusters are
// "a", "b" and so on, and the ring feeds all of them.
type row struct {
	name     string
	rings    []capture.Ring
	clusters []capture.Cluster
	packets  []packet
	// unattended are the queues without a consumer.
	unattended []capture.QueueID
	// shunted are flows that all consumers shunt before the packets come.
	shunted []capture.ExactRule
	// stack: the packets that the stack gets on "tapped"; all where it is nil.
	stack *int
	// lacks: engines that refuse it, with words of the refusal.
	lacks map[string]string
	// check replaces the comparison with each packet's result if chance or the size of memory decides. By then, the
	// accounts have been checked.
	check func(t *testing.T, r result)
	// gone are rules that are there no more at the end, with what they counted.
	gone []uint32
	// only is the engine that the row is for; empty for all.
	only string
}

// result is what came of a row.
type result struct {
	row      row
	observed capture.Observation
	queues   map[capture.QueueID][]received
}

func TestEBPF(t *testing.T)         { runTable(t, "EBPF") }
func TestKernelModule(t *testing.T) { runTable(t, "KernelModule") }

func runTable(t *testing.T, engine string) {
	l := newLab(t, engine)
	for _, r := range append(table(), captureRows(t)...) {
		if r.only != "" && r.only != engine {
			continue
		}
		t.Run(strings.ReplaceAll(r.name, " ", "_"), func(t *testing.T) {
			l.enter(t)
			defer l.close(t)
			l.run(t, r)
		})
	}
}

// close removes what the row had.
func (l *lab) close(t *testing.T) {
	// The engine learns a moment later that a consumer is gone.
	until(t, "nothing is in use", func() bool {
		failed, err := l.engine.Apply(context.Background(), capture.Plan{}, capture.Observation{})
		require.NoError(t, err)
		for _, err := range failed {
			require.ErrorIs(t, err, capture.ErrInUse)
		}
		return len(failed) == 0
	})
}

func (l *lab) run(t *testing.T, r row) {
	plan := l.plan(r)
	if words, lacks := r.lacks[l.name]; lacks {
		failed, err := l.engine.Apply(context.Background(), plan, capture.Observation{})
		require.NoError(t, err)
		l.requireRefusal(t, failed, words)
		return
	}
	res, late := l.result(t, plan, r, idle)
	for factor := time.Duration(2); late; factor *= 2 {
		require.Less(t, factor, time.Duration(1)<<tries, "the machine is too slow for an idle time of %s", idle*factor/2)
		slower := r.slower(factor)
		l.close(t)
		plan = l.plan(slower)
		res, late = l.result(t, plan, slower, idle*factor)
	}
	requireAccounts(t, plan, res)
	if r.stack != nil {
		// The stack has them a moment after the ring.
		n := 0
		until(t, fmt.Sprintf("%d packets came to the stack", *r.stack), func() bool { n += l.stack(t); return n >= *r.stack })
		require.Equal(t, *r.stack, n, "packets that came to the stack")
	}
	if r.check != nil {
		r.check(t, res)
		return
	}
	for _, ring := range plan.Rings {
		requireFates(t, ring, res)
	}
	for _, c := range plan.Clusters {
		l.requireQueues(t, plan, c, res)
	}
	requireRules(t, res)
	requirePatterns(t, plan, res)
}

// result sends a row's packets and returns what became of them. It also reports whether the idle times of its rules
// passed too early.
func (l *lab) result(t *testing.T, plan capture.Plan, r row, idle time.Duration) (result, bool) {
	pace := pace{idle: idle}
	seen, err := l.engine.Observe(context.Background())
	require.NoError(t, err)
	told := time.Now()
	failed, err := l.engine.Apply(context.Background(), plan, seen)
	require.NoError(t, err)
	pace.made(l.name, told)
	require.Empty(t, failed)
	l.stack(t)
	consumers := l.consume(t, plan, r)
	for _, p := range r.packets {
		time.Sleep(p.wait)
		l.send(t, p.sender(), p.frame)
		if p.wait > 0 {
			pace.reached(p.wait)
		}
	}
	res := result{row: r, observed: l.settled(t, r), queues: map[capture.QueueID][]received{}}
	pace.reached(0)
	for id, c := range consumers {
		packets, err := c.drain()
		require.NoError(t, err)
		res.queues[id] = packets
		c.close()
	}
	return res, pace.late && r.timed()
}

// timed: its packets wait for each other.
func (r row) timed() bool {
	return slices.ContainsFunc(r.packets, func(p packet) bool { return p.wait > 0 })
}

// requireRefusal requires that it is refused by name, and that nothing of the ring or cluster exists.
func (l *lab) requireRefusal(t *testing.T, failed map[string]error, words string) {
	t.Helper()
	found := false
	for _, err := range failed {
		require.ErrorIs(t, err, capture.ErrUnsupported)
		found = found || strings.Contains(err.Error(), words)
	}
	require.True(t, found, "refused with %q in the reason: %v", words, failed)
}

// plan fills in what rows leave out.
func (l *lab) plan(r row) capture.Plan {
	plan := capture.Plan{}
	for i, c := range r.clusters {
		if c.Name == "" {
			c.Name = string(rune('a' + i))
		}
		c.Queues = max(c.Queues, 1)
		if c.QueueBytes == 0 {
			c.QueueBytes = 1 << 20
		}
		c.Watermark = c.QueueBytes / 4
		c.HashKey = [16]byte{byte(i + 1), 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
		plan.Clusters = append(plan.Clusters, c)
	}
	rings := r.rings
	if len(rings) == 0 {
		rings = []capture.Ring{{}}
	}
	for _, ring := range rings {
		if ring.Name == "" {
			ring.Name = "ring"
		}
		if ring.SnapLen == 0 {
			ring.SnapLen = 65535
		}
		if ring.Taps == nil {
			ring.Taps = []capture.Tap{{Interface: "tapped", Direction: capture.Receive}}
		}
		taps := append([]capture.Tap(nil), ring.Taps...)
		for i := range taps {
			taps[i].Index = l.index[taps[i].Interface]
		}
		ring.Taps, ring.Rules = taps, l.resolve(ring.Rules)
		if ring.Outputs == nil {
			for _, c := range plan.Clusters {
				ring.Outputs = append(ring.Outputs, c.Name)
			}
		}
		plan.Rings = append(plan.Rings, ring)
	}
	return plan
}

// resolve gives targets that are interfaces their numbers.
func (l *lab) resolve(set capture.RuleSet) capture.RuleSet {
	set.DefaultTarget.Index = l.index[set.DefaultTarget.Interface]
	set.Wildcard = append([]capture.WildcardRule(nil), set.Wildcard...)
	for i := range set.Wildcard {
		set.Wildcard[i].Target.Index = l.index[set.Wildcard[i].Target.Interface]
	}
	return set
}

func (l *lab) consume(t *testing.T, plan capture.Plan, r row) map[capture.QueueID]consumer {
	consumers := map[capture.QueueID]consumer{}
	for _, c := range plan.Clusters {
		for queue := range c.Queues {
			id := capture.QueueID{Cluster: c.Name, Queue: queue}
			if r.isUnattended(id) {
				continue
			}
			grant, err := l.engine.Grant(id)
			require.NoError(t, err)
			consumers[id], err = l.open(grant)
			require.NoError(t, err)
			if len(r.shunted) > 0 {
				require.NoError(t, consumers[id].shunt(exactFlows(r.shunted), len(r.shunted)))
			}
		}
	}
	return consumers
}

func (r row) isUnattended(id capture.QueueID) bool {
	for _, u := range r.unattended {
		if u == id {
			return true
		}
	}
	return false
}

// settled observes until the rings have seen all expected packets, and the queues account for all of them.
func (l *lab) settled(t *testing.T, r row) capture.Observation {
	t.Helper()
	want := uint64(0)
	for _, p := range r.packets {
		if p.fate != isUnseen {
			want++
		}
	}
	var o capture.Observation
	until(t, fmt.Sprintf("%d packets were seen", want), func() bool {
		var err error
		o, err = l.engine.Observe(context.Background())
		require.NoError(t, err)
		var seen uint64
		for _, ring := range o.Rings {
			seen += ring.Stats.Seen
		}
		return seen >= want*uint64(max(len(r.rings), 1)) || r.separate() && seen >= want
	})
	return o
}

// separate: each packet is seen by one of the rings only.
func (r row) separate() bool {
	taps := map[string]bool{}
	for _, ring := range r.rings {
		for _, tap := range ring.Taps {
			if taps[tap.Interface] {
				return false
			}
			taps[tap.Interface] = true
		}
	}
	return len(taps) > 1
}

// requireAccounts: nothing is lost without a reason.
func requireAccounts(t *testing.T, plan capture.Plan, res result) {
	t.Helper()
	given := map[string]uint64{}
	for _, ring := range plan.Rings {
		s := res.observed.Rings[ring.Name].Stats
		require.Equal(t, s.Seen, s.Filtered+s.SampledOut+s.Reflected+s.Absorbed+s.Directed+s.Passed, "%s: %+v", ring.Name, s)
		for _, name := range ring.Outputs {
			given[name] += s.Passed
		}
	}
	for _, c := range plan.Clusters {
		state := res.observed.Clusters[c.Name]
		given[c.Name] += state.Duplicated + res.directed(c.Name)
		var accounted uint64
		for queue, s := range state.Queues {
			packets := res.queues[capture.QueueID{Cluster: c.Name, Queue: queue}]
			require.EqualValues(t, s.Delivered, len(packets), "queue %d of %s", queue, c.Name)
			requireBytes(t, s, packets)
			accounted += s.Delivered + s.Shunted
			for _, n := range s.Dropped {
				accounted += n
			}
		}
		require.Equal(t, given[c.Name], accounted, "what came to %s: %+v", c.Name, state)
	}
}

// requireBytes requires that bytes of packets that consumers cannot read are counted as truncated.
func requireBytes(t *testing.T, s capture.QueueStats, packets []received) {
	t.Helper()
	var want capture.QueueStats
	for _, p := range packets {
		want.DeliveredBytes += uint64(p.slot.Caplen)
		want.TruncatedBytes += uint64(p.slot.Len - p.slot.Caplen)
		if p.slot.Caplen < p.slot.Len {
			want.Truncated++
		}
	}
	require.Equal(t, [3]uint64{want.DeliveredBytes, want.Truncated, want.TruncatedBytes}, [3]uint64{s.DeliveredBytes, s.Truncated, s.TruncatedBytes})
}

// directed are the packets that rules must send to queues of a cluster.
func (res result) directed(cluster string) uint64 {
	var n uint64
	for _, p := range res.row.packets {
		if p.fate == isDirected && p.to.Cluster == cluster {
			n++
		}
	}
	return n
}

// requireFates: the ring's account is that of the packets' fates.
func requireFates(t *testing.T, ring capture.Ring, res result) {
	t.Helper()
	var want capture.RingStats
	for _, p := range res.row.packets {
		if p.fate == isUnseen || !res.row.reaches(p, ring) {
			continue
		}
		want.Seen++
		want.SeenBytes += uint64(len(p.frame))
		switch p.fate {
		case isFiltered:
			want.Filtered++
		case isReflected:
			want.Reflected++
		case isDirected:
			want.Directed++
		default:
			want.Passed++
		}
	}
	require.Equal(t, want, res.observed.Rings[ring.Name].Stats, ring.Name)
}

// reaches: the packet comes by one of the ring's taps.
func (r row) reaches(p packet, ring capture.Ring) bool {
	for _, tap := range ring.Taps {
		if tap.Interface == arrives[p.sender()] && tap.Direction&capture.Receive != 0 ||
			tap.Interface == p.sender() && tap.Direction&capture.Transmit != 0 {
			return true
		}
	}
	return false
}

// requireQueues: each queue of the cluster got its packets, whole, in order, and with what is to be said of them.
func (l *lab) requireQueues(t *testing.T, plan capture.Plan, c capture.Cluster, res result) {
	t.Helper()
	want, spread, duplicated := l.expected(t, plan, c, res.row)
	state := res.observed.Clusters[c.Name]
	require.Equal(t, duplicated, state.Duplicated, "duplicated to %s", c.Name)
	require.Equal(t, spread, state.Spread, "spread over %s", c.Name)
	for queue := range c.Queues {
		id := capture.QueueID{Cluster: c.Name, Queue: queue}
		s := state.Queues[queue]
		if res.row.isUnattended(id) {
			require.EqualValues(t, len(want[queue]), s.Dropped[capture.DropUnattended], "unattended queue %v", id)
			continue
		}
		got := res.queues[id]
		require.Len(t, got, len(want[queue]), "queue %v", id)
		for i, e := range want[queue] {
			e.require(t, got[i], fmt.Sprintf("packet %d of queue %v", i, id))
		}
		require.Equal(t, map[capture.DropReason]uint64{"full": 0, "unattended": 0, "nomem": 0, "hung": 0}, s.Dropped)
	}
}

// expectation is a packet as a queue must have it.
type expectation struct {
	packet   packet
	slot     slot
	data     []byte
	unhashed bool // the hash does not matter
}

func (e expectation) require(t *testing.T, got received, where string) {
	t.Helper()
	require.Equal(t, e.data, got.data, where)
	require.NotZero(t, got.slot.Ts, where)
	want := e.slot
	want.Ts, want.HdrLen = got.slot.Ts, got.slot.HdrLen
	if e.unhashed || got.slot.Flags&slotHashed == 0 {
		// Where queues do not go by a hash an engine may leave it out.
		want.Hash = got.slot.Hash
		want.Flags = want.Flags&^slotHashed | got.slot.Flags&slotHashed
	}
	if got.slot.HdrLen == slotShort {
		want.L3Off, want.L4Off, want.L3Proto, want.L4Proto, want.Rule = 0, 0, 0, 0, 0
		// It knows of tags only that were beside the packet, and of fragments perhaps.
		want.Flags = want.Flags&^0xa | got.slot.Flags&0xa
		if got.slot.Flags&slotVLAN == 0 {
			want.VLANTCI, want.VLANTPID = got.slot.VLANTCI, got.slot.VLANTPID
		}
	}
	require.Equal(t, want, got.slot, where)
}

// requireRules: rules counted the packets that they decided on.
func requireRules(t *testing.T, res result) {
	t.Helper()
	want := map[uint32]uint64{}
	for _, p := range res.row.packets {
		if p.rule != 0 && !slices.Contains(res.row.gone, p.rule) {
			want[p.rule]++
		}
	}
	got := map[uint32]uint64{}
	for _, ring := range res.observed.Rings {
		for _, id := range res.row.gone {
			require.NotContains(t, ring.Rules, id)
		}
		for id, counts := range ring.Rules {
			if counts.Packets > 0 {
				got[id] += counts.Packets
			}
		}
	}
	require.Equal(t, want, got, "packets by wildcard rule")
}

// requirePatterns requires that payload patterns counted the packets that they decided on.
func requirePatterns(t *testing.T, plan capture.Plan, res result) {
	t.Helper()
	patterns := plan.Rings[0].Rules.Patterns
	want := make([]uint64, len(patterns))
	for _, p := range res.row.packets {
		if p.pattern != 0 {
			want[p.pattern-1]++
		}
	}
	if len(patterns) > 0 {
		require.Equal(t, want, res.observed.Rings[plan.Rings[0].Name].Patterns, "packets by payload pattern")
	}
}

// expected returns the packets of each queue, how many went to a stand-in, and how many second copies there are.
func (l *lab) expected(t *testing.T, plan capture.Plan, c capture.Cluster, r row) (want map[int][]expectation, spread, second uint64) {
	t.Helper()
	var attended uint64
	for queue := range c.Queues {
		if !r.isUnattended(capture.QueueID{Cluster: c.Name, Queue: queue}) {
			attended |= 1 << queue
		}
	}
	var frames, hashed [][]byte
	for _, p := range r.packets {
		frames = append(frames, p.frame)
		if p.hashedAs != nil {
			hashed = append(hashed, p.hashedAs)
		} else {
			hashed = append(hashed, p.frame)
		}
	}
	homes := c
	homes.WhenUnattended = capture.PolicyDrop
	said, goes, home := ask(t, c, attended, frames), ask(t, c, attended, hashed), ask(t, homes, attended, hashed)
	want = map[int][]expectation{}
	turn := 0
	for i, p := range r.packets {
		for _, ring := range plan.Rings {
			if !r.reaches(p, ring) || !r.feeds(p, ring, c.Name) {
				continue
			}
			e := l.expectation(ring, p, said[i])
			for copyNumber, queue := range goes[i].queue {
				e.slot.Hash = goes[i].hash[copyNumber]
				switch {
				case p.fate == isDirected:
					e.unhashed = true
					if queue = p.to.Queue; copyNumber == 1 {
						queue = -1
					}
				case c.Balance == capture.BalanceRoundRobin && copyNumber == 0:
					turn++
					queue, e.unhashed = turn%c.Queues, true
				case c.Balance == capture.BalanceRxQueue && copyNumber == 0:
					queue, e.unhashed = int(e.slot.RxQueue)%c.Queues, true
				default:
					if queue >= 0 && home[i].queue[copyNumber] != queue {
						spread++
					}
				}
				if queue < 0 {
					continue
				}
				second += uint64(copyNumber)
				want[queue] = append(want[queue], e)
			}
		}
	}
	return want, spread, second
}

// feeds: the packet goes to the cluster.
func (r row) feeds(p packet, ring capture.Ring, cluster string) bool {
	if p.fate == isDirected {
		return p.to.Cluster == cluster
	}
	if p.fate != isPassed {
		return false
	}
	for _, name := range ring.Outputs {
		if name == cluster {
			return true
		}
	}
	return false
}

// expectation returns what a packet's slot must contain, except for the hash.
func (l *lab) expectation(ring capture.Ring, p packet, said answer) expectation {
	e := expectation{packet: p, data: p.frame[:min(len(p.frame), int(ring.SnapLen))]}
	e.slot = slot{
		Len: uint32(len(p.frame)), Caplen: uint32(len(e.data)), Ifindex: uint32(l.index[arrives[p.sender()]]),
		VLANTCI: uint16(said.tci), VLANTPID: uint16(said.tpid), Flags: uint8(said.flags) | slotHashed,
		L3Off: uint16(said.l3Off), L4Off: uint16(said.l4Off), L3Proto: uint16(said.l3Proto), L4Proto: uint8(said.l4Proto),
		Rule: p.rule, RxQueue: p.rxQueue(ring.Mode),
	}
	for _, tap := range ring.Taps {
		if tap.Interface == p.sender() && tap.Direction&capture.Transmit != 0 {
			e.slot.Ifindex = uint32(l.index[p.sender()])
			e.slot.Flags |= slotOutgoing
			e.slot.RxQueue = 0
		}
	}
	return e
}

// rxQueue is by which receive queue a packet comes: see lab.steer.
func (p packet) rxQueue(mode capture.TransparentMode) uint16 {
	steered := bytes.Equal(p.frame[6:11], []byte{2, 0, 0, 0, 0}) && !strings.HasPrefix(p.from, "tapped")
	switch {
	case !steered:
		return 0
	case mode != 0 && p.sender() == "sender":
		return uint16(p.frame[11])
	default:
		return uint16(p.frame[11]) - 1
	}
}

// by makes a frame come by a receive queue, 0 to 2.
func by(queue byte, frame []byte) []byte {
	out := bytes.Clone(frame)
	out[11] = queue + 1
	return out
}

// program assembles a classic BPF program.
func program(instructions ...bpf.Instruction) []bpf.RawInstruction {
	raw, err := bpf.Assemble(instructions)
	if err != nil {
		panic(err)
	}
	return raw
}
