// SPDX-License-Identifier: Apache-2.0

package kmod

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// iocShunt is RINGCAP_IOC_SHUNT, _IOWR('R', 3, struct ringcap_shunts).
const iocShunt = 3<<30 | unsafe.Sizeof(shuntRequest{})<<16 | 'R'<<8 | 3

// shuntRequest is struct ringcap_shunts.
type shuntRequest struct {
	flows                uintptr
	nr, missed           uint32
	lost, shunted, bytes uint64
}

// shunt drops the flows from 10.0.0.n that lab.send sends.
func shunt(fd int, sources ...byte) error { return shuntTo(fd, actionDrop, sources...) }

func shuntTo(fd int, action uint8, sources ...byte) error {
	var flows []rawExact
	for _, n := range sources {
		flow := rawExact{Sport: 1000, Dport: 53, L3Proto: unix.ETH_P_IP, L4Proto: unix.IPPROTO_UDP, Action: action}
		copy(flow.Saddr[:], []byte{10, 0, 0, n})
		copy(flow.Daddr[:], []byte{10, 1, 0, 1})
		flows = append(flows, flow)
	}
	request := shuntRequest{flows: uintptr(unsafe.Pointer(&flows[0])), nr: uint32(len(flows))}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), iocShunt, uintptr(unsafe.Pointer(&request))); errno != 0 {
		return errno
	}
	return nil
}

// lab.send(n, 17) sends n/16 packets from each of 10.0.0.0 to 10.0.0.15.
func TestModuleShunts(t *testing.T) {
	l := newLab(t)
	plan := l.plan(1)
	require.Empty(t, l.apply(plan))
	consumer := l.attach(0)
	defer unix.Close(consumer)
	sent := uint64(0)
	// shunted sends 10 packets of each flow, and returns how many were not delivered.
	shunted := func() uint64 {
		before := l.observe().Clusters["ids"].Queues[0]
		l.send(160, unix.IPPROTO_UDP)
		sent += 160
		queue := l.seen(sent).Clusters["ids"].Queues[0]
		require.Equal(t, sent, queue.Delivered+queue.Shunted+sumOf(queue.Dropped))
		require.Equal(t, 60*queue.Shunted, queue.ShuntedBytes)
		return queue.Shunted - before.Shunted
	}
	set := func(quota uint32) {
		plan.Clusters[0].ShuntQuota = quota
		require.Empty(t, l.apply(plan))
	}
	require.ErrorIs(t, shunt(consumer, 1), unix.EPERM)

	// The right comes, shrinks and goes under the consumer.
	set(2)
	require.NoError(t, shunt(consumer, 1, 2))
	require.ErrorIs(t, shunt(consumer, 3), unix.EDQUOT)
	assert.EqualValues(t, 20, shunted())
	set(1)
	assert.EqualValues(t, 20, shunted(), "flows above the quota stay until they end")
	set(0)
	assert.Zero(t, shunted())
	set(3)
	assert.EqualValues(t, 20, shunted())
	assert.EqualValues(t, 2, l.observe().Clusters["ids"].Queues[0].ShuntedFlows)

	have, ok := l.observe().Own.(objects)
	require.True(t, ok)
	assert.Equal(t, steps{}, diff(plan, have.rings, have.clusters, lanes), "the next agent finds what it wants")
	assert.True(t, l.observe().Clusters["ids"].Queues[0].Attached)
}

// A consumer in line says for each flow whether its packets leave.
func TestModuleShuntsInLine(t *testing.T) {
	l := newLineLab(t)
	plan := l.plan(capture.EventHung)
	plan.Clusters[0].ShuntQuota = 16
	require.Empty(t, l.apply(plan))
	consumer := l.attach(0)
	defer unix.Close(consumer)
	before := l.arrived()
	require.NoError(t, shuntTo(consumer, actionPass, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9))
	require.NoError(t, shuntTo(consumer, actionDrop, 10, 11, 12, 13, 14, 15))
	l.send(160, unix.IPPROTO_UDP)
	stats := l.settled(160)
	assert.EqualValues(t, 100, stats.ShuntPassed)
	assert.EqualValues(t, 60, stats.ShuntBlocked)
	assert.EqualValues(t, 100, l.arrived()-before)
	queue := l.observe().Clusters["ids"].Queues[0]
	assert.EqualValues(t, 160, queue.Shunted)
	assert.Zero(t, queue.Delivered+sumOf(queue.Dropped))
}
