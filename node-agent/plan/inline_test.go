// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/ringcap/ringcap/node-agent/capture"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// pairFacts returns the facts of a node with four interfaces for pairs.
func pairFacts() Facts {
	f := facts()
	f.Interfaces = nil
	for i, name := range []string{"a0", "a1", "b0", "b1"} {
		f.Interfaces = append(f.Interfaces, Interface{Name: name, Index: 10 + i, RxQueues: 1})
	}
	return f
}

// inLine returns a ring in line between a0 and a1.
func inLine(name string, change ...func(*v1.CaptureRingSpec)) v1.NodeRing {
	r := v1.NodeRing{Name: name, UID: "uid-" + name, Spec: v1.CaptureRingSpec{
		Queues: v1.Queues(2), Inline: &v1.Inline{Pairs: []v1.InterfacePair{{Interfaces: []string{"a0", "a1"}}}},
	}}
	r.Spec.Default()
	for _, c := range change {
		c(&r.Spec)
	}
	return r
}

func alsoB(s *v1.CaptureRingSpec) {
	s.Inline.Pairs = append(s.Inline.Pairs, v1.InterfacePair{Interfaces: []string{"b0", "b1"}})
}

var (
	pairA = []capture.Tap{
		{Interface: "a0", Index: 10, Direction: capture.Receive, Peer: 11}, {Interface: "a1", Index: 11, Direction: capture.Receive, Peer: 10},
	}
	pairB = []capture.Tap{
		{Interface: "b0", Index: 12, Direction: capture.Receive, Peer: 13}, {Interface: "b1", Index: 13, Direction: capture.Receive, Peer: 12},
	}
)

func makeLine(f Facts, rings ...v1.NodeRing) (Result, capture.Plan) {
	got := Make(v1.NodeCaptureSpec{Rings: rings}, f)
	return got, got.Plans[v1.EngineKernelModule]
}

func TestARingInLine(t *testing.T) {
	ring := inLine("ips", func(s *v1.CaptureRingSpec) {
		s.Inline.WhenFull, s.Inline.HungAfter = v1.InlineBlock, &metav1.Duration{Duration: 1500 * time.Microsecond}
	})
	got, planned := makeLine(pairFacts(), ring)
	require.True(t, got.Rings["ips"].Ready(), got.Rings["ips"].Message)
	require.True(t, got.Clusters["ips"].Ready(), got.Clusters["ips"].Message)
	assert.Equal(t, "spec.inline on a0, a1", got.Rings["ips"].Watched)
	assert.Equal(t, pairA, planned.Rings[0].Taps)
	assert.False(t, planned.Rings[0].Addressed)
	require.Len(t, planned.Clusters, 1)
	queues := planned.Clusters[0]
	assert.Equal(t, &capture.Inline{
		Bypass: []capture.Event{capture.EventUnattended, capture.EventHung}, HungAfter: 2 * time.Millisecond,
	}, queues.Inline)
	assert.Equal(t, 1, queues.Lanes)
	assert.EqualValues(t, 4<<20, queues.QueueBytes)
	assert.Zero(t, queues.WatermarkTimeout, "packets wait for the consumer")
}

// Clusters over such a ring get copies, as over any other.
func TestAClusterOverARingInLine(t *testing.T) {
	got := Make(v1.NodeCaptureSpec{Rings: []v1.NodeRing{inLine("ips")}, Clusters: []v1.NodeCluster{cluster("ids", 2, "ips")}}, pairFacts())
	require.True(t, got.Clusters["ids"].Ready(), got.Clusters["ids"].Message)
	planned := got.Plans[v1.EngineKernelModule]
	assert.Equal(t, []string{"ids", "ips"}, planned.Rings[0].Outputs)
	assert.Nil(t, planned.Clusters[0].Inline)
	assert.NotNil(t, planned.Clusters[1].Inline)
}

// The same spec on the same node is the same plan while the ring runs: nothing touches a pair.
func TestAnAgentAdoptsARingInLine(t *testing.T) {
	_, before := makeLine(pairFacts(), inLine("ips"))
	f := pairFacts()
	f.Serving = map[string]v1.Engine{"ips": v1.EngineKernelModule}
	f.Queues, f.QueueCounts = f.Serving, map[string]int{"ips": 2}
	f.Taken, f.Taps = map[string]Taken{"ips": {Bytes: 8 << 20, Lanes: 1}}, map[string][]capture.Tap{"ips": pairA}
	f.Good = v1.NodeCaptureSpec{Rings: []v1.NodeRing{inLine("ips")}}
	_, after := makeLine(f, inLine("ips"))
	assert.Equal(t, before, after)
}

func TestWhatARingInLineIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		ring    func(*v1.CaptureRingSpec)
		node    func(*Facts)
		reason  string
		message string
	}{
		"eBPF": {ring: withEngine(v1.EngineEBPF), reason: v1.ReasonUnsupported, message: "set spec.engine to KernelModule"},
		"a node without the module": {node: func(f *Facts) { delete(f.Engines, v1.EngineKernelModule) },
			reason: v1.ReasonUnsupported, message: "spec.inline: engine EBPF does not do it"},
		"interfaces too":        {ring: withInterface("b0"), reason: v1.ReasonUnsupported, message: "one of the two"},
		"no queues":             {ring: func(s *v1.CaptureRingSpec) { s.Queues = nil }, reason: v1.ReasonUnsupported, message: "set spec.queues"},
		"PerRxQueue":            {ring: func(s *v1.CaptureRingSpec) { all := intstr.FromString(v1.QueuesPerRxQueue); s.Queues = &all }, reason: v1.ReasonUnsupported, message: "set spec.queues"},
		"both directions":       {ring: func(s *v1.CaptureRingSpec) { s.Direction = v1.DirectionBoth }, reason: v1.ReasonUnsupported, message: "leave spec.direction out"},
		"mode 1":                {ring: withMode(1), reason: v1.ReasonUnsupported, message: "leave spec.transparentMode out"},
		"mode 2":                {ring: withMode(2), reason: v1.ReasonUnsupported, message: "leave spec.transparentMode out"},
		"a sample":              {ring: func(s *v1.CaptureRingSpec) { s.Sampling = &v1.Sampling{OneIn: 2} }, reason: v1.ReasonUnsupported, message: "spec.sampling"},
		"reassembly":            {ring: func(s *v1.CaptureRingSpec) { s.Defragment = true }, reason: v1.ReasonUnsupported, message: "spec.defragment"},
		"round robin":           {ring: func(s *v1.CaptureRingSpec) { s.Balance = v1.BalanceRoundRobin }, reason: v1.ReasonUnsupported, message: "spec.balance"},
		"both ends":             {ring: func(s *v1.CaptureRingSpec) { s.Balance = v1.BalanceBothEnds }, reason: v1.ReasonUnsupported, message: "spec.balance"},
		"stand-ins":             {ring: func(s *v1.CaptureRingSpec) { s.WhenFull = v1.QueuePolicySpread }, reason: v1.ReasonUnsupported, message: "spec.inline.whenFull"},
		"many slots":            {ring: func(s *v1.CaptureRingSpec) { s.Slots = 5000 }, reason: v1.ReasonUnsupported, message: "spec.slots"},
		"not promiscuous":       {ring: func(s *v1.CaptureRingSpec) { off := false; s.NIC.Promiscuous = &off }, reason: v1.ReasonUnsupported, message: "spec.nic.promiscuous"},
		"no pair":               {ring: func(s *v1.CaptureRingSpec) { s.Inline.Pairs = nil }, reason: v1.ReasonUnsupported, message: "1 to 32 pairs"},
		"a pair of one":         {ring: withPair("a0"), reason: v1.ReasonUnsupported, message: "two different interfaces"},
		"its own peer":          {ring: withPair("a0", "a0"), reason: v1.ReasonUnsupported, message: "two different interfaces"},
		"a policy of others":    {ring: func(s *v1.CaptureRingSpec) { s.Inline.WhenHung = "Drop" }, reason: v1.ReasonUnsupported, message: "Bypass or Block"},
		"no patience":           {ring: func(s *v1.CaptureRingSpec) { s.Inline.HungAfter.Duration = time.Microsecond }, reason: v1.ReasonUnsupported, message: "between 1ms and 1m"},
		"neither is here":       {ring: withPair("c0", "c1"), reason: v1.ReasonInterfaceAbsent, message: "neither c0 nor c1"},
		"neither, and asked":    {ring: func(s *v1.CaptureRingSpec) { withPair("c0", "c1")(s); onNodes(s) }, reason: v1.ReasonInterfaceNotFound, message: "neither c0 nor c1"},
		"one is here":           {ring: withPair("a0", "c1"), reason: v1.ReasonInterfaceNotFound, message: "this node has a0 and not c1"},
		"in a bridge":           {node: func(f *Facts) { f.Interfaces[1].Unpairable = "belongs to br0" }, reason: v1.ReasonUnsupported, message: "a1 belongs to br0"},
		"with an address":       {node: func(f *Facts) { f.Interfaces[0].NodeTraffic = "has the address 10.0.0.1/24" }, reason: v1.ReasonNodeTrafficRefused, message: "spec.nodeTraffic to Allow"},
		"two ends of a cable":   {node: func(f *Facts) { f.Interfaces[0].OtherEnd = 11 }, reason: v1.ReasonUnsupported, message: "go round for ever"},
		"a macvlan and its own": {node: func(f *Facts) { f.Interfaces[1].OtherEnd = 10 }, reason: v1.ReasonUnsupported, message: "go round for ever"},
	} {
		t.Run(name, func(t *testing.T) {
			f, ring := pairFacts(), inLine("ips")
			if tc.node != nil {
				tc.node(&f)
			}
			if tc.ring != nil {
				tc.ring(&ring.Spec)
			}
			got, planned := makeLine(f, ring)
			assert.Equal(t, tc.reason, got.Rings["ips"].Reason)
			assert.Contains(t, got.Rings["ips"].Message, tc.message)
			assert.Empty(t, planned.Rings)
		})
	}
}

func withPair(names ...string) func(*v1.CaptureRingSpec) {
	return func(s *v1.CaptureRingSpec) { s.Inline.Pairs[0].Interfaces = names }
}

func TestAddressesMayBeAllowed(t *testing.T) {
	f := pairFacts()
	f.Interfaces[0].NodeTraffic = "has the address 10.0.0.1/24"
	got, planned := makeLine(f, inLine("ips", func(s *v1.CaptureRingSpec) { s.NodeTraffic = v1.NodeTrafficAllow }))
	require.True(t, got.Rings["ips"].Ready(), got.Rings["ips"].Message)
	assert.True(t, planned.Rings[0].Addressed)
}

// One pair that cannot be made takes nothing from the others.
func TestTheOtherPairsGoOn(t *testing.T) {
	f := pairFacts()
	f.Interfaces = f.Interfaces[:3] // b1 is gone
	got, planned := makeLine(f, inLine("ips", alsoB))
	assert.True(t, got.Rings["ips"].Planned)
	assert.Equal(t, v1.ReasonInterfaceNotFound, got.Rings["ips"].Reason)
	assert.Contains(t, got.Rings["ips"].Message, "spec.inline.pairs[1]: this node has b0 and not b1")
	assert.Equal(t, pairA, planned.Rings[0].Taps)

	f.Interfaces = f.Interfaces[:2] // as on a node that never had it
	got, planned = makeLine(f, inLine("ips", alsoB))
	assert.True(t, got.Rings["ips"].Ready(), got.Rings["ips"].Message)
	assert.Equal(t, pairA, planned.Rings[0].Taps)
}

// A pair carries traffic: what would refuse it only later does not stop it.
func TestAPairThatRunsGoesOn(t *testing.T) {
	f := pairFacts()
	f.Taps = map[string][]capture.Tap{"ips": append(append([]capture.Tap{}, pairA...), pairB...)}
	f.Interfaces[2].NodeTraffic = "has the address 10.0.0.1/24"
	got, planned := makeLine(f, inLine("ips", alsoB))
	assert.True(t, got.Rings["ips"].Planned)
	assert.Equal(t, v1.ReasonNodeTrafficRefused, got.Rings["ips"].Reason)
	assert.Contains(t, got.Rings["ips"].Message, "the pair goes on as it is")
	assert.Equal(t, f.Taps["ips"], planned.Rings[0].Taps)
}

// Of two rings with one interface in a pair, the one that has it keeps it.
func TestAnInterfaceIsInOnePair(t *testing.T) {
	got, _ := makeLine(pairFacts(), inLine("first"), inLine("second"))
	assert.True(t, got.Rings["first"].Ready(), got.Rings["first"].Message)
	assert.Equal(t, v1.ReasonModeConflict, got.Rings["second"].Reason)
	assert.Contains(t, got.Rings["second"].Message, `ring "first" has a0 in a pair`)
	f := pairFacts()
	f.Taps = map[string][]capture.Tap{"second": pairA}
	got, _ = makeLine(f, inLine("first"), inLine("second"))
	assert.True(t, got.Rings["second"].Ready(), got.Rings["second"].Message)
	assert.Equal(t, v1.ReasonModeConflict, got.Rings["first"].Reason)
}

// A change of what the pairs are is tried again; a ring without any has the key that it had in earlier releases.
func TestTheKeyOfARingInLine(t *testing.T) {
	assert.NotEqual(t, TryKey(inLine("ips")), TryKey(inLine("ips", alsoB)))
	assert.Equal(t, TryKey(inLine("ips")), TryKey(inLine("ips", func(s *v1.CaptureRingSpec) { s.Inline.WhenFull = v1.InlineBlock })))
}

// Whether a ring is in line does not change: it stays as it was.
func TestARingDoesNotBecomeInLine(t *testing.T) {
	f := pairFacts()
	before := ring("ips", withInterface("b0"), withQueues(2))
	f.Good = v1.NodeCaptureSpec{Rings: []v1.NodeRing{before}}
	got, planned := makeLine(f, inLine("ips"))
	assert.True(t, got.Rings["ips"].AsBefore)
	assert.Contains(t, got.Rings["ips"].Message, "from the beginning")
	assert.Zero(t, planned.Rings[0].Taps[0].Peer)
	assert.Nil(t, planned.Clusters[0].Inline)
}
