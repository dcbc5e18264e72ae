// SPDX-License-Identifier: Apache-2.0

package kmod

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/mdlayher/genetlink"
	"golang.org/x/net/bpf"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// Info is the module's description of itself.
type Info struct {
	ABI, ABIMin uint32
	Version     string
}

// Compatible reports whether this program and the module speak a common version of the interface.
func (i Info) Compatible() bool { return min(i.ABI, abi) >= max(i.ABIMin, abiMin) }

// Incompatibility describes a module that is not compatible: the versions that it and this program speak, and what to
// do.
func (i Info) Incompatibility() string {
	todo := "upgrade ringcap, or unload the module"
	if i.ABI < abiMin {
		todo = "unload it (rmmod ringcap), for a newer one to be loaded"
	}
	return fmt.Sprintf("speaks versions %d to %d of the interface, this agent %d to %d: %s", i.ABIMin, i.ABI, abiMin, abi, todo)
}

// ringObject is a ring as the module reports it.
type ringObject struct {
	name       string
	generation uint64
	taps       []capture.Tap
	stats      capture.RingStats
	quick      bool
	// rulesGeneration identifies the active rule set; 0 without one.
	rulesGeneration uint64
	// plugins holds how many packets each plugin filtered, in order.
	plugins []uint64
	inline  *capture.InlineStats
}

// clusterObject is a cluster as the module reports it.
type clusterObject struct {
	name       string
	generation uint64
	queues     int
	memory     uint64
	memoryMost uint64
	lanes      int
	duplicated uint64
	spread     uint64
	inLine     bool
	// open holds RINGCAP_OPEN_* of a cluster in line.
	open uint32
}

// queueObject is a queue as the module reports it.
type queueObject struct {
	number int
	devT   uint32
	stats  capture.QueueStats
}

func encodeName(name string) ([]byte, error) { return marshal(nameRequest{Name: &name}) }

// encodeQueue encodes the request of RINGCAP_CMD_QUEUE_REVOKE. With a zero from, it is also that of
// RINGCAP_CMD_QUEUE_RESET.
func encodeQueue(id capture.QueueID, from capture.Holder) ([]byte, error) {
	return marshal(queueRevokeRequest{
		Name: &id.Cluster, Queue: new(uint32(id.Queue)), AttachedPID: unlessZero(uint32(from.PID)), Attachment: unlessZero(from.Attachment),
	})
}

// unlessZero returns an attribute that is left out if it is 0.
func unlessZero[T uint32 | uint64](value T) *T {
	if value == 0 {
		return nil
	}
	return &value
}

func encodeCluster(c capture.Cluster, lanes int, generation uint64) ([]byte, error) {
	if c.Lanes > 0 {
		lanes = c.Lanes
	}
	request := clusterSetRequest{
		Name:           &c.Name,
		Generation:     &generation,
		Queues:         new(uint32(c.Queues)),
		Lanes:          new(uint32(lanes)),
		LaneSize:       &c.QueueBytes,
		Balance:        new(uint32(c.Balance)),
		Key:            c.HashKey[:],
		Watermark:      new(watermark(c)),
		Metadata:       flag(c.LongHeader),
		Inner:          flag(c.Inner),
		Fragments:      new(uint32(c.Fragments)),
		WhenFull:       new(uint32(c.WhenFull)),
		WhenUnattended: new(uint32(c.WhenUnattended)),
		TimeoutUS:      new(uint32(min(c.WatermarkTimeout, maxTimeout).Microseconds())),
		ShuntQuota:     unlessZero(c.ShuntQuota),
	}
	if c.Inline != nil {
		request.Inline, request.HungMs = new(openBits(c.Inline)), new(uint32(c.Inline.HungAfter.Milliseconds()))
	}
	return marshal(request)
}

// openBits returns RINGCAP_OPEN_*.
func openBits(in *capture.Inline) (bits uint32) {
	for _, event := range in.Bypass {
		bits |= 1 << event
	}
	return bits
}

// maxTimeout is the module's limit. A packet is never shown later than asked for, but may be shown sooner.
const maxTimeout = time.Second

// watermark returns a value within the module's bounds: at most half of a lane, and not 0, which stands for the
// module's default.
func watermark(c capture.Cluster) uint32 { return max(min(c.Watermark, c.QueueBytes/2), 1) }

func encodeRing(r capture.Ring, outputs []string, generation uint64) ([]byte, error) {
	request := ringSetRequest{
		Name:       &r.Name,
		Generation: &generation,
		Output:     outputs,
		SnapLen:    &r.SnapLen,
		Filter:     encodeFilter(r.Filter),
		Promisc:    flag(r.Promiscuous),
		// Attributes with a module parameter as their default are always given.
		Transparent: new(uint32(r.Mode)),
		Quick:       flag(false), // it has no effect, and a module of an earlier version refuses rings for it
		Defrag:      flag(r.Defragment),
		HWTStamp:    flag(r.HardwareTime),
		VLANs:       r.VLANs,
	}
	for _, tap := range r.Taps {
		request.Tap = append(request.Tap, tapRequest{
			TapIfindex: new(uint32(tap.Index)), TapDirection: new(uint32(tap.Direction)), TapRxQueues: rxQueueMask(tap.RxQueues),
			TapFollows: unlessZero(*flag(tap.Follows)), TapPeer: unlessZero(uint32(tap.Peer)),
		})
	}
	if r.Addressed {
		request.Addressed = flag(true)
	}
	if r.Sampling.OneIn > 1 {
		request.Sample, request.SampleBy = &r.Sampling.OneIn, flag(r.Sampling.ByFlow)
	}
	for _, plugin := range r.Plugins {
		request.Plugin = append(request.Plugin, pluginRequest{PluginName: &plugin.Name, PluginConfig: plugin.Config})
	}
	return marshal(request)
}

func flag(on bool) *uint32 {
	if on {
		return new(uint32(1))
	}
	return new(uint32(0))
}

// rxQueueMask sets a bit for each of the receive queues, in 64-bit words.
func rxQueueMask(queues []uint16) (words []uint64) {
	for _, queue := range queues {
		for len(words) <= int(queue/64) {
			words = append(words, 0)
		}
		words[queue/64] |= 1 << (queue % 64)
	}
	return words
}

// encodeFilter encodes a program as struct sock_filter[], which has the layout of bpf.RawInstruction.
func encodeFilter(program []bpf.RawInstruction) []byte {
	// Fails only for values without a fixed size.
	out, _ := binary.Append(nil, binary.NativeEndian, program)
	return out
}

func decodeInfo(m genetlink.Message) (Info, error) {
	reply, err := unmarshal(m.Data, parseInfoGetReply)
	return Info(reply), err
}

func decodeRing(m genetlink.Message) (ringObject, error) {
	reply, err := unmarshal(m.Data, parseRingGetReply)
	r := ringObject{
		name: reply.Name, generation: reply.Generation, quick: reply.Quick == 1, rulesGeneration: reply.RulesGeneration,
		stats: capture.RingStats{
			Seen: reply.Seen, SeenBytes: reply.SeenBytes, Filtered: reply.Filtered, SampledOut: reply.SampledOut, Passed: reply.Passed,
			Reflected: reply.Reflected, ReflectFailed: reply.ReflectFailed, Absorbed: reply.Absorbed, Directed: reply.Directed,
		},
	}
	for _, tap := range reply.Tap {
		r.taps = append(r.taps, capture.Tap{
			Index: int(tap.TapIfindex), Direction: capture.Direction(tap.TapDirection), Follows: tap.TapFollows != 0, Away: tap.TapFollows == 2,
			Peer: int(tap.TapPeer),
		})
	}
	for _, plugin := range reply.Plugin {
		r.plugins = append(r.plugins, plugin.PluginFiltered)
	}
	r.inline = inlineStatsOf(reply.InlineStats.all())
	return r, err
}

func decodeCluster(m genetlink.Message) (clusterObject, error) {
	reply, err := unmarshal(m.Data, parseClusterGetReply)
	return clusterObject{
		name: reply.Name, generation: reply.Generation, queues: int(reply.Queues), memory: reply.Memory, lanes: int(reply.Lanes),
		memoryMost: uint64(reply.Queues) * uint64(reply.Lanes) * uint64(reply.LaneSize), duplicated: reply.Duplicated, spread: reply.Spread,
		inLine: reply.HungMs != 0, open: reply.Inline,
	}, err
}

func decodeQueue(m genetlink.Message) (queueObject, error) {
	reply, err := unmarshal(m.Data, parseQueueGetReply)
	inline := inlineStatsOf(reply.InlineStats.all())
	if inline != nil {
		inline.Now = episodeOf(reply)
	}
	return queueObject{number: int(reply.Queue), devT: reply.DevT, stats: capture.QueueStats{
		Attached: reply.Attached == 1, Holder: int(reply.AttachedPID), Attachment: reply.Attachment,
		Delivered: reply.Delivered, DeliveredBytes: reply.DeliveredBytes, Truncated: reply.Truncated, TruncatedBytes: reply.TruncatedBytes,
		UnreadBytes: reply.UnreadBytes, FullestLaneBytes: reply.FullestLane, Lanes: int(reply.LanesTaken), Dropped: droppedBy(reply.Dropped.all()),
		Shunted: reply.Shunted, ShuntedBytes: reply.ShuntedBytes, ShuntedFlows: reply.Shunts, ShuntsLost: reply.ShuntsLost,
		Inline: inline,
	}}, err
}

func droppedBy(counts []uint64) map[capture.DropReason]uint64 {
	dropped := map[capture.DropReason]uint64{}
	for i, reason := range capture.DropReasons {
		if i < len(counts) {
			dropped[reason] = counts[i]
		}
	}
	return dropped
}
