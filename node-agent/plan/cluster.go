// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"crypto/sha256"
	"strings"
	"time"

	"github.com/ringcap/ringcap/node-agent/capture"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// clusterDraft is a set of queues during the checks, which fill in the lower half.
type clusterDraft struct {
	cluster v1.NodeCluster
	// inline is set for the own queues of a ring in line.
	inline *v1.Inline
	// unsupported is the problem that the engine reported for this spec.
	unsupported *problem
	facts       Facts
	rings       map[string]plannedRing
	verdicts    map[string]Verdict

	engine       v1.Engine
	engineReason string
	// feeds names the rings that feed it. missing is the reason why other rings do not.
	feeds   []string
	missing *problem
	// slotBytes is how many bytes of a packet the calculation allows for each slot.
	slotBytes  int32
	queueBytes uint32
	// lanes is the number of memory areas of each queue. mostLanes is how many there may be if the node has room for
	// them.
	lanes, mostLanes int
	// need is the bytes of all of them. claim is the part that is not yet taken from the node's memory.
	need, claim uint64
	ledger      *ledger
}

var clusterChecks = []check[clusterDraft]{
	func(d *clusterDraft) *problem { return versionIsKnown(d.cluster.Version) },
	queueSettingsInRange,
	ringsFeedIt,
	ringsShareAnEngine,
	engineServesQueues,
	ringsHaveRoomForIt,
	func(d *clusterDraft) *problem { return d.unsupported },
	memorySuffices,
	nodeHasMemory,
}

// queueSettingsInRange repeats the CRD's bounds, because manifests of a standalone node pass no API server.
func queueSettingsInRange(d *clusterDraft) *problem {
	s := d.cluster.Spec
	timeout := s.WatermarkTimeout
	switch {
	case s.Queues < 1 || s.Queues > maxQueues:
		return problemf(v1.ReasonUnsupported, "spec.queues %d: must be between 1 and %d", s.Queues, maxQueues)
	case s.Slots < 1:
		return problemf(v1.ReasonUnsupported, "spec.slots %d: must be at least 1", s.Slots)
	case s.Watermark < 0 || s.Watermark > 90:
		return problemf(v1.ReasonUnsupported, "spec.watermark %d: must be between 0 and 90 percent", s.Watermark)
	case timeout != nil && (timeout.Duration < time.Millisecond || timeout.Duration > 10*time.Second):
		return problemf(v1.ReasonUnsupported, "spec.watermarkTimeout %s: must be between 1ms and 10s", timeout.Duration)
	case s.Consumers != nil && (s.Consumers.Shunt < 0 || s.Consumers.Shunt > v1.MaxShunts):
		return problemf(v1.ReasonUnsupported, "spec.consumers.shunt %d: must be between 0 and %d flows", s.Consumers.Shunt, v1.MaxShunts)
	}
	if _, ok := balances[s.Balance]; !ok {
		return problemf(v1.ReasonUnsupported, "spec.balance %q: must be Flow, FiveTuple, FourTuple, TwoTuple, TCPFiveTuple, BothEnds, RoundRobin or RxQueue", s.Balance)
	}
	return nil
}

var balances = map[v1.Balance]capture.Balance{
	v1.BalanceTCPFiveTuple: capture.BalanceTCPFiveTuple,
	v1.BalanceBothEnds:     capture.BalanceBothEnds,
	v1.BalanceRxQueue:      capture.BalanceRxQueue,
	v1.BalanceFlow:         capture.BalanceFlow,
	v1.BalanceFiveTuple:    capture.BalanceFiveTuple,
	v1.BalanceFourTuple:    capture.BalanceFourTuple,
	v1.BalanceTwoTuple:     capture.BalanceTwoTuple,
	v1.BalanceRoundRobin:   capture.BalanceRoundRobin,
}

var fragments = map[v1.Fragments]capture.Fragments{
	v1.FragmentsTogether: capture.FragmentsTogether,
	v1.FragmentsWithFlow: capture.FragmentsWithFlow,
}

var policies = map[v1.QueuePolicy]capture.QueuePolicy{
	v1.QueuePolicyDrop:   capture.PolicyDrop,
	v1.QueuePolicySpread: capture.PolicySpread,
}

// ringsFeedIt finds the rings that can feed it. A ring that cannot is a problem of this cluster. It takes the queues
// away only if no other ring is left. Otherwise consumers continue with the remaining rings.
func ringsFeedIt(d *clusterDraft) *problem {
	var absent *problem
	for _, name := range d.cluster.Spec.Rings {
		ring, ok := d.rings[name]
		if ok {
			d.feeds = append(d.feeds, name)
			d.slotBytes = max(d.slotBytes, ring.slotBytes)
			continue
		}
		if verdict, known := d.verdicts[name]; known && verdict.Absent() {
			d.slotBytes = max(d.slotBytes, verdict.slotBytes)
			absent = problemf(v1.ReasonRingNotAccepted, "ring %q does not feed it: %s", name, verdict.Message)
		} else if known {
			d.slotBytes = max(d.slotBytes, verdict.slotBytes)
			d.missing = problemf(v1.ReasonRingNotAccepted, "ring %q does not feed it: %s", name, verdict.Message)
		} else {
			d.missing = problemf(v1.ReasonRingNotFound, "spec.rings names %q, and this node has no such ring", name)
		}
	}
	if len(d.feeds) == 0 && d.missing == nil {
		d.missing = absent
	}
	switch {
	case len(d.feeds) > 0 || d.stays():
		return nil
	case d.missing == nil:
		return problemf(v1.ReasonRingNotFound, "spec.rings is empty: name at least one ring")
	case d.missing == absent:
		return problemf(v1.ReasonInterfaceAbsent, "%s", absent.message)
	default:
		return d.missing
	}
}

// stays reports whether existing queues that no ring feeds stay, because a ring is only refused at the moment.
func (d *clusterDraft) stays() bool {
	engine, there := d.facts.Queues[d.cluster.Name]
	if !there || !d.facts.Engines[engine].Available || d.missing == nil || d.missing.reason == v1.ReasonRingNotFound {
		return false
	}
	d.engine, d.engineReason = engine, "has the queues; no ring feeds them at the moment"
	return true
}

// ringsShareAnEngine checks that the rings have one engine, because queues belong to one engine.
func ringsShareAnEngine(d *clusterDraft) *problem {
	if len(d.feeds) == 0 {
		return nil
	}
	first := d.rings[d.feeds[0]]
	d.engine, d.engineReason = first.engine, first.engineReason
	for _, name := range d.feeds[1:] {
		if other := d.rings[name].engine; other != d.engine {
			return problemf(v1.ReasonUnsupported, "rings %q (%s) and %q (%s) are served by different engines, and cannot share queues: "+
				"give them the same spec.engine", d.feeds[0], d.engine, name, other)
		}
	}
	return nil
}

// ringsHaveRoomForIt checks the bound on the clusters that a ring feeds.
func ringsHaveRoomForIt(d *clusterDraft) *problem {
	for _, name := range d.feeds {
		if outputs := d.rings[name].ring.Outputs; len(outputs) >= maxOutputs {
			return problemf(v1.ReasonUnsupported, "ring %q feeds %d clusters already (%s), the most that a ring can",
				name, len(outputs), strings.Join(outputs, ", "))
		}
	}
	return nil
}

func (d *clusterDraft) planned() capture.Cluster {
	s := d.cluster.Spec
	lanes := d.lanes
	if lanes == max(d.facts.Engines[d.engine].Lanes, 1) {
		lanes = 0
	}
	return capture.Cluster{
		Name: d.cluster.Name, Queues: int(s.Queues), Balance: balances[s.Balance], HashKey: hashKey(d.cluster),
		QueueBytes: d.queueBytes, Lanes: lanes, Watermark: uint32(uint64(d.queueBytes) * uint64(s.Watermark) / 100),
		WatermarkTimeout: d.watermarkTimeout(), Inner: s.BalanceHeader == v1.BalanceHeaderInner, LongHeader: s.PacketHeader == v1.PacketHeaderLong,
		Fragments: fragments[s.Fragments], WhenFull: policies[s.WhenFull], WhenUnattended: policies[s.WhenUnattended],
		ShuntQuota: shuntQuota(s.Consumers), Inline: inlineOf(d.inline),
	}
}

func shuntQuota(consumers *v1.Consumers) uint32 {
	if consumers == nil {
		return 0
	}
	return uint32(consumers.Shunt)
}

// watermarkTimeout is 0 in line, where packets wait for their consumer: it is woken for each.
func (d *clusterDraft) watermarkTimeout() time.Duration {
	switch timeout := d.cluster.Spec.WatermarkTimeout; {
	case d.inline != nil:
		return 0
	case timeout != nil:
		return timeout.Duration
	default:
		return v1.DefaultWatermarkTimeout
	}
}

// hashKey is the same on all nodes and engines, but differs between clusters. So a flow has one hash on all nodes.
func hashKey(cluster v1.NodeCluster) [16]byte {
	seed := cluster.UID
	if seed == "" {
		seed = cluster.Name
	}
	sum := sha256.Sum256([]byte(seed))
	return [16]byte(sum[:16])
}
