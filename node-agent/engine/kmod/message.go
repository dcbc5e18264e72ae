// SPDX-License-Identifier: Apache-2.0

package kmod

import (
	"fmt"
	"slices"
	"time"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/netlink"
	"github.com/mdlayher/netlink/nlenc"
	"golang.org/x/net/bpf"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// Info is what the module says of itself.
type Info struct {
	ABI, ABIMin uint32
	Version     string
}

// Compatible says whether there is a version of the interface that both this program and the module speak.
func (i Info) Compatible() bool { return min(i.ABI, abi) >= max(i.ABIMin, abiMin) }

// Incompatibility says of a module that is not compatible which versions it and this program speak, and what to do.
func (i Info) Incompatibility() string {
	todo := "upgrade ringcap, or unload the module"
	if i.ABI < abiMin {
		todo = "unload it (rmmod ringcap), for a newer one to be loaded"
	}
	return fmt.Sprintf("speaks versions %d to %d of the interface, this agent %d to %d: %s", i.ABIMin, i.ABI, abiMin, abi, todo)
}

// ringObject is a ring as the module has it.
type ringObject struct {
	name       string
	generation uint64
	taps       []capture.Tap
	stats      capture.RingStats
	quick      bool
	// rulesGeneration is the mark of the rule set in force, 0 without one.
	rulesGeneration uint64
	// plugins has what each plugin filtered, in order.
	plugins []uint64
}

// clusterObject is a cluster as the module has it.
type clusterObject struct {
	name       string
	generation uint64
	queues     int
	memory     uint64
	lanes      int
	duplicated uint64
	spread     uint64
}

// queueObject is a queue as the module has it.
type queueObject struct {
	number int
	devT   uint32
	stats  capture.QueueStats
}

func encodeName(name string) ([]byte, error) {
	e := netlink.NewAttributeEncoder()
	e.String(attrName, name)
	return e.Encode()
}

func encodeQueue(id capture.QueueID, from capture.Holder) ([]byte, error) {
	e := netlink.NewAttributeEncoder()
	e.String(attrName, id.Cluster)
	e.Uint32(attrQueue, uint32(id.Queue))
	if from.PID != 0 {
		e.Uint32(attrAttachedPID, uint32(from.PID))
	}
	if from.Attachment != 0 {
		e.Uint64(attrAttachment, from.Attachment)
	}
	return e.Encode()
}

func encodeCluster(c capture.Cluster, lanes int, generation uint64) ([]byte, error) {
	e := netlink.NewAttributeEncoder()
	e.String(attrName, c.Name)
	e.Uint64(attrGeneration, generation)
	e.Uint32(attrQueues, uint32(c.Queues))
	if c.Lanes > 0 {
		lanes = c.Lanes
	}
	e.Uint32(attrLanes, uint32(lanes))
	e.Uint32(attrLaneSize, c.QueueBytes)
	e.Uint32(attrBalance, uint32(c.Balance))
	e.Bytes(attrKey, c.HashKey[:])
	e.Uint32(attrWatermark, watermark(c))
	e.Uint32(attrMetadata, flag(c.LongHeader))
	e.Uint32(attrInner, flag(c.Inner))
	e.Uint32(attrFragments, uint32(c.Fragments))
	e.Uint32(attrWhenFull, uint32(c.WhenFull))
	e.Uint32(attrWhenUnattended, uint32(c.WhenUnattended))
	e.Uint32(attrTimeoutUS, uint32(min(c.WatermarkTimeout, maxTimeout).Microseconds()))
	return e.Encode()
}

// maxTimeout is the module's limit. A packet is never shown later than asked for, and may be sooner.
const maxTimeout = time.Second

// watermark is within the module's bounds: half of a lane, and not 0, which stands for its own default.
func watermark(c capture.Cluster) uint32 { return max(min(c.Watermark, c.QueueBytes/2), 1) }

func encodeRing(r capture.Ring, outputs []string, generation uint64) ([]byte, error) {
	e := netlink.NewAttributeEncoder()
	e.String(attrName, r.Name)
	e.Uint64(attrGeneration, generation)
	for _, tap := range r.Taps {
		e.Nested(attrTap, func(nested *netlink.AttributeEncoder) error {
			nested.Uint32(attrTapIfindex, uint32(tap.Index))
			nested.Uint32(attrTapDirection, uint32(tap.Direction))
			if len(tap.RxQueues) > 0 {
				nested.Bytes(attrTapChannels, encodeChannels(tap.RxQueues))
			}
			if tap.Follows {
				nested.Uint32(attrTapFollows, 1)
			}
			return nil
		})
	}
	for _, output := range outputs {
		e.String(attrOutput, output)
	}
	e.Uint32(attrSnapLen, r.SnapLen)
	if len(r.Filter) > 0 {
		e.Bytes(attrFilter, encodeFilter(r.Filter))
	}
	e.Uint32(attrPromisc, flag(r.Promiscuous))
	// Whatever has a module parameter as its default is said, always.
	e.Uint32(attrTransparent, uint32(r.Mode))
	e.Uint32(attrQuick, flag(r.Quick))
	e.Uint32(attrDefrag, flag(r.Defragment))
	e.Uint32(attrHWTStamp, flag(r.HardwareTime))
	if len(r.VLANs) > 0 {
		e.Bytes(attrVLANs, encodeWords(r.VLANs))
	}
	if r.Sampling.OneIn > 1 {
		e.Uint32(attrSample, r.Sampling.OneIn)
		e.Uint32(attrSampleBy, flag(r.Sampling.ByFlow))
	}
	for _, plugin := range r.Plugins {
		e.Nested(attrPlugin, func(nested *netlink.AttributeEncoder) error {
			nested.String(attrPluginName, plugin.Name)
			if len(plugin.Config) > 0 {
				nested.Bytes(attrPluginConfig, plugin.Config)
			}
			return nil
		})
	}
	return e.Encode()
}

func flag(on bool) uint32 {
	if on {
		return 1
	}
	return 0
}

// encodeChannels makes a mask of receive queues, in 64-bit words.
func encodeChannels(queues []uint16) []byte {
	words := make([]uint64, slices.Max(queues)/64+1)
	for _, queue := range queues {
		words[queue/64] |= 1 << (queue % 64)
	}
	var out []byte
	for _, word := range words {
		out = append(out, nlenc.Uint64Bytes(word)...)
	}
	return out
}

func encodeWords(words []uint16) []byte {
	var out []byte
	for _, word := range words {
		out = append(out, nlenc.Uint16Bytes(word)...)
	}
	return out
}

// encodeFilter lays a program out as struct sock_filter[].
func encodeFilter(program []bpf.RawInstruction) []byte {
	out := make([]byte, 0, 8*len(program))
	for _, i := range program {
		out = append(out, nlenc.Uint16Bytes(i.Op)...)
		out = append(out, i.Jt, i.Jf)
		out = append(out, nlenc.Uint32Bytes(i.K)...)
	}
	return out
}

func decodeInfo(m genetlink.Message) (info Info, err error) {
	return info, eachAttribute(m.Data, func(d *netlink.AttributeDecoder) {
		switch d.Type() {
		case attrABI:
			info.ABI = d.Uint32()
		case attrABIMin:
			info.ABIMin = d.Uint32()
		case attrVersion:
			info.Version = d.String()
		}
	})
}

func decodeRing(m genetlink.Message) (r ringObject, err error) {
	return r, eachAttribute(m.Data, func(d *netlink.AttributeDecoder) {
		switch d.Type() {
		case attrName:
			r.name = d.String()
		case attrGeneration:
			r.generation = d.Uint64()
		case attrTap:
			d.Nested(func(nested *netlink.AttributeDecoder) error {
				r.taps = append(r.taps, decodeTap(nested))
				return nil
			})
		case attrSeen:
			r.stats.Seen = d.Uint64()
		case attrSeenBytes:
			r.stats.SeenBytes = d.Uint64()
		case attrFiltered:
			r.stats.Filtered = d.Uint64()
		case attrSampledOut:
			r.stats.SampledOut = d.Uint64()
		case attrPassed:
			r.stats.Passed = d.Uint64()
		case attrReflected:
			r.stats.Reflected = d.Uint64()
		case attrReflectFailed:
			r.stats.ReflectFailed = d.Uint64()
		case attrAbsorbed:
			r.stats.Absorbed = d.Uint64()
		case attrDirected:
			r.stats.Directed = d.Uint64()
		case attrQuick:
			r.quick = d.Uint32() == 1
		case attrRulesGeneration:
			r.rulesGeneration = d.Uint64()
		case attrPlugin:
			d.Nested(func(nested *netlink.AttributeDecoder) error {
				for nested.Next() {
					if nested.Type() == attrPluginFiltered {
						r.plugins = append(r.plugins, nested.Uint64())
					}
				}
				return nil
			})
		}
	})
}

func decodeTap(d *netlink.AttributeDecoder) (tap capture.Tap) {
	for d.Next() {
		switch d.Type() {
		case attrTapIfindex:
			tap.Index = int(d.Uint32())
		case attrTapDirection:
			tap.Direction = capture.Direction(d.Uint32())
		case attrTapFollows:
			tap.Follows, tap.Away = true, d.Uint32() == 2
		}
	}
	return tap
}

func decodeCluster(m genetlink.Message) (c clusterObject, err error) {
	return c, eachAttribute(m.Data, func(d *netlink.AttributeDecoder) {
		switch d.Type() {
		case attrName:
			c.name = d.String()
		case attrGeneration:
			c.generation = d.Uint64()
		case attrQueues:
			c.queues = int(d.Uint32())
		case attrMemory:
			c.memory = d.Uint64()
		case attrLanes:
			c.lanes = int(d.Uint32())
		case attrDuplicated:
			c.duplicated = d.Uint64()
		case attrSpread:
			c.spread = d.Uint64()
		}
	})
}

func decodeQueue(m genetlink.Message) (q queueObject, err error) {
	return q, eachAttribute(m.Data, func(d *netlink.AttributeDecoder) {
		switch d.Type() {
		case attrQueue:
			q.number = int(d.Uint32())
		case attrDevT:
			q.devT = d.Uint32()
		case attrAttached:
			q.stats.Attached = d.Uint32() == 1
		case attrAttachedPID:
			q.stats.Holder = int(d.Uint32())
		case attrAttachment:
			q.stats.Attachment = d.Uint64()
		case attrDelivered:
			q.stats.Delivered = d.Uint64()
		case attrDeliveredBytes:
			q.stats.DeliveredBytes = d.Uint64()
		case attrTruncated:
			q.stats.Truncated = d.Uint64()
		case attrTruncatedBytes:
			q.stats.TruncatedBytes = d.Uint64()
		case attrUnreadBytes:
			q.stats.UnreadBytes = d.Uint64()
		case attrDropped:
			q.stats.Dropped = decodeDropped(d.Bytes())
		}
	})
}

func decodeDropped(words []byte) map[capture.DropReason]uint64 {
	dropped := map[capture.DropReason]uint64{}
	for i, reason := range capture.DropReasons {
		if len(words) >= 8*(i+1) {
			dropped[reason] = nlenc.Uint64(words[8*i : 8*i+8])
		}
	}
	return dropped
}

func eachAttribute(data []byte, visit func(*netlink.AttributeDecoder)) error {
	d, err := netlink.NewAttributeDecoder(data)
	if err != nil {
		return fmt.Errorf("decode the module's answer: %w", err)
	}
	for d.Next() {
		visit(d)
	}
	if err := d.Err(); err != nil {
		return fmt.Errorf("decode the module's answer: %w", err)
	}
	return nil
}
