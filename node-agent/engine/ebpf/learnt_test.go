// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"encoding/binary"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// learning returns rules that learn the flows of packets to port 53, and drop others.
func learning() capture.RuleSet {
	return capture.RuleSet{
		Wildcard: []capture.WildcardRule{{
			ID: 1, Action: capture.ActionLearn, Match: capture.Match{DestinationPorts: &capture.PortRange{First: 53, Last: 53}},
		}},
		Default: capture.ActionDrop,
	}
}

// query returns a packet to port 53 of flow n, from one of two ports, every fourth over IPv6.
func query(n int) []byte {
	if n%4 != 3 {
		f := frame(n&1, 60)
		binary.BigEndian.PutUint32(f[26:], 10<<24+uint32(n))
		return f
	}
	f := make([]byte, 70)
	copy(f, []byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x86, 0xdd, 0x60, 18: 0, 16, 17, 64})
	copy(f[22:], []byte{0x20, 1, 15: 1})
	binary.BigEndian.PutUint32(f[30:], uint32(n))
	copy(f[38:], []byte{0x20, 1, 15: 2})
	copy(f[54:], []byte{0x10, byte(n >> 2 & 1), 0, 53, 0, 16})
	return f
}

// answer returns a packet of the same flow that no rule matches.
func answer(n int) []byte {
	f := query(n)
	first, length, ports := 26, 4, 34
	if n%4 == 3 {
		first, length, ports = 22, 16, 54
	}
	swap := func(at, n int) {
		for i := at; i < at+n; i++ {
			f[i], f[i+n] = f[i+n], f[i]
		}
	}
	swap(first, length)
	swap(ports, 2)
	return f
}

// mixture returns a packet that is in no flow, but has the addresses of flow n, and the ports of others.
func mixture(n int) []byte {
	f := answer(n)
	if n%4 != 3 {
		f[37] ^= 1
	} else {
		f[57] ^= 1
	}
	return f
}

// place is learnt_place of bpf/learnt.h, for a table of learntBuckets.
func (s learntSecrets) place(w [5]uint64) int {
	words := w[:2]
	if w[0]>>60&1 != 0 {
		words = w[:]
	}
	var sum uint64
	for i, word := range words {
		sum += (word>>32 + s.W[2*i]) * (word&(1<<32-1) + s.W[2*i+1])
	}
	return int((sum ^ sum>>32) * 0x9e3779b97f4a7c15 >> (64 - learntPlacesLog - bits.Len(learntBuckets-1)))
}

// Flows with addresses or ports in a row, as in real networks, are spread like random ones, whatever numbers are drawn.
func TestLearntFlowsAreSpread(t *testing.T) {
	const most = 50 // flows of maxLearnt that find their bucket full; one on average
	for range 100 {
		var secrets learntSecrets
		draw(secrets.W[:])
		for name, key := range map[string]func(n uint64) [5]uint64{
			"addresses": func(n uint64) [5]uint64 { return [5]uint64{17<<32 | 0x1000_0035, (10<<24+n)<<32 | 0x0a010203} },
			"ports":     func(n uint64) [5]uint64 { return [5]uint64{17<<32 | n<<16 | 53, 0x0a00_0001_0a01_0203} },
			"IPv6": func(n uint64) [5]uint64 {
				return [5]uint64{1<<60 | 17<<32 | 0x1000_0035, 0x2001 << 48, n, 0x2001 << 48, 1}
			},
		} {
			var flows [learntBuckets]int
			full := 0
			for n := range uint64(maxLearnt) {
				bucket := &flows[secrets.place(key(n))>>learntPlacesLog]
				if *bucket++; *bucket > 1<<learntPlacesLog {
					full++
				}
			}
			require.Less(t, full, most, "%s: %x", name, secrets.W)
		}
	}
}

// learnt returns the keys of the ring's learnt flows. All are where they are looked for, and no flow is there twice.
func (l *lab) learnt(e *Engine) map[[5]uint64]bool {
	l.t.Helper()
	const used, changing = 1 << 63, 1 << 62
	flows, maps := map[[5]uint64]bool{}, e.rings["mirror"].maps.maps
	var secrets learntSecrets
	require.NoError(l.t, maps[learntSecretsMap].Lookup(uint32(0), &secrets))
	table := maps[learntMap]
	require.EqualValues(l.t, learntBuckets, table.MaxEntries())
	for number := range uint32(learntBuckets) {
		var bucket learntBucket
		require.NoError(l.t, table.Lookup(number, &bucket))
		for i, flow := range bucket.Places {
			if flow.W[0] == 0 {
				require.Equal(l.t, learntFlow{}, flow)
				continue
			}
			require.Zero(l.t, flow.W[0]&changing)
			require.NotZero(l.t, flow.Life.Last)
			require.False(l.t, flows[flow.W], "%x is there twice", flow.W)
			flows[flow.W] = true
			flow.W[0] &^= used
			place := secrets.place(flow.W)
			require.EqualValues(l.t, number, place>>learntPlacesLog)
			for at := place; at != int(number)<<learntPlacesLog+i; at = place ^ ((at ^ place) + 1) {
				require.NotZero(l.t, bucket.Places[at&(len(bucket.Places)-1)].W[0], "the search ends at place %d", at)
			}
		}
	}
	return flows
}

// passes sends packets and returns how many of them passed.
func (l *lab) passes(e *Engine, packets int, make func(n int) []byte) uint64 {
	l.t.Helper()
	before := l.observe(e).Rings["mirror"].Stats.Passed
	l.sendAll(e, "mirror", packets, make)
	return l.observe(e).Rings["mirror"].Stats.Passed - before
}

// Several CPUs see the first packets of the same flows at once, in both directions, on either path of packets.
func TestLearntFlowsOfSeveralProducers(t *testing.T) {
	cpus := runtime.NumCPU()
	flows := 40_000 / cpus
	for name, vlans := range map[string][]uint16{"short path": nil, "general path": allVLANs()} {
		l := newLab(t)
		e := l.engine()
		plan := l.transmitted(1)
		plan.Rings[0].Rules, plan.Rings[0].VLANs = learning(), vlans
		plan.Rings[0].Rules.Wildcard[0].Both = true
		l.apply(e, plan)
		var all sync.WaitGroup
		var sent atomic.Int64
		for cpu := range cpus {
			socket := l.packetSocket(l.sender)
			packet := []func(int) []byte{query, answer}[cpu%2]
			all.Go(func() {
				l.onCPU(cpu, func() {
					for n := range flows {
						next := packet(n)
						for int(sent.Load()) < n*cpus { // the others have not sent the packet before
							continue
						}
						for sendTo(socket, next) != nil {
							continue
						}
						sent.Add(1)
					}
				})
			})
		}
		all.Wait()
		observed := l.observe(e).Rings["mirror"]
		require.EqualValues(t, flows*cpus, observed.Stats.Passed, name)
		require.Equal(t, flows, len(l.learnt(e)), name)
		// Each processor may have seen a flow's first packet before any of them had learnt the flow.
		require.GreaterOrEqual(t, observed.Rules[1].Packets, uint64(flows), name)
		require.LessOrEqual(t, observed.Rules[1].Packets, uint64(flows*cpus), name)
		t.Logf("%s: %d of %d flows were learnt by several at once", name, int(observed.Rules[1].Packets)-flows, flows)
	}
}

// Several CPUs learn flows for which others have to go. Meanwhile nothing passes that was not learnt. What is learnt last
// is there, and nothing is there twice.
func TestLearntFlowsBeyondTheTable(t *testing.T) {
	const last, places, flows = 100, learntBuckets << learntPlacesLog, 3 * maxLearnt
	cpus := runtime.NumCPU()
	each := 2 * flows / cpus
	l := newLab(t)
	e := l.engine()
	plan := l.transmitted(1)
	plan.Rings[0].Rules = learning()
	l.apply(e, plan)
	var all sync.WaitGroup
	for cpu := range cpus {
		socket := l.packetSocket(l.sender)
		all.Go(func() {
			l.onCPU(cpu, func() {
				for n := range each {
					for _, packet := range [][]byte{query((n + cpu*each) % flows), mixture(n)} {
						for sendTo(socket, packet) != nil {
							continue
						}
					}
				}
			})
		})
	}
	all.Wait()
	stats, sent := l.observe(e).Rings["mirror"].Stats, uint64(each*cpus)
	require.Equal(t, sent, stats.Passed)
	require.Equal(t, sent, stats.Filtered)
	require.Greater(t, len(l.learnt(e)), places-places/100, "hardly a place is free")

	plan.Rings[0].Taps = []capture.Tap{l.tap(capture.Receive)} // the rules stay, and what they learnt
	l.apply(e, plan)
	require.EqualValues(t, last, l.passes(e, last, func(n int) []byte { return query(n + 8*maxLearnt) }))
	require.EqualValues(t, last, l.passes(e, last, func(n int) []byte { return answer(n + 8*maxLearnt) }))
	require.Zero(t, l.passes(e, last, func(n int) []byte { return answer(n + 9*maxLearnt) }))
	l.learnt(e)
}

// As many flows as the table is for are all there, but for one in thousands whose bucket was full.
func TestLearntFlowsUpToTheLimit(t *testing.T) {
	l := newLab(t)
	e := l.engine()
	plan := l.plan(1)
	plan.Rings[0].Rules = learning()
	l.apply(e, plan)
	require.EqualValues(t, maxLearnt, l.passes(e, maxLearnt, query))
	require.Greater(t, len(l.learnt(e)), maxLearnt-maxLearnt/1000)
	require.Greater(t, l.passes(e, maxLearnt, answer), uint64(maxLearnt-maxLearnt/1000))
}

// What was learnt stays when the agent starts again, and when the ring gets another program.
func TestLearntFlowsSurvive(t *testing.T) {
	const flows = 200
	l := newLab(t)
	e := l.engine()
	plan := l.plan(1)
	plan.Rings[0].Rules = learning()
	l.apply(e, plan)
	require.EqualValues(t, flows, l.passes(e, flows, query))
	before := l.learnt(e)
	require.Len(t, before, flows)
	require.NoError(t, e.Close())

	e = l.engine()
	require.EqualValues(t, flows, l.passes(e, flows, answer))
	plan.Rings[0].SnapLen = 100
	l.apply(e, plan)
	require.EqualValues(t, flows, l.passes(e, flows, answer))
	plan.Rings[0].VLANs = allVLANs() // from here on by the general path
	l.apply(e, plan)
	require.EqualValues(t, flows, l.passes(e, flows, answer))
	require.Equal(t, before, l.learnt(e))
	require.EqualValues(t, flows, l.observe(e).Rings["mirror"].Rules[1].Packets)

	plan.Rings[0].Rules.Wildcard[0].Priority++ // another rule set begins without
	l.apply(e, plan)
	require.Zero(t, l.passes(e, flows, answer))
}
