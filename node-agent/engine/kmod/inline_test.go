// SPDX-License-Identifier: Apache-2.0

package kmod

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	vnl "github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/node-agent/capture"
)

/*
 * lineLab is a ring in line between two cables:
 *
 *	rcn0 ===== rcn1 -> ring -> rcm1 ===== rcm0
 */
type lineLab struct {
	*lab
	far, there int
}

func newLineLab(t *testing.T) lineLab {
	l := lineLab{lab: newLab(t)}
	require.NoError(t, vnl.LinkAdd(&vnl.Veth{LinkAttrs: vnl.LinkAttrs{Name: "rcm0"}, PeerName: "rcm1"}))
	t.Cleanup(func() { _ = exec.Command("ip", "link", "del", "rcm0").Run() })
	for name, index := range map[string]*int{"rcm0": &l.there, "rcm1": &l.far} {
		require.NoError(t, os.WriteFile("/proc/sys/net/ipv6/conf/"+name+"/disable_ipv6", []byte("1"), 0))
		link, err := vnl.LinkByName(name)
		require.NoError(t, err)
		require.NoError(t, vnl.LinkSetUp(link))
		*index = link.Attrs().Index
	}
	require.Eventually(t, func() bool {
		link, err := vnl.LinkByName("rcm1")
		return err == nil && link.Attrs().OperState == vnl.OperUp && vnl.LinkSetUp(link) == nil
	}, time.Minute, time.Millisecond)
	return l
}

// plan has a ring in line that passes UDP, with a queue and these events at which packets bypass the consumer.
func (l lineLab) plan(bypass ...capture.Event) capture.Plan {
	p := l.lab.plan(1)
	p.Rings[0].Taps = []capture.Tap{
		{Interface: "rcn1", Index: l.tapped, Direction: capture.Receive, Peer: l.far},
		{Interface: "rcm1", Index: l.far, Direction: capture.Receive, Peer: l.tapped},
	}
	p.Clusters[0].Lanes, p.Clusters[0].Inline = 1, &capture.Inline{Bypass: bypass, HungAfter: 50 * time.Millisecond}
	return p
}

// arrived returns how many packets the far end has received.
func (l lineLab) arrived() uint64 {
	l.t.Helper()
	link, err := vnl.LinkByName("rcm0")
	require.NoError(l.t, err)
	return link.Attrs().Statistics.RxPackets
}

// settled waits until the ring has seen packets and none waits, and checks that the account adds up.
func (l lineLab) settled(seen uint64) capture.InlineStats {
	l.t.Helper()
	var o capture.Observation
	require.Eventually(l.t, func() bool {
		o = l.observe()
		return o.Rings["mirror"].Stats.Seen >= seen && o.Clusters["ids"].Queues[0].Inline.Held == 0
	}, time.Minute, 20*time.Millisecond)
	ring, queue := o.Rings["mirror"], *o.Clusters["ids"].Queues[0].Inline
	require.Equal(l.t, seen, ring.Stats.Seen)
	require.Equal(l.t, seen, ring.Inline.Bridged+sumOf(ring.Inline.Lost)+ring.Stats.Passed)
	require.Equal(l.t, ring.Stats.Passed, queue.Passed+queue.Replaced+queue.Blocked+queue.Unanswered+queue.ShuntPassed+queue.ShuntBlocked+
		sumOf(queue.Bypassed)+sumOf(queue.Stopped)+sumOf(queue.Lost))
	return queue
}

func sumOf[K comparable](counts map[K]uint64) (sum uint64) {
	for _, count := range counts {
		sum += count
	}
	return sum
}

// Packets get past a consumer that is not there, or that hangs, and are counted by the event; a new agent changes nothing.
func TestModuleInLine(t *testing.T) {
	l := newLineLab(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	told := make(chan struct{}, 1000)
	go func() { _ = Watch(ctx, func() { told <- struct{}{} }, func() {}) }()
	all := l.plan(capture.Events...)
	require.Empty(t, l.apply(all))
	assert.Equal(t, &capture.Episode{Event: capture.EventUnattended}, l.observe().Clusters["ids"].Queues[0].Inline.Now)
	before := l.arrived()
	l.send(200, 17)
	l.send(50, 6)
	stats := l.settled(250)
	assert.EqualValues(t, 50, l.observe().Rings["mirror"].Inline.Bridged)
	assert.EqualValues(t, 200, stats.Bypassed[capture.EventUnattended])
	assert.EqualValues(t, 250, l.arrived()-before)
	assert.EqualValues(t, 1, stats.Episodes)
	require.NotNil(t, stats.Now)
	assert.EqualValues(t, 200, stats.Now.Packets)
	assert.False(t, stats.Now.Blocked)
	assert.Eventually(t, func() bool { return len(told) > 0 }, time.Minute, 10*time.Millisecond)

	// The next agent finds what it wants.
	have, ok := l.observe().Own.(objects)
	require.True(t, ok)
	assert.Equal(t, steps{}, diff(all, have.rings, have.clusters, lanes))
	holders, err := Holders(nil)
	require.NoError(t, err)
	require.Len(t, holders, 1)
	assert.Contains(t, holders[0], "ring mirror, which is in line")

	// A consumer that does nothing hangs.
	consumer := l.attach(0)
	l.send(10, 17)
	stats = l.settled(260)
	assert.EqualValues(t, 10, stats.Bypassed[capture.EventHung])
	require.NotNil(t, stats.Now)
	assert.Equal(t, capture.EventHung, stats.Now.Event)
	assert.Positive(t, stats.EpisodeTime+stats.Now.Duration)
	assert.EqualValues(t, 260, l.arrived()-before)

	// What happens at an event changes under an attached consumer.
	require.Empty(t, l.apply(l.plan()))
	l.send(10, 17)
	stats = l.settled(270)
	assert.EqualValues(t, 10, stats.Stopped[capture.EventHung])
	assert.True(t, stats.Now.Blocked)
	unix.Close(consumer)
	l.send(10, 17)
	stats = l.settled(280)
	assert.EqualValues(t, 10, stats.Stopped[capture.EventUnattended])
	assert.EqualValues(t, 260, l.arrived()-before)
}

// Interfaces whose ring goes are the stack's again; the queues of one that is no longer in line are made again.
func TestModuleLeavesTheLine(t *testing.T) {
	l := newLineLab(t)
	require.Empty(t, l.apply(l.plan(capture.Events...)))
	before := l.arrived()
	require.Empty(t, l.apply(l.lab.plan(1)))
	consumer := l.attach(0)
	l.send(20, 17)
	l.seen(20)
	assert.Nil(t, l.observe().Clusters["ids"].Queues[0].Inline)
	assert.ErrorIs(t, l.apply(l.plan())["ids"], capture.ErrInUse)
	unix.Close(consumer)
	require.Empty(t, l.apply(l.plan(capture.Events...)))
	l.send(20, 17)
	l.settled(20)
	assert.EqualValues(t, 20, l.arrived()-before)
	require.Empty(t, l.apply(capture.Plan{}))
	l.send(20, 17)
	assert.EqualValues(t, 20, l.arrived()-before)
}

// The module refuses what the agent's facts did not show yet.
func TestModuleRefusesPairs(t *testing.T) {
	l := newLineLab(t)
	require.NoError(t, exec.Command("ip", "address", "add", "10.9.8.7/24", "dev", "rcm1").Run())
	failed := l.apply(l.plan())
	require.ErrorIs(t, failed["mirror"], capture.ErrUnsupported)
	assert.ErrorContains(t, failed["mirror"], "has an IP address")
	addressed := l.plan()
	addressed.Rings[0].Addressed = true
	assert.Empty(t, l.apply(addressed))
	require.Empty(t, l.apply(capture.Plan{}))
	loop := l.plan()
	loop.Rings[0].Addressed = true
	loop.Rings[0].Taps[0].Peer, loop.Rings[0].Taps[1].Peer = l.sender, l.tapped
	loop.Rings[0].Taps[1].Index = l.sender
	failed = l.apply(loop)
	require.ErrorIs(t, failed["mirror"], capture.ErrUnsupported)
	assert.ErrorContains(t, failed["mirror"], "round for ever")
}
