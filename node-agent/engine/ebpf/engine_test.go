// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcap/ringcap/node-agent/capture"
)

func TestPacketsReachTheirConsumer(t *testing.T) {
	l := newLab(t)
	e := l.engine()
	l.apply(e, withLongHeader(l.plan(1)))
	c := l.consume("mirror", 0)

	sent := [][]byte{frame(1, 60), frame(2, 1500), frame(3, 9000)}
	l.send(sent...)
	received := l.collect(c, len(sent))
	for i, p := range received {
		require.Equal(t, sent[i], p.data)
		require.EqualValues(t, len(sent[i]), p.slot.Len)
		require.EqualValues(t, 14, p.slot.L3Off)
		require.EqualValues(t, 34, p.slot.L4Off)
		require.EqualValues(t, l.tapped.Attrs().Index, p.slot.Ifindex)
	}
	observed := l.observe(e)
	require.Equal(t, capture.RingStats{Seen: 3, SeenBytes: 10560, Passed: 3}, observed.Rings["mirror"].Stats)
	require.EqualValues(t, 3, observed.Clusters["mirror"].Queues[0].Delivered)
}
