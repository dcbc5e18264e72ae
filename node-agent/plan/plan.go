// SPDX-License-Identifier: Apache-2.0

// Package plan decides what each engine of a node captures. From the desired state (a NodeCaptureSpec) and the facts
// of the node, it makes one capture.Plan per engine and one verdict per object. It uses no clock, no kernel and no
// API.
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
	// DriverFact tells what that driver can do, and what can replace it.
	DriverFact DriverFact
	// NodeTraffic tells why the interface carries the node's own traffic, in words that follow its name. It is empty
	// for an interface that only captures.
	NodeTraffic string
	// Unpairable tells why the interface cannot be in a pair of a ring in line, and what to do, in words that follow
	// its name. It is empty if it can be.
	Unpairable string
	// OtherEnd is the index of an interface of the node that gets what this one sends, as the other end of a veth; 0
	// for none.
	OtherEnd int
}

// EngineFact tells whether an engine can be used on this node.
type EngineFact struct {
	Available bool
	// Why is the reason why it is available or not, in text for users.
	Why string
	// Lanes is the greatest number of memory areas that the engine makes for each queue.
	Lanes int
	// MaxQueue is the greatest number of bytes that the areas of a queue may have together, with their tails; 0 means
	// no limit.
	MaxQueue uint64
	// LaneTail is the number of bytes that each area needs behind it.
	LaneTail uint64
	// SlotOverhead is the number of bytes that a packet takes in a queue in addition to its own.
	SlotOverhead uint32
}

// Facts are the inputs of a plan other than the desired state.
type Facts struct {
	Interfaces []Interface
	// Engines holds the facts by v1.EngineKernelModule and v1.EngineEBPF. An absent engine is not available.
	Engines map[v1.Engine]EngineFact
	// Serving is the engine that has a ring now, by ring name. A ring that leaves the choice stays with this engine,
	// because its consumers' containers were given what the engine needs.
	Serving map[string]v1.Engine
	// Queues is the engine that has a set of queues now, by name. Existing queues stay for their consumers while no
	// ring can feed them, for example while an interface is gone for a moment. New ones are made only if there is a
	// ring to feed them.
	Queues map[string]v1.Engine
	// QueueCounts is the number of queues in each such set.
	QueueCounts map[string]int
	// kept is the number of a ring's own queues that stays the same, however many RX queues there are.
	kept map[string]int
	// Taken is what each set of queues has of the node's memory now.
	Taken map[string]Taken
	// Memory of the node; nil if it is not known. Then only spec.memoryLimit applies.
	Memory *capture.Memory
	// Good holds the specs that were accepted last. If a spec is changed to one that is refused, the data path stays
	// as it is.
	Good v1.NodeCaptureSpec
	// Refused holds specs of rings that the node refuses because it has tried them, by TryKey.
	Refused map[string]Refusal
	// Unsupported holds specs of rings and Clusters that their engine reported as unsupported, by SpecKey.
	Unsupported map[string]Refusal
	// Pods of the node. PodsUnknown is the reason why they are not known. Then a ring's taps on pods stay as they
	// are. NoPods: the machine is not a node of Kubernetes.
	Pods        []Pod
	PodsUnknown string
	NoPods      bool
	// Pools of virtual functions by resource name. PoolsUnknown is the reason why they are not known. Then what a
	// ring taps for them stays as it is.
	Pools        map[string][]PoolDevice
	PoolsUnknown string
	// Seen holds interfaces of pools as they were last seen in the node's network namespace, by PCI address.
	Seen map[string]Function
	// Taps that rings have now, by the name of the ring.
	Taps map[string][]capture.Tap
	// Compile makes a classic BPF program from a pcap-filter(7) expression. Its error is the compiler's own message.
	Compile func(expression string, snapLen uint32) ([]bpf.RawInstruction, error)
}

// named returns the node's interface of that name.
func (f *Facts) named(name string) (Interface, bool) {
	i := slices.IndexFunc(f.Interfaces, func(i Interface) bool { return i.Name == name })
	if i < 0 {
		return Interface{}, false
	}
	return f.Interfaces[i], true
}

// Verdict is the decision about a ring or a set of queues. It does not tell whether the decision was carried out.
type Verdict struct {
	// Planned means that it is in the plan of Engine.
	Planned bool
	// AsBefore means that a change of its spec is refused, for Reason. What is planned, if anything, is the last
	// accepted spec.
	AsBefore bool
	// Reason and Message describe what is wrong. Reason is empty if all is as the spec asks. A set of queues may be
	// planned and have a Reason: one of its rings does not feed it.
	Reason, Message string
	// Fed means that at least one ring passes packets to this set of queues.
	Fed bool
	// Engine that serves it, and the reason for that choice.
	Engine       v1.Engine
	EngineReason string
	// Interfaces that a ring taps, sorted.
	Interfaces []string
	// Pairs of a ring in line, as a-b.
	Pairs []string
	// InjectLibpcap into the containers that get a set of queues. Consumers tells which pods may have it.
	InjectLibpcap bool
	Consumers     consumers.Rule
	// Pods holds the pods of a ring's interfaces, by interface name. PodsNotTapped holds the pods that it selects but
	// does not tap, with the reasons.
	Pods          map[string]string
	PodsNotTapped []string
	// Away holds its interfaces that are in a pod's network namespace, by name.
	Away map[string]bool
	// NIC holds the settings that a ring asks for.
	NIC NICSettings
	// TransparentMode of a ring. If it differs from the spec, TransparentReason has the reason.
	TransparentMode   int32
	TransparentReason string
	// Watched tells what a ring does that can cut the node off from its network, in text for users. It is empty for
	// nothing. Key tells the ring from others, and from itself with another spec.
	Watched, Key string
	// Fallback of a ring's mode.
	Fallback v1.TransparentFallback

	// slotBytes of the ring: its queues keep their size while it is refused.
	slotBytes int32
	// queues is the number of queues in a set that was asked for.
	queues int
}

// Ready reports whether it was planned as the spec asks.
func (v Verdict) Ready() bool { return v.Planned && v.Reason == "" }

// Absent reports whether it does not concern this node, because the node has none of the interfaces.
func (v Verdict) Absent() bool { return !v.Planned && v.Reason == v1.ReasonInterfaceAbsent }

// Result is a node's plan.
type Result struct {
	Plans map[v1.Engine]capture.Plan
	// Rings and Clusters have a verdict for each object, by name. A ring's own queues have one in Clusters.
	Rings    map[string]Verdict
	Clusters map[string]Verdict
	// NICs holds the settings by interface name.
	NICs map[string]NICSettings
	// Drivers holds the drivers that are to be replaced, by interface name.
	Drivers map[string]DesiredDriver
	// Auto is the engine that serves rings that leave the choice, with the reason. It is empty if there is none.
	Auto       v1.Engine
	AutoReason string
}

// Make makes the plan. The spec's fields must have been defaulted. A refused object gets a verdict with the reason,
// and leaves the others as they are. If the change of an object is refused, the object stays as it was accepted last.
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

// decide plans a spec without changes to it.
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
	b.inPairs = facts.inPairs(spec)
	for _, ring := range spec.Rings {
		b.addRing(ring)
	}
	for _, ring := range spec.Rings {
		if ring.Spec.Queues != nil {
			b.addQueues(ownQueues(ring, b.queueCounts[ring.Name]), ring.Spec.Inline)
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

// ownQueues returns a ring's own queues, as a cluster of its name.
func ownQueues(ring v1.NodeRing, count int32) v1.NodeCluster {
	return v1.NodeCluster{Name: ring.Name, UID: ring.UID, Version: ring.Version, Spec: v1.ClusterSpec{
		Rings: []string{ring.Name}, Queues: count, QueueSettings: ring.Spec.QueueSettings,
	}}
}

// countQueues returns the number of a ring's own queues. With one for each RX queue, the interface with the most RX
// queues gives the number. While that interface is missing, the present number stays. Pods come and go, so the number
// of queues for pods never decreases.
func (b *builder) countQueues(ring v1.NodeRing) int32 {
	if ring.Spec.Queues.Type == intstr.Int {
		return v1.QueueCount(ring.Spec.Queues)
	}
	if kept, ok := b.facts.kept[ring.Name]; ok {
		return int32(kept)
	}
	count, now := 0, b.facts.QueueCounts[ring.Name]
	for _, selector := range ring.Spec.Interfaces {
		// An invalid selector is the ring's problem, and finds nothing.
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
	// ringConsumers holds each ring's spec.consumers, unless it is refused.
	ringConsumers map[string]*v1.Consumers
	// queueCounts is the number of queues that each Cluster and each ring with queues is to have.
	queueCounts map[string]int32
	// inPairs holds the interfaces of pairs, with the name of the ring that gets them.
	inPairs map[string]string
	// drafts holds the sets of queues that passed all checks, in the spec's order.
	drafts []clusterDraft
	ledger *ledger
}

// countAllQueues counts the queues of each name, for rules that name them and for the rings' own queues.
func (b *builder) countAllQueues(spec v1.NodeCaptureSpec) {
	b.queueCounts = map[string]int32{}
	for _, cluster := range spec.Clusters {
		b.queueCounts[cluster.Name] = cluster.Spec.Queues
	}
	for _, ring := range slices.Backward(spec.Rings) { // of two rings with one name, the first is captured
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
	if draft.incomplete != nil && verdict.Ready() {
		verdict.Reason, verdict.Message = draft.incomplete.reason, draft.incomplete.message
	}
	verdict.Away, verdict.Pairs = draft.away, draft.pairs
	verdict.Interfaces, verdict.slotBytes = interfaceNames(draft.taps), sizing.SlotBytes(ring.Spec.SnapLength)
	b.result.Rings[ring.Name] = verdict
}

func (b *builder) checkRing(ring v1.NodeRing) (ringDraft, *problem) {
	draft := ringDraft{spec: ring.Spec, name: ring.Name, uid: ring.UID, version: ring.Version, facts: b.facts, auto: b.result.Auto, autoReason: b.result.AutoReason, queueCounts: b.queueCounts, others: b.inPairs}
	if Intrusive(ring.Spec) {
		draft.key = TryKey(ring)
	}
	draft.unsupported = b.facts.unsupported(func() string { return SpecKey(ring) })
	return draft, firstProblem(ringChecks, &draft)
}

func (b *builder) checkCluster(cluster v1.NodeCluster, inline *v1.Inline) (clusterDraft, *problem) {
	draft := clusterDraft{cluster: cluster, inline: inline, facts: b.facts, rings: b.rings, verdicts: b.result.Rings, ledger: b.ledger}
	draft.unsupported = b.facts.unsupported(func() string { return SpecKey(cluster) })
	return draft, firstProblem(clusterChecks, &draft)
}

// refuseName refuses a Cluster that has the name of a ring. The ring continues, with its own queues if it has any.
func (b *builder) refuseName(name string) {
	verdict := b.result.Clusters[name]
	verdict.Reason = v1.ReasonNameConflict
	verdict.Message = fmt.Sprintf("a ring and a Cluster are both named %q, and both would be the resource %s%s: rename the Cluster",
		name, v1.ResourcePrefix, name)
	b.result.Clusters[name] = verdict
}

func (b *builder) addCluster(cluster v1.NodeCluster) { b.addQueues(cluster, nil) }

// addQueues adds a Cluster, or a ring's own queues. inline is the spec of these if the ring is in line.
func (b *builder) addQueues(cluster v1.NodeCluster, inline *v1.Inline) {
	if _, taken := b.result.Clusters[cluster.Name]; taken {
		b.refuseName(cluster.Name)
		return
	}
	draft, problem := b.checkCluster(cluster, inline)
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

// consumersOf returns which pods may have a set of queues. Both its rings on this node and the set itself must permit
// a pod.
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

// missed reports absent interfaces that were here before, although absent ones are otherwise ignored: queues wait for
// their packets.
func (b *builder) missed(rings []string) {
	for _, name := range rings {
		if verdict := b.result.Rings[name]; verdict.Absent() {
			verdict.Reason = v1.ReasonInterfaceNotFound
			b.result.Rings[name] = verdict
		}
	}
}

// assign adds a cluster that passed to its engine's plan, and makes its rings feed it.
func (b *builder) assign(draft clusterDraft) {
	b.ledger.enter(draft)
	b.drafts = append(b.drafts, draft)
	for _, name := range draft.feeds {
		ring := b.rings[name]
		ring.ring.Outputs = append(ring.ring.Outputs, draft.cluster.Name)
		b.rings[name] = ring
	}
}

// finish sorts the plans, so that equal desired states make equal plans.
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

// plannedClusters returns the clusters that passed, by engine, with as many lanes as there is room for.
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
