// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/require"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// The program of a plain ring has its queue's maps. When the queue gets others, packets go there by the tables, until
// the next plan gives the ring a program with the new ones.
func TestProgramsReachQueuesDirectly(t *testing.T) {
	for _, queues := range []int{1, 2, maxDirect} {
		l := newLab(t)
		e := l.engine()
		plan := l.plan(queues)
		l.apply(e, plan)
		sent := 0
		send := func() {
			l.sendAll(e, "mirror", 40, func(n int) []byte { return frame(n, 60+n) })
			sent += 40
		}
		first := consumeAll(l, queues)
		requireDirect(l, e, true)
		send()
		collectAll(l, first, 40)
		for number, q := range e.clusters["mirror"].queues {
			_, err := e.TakeBack(context.Background(), q.id, capture.Holder{})
			require.NoError(t, err)
			first[number].close()
		}
		send()
		next := consumeAll(l, queues)
		requireDirect(l, e, false)
		send()
		collectAll(l, next, 40)
		l.apply(e, plan)
		requireDirect(l, e, true)
		send()
		collectAll(l, next, 40)

		observed := l.observe(e)
		require.True(t, balanced(observed))
		require.EqualValues(t, sent, observed.Rings["mirror"].Stats.Passed)
		var unattended uint64
		for _, q := range observed.Clusters["mirror"].Queues {
			unattended += q.Dropped[capture.DropUnattended]
		}
		require.EqualValues(t, 40, unattended)
		for _, c := range next {
			c.close()
		}
		l.until("the former maps are gone", func() bool {
			m, err := ebpf.NewMapFromID(ebpf.MapID(first[0].reply.MapID))
			if err == nil {
				m.Close()
			}
			return err != nil
		})
	}
}

// consumeAll attaches to all queues. The caller closes the consumers, once.
func consumeAll(l *lab, queues int) []*consumer {
	var all []*consumer
	for number := range queues {
		c, err := consume(l.runDir, "mirror", number)
		require.NoError(l.t, err)
		all = append(all, c)
	}
	return all
}

// collectAll reads n packets from all consumers together, each sent only once.
func collectAll(l *lab, consumers []*consumer, n int) {
	l.t.Helper()
	seen := map[string]bool{}
	for _, c := range consumers {
		packets, err := c.drain()
		require.NoError(l.t, err)
		for _, p := range packets {
			seen[string(p.data)] = true
		}
	}
	require.Len(l.t, seen, n)
}

// requireDirect requires that the attached queues are open to the ring's program, or that none is.
func requireDirect(l *lab, e *Engine, direct bool) {
	l.t.Helper()
	program, err := newRingProgram(l.plan(len(e.clusters["mirror"].queues)).Rings[0], e.clusters)
	require.NoError(l.t, err)
	fingerprint, err := program.fingerprint()
	require.NoError(l.t, err)
	require.Equal(l.t, direct, fingerprint == e.rings["mirror"].Fingerprint)
	for _, q := range e.clusters["mirror"].queues {
		require.Equal(l.t, q.dataID(), e.env.tables.gates.get(q.index))
	}
}

// Rings with more queues, and with a lane that all CPUs share, have other programs.
func TestProgramsThatReachNoQueueDirectly(t *testing.T) {
	for _, plan := range []struct{ queues, lanes int }{{maxDirect + 1, 0}, {1, 1}} {
		l := newLab(t)
		e := l.engine()
		planned := l.plan(plan.queues)
		planned.Clusters[0].Lanes = plan.lanes
		l.apply(e, planned)
		consumers := consumeAll(l, plan.queues)
		l.sendAll(e, "mirror", 40, func(n int) []byte { return frame(n, 60+n) })
		collectAll(l, consumers, 40)
		require.True(t, balanced(l.observe(e)))
		for _, c := range consumers {
			c.close()
		}
	}
}

// A queue's maps may not open when a program is loaded, for want of descriptors or rights. The next plan tries again.
func TestMapsThatDoNotOpenAreTriedAgain(t *testing.T) {
	l := newLab(t)
	e := l.engine()
	other := l.plan(1)
	other.Rings[0].SnapLen = 100
	l.apply(e, other)
	c := l.consume("mirror", 0)
	ids := &e.clusters["mirror"].queues[0].area.ids
	consumer := ids[1]
	ids[1] = math.MaxUint32
	l.apply(e, l.plan(1))
	requireDirect(l, e, false)
	l.sendAll(e, "mirror", 5, func(n int) []byte { return frame(n, 60) })
	l.collect(c, 5)
	ids[1] = consumer
	l.apply(e, l.plan(1))
	requireDirect(l, e, true)
}

// usesData reports whether the program that a tap runs has the queue's data map.
func usesData(t *testing.T, attached tap, q *queue) bool {
	t.Helper()
	var id ebpf.ProgramID
	switch attached := attached.(type) {
	case *linkTap:
		id = attached.program
	case *clsactTap:
		id = ebpf.ProgramID(attached.filter.Id)
	}
	program, err := ebpf.NewProgramFromID(id)
	require.NoError(t, err)
	defer program.Close()
	info, err := program.Info()
	require.NoError(t, err)
	maps, ok := info.MapIDs()
	require.True(t, ok)
	return slices.Contains(maps, ebpf.MapID(q.dataID()))
}

// The next agent replaces a program that goes by the tables only because the one before, which was killed, could not
// open the maps.
func TestProgramsOfAnAgentThatWasKilledAreReplaced(t *testing.T) {
	for _, mode := range []string{"tcx", "clsact"} {
		t.Run(mode, func(t *testing.T) {
			l := newLab(t)
			l.attachedBy(mode)
			next := l.plan(1)
			next.Rings[0].Taps[0].Direction = capture.Both
			dying, out := l.helper("dying", engineInput{
				PinDir: l.pinDir, RunDir: l.runDir, WithoutTCX: mode == "clsact", Plan: l.plan(1), Next: next,
			}, 0)
			require.False(t, out.Scan(), out.Text())
			require.ErrorContains(t, dying.Wait(), "killed")

			e := l.engine(l.attachedBy(mode))
			r, q := e.rings["mirror"], e.clusters["mirror"].queues[0]
			attached := r.taps[tapPoint{Index: l.tapped.Attrs().Index, Hook: hookEgress}]
			require.NotNil(t, attached)
			require.False(t, usesData(t, attached, q))
			l.apply(e, next)
			require.Len(t, r.taps, 2)
			for _, attached := range r.taps {
				require.True(t, usesData(t, attached, q))
			}
		})
	}
}

// An agent that was killed, or one without gates, may have left a gate open that nobody is behind.
func TestGateWithoutConsumerIsClosed(t *testing.T) {
	l := newLab(t)
	first := l.engine()
	l.apply(first, l.plan(1))
	c := l.consume("mirror", 0)
	requireDirect(l, first, true)
	c.close()
	l.detached(first, "mirror", 0)
	q := first.clusters["mirror"].queues[0]
	first.env.tables.gates.set(q.index, q.dataID())
	require.NoError(t, first.Close())

	e := l.engine()
	require.Zero(t, e.env.tables.gates.get(q.index))
	l.sendAll(e, "mirror", 5, func(n int) []byte { return frame(n, 60) })
	observed := l.observe(e)
	require.True(t, balanced(observed))
	stats := observed.Clusters["mirror"].Queues[0]
	require.EqualValues(t, 5, stats.Dropped[capture.DropUnattended])
	require.Zero(t, stats.Delivered)
}
