// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// udpRules returns a set of two rules for the same packets. Only the first ever decides.
func udpRules() capture.RuleSet {
	udp := uint8(17)
	return capture.RuleSet{Wildcard: []capture.WildcardRule{
		{ID: 7, Priority: 2, Match: capture.Match{Protocol: &udp}},
		{ID: 9, Priority: 1, Match: capture.Match{Protocol: &udp}, Action: capture.ActionDrop},
	}}
}

func TestRulesCountOnAfterARestart(t *testing.T) {
	l := newLab(t)
	plan := l.plan(1)
	plan.Rings[0].Rules = udpRules()
	first := l.engine()
	l.apply(first, plan)
	l.sendAll(first, "mirror", 5, func(n int) []byte { return frame(n, 60) })
	require.NoError(t, first.Close())
	e := l.engine()
	l.apply(e, plan)
	l.sendAll(e, "mirror", 5, func(n int) []byte { return frame(n, 60) })
	require.Equal(t, map[uint32]capture.RuleStats{7: {Packets: 10, Bytes: 600}, 9: {}}, l.observe(e).Rings["mirror"].Rules)
}

func TestRulesThatWereIdleStayGoneAfterARestart(t *testing.T) {
	l := newLab(t)
	plan := l.plan(1)
	plan.Rings[0].Rules = udpRules()
	plan.Rings[0].Rules.Wildcard[0].Idle = time.Second
	first := l.engine()
	l.apply(first, plan)
	l.sendAll(first, "mirror", 5, func(n int) []byte { return frame(n, 60) })
	time.Sleep(1100 * time.Millisecond)
	// On a slow machine the rule had expired before all packets arrived.
	before := l.observe(first).Rings["mirror"].Rules
	require.Equal(t, map[uint32]capture.RuleStats{9: before[9]}, before)
	require.NoError(t, first.Close())
	e := l.engine()
	l.apply(e, plan)
	l.sendAll(e, "mirror", 5, func(n int) []byte { return frame(n, 60) })
	require.Equal(t, map[uint32]capture.RuleStats{9: {Packets: before[9].Packets + 5, Bytes: before[9].Bytes + 300}},
		l.observe(e).Rings["mirror"].Rules)
}

// mapsHeld returns the number of this process's descriptors of maps.
func mapsHeld(t *testing.T) int {
	t.Helper()
	infos, err := filepath.Glob("/proc/self/fdinfo/*")
	require.NoError(t, err)
	held := 0
	for _, info := range infos {
		text, _ := os.ReadFile(info) // one that was this list's own is gone
		if strings.Contains(string(text), "map_id:") {
			held++
		}
	}
	return held
}

func TestRulesThatCannotBeNotedLeaveNothingOpen(t *testing.T) {
	l := newLab(t)
	e := l.engine()
	l.apply(e, l.plan(1))
	description := filepath.Join(e.rings["mirror"].folder, "description")
	require.NoError(t, os.Remove(description))
	other, err := newPinned(occupiedSpec, description)
	require.NoError(t, err)
	other.Close()

	held := mapsHeld(t)
	plan := l.plan(1)
	plan.Rings[0].Rules = udpRules()
	failed, err := e.Apply(context.Background(), plan, capture.Observation{})
	require.NoError(t, err)
	require.ErrorContains(t, failed["mirror"], "write "+description)
	require.Equal(t, held, mapsHeld(t))

	require.NoError(t, os.Remove(description))
	l.apply(e, plan)
	require.Equal(t, held, mapsHeld(t))
}
