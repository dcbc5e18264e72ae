// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/ringcap/ringcap/node-agent/capture"
)

func newOutputConfig(c *cluster) outputConfig {
	shape := c.shape()
	o := outputConfig{
		Base: c.Base, Queues: uint32(c.Queues), Balance: uint32(c.Balance), Inner: flag(c.Inner),
		Fragments: uint8(c.Fragments), WhenFull: uint8(c.WhenFull), WhenUnattended: uint8(c.WhenUnattended),
		Key: keyWords(c.HashKey), Lanes: shape.lanes, LaneSize: shape.laneSize, HeadSize: shape.headSize,
		Watermark: watermark(c), TimeoutNs: uint64(c.WatermarkTimeout), HdrLen: shortHeader, Shunts: flag(c.ShuntQuota > 0),
	}
	if needsHash(c) {
		o.Hashed = hashedFlag
	}
	if c.LongHeader {
		o.HdrLen = longHeader
	}
	return o
}

// watermark returns at most half of a lane. The rest is for packets that arrive while the consumer wakes up.
func watermark(c *cluster) uint32 { return max(min(c.Watermark, c.QueueBytes/2), 1) }

// needsHash reports whether slots need the flow's hash: balancing uses it, or the cluster asks for it.
func needsHash(c *cluster) bool {
	byHash := c.Balance != capture.BalanceRoundRobin && c.Balance != capture.BalanceRxQueue
	return c.LongHeader || c.Queues > 1 && byHash
}

func keyWords(key [16]byte) [2]uint64 {
	return [2]uint64{binary.LittleEndian.Uint64(key[:8]), binary.LittleEndian.Uint64(key[8:])}
}

func flag(on bool) uint8 {
	if on {
		return 1
	}
	return 0
}

// newRingProgram makes a ring's program for the existing clusters.
func newRingProgram(planned capture.Ring, clusters map[string]*cluster) (ringProgram, error) {
	rules, err := compile(planned.Rules)
	if err != nil {
		return ringProgram{}, err
	}
	p := ringProgram{filter: planned.Filter, rules: rules, rxQueues: rxQueuesOf(planned.Taps)}
	p.config.SnapLen, p.config.Parsed = planned.SnapLen, parseMax
	for i, name := range planned.Outputs {
		c, ok := clusters[name]
		if !ok {
			return ringProgram{}, fmt.Errorf("output %s: no such cluster: %w", name, capture.ErrNotFound)
		}
		p.config.Outputs[i] = newOutputConfig(c)
		p.tables[i] = c.table
		p.fragments = p.fragments || c.Fragments == capture.FragmentsWithFlow
		if c.Inner || c.Fragments == capture.FragmentsWithFlow {
			p.config.Parsed = innerMax
		}
	}
	p.config.NrOutputs = uint32(len(planned.Outputs))
	if err := p.setTargets(clusters); err != nil {
		return ringProgram{}, err
	}
	p.setSteps(planned)
	p.config.CPUs = uint32(possibleCPUs())
	p.config.CPUMask = cpuSlots(possibleCPUs()) - 1
	if p.config.Flags&(configPlain|configRuled) != 0 {
		p.direct = directQueues(clusters[planned.Outputs[0]])
	}
	p.maps, err = mapsName(planned.Rules, p.rxQueues, p.fragments)
	return p, err
}

// setTargets sets the targets that the rules name.
func (p *ringProgram) setTargets(clusters map[string]*cluster) error {
	for i, target := range p.rules.targets {
		if target.Index != 0 {
			p.config.Targets[i].Base = uint32(target.Index)
			continue
		}
		c, ok := clusters[target.Queue.Cluster]
		if !ok || target.Queue.Queue < 0 || target.Queue.Queue >= c.Queues {
			return fmt.Errorf("a rule's target, queue %d of %s: %w", target.Queue.Queue, target.Queue.Cluster, capture.ErrNotFound)
		}
		p.config.Targets[i] = newOutputConfig(c)
		p.config.Targets[i].Queue = uint32(target.Queue.Queue)
		p.tables[maxOutputs+i] = c.table
		p.targetBases = append(p.targetBases, c.Base)
	}
	return nil
}

// setSteps sets the steps that a packet takes to the outputs.
func (p *ringProgram) setSteps(planned capture.Ring) {
	c := &p.config
	c.XDPVerdict = xdpPass
	if planned.Mode == 2 {
		c.XDPVerdict = xdpDrop
	}
	c.DefaultAction, c.DefaultTarget = p.rules.defaultAction, p.rules.defaultTarget
	if c.SampleN = planned.Sampling.OneIn; c.SampleN > 1 {
		c.SampleKey = sampleKey()
	}
	c.SampleBy = uint32(flag(planned.Sampling.ByFlow))
	for _, id := range planned.VLANs {
		c.VLANs[id/64] |= 1 << (id % 64)
	}
	for bit, on := range map[uint32]bool{
		configVLANs: len(planned.VLANs) > 0, configRxQueues: len(p.rxQueues) > 0, configExact: len(p.rules.exact) > 0,
		configLearn: p.rules.learns, configWild: len(p.rules.ids) > 0, configInnerKey: p.rules.matchesInner(),
		configPatterns: len(planned.Rules.Patterns) > 0, configIdle: p.rules.idles, configFilter: len(planned.Filter) > 0,
	} {
		if on {
			c.Flags |= bit
		}
	}
	if slices.ContainsFunc(slices.Concat(c.Outputs[:], c.Targets[:]), func(o outputConfig) bool { return o.Shunts != 0 }) {
		c.Flags |= configShunts
	}
	c.Flags |= p.shortPath()
	if c.Flags&configInnerKey != 0 {
		c.Parsed = innerMax
	}
	if c.Flags&configPatterns != 0 {
		c.Parsed = maxSnapLen
		p.setPatterns(flag(planned.Rules.DropMatching))
	}
}

// shortPath returns the flag for the short path that packets take, of bpf/plain.h or of bpf/ruled.h, or 0.
func (p *ringProgram) shortPath() uint32 {
	c := p.config
	switch {
	case !p.isSimple():
		return 0
	case c.Flags&(configExact|configLearn|configWild) == 0 && c.DefaultAction == uint32(capture.ActionPass):
		return configPlain
	case p.rules.onlyFilters() && !p.rules.matchesMACs():
		return configRuled
	default:
		return 0
	}
}

// isSimple reports whether the ring, whatever its rules decide, could take a short path.
func (p *ringProgram) isSimple() bool {
	c := p.config
	o := c.Outputs[0]
	const beside = configVLANs | configInnerKey | configPatterns
	if c.NrOutputs != 1 || c.Flags&beside != 0 || c.SampleN > 1 || o.HdrLen != shortHeader {
		return false
	}
	if o.Queues > 1 && (o.Hashed == 0 || capture.Balance(o.Balance) == capture.BalanceBothEnds ||
		max(o.WhenFull, o.WhenUnattended) != uint8(capture.PolicyDrop)) {
		return false
	}
	return o.Hashed == 0 || o.Inner == 0 && capture.Fragments(o.Fragments) != capture.FragmentsWithFlow
}

// setPatterns sets how the program searches the payload of parsed packets.
func (p *ringProgram) setPatterns(drop uint8) {
	c, a := &p.config, p.rules.automaton
	c.PatternDrop, c.PatternMask = uint32(drop), uint32(placeBytes*(len(a.rows)-1))
	c.PatternFirst, c.PatternLimit = a.first, a.limit
	c.PatternStart, c.PatternClasses = a.start, a.classes
}

// sampleKey is the same for all rings until the node boots again. So rings with the same sampling select the same
// flows.
var sampleKey = sync.OnceValue(func() [2]uint64 {
	// Every kernel has a boot id. Without one, the sample would be the same on all nodes, but still a sample.
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	sum := sha256.Sum256(slices.Concat([]byte("ringcap sample"), boot))
	return keyWords([16]byte(sum[:16]))
})

// rxQueuesOf returns the captured receive queues of each interface that is not captured on all of them.
func rxQueuesOf(taps []capture.Tap) map[uint32]rxQueueBits {
	rxQueues := map[uint32]rxQueueBits{}
	for _, tap := range taps {
		if len(tap.RxQueues) == 0 {
			continue
		}
		bits := rxQueues[uint32(tap.Index)]
		for _, queue := range tap.RxQueues {
			bits[queue/64] |= 1 << (queue % 64)
		}
		rxQueues[uint32(tap.Index)] = bits
	}
	return rxQueues
}
