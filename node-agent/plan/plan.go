// SPDX-License-Identifier: Apache-2.0

// Package plan decides what each engine of a node captures. It turns the desired state (a NodeCaptureSpec) and the
// facts of the node into one capture.Plan per engine and a verdict per object, and does nothing else: no clock, no
// kernel, no API.
package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/net/bpf"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/ringcap/ringcap/node-agent/capture"
	"github.com/ringcap/ringcap/operator/api/consumers"
	"github.com/ringcap/ringcap/operator/api/sizing"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Interface is a network interface of the node.
type Interface struct {
	Name  string
	Index int
	// RxQueues is the number of its receive queues, at least 1.
	RxQueues int
	// Driver that is bound to it, and the device's PCI address; empty where there is none.
	Driver, PCIAddress string
	// DriverFact is what that driver can do, and what can replace it.
	DriverFact DriverFact
	// NodeTraffic is what makes it one of the node's own traffic, in words that follow its name; empty for one that only
	// captures.
	NodeTraffic string
}

// EngineFact is whether an engine can be used on this node.
type EngineFact struct {
	Available bool
	// Why it is or is not available, in text for users.
	Why string
	// Lanes is the number of memory areas that the engine makes for each queue, at most.
	Lanes int
	// MaxQueue is the greatest number of bytes that the areas of a queue may have together, with their tails; 0: there is none.
	MaxQueue uint64
	// LaneTail is the number of bytes that each area needs behind it.
	LaneTail uint64
	// SlotOverhead is the number of bytes that a packet takes in a queue besides its own.
	SlotOverhead uint32
}

// Facts are what a plan depends on besides the desired state.
type Facts struct {
	Interfaces []Interface
	// Engines by v1.EngineKernelModule and v1.EngineEBPF; one that is absent is not available.
	Engines map[v1.Engine]EngineFact
	// Serving is the engine that has a ring of that name now. A ring that leaves the choice stays with it, because its
	// consumers' containers were given what that engine needs.
	Serving map[string]v1.Engine
	// Queues is the engine that has a set of queues of that name now. They stay for their consumers while no ring can feed
	// them, as when an interface is gone for a moment; new ones are made only when there is a ring to feed them.
	Queues map[string]v1.Engine
	// QueueCounts is the number of queues in each such set.
	QueueCounts map[string]int
	// kept are rings' own queues of which there are to be as many as there are, however many RX queues there are.
	kept map[string]int
	// Taken is what each set of queues has of the node's memory now.
	Taken map[string]Taken
	// Memory of the node; nil where it is not known, and then only spec.memoryLimit holds.
	Memory *capture.Memory
	// Good are the specs that were accepted last. What is in the data path stays as it is when its spec is changed to one that
	// is refused.
	Good v1.NodeCaptureSpec
	// Refused are specs of rings that the node does not have for having tried them, by TryKey.
	Refused map[string]Refusal
	// Unsupported are specs of rings and Clusters that their engine said it cannot do, by SpecKey.
	Unsupported map[string]Refusal
	// Pods of the node. PodsUnknown tells why they are not known, and then a ring's taps on pods stay as they are; NoPods: the
	// machine is not a node of Kubernetes.
	Pods        []Pod
	PodsUnknown string
	NoPods      bool
	// Pools of virtual functions by resource name. PoolsUnknown tells why they are not known, and then what a ring taps for them
	// stays as it is.
	Pools        map[string][]PoolDevice
	PoolsUnknown string
	// Seen are interfaces of pools as they were last seen in the node's network namespace, by PCI address.
	Seen map[string]Function
	// Taps that rings have now, by name.
	Taps map[string][]capture.Tap
	// Compile makes a classic BPF program from a pcap-filter(7) expression; its error is the compiler's own message.
	Compile func(expression string, snapLen uint32) ([]bpf.RawInstruction, error)
}

// Verdict is what was decided about a ring or a set of queues. What becomes of the decision is no part of it.
type Verdict struct {
	// Planned: it is in the plan of Engine.
	Planned bool
	// AsBefore: a change of its spec is refused, for Reason. What is planned, if anything, is the spec that was accepted last.
	AsBefore bool
	// Reason and Message describe what is wrong; Reason is empty when all is as the spec asks. A set of queues may be planned
	// and have a Reason: one of its rings does not feed it.
	Reason, Message string
	// Fed: at least one ring passes packets to this set of queues.
	Fed bool
	// Engine that serves it, and why that one.
	Engine       v1.Engine
	EngineReason string
	// Interfaces that a ring taps, sorted.
	Interfaces []string
	// InjectLibpcap into the containers that get a set of queues; Consumers tells which pods may have it.
	InjectLibpcap bool
	Consumers     consumers.Rule
	// Pods are those of a ring's interfaces, by interface name; PodsNotTapped those that it selects and does not tap, with the
	// reasons.
	Pods          map[string]string
	PodsNotTapped []string
	// Away are those of its interfaces that are in a pod's network namespace, by name.
	Away map[string]bool
	// NIC are the settings that a ring asks for.
	NIC NICSettings
	// TransparentMode of a ring; TransparentReason is why it is not the spec's, if so.
	TransparentMode   int32
	TransparentReason string
	// Watched is what a ring does that can cut the node off from its network, in text for users; empty for nothing. Key tells the
	// ring from others, and from itself with another spec.
	Watched, Key string
	// Fallback of a ring's mode.
	Fallback v1.TransparentFallback

	// slotBytes of the ring: its queues keep their size while it is refused.
	slotBytes int32
	// queues is the number of them in a set that was asked for.
	queues int
}

// Ready reports whether it was planned as the spec asks.
func (v Verdict) Ready() bool { return v.Planned && v.Reason == "" }

// Absent reports whether it does not concern this node, because that has none of the interfaces.
func (v Verdict) Absent() bool { return !v.Planned && v.Reason == v1.ReasonInterfaceAbsent }

// Result is a node's plan.
type Result struct {
	Plans map[v1.Engine]capture.Plan
	// Rings and Clusters have a verdict for each object, by name. A ring's own queues have one in Clusters.
	Rings    map[string]Verdict
	Clusters map[string]Verdict
	// NICs by interface name.
	NICs map[string]NICSettings
	// Drivers that are to be replaced, by interface name.
	Drivers map[string]DesiredDriver
	// Auto is the engine that serves rings that leave the choice, and why; empty when there is none.
	Auto       v1.Engine
	AutoReason string
}

// Make decides. The spec's fields must have been defaulted. An object that is refused gets a verdict with the reason
// and leaves the others as they are. If the change of an object is refused, it stays as it was accepted last.
func Make(spec v1.NodeCaptureSpec, facts Facts) Result {
	changes := newChanges(spec, facts.Good)
	facts.kept = changes.counts
	result := decide(spec, facts)
	for changes.withholdRefused(result) || changes.keepCount(result, facts) || changes.withholdHarmful(result, facts) {
		result = decide(changes.spec(), facts)
	}
	changes.note(result)
	return result
}

// decide plans a spec as it is.
func decide(spec v1.NodeCaptureSpec, facts Facts) Result {
	b := &builder{
		facts: facts,
		result: Result{
			Plans:    map[v1.Engine]capture.Plan{},
			Rings:    map[string]Verdict{},
			Clusters: map[string]Verdict{},
			NICs:     map[string]NICSettings{},
			Drivers:  map[string]DesiredDriver{},
		},
		rings: map[string]plannedRing{}, ringConsumers: map[string]*v1.Consumers{},
		ledger: newLedger(facts),
	}
	b.result.Auto, b.result.AutoReason = chooseAuto(facts.Engines)
	b.countAllQueues(spec)
	for _, ring := range spec.Rings {
		b.addRing(ring)
	}
	for _, ring := range spec.Rings {
		if ring.Spec.Queues != nil {
			b.addCluster(ownQueues(ring, b.queueCounts[ring.Name]))
		}
	}
	for _, cluster := range spec.Clusters {
		if _, taken := b.result.Rings[cluster.Name]; taken {
			b.refuseName(cluster.Name)
			continue
		}
		b.addCluster(cluster)
	}
	b.finish()
	return b.result
}

// ownQueues are a ring's own queues, as a cluster of its name.
func ownQueues(ring v1.NodeRing, count int32) v1.NodeCluster {
	return v1.NodeCluster{Name: ring.Name, UID: ring.UID, Version: ring.Version, Spec: v1.ClusterSpec{
		Rings: []string{ring.Name}, Queues: count, QueueSettings: ring.Spec.QueueSettings,
	}}
}

// countQueues is the number of a ring's own queues. One for each RX queue is as many as its interface with the most has;
// while that is not there, as many as there are. Pods come and go, so theirs become no fewer.
func (b *builder) countQueues(ring v1.NodeRing) int32 {
	if ring.Spec.Queues.Type == intstr.Int {
		return v1.QueueCount(ring.Spec.Queues)
	}
	if kept, ok := b.facts.kept[ring.Name]; ok {
		return int32(kept)
	}
	count, now := 0, b.facts.QueueCounts[ring.Name]
	for _, selector := range ring.Spec.Interfaces {
		// A selector that is none is the ring's problem, and finds nothing.
		matches, _ := matchInterfaces(selector, b.facts.Interfaces)
		if selector.PodSelector != nil {
			matches, count = b.facts.podInterfaces(selector), max(count, now)
		}
		for _, match := range matches {
			count = max(count, match.RxQueues)
		}
	}
	if count == 0 {
		count = now
	}
	return int32(max(count, 1))
}

// plannedRing is a ring that passed all checks, before its outputs are known.
type plannedRing struct {
	engine       v1.Engine
	engineReason string
	ring         capture.Ring
	slotBytes    int32
	nic          NICSettings
}

type builder struct {
	facts  Facts
	result Result
	rings  map[string]plannedRing
	// ringConsumers is each ring's spec.consumers, as far as it is not refused.
	ringConsumers map[string]*v1.Consumers
	// queueCounts is the number of queues that each Cluster and each ring with queues is to have.
	queueCounts map[string]int32
	// drafts are the sets of queues that passed all checks, in the spec's order.
	drafts []clusterDraft
	ledger *ledger
}

// countAllQueues counts the queues of each name: for rules that name them, and for the rings' own.
func (b *builder) countAllQueues(spec v1.NodeCaptureSpec) {
	b.queueCounts = map[string]int32{}
	for _, cluster := range spec.Clusters {
		b.queueCounts[cluster.Name] = cluster.Spec.Queues
	}
	for _, ring := range slices.Backward(spec.Rings) { // of two of one name the first is captured
		if ring.Spec.Queues != nil {
			b.queueCounts[ring.Name] = b.countQueues(ring)
		}
	}
}

func (b *builder) addRing(ring v1.NodeRing) {
	if first, taken := b.result.Rings[ring.Name]; taken {
		first.Reason = v1.ReasonNameConflict
		first.Message = fmt.Sprintf("two rings are named %q: only the first is captured; rename the other", ring.Name)
		b.result.Rings[ring.Name] = first
		return
	}
	draft, problem := b.checkRing(ring)
	verdict := Verdict{Planned: problem == nil}
	if problem != nil {
		verdict.Reason, verdict.Message = problem.reason, problem.message
	} else {
		b.rings[ring.Name] = draft.planned()
	}
	b.ringConsumers[ring.Name] = draft.spec.Consumers
	verdict.Engine, verdict.EngineReason = draft.engine, draft.engineReason
	verdict.NIC, verdict.TransparentMode, verdict.TransparentReason = draft.nic(), draft.mode, draft.modeReason
	if watched := draft.watched(); watched != "" && (verdict.Planned || len(draft.drivers) > 0) {
		verdict.Watched, verdict.Key, verdict.Fallback = watched, draft.key, ring.Spec.TransparentFallback
	}
	b.noteDrivers(draft)
	texts, wrong := draft.notTapped()
	if verdict.Pods, verdict.PodsNotTapped = draft.pods, texts; wrong != nil && verdict.Ready() {
		verdict.Reason, verdict.Message = wrong.reason, wrong.message
	}
	verdict.Away = draft.away
	verdict.Interfaces, verdict.slotBytes = interfaceNames(draft.taps), sizing.SlotBytes(ring.Spec.SnapLength)
	b.result.Rings[ring.Name] = verdict
}

func (b *builder) checkRing(ring v1.NodeRing) (ringDraft, *problem) {
	draft := ringDraft{spec: ring.Spec, name: ring.Name, version: ring.Version, facts: b.facts, auto: b.result.Auto, autoReason: b.result.AutoReason, queueCounts: b.queueCounts}
	if Intrusive(ring.Spec) {
		draft.key = TryKey(ring)
	}
	draft.unsupported = b.facts.unsupported(func() string { return SpecKey(ring) })
	return draft, firstProblem(ringChecks, &draft)
}

func (b *builder) checkCluster(cluster v1.NodeCluster) (clusterDraft, *problem) {
	draft := clusterDraft{cluster: cluster, facts: b.facts, rings: b.rings, verdicts: b.result.Rings, ledger: b.ledger}
	draft.unsupported = b.facts.unsupported(func() string { return SpecKey(cluster) })
	return draft, firstProblem(clusterChecks, &draft)
}

// refuseName refuses a Cluster that has the name of a ring. The ring goes on, with its own queues if it has any.
func (b *builder) refuseName(name string) {
	verdict := b.result.Clusters[name]
	verdict.Reason = v1.ReasonNameConflict
	verdict.Message = fmt.Sprintf("a ring and a Cluster are both named %q, and both would be the resource %s%s: rename the Cluster",
		name, v1.ResourcePrefix, name)
	b.result.Clusters[name] = verdict
}

func (b *builder) addCluster(cluster v1.NodeCluster) {
	if _, taken := b.result.Clusters[cluster.Name]; taken {
		b.refuseName(cluster.Name)
		return
	}
	draft, problem := b.checkCluster(cluster)
	verdict := Verdict{Planned: problem == nil, queues: int(cluster.Spec.Queues)}
	if problem == nil {
		problem = draft.missing
	}
	if problem != nil {
		verdict.Reason, verdict.Message = problem.reason, problem.message
	}
	verdict.InjectLibpcap = draft.cluster.Spec.Consumers != nil && draft.cluster.Spec.Consumers.InjectLibpcap
	verdict.Consumers = b.consumersOf(draft.cluster)
	if verdict.Planned {
		verdict.Fed, verdict.Engine, verdict.EngineReason = len(draft.feeds) > 0, draft.engine, draft.engineReason
		b.assign(draft)
		if !verdict.Fed {
			b.missed(draft.cluster.Spec.Rings)
		}
	}
	b.result.Clusters[cluster.Name] = verdict
}

// consumersOf returns which pods may have a set of queues: those that its rings on this node and it itself permit.
func (b *builder) consumersOf(cluster v1.NodeCluster) consumers.Rule {
	if _, own := b.result.Rings[cluster.Name]; own {
		return consumers.Rule{consumers.OfRing(cluster.Name, cluster.Spec.Consumers)}
	}
	var rings []consumers.Source
	for _, name := range cluster.Spec.Rings {
		if ring, ok := b.ringConsumers[name]; ok {
			rings = append(rings, consumers.OfRing(name, ring))
		}
	}
	return consumers.OfCluster(cluster.Name, cluster.Spec.Consumers, rings...)
}

// missed reports interfaces that are ignored where there are none, and were here: queues wait for their packets.
func (b *builder) missed(rings []string) {
	for _, name := range rings {
		if verdict := b.result.Rings[name]; verdict.Absent() {
			verdict.Reason = v1.ReasonInterfaceNotFound
			b.result.Rings[name] = verdict
		}
	}
}

// assign notes a cluster that passed for its engine's plan and makes its rings feed it.
func (b *builder) assign(draft clusterDraft) {
	b.ledger.enter(draft)
	b.drafts = append(b.drafts, draft)
	for _, name := range draft.feeds {
		ring := b.rings[name]
		ring.ring.Outputs = append(ring.ring.Outputs, draft.cluster.Name)
		b.rings[name] = ring
	}
}

// finish sorts what was placed into the plans, so that equal desired states make equal plans.
func (b *builder) finish() {
	for _, name := range slices.Sorted(maps.Keys(b.rings)) {
		planned := b.rings[name]
		slices.Sort(planned.ring.Outputs)
		p := b.result.Plans[planned.engine]
		p.Rings = append(p.Rings, planned.ring)
		b.result.Plans[planned.engine] = p
		for _, tap := range planned.ring.Taps {
			b.setNIC(planned.ring.Name, tap.Interface, planned.nic)
		}
	}
	for engine, clusters := range b.plannedClusters() {
		slices.SortFunc(clusters, func(x, y capture.Cluster) int { return strings.Compare(x.Name, y.Name) })
		p := b.result.Plans[engine]
		p.Clusters = clusters
		b.result.Plans[engine] = p
	}
}

// plannedClusters are what passed, by engine, with as many lanes as there is room for.
func (b *builder) plannedClusters() map[v1.Engine][]capture.Cluster {
	clusters := map[v1.Engine][]capture.Cluster{}
	for _, draft := range b.drafts {
		draft.raiseLanes()
		clusters[draft.engine] = append(clusters[draft.engine], draft.planned())
	}
	return clusters
}

func interfaceNames(taps []capture.Tap) []string {
	var names []string
	for _, tap := range taps {
		names = append(names, tap.Interface)
	}
	slices.Sort(names)
	return names
}
