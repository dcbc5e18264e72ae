// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"encoding/binary"
	"fmt"
	"net"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// shuntAnswer is the agent's answer to a request.
type shuntAnswer struct {
	shuntMessage
	States []flowState
}

// ask sends a request for shunted flows, and waits for the answer. It returns the answer's error as an error.
func (c *consumer) ask(verb, nr uint32, elements any) (shuntAnswer, error) {
	return askShunts(c.maps[3], verb, nr, elements)
}

func askShunts(fd int, verb, nr uint32, elements any) (shuntAnswer, error) {
	head := shuntMessage{Magic: protocolMagic, Verb: verb, Number: 7, Nr: nr}
	message, err := binary.Append(nil, binary.NativeEndian, head)
	if err == nil && elements != nil {
		message, err = binary.Append(message, binary.NativeEndian, elements)
	}
	if err != nil {
		return shuntAnswer{}, err
	}
	return askAnything(fd, message)
}

func askAnything(fd int, message []byte) (shuntAnswer, error) {
	var answer shuntAnswer
	if _, err := unix.Write(fd, message); err != nil {
		return answer, err
	}
	if n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 20000); n == 0 || err != nil {
		return answer, fmt.Errorf("no answer: %w", err)
	}
	reply := make([]byte, 1<<16)
	n, err := unix.Read(fd, reply)
	if err != nil {
		return answer, err
	}
	if n == 0 {
		return answer, net.ErrClosed
	}
	size, err := binary.Decode(reply[:n], binary.NativeEndian, &answer.shuntMessage)
	if err != nil {
		return answer, err
	}
	answer.States = make([]flowState, (n-size)/int(unsafe.Sizeof(flowState{})))
	if _, err = binary.Decode(reply[size:n], binary.NativeEndian, answer.States); err == nil && answer.Result < 0 {
		err = unix.Errno(-answer.Result)
	}
	return answer, err
}

func (c *consumer) shunt(rules ...flowRule) (shuntAnswer, error) {
	return c.ask(shuntAdd, uint32(len(rules)), rules)
}

// flowOf returns the rule for the flow of frame(n), which is dropped.
func flowOf(n int) flowRule {
	rule := flowRule{
		Sport: 0x1000 | uint16(n&0xff), Dport: 53, L3Proto: unix.ETH_P_IP, L4Proto: unix.IPPROTO_UDP,
		Action: uint8(capture.ActionDrop),
	}
	copy(rule.Saddr[:], []byte{10, 0, byte(n >> 8), byte(n)})
	copy(rule.Daddr[:], []byte{10, 1, 2, 3})
	return rule
}

func reversed(rule flowRule) flowRule {
	rule.Saddr, rule.Daddr, rule.Sport, rule.Dport = rule.Daddr, rule.Saddr, rule.Dport, rule.Sport
	return rule
}

// back returns frame(n) in the other direction.
func back(n int) []byte {
	f := frame(n, 60)
	for i := range 4 {
		f[26+i], f[30+i] = f[30+i], f[26+i]
	}
	f[34], f[35], f[36], f[37] = f[36], f[37], f[34], f[35]
	return f
}

func shuntingPlan(l *lab, quota uint32) capture.Plan {
	plan := l.plan(1)
	plan.Clusters[0].ShuntQuota = quota
	return plan
}

// mirrorQueue returns the account of a queue after the ring has seen n packets.
func (l *lab) mirrorQueue(e *Engine, n uint64) capture.QueueStats {
	l.t.Helper()
	return l.settled(e, "mirror", n).Clusters["mirror"].Queues[0]
}

// A shunted flow does not come any more, in both directions, until its consumer ends it.
func TestShuntsAFlow(t *testing.T) {
	l := newLab(t)
	e := l.engine()
	l.apply(e, shuntingPlan(l, 10))
	c := l.consume("mirror", 0)
	answer, err := c.shunt(reversed(flowOf(1)))
	require.NoError(t, err)
	assert.Equal(t, shuntMessage{Magic: protocolMagic, Verb: shuntAdd, Number: 7, Nr: 1, Result: 1}, answer.shuntMessage)

	l.send(frame(1, 60), back(1), frame(2, 60), frame(1, 100), back(2))
	queue := l.mirrorQueue(e, 5)
	assert.EqualValues(t, 2, queue.Delivered)
	assert.EqualValues(t, 3, queue.Shunted)
	assert.EqualValues(t, 60+60+100, queue.ShuntedBytes)
	assert.EqualValues(t, 1, queue.ShuntedFlows)
	for i, want := range [][]byte{frame(2, 60), back(2)} {
		assert.Equal(t, want, l.collect(c, 1)[0].data, "packet %d", i)
	}

	// Either direction names it; it is read back as it was named first.
	answer, err = c.ask(shuntRead, 2, []flowState{{Rule: flowOf(1)}, {Rule: flowOf(2)}})
	require.NoError(t, err)
	require.Len(t, answer.States, 2)
	assert.EqualValues(t, 1, answer.Missed)
	assert.Equal(t, []uint64{3, 220}, []uint64{answer.Shunted, answer.ShuntedBytes})
	assert.Equal(t, reversed(flowOf(1)), answer.States[0].Rule)
	state := answer.States[0].Counts
	assert.Less(t, state.IdleMs, uint32(60000))
	state.IdleMs = 0
	assert.Equal(t, flowCounts{Packets: 3, Bytes: 220, Flags: countsShunted}, state)
	assert.Equal(t, flowState{Rule: flowOf(2)}, answer.States[1])

	answer, err = c.ask(shuntRemove, 2, []flowRule{flowOf(1), flowOf(2)})
	require.NoError(t, err)
	assert.EqualValues(t, 1, answer.Missed)
	l.send(frame(1, 60))
	queue = l.mirrorQueue(e, 6)
	assert.EqualValues(t, 3, queue.Delivered)
	assert.Zero(t, queue.ShuntedFlows)
	answer, err = c.ask(shuntEnded, 9, nil)
	require.NoError(t, err)
	require.Len(t, answer.States, 1)
	assert.EqualValues(t, 1, answer.Result)
	assert.Equal(t, reversed(flowOf(1)), answer.States[0].Rule)
	assert.EqualValues(t, 3, answer.States[0].Counts.Packets)
	answer, err = c.ask(shuntEnded, 9, nil)
	require.NoError(t, err)
	assert.Empty(t, answer.States)
}

// What a consumer asks for is checked as the module checks it.
func TestShuntsAreRefusedByError(t *testing.T) {
	l := newLab(t)
	e := l.engine()
	l.apply(e, shuntingPlan(l, 2))
	c := l.consume("mirror", 0)
	for name, change := range map[string]func(*flowRule){
		"family":       func(r *flowRule) { r.L3Proto = 0x0806 },
		"address":      func(r *flowRule) { r.Saddr[4] = 1 },
		"VLAN":         func(r *flowRule) { r.VlanID = 4096 },
		"ports":        func(r *flowRule) { r.L4Proto = unix.IPPROTO_ICMP },
		"action":       func(r *flowRule) { r.Action = uint8(capture.ActionPass) },
		"target":       func(r *flowRule) { r.Target = 1 },
		"idle time":    func(r *flowRule) { r.IdleS = 1000001 },
		"other action": func(r *flowRule) { r.Action = 99 },
	} {
		rule := flowOf(1)
		change(&rule)
		_, err := c.shunt(rule)
		assert.ErrorIs(t, err, unix.EINVAL, name)
	}
	answer, err := c.shunt(flowOf(1), flowRule{}, flowOf(2))
	require.NoError(t, err)
	assert.EqualValues(t, 1, answer.Result, "those before it are shunted")
	answer, err = c.shunt(flowOf(1), flowOf(2), flowOf(3))
	require.NoError(t, err)
	assert.EqualValues(t, 2, answer.Result)
	assert.EqualValues(t, 1, answer.Missed)
	_, err = c.shunt(flowOf(3))
	assert.ErrorIs(t, err, unix.EDQUOT)
	for _, verb := range []uint32{shuntRemove, shuntRead} {
		elements := any([]flowRule{{}})
		if verb == shuntRead {
			elements = []flowState{{}}
		}
		_, err = c.ask(verb, 1, elements)
		assert.ErrorIs(t, err, unix.EINVAL)
	}
	assert.EqualValues(t, 2, l.observe(e).Clusters["mirror"].Queues[0].ShuntedFlows)

	// What is no request ends the socket, and nothing else.
	_, err = c.ask(99, 0, nil)
	require.Error(t, err)
	l.send(frame(5, 60))
	assert.Equal(t, frame(5, 60), l.collect(c, 1)[0].data)
	l.send(frame(1, 60))
	assert.EqualValues(t, 1, l.mirrorQueue(e, 2).Shunted)
}

// The right comes, shrinks and goes under the consumer.
func TestRightToShunt(t *testing.T) {
	l := newLab(t)
	e := l.engine()
	l.apply(e, shuntingPlan(l, 0))
	c := l.consume("mirror", 0)
	sent := uint64(0)
	shunted := func() uint64 {
		before := l.observe(e).Clusters["mirror"].Queues[0].Shunted
		l.send(frame(1, 60), frame(2, 60), frame(3, 60))
		sent += 3
		return l.mirrorQueue(e, sent).Shunted - before
	}
	_, err := c.shunt(flowOf(1))
	require.ErrorIs(t, err, unix.EPERM)
	require.Zero(t, shunted())
	l.apply(e, shuntingPlan(l, 2))
	_, err = c.shunt(flowOf(1), flowOf(2))
	require.NoError(t, err)
	require.EqualValues(t, 2, shunted())
	l.apply(e, shuntingPlan(l, 1))
	require.EqualValues(t, 2, shunted(), "flows above the quota stay until they end")
	_, err = c.shunt(flowOf(3))
	require.ErrorIs(t, err, unix.EDQUOT)
	l.apply(e, shuntingPlan(l, 0))
	require.Zero(t, shunted())
	_, err = c.shunt(flowOf(1))
	require.ErrorIs(t, err, unix.EPERM)
	require.EqualValues(t, 2, l.observe(e).Clusters["mirror"].Queues[0].ShuntedFlows)
	l.apply(e, shuntingPlan(l, 3))
	require.EqualValues(t, 2, shunted())
}

// A flow without packets for its idle time ends by itself; one with packets does not.
func TestShuntedFlowsEndIdle(t *testing.T) {
	l := newLab(t)
	e := l.engine()
	l.apply(e, shuntingPlan(l, 10))
	c := l.consume("mirror", 0)
	idle, busy, forever := flowOf(1), flowOf(2), flowOf(3)
	idle.IdleS, busy.IdleS = 1, 5
	_, err := c.shunt(idle, busy, forever)
	require.NoError(t, err)
	l.send(frame(1, 60))
	sent := uint64(1)
	began := time.Now()
	l.until("the idle flow has ended", func() bool {
		l.send(frame(2, 60))
		sent++
		time.Sleep(50 * time.Millisecond)
		return l.observe(e).Clusters["mirror"].Queues[0].ShuntedFlows == 2
	})
	assert.GreaterOrEqual(t, time.Since(began), time.Second-20*time.Millisecond)
	l.send(frame(1, 60))
	queue := l.mirrorQueue(e, sent+1)
	assert.EqualValues(t, 1, queue.Delivered)
	answer, err := c.ask(shuntEnded, 256, nil)
	require.NoError(t, err)
	require.Len(t, answer.States, 1)
	assert.Equal(t, idle, answer.States[0].Rule)
	assert.EqualValues(t, 1, answer.States[0].Counts.Packets)
	l.until("the busy flow has ended, too", func() bool {
		return l.observe(e).Clusters["mirror"].Queues[0].ShuntedFlows == 1
	})
}

// A consumer's flows end with it: the next one does not know them.
func TestShuntedFlowsEndWithTheConsumer(t *testing.T) {
	l := newLab(t)
	e := l.engine()
	l.apply(e, shuntingPlan(l, 10))
	c := l.consume("mirror", 0)
	_, err := c.shunt(flowOf(1), flowOf(2), flowOf(3))
	require.NoError(t, err)
	_, err = c.ask(shuntRemove, 1, []flowRule{flowOf(3)})
	require.NoError(t, err)
	pin := l.pinDir + "/v3/clusters/mirror_0/q0_shunts"
	require.FileExists(t, pin)
	c.close()
	l.until("the consumer is gone", func() bool { return !l.observe(e).Clusters["mirror"].Queues[0].Attached })
	require.NoFileExists(t, pin)
	next := l.consume("mirror", 0)
	l.send(frame(1, 60))
	queue := l.mirrorQueue(e, 1)
	assert.EqualValues(t, 1, queue.Delivered)
	assert.Zero(t, queue.ShuntedFlows)
	assert.EqualValues(t, 3, queue.ShuntsLost)

	// Its own are taken with the queue.
	_, err = next.shunt(flowOf(1))
	require.NoError(t, err)
	_, err = e.TakeBack(t.Context(), capture.QueueID{Cluster: "mirror", Queue: 0}, capture.Holder{})
	require.NoError(t, err)
	_, err = next.shunt(flowOf(2))
	assert.Error(t, err)
	assert.EqualValues(t, 4, l.observe(e).Clusters["mirror"].Queues[0].ShuntsLost)
}
