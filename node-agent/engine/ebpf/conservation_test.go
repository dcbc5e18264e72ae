// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"bytes"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// reader takes packets from a consumer in the background.
type reader struct {
	end     chan struct{}
	done    chan struct{}
	once    sync.Once
	packets []*packet
	err     error
}

func (l *lab) read(c *consumer) *reader {
	r := &reader{end: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.run(c)
	}()
	l.t.Cleanup(func() { _, _ = r.stop() })
	return r
}

func (r *reader) run(c *consumer) {
	for {
		p, err := c.next()
		if err != nil {
			r.err = err
			return
		}
		if p != nil {
			r.packets = append(r.packets, p)
			continue
		}
		select {
		case <-r.end:
			return
		default:
			c.wait(time.Millisecond)
		}
	}
}

// stop ends the reading once the queue is empty.
func (r *reader) stop() ([]*packet, error) {
	r.once.Do(func() { close(r.end) })
	<-r.done
	return r.packets, r.err
}

func TestConservationFastConsumers(t *testing.T) {
	const sent, queues = 100_000, 3
	l := newLab(t)
	e := l.engine()
	plan := l.plan(queues)
	// There is room for all of them, so the result does not depend on the speed of this machine.
	plan.Clusters[0].QueueBytes = 64 << 20
	l.apply(e, plan)
	var readers [queues]*reader
	for q := range queues {
		readers[q] = l.read(l.consume("mirror", q))
	}
	l.sendAll(e, "mirror", sent, func(n int) []byte { return frame(n, 60+n%1000) })

	observed := l.observe(e)
	require.EqualValues(t, sent, observed.Rings["mirror"].Stats.Seen)
	require.EqualValues(t, sent, observed.Rings["mirror"].Stats.Passed)
	total := 0
	for q := range queues {
		packets, err := readers[q].stop()
		require.NoError(t, err)
		stats := observed.Clusters["mirror"].Queues[q]
		require.EqualValues(t, len(packets), stats.Delivered)
		require.Equal(t, map[capture.DropReason]uint64{"full": 0, "unattended": 0, "nomem": 0, "hung": 0}, stats.Dropped)
		require.True(t, stats.Attached)
		total += len(packets)
		requireSequence(t, packets)
	}
	require.Equal(t, sent, total)
	for _, q := range l.observe(e).Clusters["mirror"].Queues {
		require.Zero(t, q.UnreadBytes)
	}
}

// requireSequence requires the packets of the fast test, whole and in the order in which they were sent.
func requireSequence(t *testing.T, packets []*packet) {
	t.Helper()
	last := -1
	for _, p := range packets {
		number := string(bytes.TrimRight(p.data[42:min(len(p.data), 47)], "\x00"))
		n, err := strconv.ParseInt(number, 16, 32)
		require.NoError(t, err)
		require.Greater(t, int(n), last)
		require.True(t, bytes.Equal(frame(int(n), 60+int(n)%1000), p.data), "packet %d", n)
		last = int(n)
	}
}

func TestConservationSlowConsumer(t *testing.T) {
	const sent = 100_000
	l := newLab(t)
	e := l.engine()
	plan := l.plan(1)
	plan.Clusters[0].QueueBytes = minQueueBytes
	l.apply(e, plan)
	c := l.consume("mirror", 0)

	// The consumer reads only every 20,000 packets. By then its queue has long been full.
	var received []*packet
	for range sent / 20_000 {
		l.sendAll(e, "mirror", 20_000, func(n int) []byte { return frame(n, 200) })
		packets, err := c.drain()
		require.NoError(t, err)
		received = append(received, packets...)
	}
	observed := l.observe(e)
	stats := observed.Clusters["mirror"].Queues[0]
	require.EqualValues(t, len(received), stats.Delivered)
	require.EqualValues(t, 200*len(received), stats.DeliveredBytes)
	require.EqualValues(t, sent-len(received), stats.Dropped[capture.DropFull])
	require.EqualValues(t, sent, observed.Rings["mirror"].Stats.Seen)
	require.Positive(t, stats.Dropped[capture.DropFull])
	// A lane holds what fits: slots of 32 + 200 bytes. There is one producer, on any CPU.
	require.GreaterOrEqual(t, len(received), sent/20_000*(minQueueBytes/232))
}

func TestUnattendedQueueIsCounted(t *testing.T) {
	l := newLab(t)
	e := l.engine()
	l.apply(e, l.plan(1))
	l.sendAll(e, "mirror", 10, func(n int) []byte { return frame(n, 60) })
	c := l.consume("mirror", 0)
	l.sendAll(e, "mirror", 5, func(n int) []byte { return frame(n, 60) })
	require.Len(t, l.collect(c, 5), 5)
	c.detach()
	l.detached(e, "mirror", 0)
	l.sendAll(e, "mirror", 7, func(n int) []byte { return frame(n, 60) })

	stats := l.observe(e).Clusters["mirror"].Queues[0]
	require.EqualValues(t, 5, stats.Delivered)
	require.Equal(t, map[capture.DropReason]uint64{"full": 0, "unattended": 17, "nomem": 0, "hung": 0}, stats.Dropped)
}

func TestTwoRingsOnOneInterfaceAndOneRingToTwoClusters(t *testing.T) {
	const sent = 1000
	l := newLab(t)
	e := l.engine()
	plan := l.plan(1)
	second := plan.Rings[0]
	second.Name, second.SnapLen, second.Outputs = "second", 64, []string{"ids", "probe"}
	plan.Rings = append(plan.Rings, second)
	for name, queues := range map[string]int{"ids": 4, "probe": 1} {
		c := plan.Clusters[0]
		c.Name, c.Queues = name, queues
		plan.Clusters = append(plan.Clusters, c)
	}
	l.apply(e, plan)
	mirror, probe := l.consume("mirror", 0), l.consume("probe", 0)
	var ids []*consumer
	for q := range 4 {
		ids = append(ids, l.consume("ids", q))
	}
	require.EqualValues(t, 65535, mirror.reply.SnapLen)
	require.EqualValues(t, 64, probe.reply.SnapLen)

	l.sendAll(e, "second", sent, func(n int) []byte { return frame(n, 100) })
	inMirror, inProbe := l.collect(mirror, sent), l.collect(probe, sent)
	for i := range sent {
		require.Equal(t, frame(i, 100), inMirror[i].data)
		require.Equal(t, frame(i, 100)[:64], inProbe[i].data)
		require.EqualValues(t, 100, inProbe[i].slot.Len)
		require.Equal(t, inMirror[i].slot.Hash, inProbe[i].slot.Hash, "same key, same flow")
	}
	total := 0
	for _, c := range ids {
		packets, err := c.drain()
		require.NoError(t, err)
		require.NotEmpty(t, packets)
		total += len(packets)
	}
	require.Equal(t, sent, total)
}

func TestRoundRobin(t *testing.T) {
	l := newLab(t)
	e := l.engine()
	plan := l.plan(3)
	plan.Clusters[0].Balance = capture.BalanceRoundRobin
	l.apply(e, plan)
	l.sendAll(e, "mirror", 300, func(int) []byte { return frame(1, 60) })
	for _, q := range l.observe(e).Clusters["mirror"].Queues {
		require.EqualValues(t, 100, q.Dropped[capture.DropUnattended])
	}
}
