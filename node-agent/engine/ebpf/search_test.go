// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// payloadAt is the offset of the payload in frame's packets: after the headers of Ethernet, IPv4 and UDP.
const payloadAt = 14 + 20 + 8

// frameWith returns frame(n) with a payload.
func frameWith(n int, payload []byte) []byte {
	f := frame(n, payloadAt+len(payload))
	return append(f[:payloadAt], payload...)
}

// TestProgramsFindWhatAPlainSearchFinds activates sets one after the other, and searches real packets.
func TestProgramsFindWhatAPlainSearchFinds(t *testing.T) {
	l := newLab(t)
	e := l.engine()
	plan := l.plan(1)
	var before capture.RingStats
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 1))
		letters := alphabets[int(seed)%len(alphabets)]
		plan.Rings[0].Rules = capture.RuleSet{Patterns: randomPatterns(r, letters), DropMatching: seed%2 == 1}
		l.apply(e, plan)
		patterns := plan.Rings[0].Rules.Patterns
		want := make([]uint64, len(patterns))
		var found uint64
		l.sendAll(e, "mirror", 60, func(n int) []byte {
			payload := randomText(r, letters, []int{40, 100, 3000}[r.IntN(3)])
			copy(payload[r.IntN(len(payload)):], patterns[r.IntN(len(patterns))].Bytes)
			if hit := plainSearch(patterns, payload); hit != 0 {
				want[hit-1]++
				found++
			}
			return frameWith(n, payload)
		})
		state := l.observe(e).Rings["mirror"]
		require.Equal(t, want, state.Patterns, "seed %d: %+v", seed, patterns)
		passed := state.Stats.Passed - before.Passed
		if plan.Rings[0].Rules.DropMatching {
			passed = 60 - passed
		}
		require.Equal(t, found, passed, "seed %d", seed)
		before = state.Stats
	}
}

// TestTheWholePayloadIsSearched finds a pattern at the end of the longest packet, which does not fit into a slot.
func TestTheWholePayloadIsSearched(t *testing.T) {
	l := newLab(t)
	for _, i := range []netlink.Link{l.sender, l.tapped} {
		require.NoError(t, netlink.LinkSetMTU(i, 65535))
	}
	e := l.engine()
	plan := l.plan(1)
	plan.Rings[0].SnapLen = 64
	plan.Rings[0].Rules.Patterns = []capture.Pattern{{Bytes: []byte("never")}, {Bytes: []byte("needle")}}
	l.apply(e, plan)
	var n uint64
	for _, length := range []int{100, 1400, 30000, 65000, 65492, 65493, 65494, 65535 - 28} {
		payload := make([]byte, length)
		l.send(frameWith(1, payload))
		copy(payload[length-6:], "needle")
		l.send(frameWith(1, payload), tagged(frameWith(1, payload), 0x8100<<16|7))
		n++
	}
	stats := l.settled(e, "mirror", 3*n).Rings["mirror"]
	require.Equal(t, []uint64{0, 2 * n}, stats.Patterns)
	require.Equal(t, n, stats.Stats.Filtered)
}

func TestPatternsAreCheckedBeforeAnythingChanges(t *testing.T) {
	l := newLab(t)
	e := l.engine()
	plan := l.plan(1)
	l.apply(e, plan)
	held := mapsHeld(t)
	for reason, pattern := range map[string]capture.Pattern{
		"0 bytes": {}, "256 bytes": {Bytes: make([]byte, 256)}, "depth 2": {Bytes: []byte("abc"), Depth: 2},
	} {
		plan.Rings[0].Rules.Patterns = []capture.Pattern{pattern}
		failed, err := e.Apply(context.Background(), plan, capture.Observation{})
		require.NoError(t, err)
		require.ErrorContains(t, failed["mirror"], "payload pattern 0: "+reason)
		require.Equal(t, held, mapsHeld(t))
	}
}
