// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// Two processors have fragments of one datagram at the same time. The one that read the clock first finds a datagram
// that begins after its own packet. The datagram's other fragments still stay in the flow's queue.
func TestFragmentOfADatagramThatBeganLater(t *testing.T) {
	const datagrams, queues = 32, 4
	l := newLab(t)
	e := l.engine()
	plan := l.plan(queues)
	plan.Clusters[0].Fragments = capture.FragmentsWithFlow
	l.apply(e, plan)
	for queue := range queues {
		l.consume("mirror", queue)
	}
	l.sendAll(e, "mirror", datagrams, func(n int) []byte { return fragment(frame(n, 60), 1<<13) })
	first := delivered(l.observe(e))

	table := e.rings["mirror"].maps.maps["ring_fragments"]
	began := map[string][]byte{}
	var key, value []byte
	for entries := table.Iterate(); entries.Next(&key, &value); {
		began[string(key)] = bytes.Clone(value)
	}
	require.Len(t, began, datagrams)
	for key, value := range began {
		binary.NativeEndian.PutUint64(value, binary.NativeEndian.Uint64(value)+uint64(10*time.Second))
		require.NoError(t, table.Put([]byte(key), value))
	}
	l.sendAll(e, "mirror", datagrams, func(n int) []byte { return fragment(frame(n, 60), 5) })
	for queue, packets := range delivered(l.observe(e)) {
		require.Equal(t, 2*first[queue], packets, "queue %d", queue)
	}
}

// delivered returns the packets in each queue of "mirror".
func delivered(o capture.Observation) []uint64 {
	packets := make([]uint64, 0, len(o.Clusters["mirror"].Queues))
	for _, q := range o.Clusters["mirror"].Queues {
		packets = append(packets, q.Delivered)
	}
	return packets
}
