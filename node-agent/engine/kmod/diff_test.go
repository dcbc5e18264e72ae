// SPDX-License-Identifier: Apache-2.0

package kmod

import (
	"testing"
	"time"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/netlink"
	"github.com/mdlayher/netlink/nlenc"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/node-agent/capture"
)

const lanes = 2

var (
	ids = capture.Cluster{
		Name: "ids", Queues: 2, Balance: capture.BalanceTwoTuple, HashKey: [16]byte{1, 2}, QueueBytes: 1 << 20,
		Watermark: 4096, WatermarkTimeout: 10 * time.Millisecond,
	}
	mirror = capture.Ring{
		Name: "mirror", Taps: []capture.Tap{{Interface: "eth0", Index: 2, Direction: capture.Receive}}, SnapLen: 1500,
		Filter: []bpf.RawInstruction{{Op: 0x28, Jt: 1, Jf: 2, K: 12}, {Op: 6, K: 0xffff}}, Promiscuous: true, Outputs: []string{"ids"},
	}
	line = capture.Ring{
		Name: "line", SnapLen: 1500, Outputs: []string{"line"}, Addressed: true, Taps: []capture.Tap{
			{Interface: "eth0", Index: 2, Direction: capture.Receive, Peer: 3}, {Interface: "eth1", Index: 3, Direction: capture.Receive, Peer: 2},
		},
	}
	lineQueues = capture.Cluster{
		Name: "line", Queues: 2, Lanes: 1, QueueBytes: 1 << 20, Inline: &capture.Inline{
			Bypass: []capture.Event{capture.EventUnattended, capture.EventHung}, HungAfter: 50 * time.Millisecond,
		},
	}
	wanted = capture.Plan{Rings: []capture.Ring{mirror}, Clusters: []capture.Cluster{ids}}
)

func TestDiff(t *testing.T) {
	same := ringObject{name: "mirror", generation: generationOf(mirror), taps: []capture.Tap{{Index: 2, Direction: capture.Receive}}}
	quick, changedQuick := same, same
	quick.quick, changedQuick.quick, changedQuick.generation = true, true, generationTag|1
	sameCluster := clusterObject{name: "ids", generation: generationOf(ids, lanes), queues: 2}
	for name, test := range map[string]struct {
		plan     capture.Plan
		rings    []ringObject
		clusters []clusterObject
		want     steps
	}{
		"all is new":  {wanted, nil, nil, steps{setClusters: wanted.Clusters, setRings: wanted.Rings}},
		"all is made": {wanted, []ringObject{same}, []clusterObject{sameCluster}, steps{}},
		"all goes": {
			capture.Plan{}, []ringObject{same}, []clusterObject{sameCluster},
			steps{deleteRings: []string{"mirror"}, deleteClusters: []string{"ids"}},
		},
		"the ring changed": {
			wanted, []ringObject{{name: "mirror", generation: generationTag | 1, taps: same.taps}}, []clusterObject{sameCluster},
			steps{setRings: wanted.Rings},
		},
		"a tap is gone": {
			wanted, []ringObject{{name: "mirror", generation: same.generation}}, []clusterObject{sameCluster},
			steps{setRings: wanted.Rings},
		},
		"an earlier agent's quick ring": {wanted, []ringObject{quick}, []clusterObject{sameCluster}, steps{}},
		"an earlier agent's quick ring changed": {
			wanted, []ringObject{changedQuick}, []clusterObject{sameCluster},
			steps{deleteRings: []string{"mirror"}, setRings: wanted.Rings},
		},
		"it is to be in line": {
			capture.Plan{Rings: []capture.Ring{line}, Clusters: []capture.Cluster{lineQueues}},
			[]ringObject{{name: "line", generation: generationOf(line), taps: line.Taps}},
			[]clusterObject{{name: "line", generation: generationOf(lineQueues, lanes)}},
			steps{
				exchange: []string{"line"}, deleteRings: []string{"line"}, setClusters: []capture.Cluster{lineQueues}, setRings: []capture.Ring{line},
			},
		},
		"it is in line": {
			capture.Plan{Rings: []capture.Ring{line}, Clusters: []capture.Cluster{lineQueues}},
			[]ringObject{{name: "line", generation: generationOf(line), taps: line.Taps}},
			[]clusterObject{{name: "line", generation: generationOf(lineQueues, lanes), inLine: true}},
			steps{},
		},
		"it has another peer": {
			capture.Plan{Rings: []capture.Ring{line}, Clusters: []capture.Cluster{lineQueues}},
			[]ringObject{{name: "line", generation: generationOf(line), taps: []capture.Tap{{Index: 2, Direction: capture.Receive, Peer: 4}, line.Taps[1]}}},
			[]clusterObject{{name: "line", generation: generationOf(lineQueues, lanes), inLine: true}},
			steps{setRings: []capture.Ring{line}},
		},
		"the cluster changed": {
			wanted, []ringObject{same}, []clusterObject{{name: "ids", generation: generationTag | 1}},
			steps{setClusters: wanted.Clusters},
		},
		"somebody else's are never touched": {
			wanted,
			[]ringObject{{name: "mirror", generation: 7}, {name: "theirs"}},
			[]clusterObject{{name: "ids"}, {name: "theirs", generation: 9}},
			steps{foreign: []string{"ids", "mirror"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.want, diff(test.plan, test.rings, test.clusters, lanes))
		})
	}
}

func TestGenerations(t *testing.T) {
	assert.True(t, ours(generationOf(mirror)))
	assert.False(t, ours(0))
	changed := mirror
	changed.Filter = nil
	assert.NotEqual(t, generationOf(mirror), generationOf(changed))
	assert.NotEqual(t, generationOf(ids, 1), generationOf(ids, 2))
}

// What is sent has the header's layout: it is read back with the header's attribute numbers.
func TestEncodeRing(t *testing.T) {
	data, err := encodeRing(mirror, mirror.Outputs, 77)
	require.NoError(t, err)
	got, err := netlink.UnmarshalAttributes(data)
	require.NoError(t, err)
	byType := map[uint16][]byte{}
	for _, a := range got {
		byType[a.Type&^netlink.Nested] = a.Data
	}
	assert.Equal(t, nlenc.Bytes("mirror"), byType[attrName])
	assert.Equal(t, nlenc.Uint64Bytes(77), byType[attrGeneration])
	assert.Equal(t, nlenc.Bytes("ids"), byType[attrOutput])
	assert.Equal(t, nlenc.Uint32Bytes(1500), byType[attrSnapLen])
	assert.Equal(t, nlenc.Uint32Bytes(1), byType[attrPromisc])
	// struct sock_filter: code, jt, jf, k.
	assert.Equal(t, []byte{0x28, 0, 1, 2, 12, 0, 0, 0, 6, 0, 0, 0, 0xff, 0xff, 0, 0}, byType[attrFilter])

	decoded, err := decodeRing(genetlink.Message{Data: data})
	require.NoError(t, err)
	assert.Equal(t, ringObject{name: "mirror", generation: 77, taps: []capture.Tap{{Index: 2, Direction: capture.Receive}}}, decoded)
}

func TestEncodeCluster(t *testing.T) {
	data, err := encodeCluster(ids, lanes, 78)
	require.NoError(t, err)
	decoded, err := decodeCluster(genetlink.Message{Data: data})
	require.NoError(t, err)
	assert.Equal(t, clusterObject{name: "ids", generation: 78, queues: 2, lanes: lanes, memoryMost: uint64(2*lanes) * uint64(ids.QueueBytes)}, decoded)

	data, err = encodeCluster(lineQueues, lanes, 78)
	require.NoError(t, err)
	decoded, err = decodeCluster(genetlink.Message{Data: data})
	require.NoError(t, err)
	assert.Equal(t, clusterObject{
		name: "line", generation: 78, queues: 2, lanes: 1, memoryMost: 2 << 20, inLine: true, open: openUnattended | openHung,
	}, decoded)

	fewer := ids
	fewer.Lanes = 1
	data, err = encodeCluster(fewer, lanes, 78)
	require.NoError(t, err)
	decoded, err = decodeCluster(genetlink.Message{Data: data})
	require.NoError(t, err)
	assert.Equal(t, 1, decoded.lanes)
}

func TestTheModulesBounds(t *testing.T) {
	assert.EqualValues(t, 1, watermark(capture.Cluster{QueueBytes: 1 << 20}))
	assert.EqualValues(t, 1<<19, watermark(capture.Cluster{QueueBytes: 1 << 20, Watermark: 9 << 20 / 10}))
}

func TestDecodeQueue(t *testing.T) {
	e := netlink.NewAttributeEncoder()
	e.Uint32(attrQueue, 1)
	e.Uint32(attrAttached, 1)
	e.Uint64(attrAttachment, 5)
	e.Uint64(attrDelivered, 10)
	e.Uint64(attrDeliveredBytes, 1000)
	e.Uint64(attrTruncated, 2)
	e.Uint64(attrTruncatedBytes, 700)
	e.Uint32(attrShunts, 6)
	e.Uint64(attrShunted, 7)
	e.Uint64(attrShuntedBytes, 800)
	e.Uint64(attrShuntsLost, 9)
	e.Uint64(attrUnreadBytes, 64)
	e.Uint64(attrFullestLane, 48)
	e.Bytes(attrDropped, append(append(nlenc.Uint64Bytes(3), nlenc.Uint64Bytes(4)...), make([]byte, 16)...))
	e.Uint32(attrDevT, 240<<20|7)
	data, err := e.Encode()
	require.NoError(t, err)
	got, err := decodeQueue(genetlink.Message{Data: data})
	require.NoError(t, err)
	assert.Equal(t, queueObject{number: 1, devT: 240<<20 | 7, stats: capture.QueueStats{
		Delivered: 10, DeliveredBytes: 1000, Truncated: 2, TruncatedBytes: 700, UnreadBytes: 64, FullestLaneBytes: 48, Attached: true, Attachment: 5,
		Shunted: 7, ShuntedBytes: 800, ShuntedFlows: 6, ShuntsLost: 9,
		Dropped: map[capture.DropReason]uint64{capture.DropFull: 3, capture.DropUnattended: 4, capture.DropNoMemory: 0, capture.DropHung: 0},
	}}, got)
	_, err = decodeQueue(genetlink.Message{Data: []byte{1, 2, 3}})
	assert.ErrorContains(t, err, "decode the module's answer")
}

// What a queue in line counts goes where its name says, and packets that its consumer does not get are an episode.
func TestDecodeQueueInLine(t *testing.T) {
	var counts []byte
	for i := range uint64(inlineStats) {
		counts = append(counts, nlenc.Uint64Bytes(100+i)...)
	}
	decode := func(change func(*netlink.AttributeEncoder)) *capture.InlineStats {
		e := netlink.NewAttributeEncoder()
		e.Bytes(attrInlineStats, counts)
		change(e)
		data, err := e.Encode()
		require.NoError(t, err)
		queue, err := decodeQueue(genetlink.Message{Data: data})
		require.NoError(t, err)
		clusterObject{open: openUnattended}.noteBlocked([]queueObject{queue})
		return queue.stats.Inline
	}
	attended := func(e *netlink.AttributeEncoder) { e.Uint32(attrAttached, 1) }
	assert.Equal(t, &capture.InlineStats{
		Bridged: 100, Held: 101, Passed: 102, Replaced: 103, Blocked: 104, Unanswered: 105,
		Bypassed: map[capture.Event]uint64{capture.EventUnattended: 106, capture.EventFull: 107, capture.EventHung: 108},
		Stopped:  map[capture.Event]uint64{capture.EventUnattended: 109, capture.EventFull: 110, capture.EventHung: 111},
		Lost:     map[capture.Loss]uint64{capture.LossTooLong: 112, capture.LossRefused: 113, capture.LossNoMemory: 114, capture.LossDown: 115},
		Injected: 120, NotInjected: 121, ShuntPassed: 122, ShuntBlocked: 123,
		Late: 116, Unknown: 117, Episodes: 118, EpisodeTime: 119 * time.Millisecond,
	}, decode(attended))
	counts = counts[:8*inlineInjected] // of an earlier module
	assert.Zero(t, decode(attended).Injected)
	assert.Equal(t, &capture.Episode{Event: capture.EventUnattended}, decode(func(*netlink.AttributeEncoder) {}).Now)
	now := decode(func(e *netlink.AttributeEncoder) {
		attended(e)
		e.Uint32(attrPast, pastHung)
		e.Uint64(attrPastPackets, 9)
		e.Uint64(attrPastMs, 7000)
	}).Now
	assert.WithinDuration(t, time.Now().Add(-7*time.Second), now.Since, time.Minute)
	now.Since = time.Time{}
	assert.Equal(t, &capture.Episode{Event: capture.EventHung, Blocked: true, Duration: 7 * time.Second, Packets: 9}, now)
}

func TestExplain(t *testing.T) {
	err := explain(&netlink.OpError{Op: "receive", Err: unix.EBUSY, Message: "queue 1 has a consumer"})
	assert.ErrorIs(t, err, capture.ErrInUse)
	assert.ErrorContains(t, err, "queue 1 has a consumer")
	assert.ErrorIs(t, explain(&netlink.OpError{Err: unix.ENOENT}), capture.ErrNotFound)
	assert.ErrorIs(t, explain(&netlink.OpError{Err: unix.EOPNOTSUPP}), capture.ErrUnsupported)
	assert.ErrorContains(t, explain(&netlink.OpError{Err: unix.EINVAL, Message: "lane size is no power of two"}), "lane size is no power of two")
}

// A copy of a queue's node has its numbers, is replaced when they change, and is behind a closed folder.
func TestNodeFolder(t *testing.T) {
	f, id := nodeFolder(t.TempDir()), capture.QueueID{Cluster: "ids", Queue: 1}
	path, err := f.make(id, 1<<20|3) // the numbers of /dev/null
	if err != nil {
		t.Skipf("device nodes cannot be made here: %v", err)
	}
	require.Equal(t, string(f)+"/.dev/ids/1", path)
	for _, devT := range []uint32{1<<20 | 5, 1<<20 | 5} {
		_, err = f.make(id, devT)
		require.NoError(t, err)
	}
	var have unix.Stat_t
	require.NoError(t, unix.Stat(path, &have))
	assert.Equal(t, unix.Mkdev(1, 5), have.Rdev)
	assert.EqualValues(t, unix.S_IFCHR|0o666, have.Mode)
	require.NoError(t, unix.Stat(string(f)+"/.dev", &have))
	assert.EqualValues(t, 0o700, have.Mode&0o777)
	assert.Empty(t, f.others([]string{"ids"}))
	assert.Equal(t, []string{"ids"}, f.others(nil))
	require.NoError(t, f.remove("ids"))
	assert.NoFileExists(t, path)
}
