// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// vector is a line of the classifier's golden vectors: a packet, and the result that every engine must have for it.
type vector struct {
	name   string
	frame  []byte // as on the wire
	slot   slot   // the result from the packet itself
	hashes [4]uint32
}

const vectorsFile = "../../../kmod/classify/tests/vectors.txt"

func readVectors(t *testing.T) []vector {
	t.Helper()
	f, err := os.Open(vectorsFile)
	if os.IsNotExist(err) {
		t.Skip("the classifier's vectors are not beside this test: it runs from another folder than its own")
	}
	require.NoError(t, err)
	defer f.Close()
	var vectors []vector
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if line := lines.Text(); !strings.HasPrefix(line, "#") {
			vectors = append(vectors, parseVector(t, strings.Fields(line)))
		}
	}
	require.NoError(t, lines.Err())
	require.NotEmpty(t, vectors)
	return vectors
}

// parseVector reads: name; tag out of band: tpid tci; l3_proto l3_off l4_off l4_proto sport dport vlan_tpid vlan_tci
// inner_vid flags saddr daddr smac dmac; four hashes; frame.
func parseVector(t *testing.T, fields []string) vector {
	t.Helper()
	require.Len(t, fields, 22)
	number := func(i int) uint32 {
		n, err := strconv.ParseUint(fields[i], 16, 32)
		require.NoError(t, err)
		return uint32(n)
	}
	frame, err := hex.DecodeString(strings.TrimPrefix(fields[21], "-"))
	require.NoError(t, err)
	if number(1) != 0 {
		frame = tagged(frame, number(1)<<16|number(2))
	}
	v := vector{name: fields[0], frame: frame, slot: slot{
		L3Proto: uint16(number(3)), L3Off: uint16(number(4)), L4Off: uint16(number(5)), L4Proto: uint8(number(6)),
		VLANTPID: uint16(number(9)), VLANTCI: uint16(number(10)), Flags: uint8(number(12)),
	}}
	for i := range v.hashes {
		v.hashes[i] = number(17 + i)
	}
	return v
}

func TestGoldenVectors(t *testing.T) {
	vectors := readVectors(t)
	// A socket cannot send less than an Ethernet header. On receiving, the stack drops packets that end in their
	// first VLAN tag, or right after it, before any tap.
	sendable := func(v vector) bool { return len(v.frame) >= 14 }
	receivable := func(v vector) bool { return sendable(v) && (len(v.frame) >= 20 || !beginsWithTag(v.frame)) }
	t.Run("receive", func(t *testing.T) { compareVectors(t, vectors, capture.Receive, receivable, false) })
	t.Run("transmit", func(t *testing.T) { compareVectors(t, vectors, capture.Transmit, sendable, false) })
	t.Run("plain", func(t *testing.T) { compareVectors(t, vectors, capture.Receive, receivable, true) })
}

func beginsWithTag(frame []byte) bool {
	tpid := binary.BigEndian.Uint16(frame[12:])
	return tpid == 0x8100 || tpid == 0x88a8
}

// compareVectors sends packets to a ring with one cluster for each balance type that hashes. With plain, it sends
// them to as many plain rings.
func compareVectors(t *testing.T, vectors []vector, direction capture.Direction, possible func(vector) bool, plain bool) {
	l := newLab(t)
	e := l.engine()
	plan := l.plan(3)
	var flags uint8
	if direction == capture.Transmit {
		flags = slotOutgoing
		plan.Rings[0].Taps = []capture.Tap{{Interface: "sender", Index: l.sender.Attrs().Index, Direction: direction}}
	}
	all := withLongHeader(onePerBalance(plan))
	if plain {
		all = plainRings(onePerBalance(plan))
	}
	l.apply(e, all)
	consumers := map[string][]*consumer{}
	outputs := onePerBalance(plan).Rings[0].Outputs
	for _, name := range outputs {
		for q := range 3 {
			consumers[name] = append(consumers[name], l.consume(name, q))
		}
	}
	tested := 0
	for _, v := range vectors {
		if !possible(v) {
			continue
		}
		tested++
		l.send(v.frame)
		for i, name := range outputs {
			queue := int(uint64(v.hashes[i]) * 3 >> 32)
			packets, err := consumers[name][queue].collect(1)
			require.NoError(t, err, v.name)
			p := packets[0]
			require.Equal(t, v.frame, p.data, v.name)
			want := v.slot
			want.Hash, want.Flags = v.hashes[i], v.slot.Flags|flags|slotHashed
			want.Ts, want.Len, want.Caplen = p.slot.Ts, p.slot.Len, p.slot.Caplen
			want.Ifindex, want.HdrLen = p.slot.Ifindex, longHeader
			if plain {
				want = slot{Ts: want.Ts, Len: want.Len, Caplen: want.Caplen, Hash: want.Hash, Ifindex: want.Ifindex, HdrLen: shortHeader}
				want.Flags, want.VLANTPID, want.VLANTCI = slotHashed|p.slot.Flags&slotVLAN, p.slot.VLANTPID, p.slot.VLANTCI
			}
			require.Equal(t, want, p.slot, "%s, %s", v.name, name)
		}
	}
	require.Greater(t, tested, 50)
}

// onePerBalance gives the plan's ring a cluster of each balance type that hashes, in their order, under the key of the
// vectors.
func onePerBalance(plan capture.Plan) capture.Plan {
	ring, cluster := plan.Rings[0], plan.Clusters[0]
	plan.Clusters, ring.Outputs = nil, nil
	for balance := capture.BalanceFlow; balance < capture.BalanceRoundRobin; balance++ {
		cluster.Name, cluster.Balance = "balance-"+strconv.Itoa(int(balance)), balance
		cluster.HashKey = [16]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
		ring.Outputs = append(ring.Outputs, cluster.Name)
		plan.Clusters = append(plan.Clusters, cluster)
	}
	plan.Rings = []capture.Ring{ring}
	return plan
}

// plainRings gives each cluster its own ring.
func plainRings(plan capture.Plan) capture.Plan {
	ring := plan.Rings[0]
	plan.Rings = nil
	for _, cluster := range plan.Clusters {
		ring.Name, ring.Outputs = cluster.Name, []string{cluster.Name}
		plan.Rings = append(plan.Rings, ring)
	}
	return plan
}
