// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/bpf"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/ringcap/ringcap/filter"
	"github.com/ringcap/ringcap/node-agent/capture"
	"github.com/ringcap/ringcap/operator/api/consumers"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

var acceptAll = []bpf.RawInstruction{{Op: 6, K: 0xffffffff}}

// facts returns the facts of a node with both engines and three interfaces. "tcp port" is the only expression that
// does not compile.
func facts() Facts {
	return Facts{
		Interfaces: []Interface{{Name: "lo", Index: 1, RxQueues: 1}, {Name: "eth0", Index: 2, RxQueues: 4}, {Name: "eth1", Index: 3, RxQueues: 2}},
		Engines: map[v1.Engine]EngineFact{
			v1.EngineKernelModule: {Available: true, Why: "ringcap 0.1 is loaded", Lanes: 2, SlotOverhead: 48},
			v1.EngineEBPF:         {Available: true, Why: "tcx", Lanes: 1, SlotOverhead: 56},
		},
		Compile: func(expression string, _ uint32) ([]bpf.RawInstruction, error) {
			switch expression {
			case "tcp port":
				return nil, errors.New("syntax error")
			case "nothing to run":
				return nil, fmt.Errorf("%w: no such file", filter.ErrCompilerUnavailable)
			case "too long":
				return make([]bpf.RawInstruction, filter.MaxInstructions+1), nil
			}
			return acceptAll, nil
		},
	}
}

func ring(name string, change ...func(*v1.CaptureRingSpec)) v1.NodeRing {
	r := v1.NodeRing{Name: name, UID: "uid-" + name, Spec: v1.CaptureRingSpec{Interfaces: []v1.InterfaceSelector{{Name: "eth0"}}}}
	r.Spec.Default()
	for _, c := range change {
		c(&r.Spec)
	}
	return r
}

func cluster(name string, queues int32, rings ...string) v1.NodeCluster {
	c := v1.NodeCluster{Name: name, UID: "uid-" + name, Spec: v1.ClusterSpec{Rings: rings, Queues: queues}}
	c.Spec.Default()
	return c
}

func withQueues(n int32) func(*v1.CaptureRingSpec) {
	return func(s *v1.CaptureRingSpec) { s.Queues = v1.Queues(n) }
}

func withEngine(e v1.Engine) func(*v1.CaptureRingSpec) {
	return func(s *v1.CaptureRingSpec) { s.Engine = e }
}

func withBPF(expression string) func(*v1.CaptureRingSpec) {
	return func(s *v1.CaptureRingSpec) { s.Filter = &v1.Filter{BPF: expression} }
}

// onNodes reports where the interfaces are.
func onNodes(s *v1.CaptureRingSpec) { s.NodeSelector = v1.NodesWith("role", "sensor") }

func withInterface(name string) func(*v1.CaptureRingSpec) {
	return func(s *v1.CaptureRingSpec) { s.Interfaces = []v1.InterfaceSelector{{Name: name}} }
}

func TestMirrorWithACluster(t *testing.T) {
	got := Make(v1.NodeCaptureSpec{
		Rings:    []v1.NodeRing{ring("mirror", withBPF("tcp"))},
		Clusters: []v1.NodeCluster{cluster("ids", 2, "mirror")},
	}, facts())

	assert.True(t, got.Rings["mirror"].Ready())
	assert.True(t, got.Clusters["ids"].Ready())
	assert.Equal(t, v1.EngineKernelModule, got.Auto)
	assert.Equal(t, map[string]NICSettings{"eth0": {SettingOffloads: {Value: "off", Ring: "mirror"}}}, got.NICs)
	assert.Equal(t, map[v1.Engine]capture.Plan{v1.EngineKernelModule: {
		Rings: []capture.Ring{{
			Name: "mirror", Taps: []capture.Tap{{Interface: "eth0", Index: 2, Direction: capture.Receive}},
			Filter: acceptAll, SnapLen: 65535, Promiscuous: true, Outputs: []string{"ids"},
		}},
		Clusters: []capture.Cluster{{
			Name: "ids", Queues: 2, Balance: capture.BalanceFlow, HashKey: hashKey(cluster("ids", 2)),
			QueueBytes: 8 << 20, Watermark: 8 << 20 / 10, WatermarkTimeout: 10 * time.Millisecond,
		}},
	}}, got.Plans)
}

// TestWithoutASnapLengthPacketsAreWhole: queues are not larger for that, because packets take only the bytes that
// they have.
func TestWithoutASnapLengthPacketsAreWhole(t *testing.T) {
	of := func(snapLength int32) func(*v1.CaptureRingSpec) {
		return func(s *v1.CaptureRingSpec) { s.SnapLength = snapLength }
	}
	got := Make(v1.NodeCaptureSpec{
		Rings: []v1.NodeRing{ring("jumbo", of(9216)), ring("short", of(64)), ring("whole")},
		Clusters: []v1.NodeCluster{
			cluster("a", 1, "short"), cluster("b", 1, "whole"), cluster("c", 1, "short", "whole"), cluster("d", 1, "jumbo", "whole"),
		},
	}, facts())
	p := got.Plans[v1.EngineKernelModule]
	require.Len(t, p.Rings, 3)
	assert.EqualValues(t, []uint32{9216, 64, 65535}, []uint32{p.Rings[0].SnapLen, p.Rings[1].SnapLen, p.Rings[2].SnapLen})
	require.Len(t, p.Clusters, 4)
	for i, want := range []uint32{512 << 10, 8 << 20, 8 << 20, 64 << 20} {
		assert.Equal(t, want, p.Clusters[i].QueueBytes, p.Clusters[i].Name)
	}
}

func TestOwnQueuesAreAClusterOfTheRingsName(t *testing.T) {
	got := Make(v1.NodeCaptureSpec{
		Rings:    []v1.NodeRing{ring("mirror", withQueues(3))},
		Clusters: []v1.NodeCluster{cluster("ids", 2, "mirror")},
	}, facts())
	p := got.Plans[v1.EngineKernelModule]
	assert.Equal(t, []string{"ids", "mirror"}, p.Rings[0].Outputs)
	require.Len(t, p.Clusters, 2)
	assert.Equal(t, "mirror", p.Clusters[1].Name)
	assert.Equal(t, 3, p.Clusters[1].Queues)
	assert.NotEqual(t, p.Clusters[0].HashKey, p.Clusters[1].HashKey)
}

func TestGlobsTapEachInterfaceOnce(t *testing.T) {
	got := Make(v1.NodeCaptureSpec{Rings: []v1.NodeRing{ring("all", func(s *v1.CaptureRingSpec) {
		s.Interfaces = []v1.InterfaceSelector{{Name: "eth?"}, {Name: "eth1"}}
		s.Direction = v1.DirectionBoth
	})}}, facts())
	assert.Equal(t, []string{"eth0", "eth1"}, got.Rings["all"].Interfaces)
	assert.Equal(t, []capture.Tap{{Interface: "eth0", Index: 2, Direction: capture.Both}, {Interface: "eth1", Index: 3, Direction: capture.Both}},
		got.Plans[v1.EngineKernelModule].Rings[0].Taps)
}

func TestAutoFallsBackToEBPF(t *testing.T) {
	f := facts()
	f.Engines[v1.EngineKernelModule] = EngineFact{Why: "this kernel has no module support"}
	got := Make(v1.NodeCaptureSpec{Rings: []v1.NodeRing{ring("mirror", withQueues(1))}}, f)
	assert.Equal(t, v1.EngineEBPF, got.Rings["mirror"].Engine)
	assert.Contains(t, got.Rings["mirror"].EngineReason, "no module support")
	assert.Len(t, got.Plans[v1.EngineEBPF].Rings, 1)
	assert.Equal(t, map[string]NICSettings{"eth0": {
		SettingOffloads: {Value: "off", Ring: "mirror"}, SettingPromiscuous: {Value: "on", Ring: "mirror"},
	}}, got.NICs)
}

func TestARingStaysWithTheEngineThatServesIt(t *testing.T) {
	f := facts()
	f.Serving = map[string]v1.Engine{"mirror": v1.EngineEBPF}
	got := Make(v1.NodeCaptureSpec{Rings: []v1.NodeRing{
		ring("mirror"), ring("new"), ring("moved", withEngine(v1.EngineKernelModule)),
	}}, f)
	assert.Equal(t, v1.EngineEBPF, got.Rings["mirror"].Engine)
	assert.Equal(t, v1.EngineKernelModule, got.Rings["new"].Engine)
	assert.Equal(t, v1.EngineKernelModule, got.Rings["moved"].Engine)
}

func TestBothEnginesServeAtOnce(t *testing.T) {
	got := Make(v1.NodeCaptureSpec{Rings: []v1.NodeRing{
		ring("a", withQueues(1), withEngine(v1.EngineEBPF)), ring("b", withQueues(1)),
	}}, facts())
	assert.Equal(t, "a", got.Plans[v1.EngineEBPF].Rings[0].Name)
	assert.Equal(t, "b", got.Plans[v1.EngineKernelModule].Rings[0].Name)
}

// A refused ring gets its reason and a message with advice. The good ring beside it is still planned.
func TestRefusedRings(t *testing.T) {
	for name, test := range map[string]struct {
		ring    v1.NodeRing
		change  func(*Facts)
		reason  string
		message string
	}{
		"unknown interface": {
			ring:    ring("bad", withInterface("mirror7"), onNodes),
			reason:  v1.ReasonInterfaceNotFound,
			message: `spec.interfaces[0].name "mirror7" matches none of this node's interfaces: eth0, eth1, lo`,
		},
		"malformed glob": {
			ring: ring("bad", withInterface("eth[")), reason: v1.ReasonInterfaceNotFound, message: "not a name or a glob",
		},
		"no interfaces": {
			ring:   ring("bad", func(s *v1.CaptureRingSpec) { s.Interfaces = nil }),
			reason: v1.ReasonInterfaceNotFound, message: "spec.interfaces is empty",
		},
		"BPF that does not compile": {
			ring: ring("bad", withBPF("tcp port")), reason: v1.ReasonInvalidFilter, message: "spec.filter.bpf does not compile: syntax error",
		},
		"no compiler": {
			ring: ring("bad", withBPF("nothing to run")), reason: v1.ReasonEngineError, message: "no such file",
		},
		"program too long": {
			ring: ring("bad", withBPF("too long")), reason: v1.ReasonInvalidFilter, message: "4097 instructions",
		},
		"queues 0": {
			ring: ring("bad", withQueues(0)), reason: v1.ReasonUnsupported, message: "spec.queues 0: must be between 1 and 256",
		},
		"queues 100000": {
			ring: ring("bad", withQueues(100000)), reason: v1.ReasonUnsupported, message: "spec.queues 100000",
		},
		"snap length": {
			ring: ring("bad", func(s *v1.CaptureRingSpec) { s.SnapLength = 70000 }), reason: v1.ReasonUnsupported, message: "spec.snapLength 70000",
		},
		"direction": {
			ring: ring("bad", func(s *v1.CaptureRingSpec) { s.Direction = "Sideways" }), reason: v1.ReasonUnsupported, message: "Sideways",
		},
		"transparent mode": {
			ring:   ring("bad", func(s *v1.CaptureRingSpec) { m := v1.TransparentModeRingOnly; s.TransparentMode = &m }),
			reason: v1.ReasonDriverNotAware, message: "spec.transparentMode 2",
		},
		"engine that is not there": {
			ring: ring("bad", withEngine(v1.EngineKernelModule)),
			change: func(f *Facts) {
				f.Engines[v1.EngineKernelModule] = EngineFact{Why: "no module for kernel 6.18"}
			},
			reason: v1.ReasonEngineUnavailable, message: "no module for kernel 6.18; fix that, or set spec.engine to Auto",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts()
			if test.change != nil {
				test.change(&f)
			}
			got := Make(v1.NodeCaptureSpec{Rings: []v1.NodeRing{test.ring, ring("good", withQueues(1))}}, f)
			assert.False(t, got.Rings["bad"].Planned)
			assert.Equal(t, test.reason, got.Rings["bad"].Reason)
			assert.Contains(t, got.Rings["bad"].Message, test.message)
			assert.True(t, got.Rings["good"].Ready())
			assert.True(t, got.Clusters["good"].Ready())
		})
	}
}

func TestNoEngineAtAll(t *testing.T) {
	f := facts()
	f.Engines = map[v1.Engine]EngineFact{v1.EngineEBPF: {Why: "no BTF in this kernel"}}
	got := Make(v1.NodeCaptureSpec{Rings: []v1.NodeRing{ring("r", withQueues(1))}}, f)
	assert.Equal(t, v1.ReasonEngineUnavailable, got.Rings["r"].Reason)
	assert.Contains(t, got.Rings["r"].Message, "no BTF in this kernel")
	assert.Equal(t, v1.ReasonRingNotAccepted, got.Clusters["r"].Reason)
	assert.Empty(t, got.Plans)
}

// No advice names an engine that would refuse the ring as well.
func TestAdviceIsForThisNode(t *testing.T) {
	f := facts()
	f.Engines[v1.EngineKernelModule] = EngineFact{Why: "no module for kernel 6.18"}
	for engine, want := range map[v1.Engine]string{
		v1.EngineKernelModule: "spec.engine is KernelModule, which this node cannot do: no module for kernel 6.18; fix that",
		v1.EngineAuto: "spec.defragment: engine EBPF does not do it: leave it out; " +
			"engine KernelModule does it, which this node cannot do: no module for kernel 6.18",
	} {
		r := ring("r", withEngine(engine), func(s *v1.CaptureRingSpec) { s.Defragment = true })
		assert.Equal(t, want, Make(v1.NodeCaptureSpec{Rings: []v1.NodeRing{r}}, f).Rings["r"].Message)
	}
}

func shunting(name string, flows int32, rings ...string) v1.NodeCluster {
	c := cluster(name, 2, rings...)
	c.Spec.Consumers = &v1.Consumers{Shunt: flows}
	return c
}

// Each set of queues has its own quota. A Cluster does not inherit its ring's.
func TestFlowsThatConsumersMayShunt(t *testing.T) {
	for _, engine := range []v1.Engine{v1.EngineKernelModule, v1.EngineEBPF} {
		mirror := ring("mirror", func(s *v1.CaptureRingSpec) {
			s.Engine, s.Queues, s.Consumers = engine, v1.Queues(1), &v1.Consumers{Shunt: 10}
		})
		got := Make(v1.NodeCaptureSpec{
			Rings: []v1.NodeRing{mirror}, Clusters: []v1.NodeCluster{cluster("ids", 2, "mirror"), shunting("ips", 20, "mirror")},
		}, facts())
		quotas := map[string]uint32{}
		for _, c := range got.Plans[engine].Clusters {
			quotas[c.Name] = c.ShuntQuota
		}
		assert.Equal(t, map[string]uint32{"mirror": 10, "ids": 0, "ips": 20}, quotas)
	}
}

// A refused cluster leaves its ring and the other clusters.
func TestRefusedClusters(t *testing.T) {
	limit := resource.MustParse("15Mi")
	for name, test := range map[string]struct {
		cluster v1.NodeCluster
		reason  string
		message string
	}{
		"ring that is not there": {cluster("bad", 2, "nowhere"), v1.ReasonRingNotFound, `spec.rings names "nowhere"`},
		"ring that was refused":  {cluster("bad", 2, "refused"), v1.ReasonRingNotAccepted, `ring "refused" does not feed it: spec.interfaces[0]`},
		"no rings":               {cluster("bad", 2), v1.ReasonRingNotFound, "spec.rings is empty"},
		"flows to shunt":         {shunting("bad", v1.MaxShunts+1, "good"), v1.ReasonUnsupported, "spec.consumers.shunt 1048577: must be between 0 and 1048576"},
		"fewer than none":        {shunting("bad", -1, "good"), v1.ReasonUnsupported, "spec.consumers.shunt -1"},
		"queues 0":               {cluster("bad", 0, "good"), v1.ReasonUnsupported, "spec.queues 0"},
		"queues 100000":          {cluster("bad", 100000, "good"), v1.ReasonUnsupported, "spec.queues 100000"},
		"rings of two engines":   {cluster("bad", 2, "good", "other"), v1.ReasonUnsupported, "different engines"},
		"a ring's name":          {cluster("good", 2, "good"), v1.ReasonNameConflict, `both named "good"`},
		"memory limit": {
			v1.NodeCluster{Name: "bad", Spec: v1.ClusterSpec{Rings: []string{"good"}, Queues: 2, QueueSettings: v1.QueueSettings{
				Balance: v1.BalanceFlow, Slots: 4096, MemoryLimit: &limit,
			}}},
			v1.ReasonMemoryLimitExceeded, "2 queues of 8Mi need 16Mi, and spec.memoryLimit is 15Mi",
		},
		"more than a queue can be": {
			v1.NodeCluster{Name: "bad", Spec: v1.ClusterSpec{Rings: []string{"good"}, Queues: 1, QueueSettings: v1.QueueSettings{
				Balance: v1.BalanceFlow, Slots: 4194304,
			}}},
			v1.ReasonUnsupported, "need 8Gi a queue; at most 1Gi",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Make(v1.NodeCaptureSpec{
				Rings: []v1.NodeRing{
					ring("good"), ring("other", withEngine(v1.EngineEBPF)), ring("refused", withInterface("nope"), onNodes),
				},
				Clusters: []v1.NodeCluster{test.cluster, cluster("fine", 2, "good")},
			}, facts())
			verdict := got.Clusters[test.cluster.Name]
			assert.False(t, verdict.Planned)
			assert.Equal(t, test.reason, verdict.Reason)
			assert.Contains(t, verdict.Message, test.message)
			assert.True(t, got.Rings["good"].Ready())
			assert.True(t, got.Clusters["fine"].Ready())
			assert.Equal(t, []string{"fine"}, got.Plans[v1.EngineKernelModule].Rings[0].Outputs)
		})
	}
}

func TestARingOfTheSameNameKeepsItsQueues(t *testing.T) {
	got := Make(v1.NodeCaptureSpec{
		Rings:    []v1.NodeRing{ring("x", withQueues(1))},
		Clusters: []v1.NodeCluster{cluster("x", 2, "x")},
	}, facts())
	assert.True(t, got.Clusters["x"].Planned)
	assert.Equal(t, v1.ReasonNameConflict, got.Clusters["x"].Reason)
	require.Len(t, got.Plans[v1.EngineKernelModule].Clusters, 1)
	assert.Equal(t, 1, got.Plans[v1.EngineKernelModule].Clusters[0].Queues)
}

func TestTwoRingsOfOneName(t *testing.T) {
	got := Make(v1.NodeCaptureSpec{Rings: []v1.NodeRing{ring("x"), ring("x", withInterface("eth1"))}}, facts())
	assert.Equal(t, v1.ReasonNameConflict, got.Rings["x"].Reason)
	assert.Equal(t, []string{"eth0"}, got.Rings["x"].Interfaces)
}

// A cluster that lost one of its rings continues with the other, and reports the loss.
func TestAClusterGoesOnWithTheRingsThatAreThere(t *testing.T) {
	got := Make(v1.NodeCaptureSpec{
		Rings:    []v1.NodeRing{ring("good")},
		Clusters: []v1.NodeCluster{cluster("ids", 2, "good", "gone")},
	}, facts())
	verdict := got.Clusters["ids"]
	assert.True(t, verdict.Planned)
	assert.False(t, verdict.Ready())
	assert.Equal(t, v1.ReasonRingNotFound, verdict.Reason)
	assert.Len(t, got.Plans[v1.EngineKernelModule].Clusters, 1)
}

// The permitted consumers belong to the queues: a refused change leaves them as they are.
func TestNamespacesOfConsumers(t *testing.T) {
	c, mirror := cluster("ids", 1, "mirror"), ring("mirror", withQueues(1))
	c.Spec.Consumers = &v1.Consumers{Namespaces: []string{"sensors"}}
	mirror.Spec.Consumers = &v1.Consumers{Namespaces: []string{"*"}}
	spec := v1.NodeCaptureSpec{Rings: []v1.NodeRing{mirror}, Clusters: []v1.NodeCluster{c}}
	f := facts()
	first := Make(spec, f)
	only := consumers.OfCluster("ids", c.Spec.Consumers, consumers.OfRing("mirror", mirror.Spec.Consumers))
	assert.Equal(t, only, first.Clusters["ids"].Consumers)
	assert.Equal(t, consumers.Rule{consumers.OfRing("mirror", mirror.Spec.Consumers)}, first.Clusters["mirror"].Consumers)
	assert.True(t, first.Clusters["ids"].Ready())

	f.Good = first.Good(spec, v1.NodeCaptureSpec{})
	c.Spec.Consumers = &v1.Consumers{}
	c.Spec.Filter = &v1.Filter{BPF: "tcp"}
	second := Make(v1.NodeCaptureSpec{Rings: spec.Rings, Clusters: []v1.NodeCluster{c}}, f)
	assert.Equal(t, v1.ReasonUnsupported, second.Clusters["ids"].Reason)
	assert.Equal(t, only, second.Clusters["ids"].Consumers)

	// A ring's list also binds the Clusters over it while its interface is away.
	f.Good, f.Queues = v1.NodeCaptureSpec{}, map[string]v1.Engine{"ids": v1.EngineKernelModule}
	mirror.Spec.Consumers, mirror.Spec.Interfaces = nil, []v1.InterfaceSelector{{Name: "gone0"}}
	third := Make(v1.NodeCaptureSpec{Rings: []v1.NodeRing{mirror}, Clusters: []v1.NodeCluster{c}}, f)
	assert.ErrorIs(t, third.Clusters["ids"].Consumers.Check("sensors", nil), consumers.ErrNobody)
}

// Consumers keep their queues, of the same shape, while the interface is gone; new queues are not made.
func TestQueuesStayWhileNoRingCanFeedThem(t *testing.T) {
	spec := v1.NodeCaptureSpec{
		Rings:    []v1.NodeRing{ring("mirror", withInterface("gone0"), withQueues(1))},
		Clusters: []v1.NodeCluster{cluster("ids", 2, "mirror")},
	}
	f := facts()
	before := Make(v1.NodeCaptureSpec{
		Rings: []v1.NodeRing{ring("mirror")}, Clusters: spec.Clusters,
	}, f).Plans[v1.EngineKernelModule].Clusters
	f.Queues = map[string]v1.Engine{"ids": v1.EngineKernelModule}
	got := Make(spec, f)
	assert.Equal(t, capture.Plan{Clusters: before}, got.Plans[v1.EngineKernelModule])
	assert.True(t, got.Clusters["ids"].Planned)
	assert.False(t, got.Clusters["ids"].Fed)
	assert.Equal(t, v1.ReasonRingNotAccepted, got.Clusters["ids"].Reason)
	assert.False(t, got.Clusters["mirror"].Planned)
}

// A typing error in a change removes nothing. What was there stays, and the verdict reports the error.
func TestARefusedChangeLeavesWhatWasThere(t *testing.T) {
	f := facts()
	before := v1.NodeCaptureSpec{
		Rings:    []v1.NodeRing{ring("mirror", withBPF("tcp"), withQueues(1)), ring("plain", withQueues(2))},
		Clusters: []v1.NodeCluster{cluster("ids", 2, "mirror")},
	}
	first := Make(before, f)
	f.Good = first.Good(before, v1.NodeCaptureSpec{})
	assert.Equal(t, before, f.Good)

	changed := v1.NodeCaptureSpec{
		Rings:    []v1.NodeRing{ring("mirror", withBPF("tcp port"), withQueues(1)), ring("plain", withQueues(300))},
		Clusters: []v1.NodeCluster{cluster("ids", 999, "mirror")},
	}
	second := Make(changed, f)
	assert.Equal(t, first.Plans, second.Plans)
	assert.Equal(t, v1.ReasonInvalidFilter, second.Rings["mirror"].Reason)
	assert.Contains(t, second.Rings["mirror"].Message, "syntax error; until then it stays as it was")
	assert.Equal(t, v1.ReasonUnsupported, second.Rings["plain"].Reason)
	assert.Equal(t, v1.ReasonUnsupported, second.Clusters["ids"].Reason)
	assert.True(t, second.Clusters["ids"].Planned)
	assert.False(t, second.Clusters["ids"].Ready())

	// It stays however often it is planned, until the object is deleted or recreated.
	f.Good = second.Good(changed, f.Good)
	assert.Equal(t, before, f.Good)
	changed.Rings[0].UID = "another"
	assert.False(t, Make(changed, f).Rings["mirror"].Planned)
	assert.Empty(t, Make(v1.NodeCaptureSpec{}, f).Plans)
	assert.Empty(t, second.Good(v1.NodeCaptureSpec{}, f.Good))
}

// An entry of a later operator is refused by name, and what was there before it stays.
func TestAnEntryOfALaterVersion(t *testing.T) {
	f := facts()
	before := v1.NodeCaptureSpec{
		Rings: []v1.NodeRing{ring("mirror", withQueues(1))}, Clusters: []v1.NodeCluster{cluster("ids", 2, "mirror")},
	}
	first := Make(before, f)
	f.Good = first.Good(before, v1.NodeCaptureSpec{})
	later := *before.DeepCopy()
	later.Rings[0].Version, later.Clusters[0].Version = v1.NodeEntryVersion+1, v1.NodeEntryVersion+1
	second := Make(later, f)
	assert.Equal(t, first.Plans, second.Plans)
	for _, verdict := range []Verdict{second.Rings["mirror"], second.Clusters["mirror"], second.Clusters["ids"]} {
		assert.Equal(t, v1.ReasonAgentTooOld, verdict.Reason)
		assert.Contains(t, verdict.Message, "upgrade the agent")
	}
	assert.Empty(t, Make(later, facts()).Plans, "a new one is not made")
}

func TestARingFeedsABoundedNumberOfClusters(t *testing.T) {
	spec := v1.NodeCaptureSpec{Rings: []v1.NodeRing{ring("r")}}
	for i := range maxOutputs + 1 {
		spec.Clusters = append(spec.Clusters, cluster(fmt.Sprintf("c%d", i), 1, "r"))
	}
	got := Make(spec, facts())
	assert.True(t, got.Clusters["c7"].Ready())
	assert.Equal(t, v1.ReasonUnsupported, got.Clusters["c8"].Reason)
	assert.Len(t, got.Plans[v1.EngineKernelModule].Rings[0].Outputs, maxOutputs)
}

func TestHashKeyIsTheUIDs(t *testing.T) {
	assert.Equal(t, hashKey(v1.NodeCluster{Name: "a", UID: "u"}), hashKey(v1.NodeCluster{Name: "b", UID: "u"}))
	assert.NotEqual(t, hashKey(v1.NodeCluster{Name: "a"}), hashKey(v1.NodeCluster{Name: "b"}))
}

// withMemory returns a node with 1 GiB, of which queues must leave 256 MiB, and with existing sets of queues of the
// module.
func withMemory(taken map[string]Taken) Facts {
	f := facts()
	f.Memory = &capture.Memory{Total: 1 << 30, Available: 1 << 30, Reserve: 256 << 20, AgentRoom: math.MaxUint64}
	f.Taken, f.Queues = taken, map[string]v1.Engine{}
	for name := range taken {
		f.Queues[name] = v1.EngineKernelModule
	}
	return f
}

// withSlots returns a cluster with a limit that never refuses it.
func withSlots(c v1.NodeCluster, slots int32) v1.NodeCluster {
	limit := resource.MustParse("64Gi")
	c.Spec.Slots, c.Spec.MemoryLimit = slots, &limit
	return c
}

func TestTheNodesMemory(t *testing.T) {
	const area = 16 << 20 // of two lanes of 8 MiB each
	for name, test := range map[string]struct {
		taken  map[string]Taken
		change func(*capture.Memory)
		asked  []v1.NodeCluster
		// refused by name, with a part of the message
		refused map[string]string
	}{
		"room for all": {asked: []v1.NodeCluster{cluster("a", 4, "good"), cluster("b", 4, "good")}},
		"what took a node down": {
			asked:   []v1.NodeCluster{withSlots(cluster("a", 4, "good"), 262144), cluster("b", 4, "good")},
			refused: map[string]string{"a": "4 queues of 512Mi times 2 CPU lanes need 4128 MiB, and all queues of this node may have 768 MiB of its 1024 MiB (it keeps --memory-reserve, 256 MiB): lower spec.queues, spec.slots (262144 of 1536 bytes)"},
		},
		"one after the other, until it is full": {
			asked:   []v1.NodeCluster{cluster("a", 30, "good"), cluster("b", 30, "good"), cluster("c", 4, "good")},
			refused: map[string]string{"b": "other new queues get 484 MiB; those that are there take a 484 MiB"},
		},
		"those that there are stay, wherever the newcomer is": {
			taken:   map[string]Taken{"z": {Bytes: 40*area + 1}},
			asked:   []v1.NodeCluster{cluster("a", 8, "good"), cluster("z", 40, "good")},
			refused: map[string]string{"a": "those that are there take z 641 MiB"},
		},
		"those that there are stay with nothing left": {
			taken:  map[string]Taken{"z": {Bytes: 60 * area}},
			change: func(m *capture.Memory) { m.Total, m.Available, m.AgentRoom = 512<<20, 0, 0 },
			asked:  []v1.NodeCluster{cluster("z", 60, "good")},
		},
		"smaller is always had": {
			taken:  map[string]Taken{"z": {Bytes: 60 * area}},
			change: func(m *capture.Memory) { m.Available = 0 },
			asked:  []v1.NodeCluster{cluster("z", 10, "good")},
		},
		"one that grows needs all of it": {
			taken:   map[string]Taken{"z": {Bytes: 20 * area}},
			change:  func(m *capture.Memory) { m.Available = 400 << 20 },
			asked:   []v1.NodeCluster{cluster("z", 21, "good")},
			refused: map[string]string{"z": "need 339 MiB, and the node has too little available at the moment besides what it keeps, --memory-reserve, 256 MiB"},
		},
		"little is available": {
			change:  func(m *capture.Memory) { m.Available = 300 << 20 },
			asked:   []v1.NodeCluster{cluster("a", 1, "good"), cluster("b", 2, "good")},
			refused: map[string]string{"b": "the node has too little available at the moment besides what it keeps, --memory-reserve, 256 MiB; other new queues get 17 MiB"},
		},
		"the agent's own limit": {
			change:  func(m *capture.Memory) { m.AgentRoom = 20 << 20 },
			asked:   []v1.NodeCluster{cluster("a", 1, "good"), cluster("b", 1, "good")},
			refused: map[string]string{"b": "the memory limit of the agent's container (agent.resources.limits.memory), to which queues are charged, leaves too little"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := withMemory(test.taken)
			if test.change != nil {
				test.change(f.Memory)
			}
			got := Make(v1.NodeCaptureSpec{Rings: []v1.NodeRing{ring("good")}, Clusters: test.asked}, f)
			for _, c := range test.asked {
				verdict, message := got.Clusters[c.Name], test.refused[c.Name]
				assert.Equal(t, message == "", verdict.Ready(), "%s: %s", c.Name, verdict.Message)
				if message != "" {
					assert.Equal(t, v1.ReasonNodeMemoryInsufficient, verdict.Reason)
					assert.Contains(t, verdict.Message, message)
				}
			}
			assert.True(t, got.Rings["good"].Ready())
			f.Memory.Available -= min(f.Memory.Available, 1<<20)
			f.Memory.AgentRoom -= min(f.Memory.AgentRoom, 1<<20)
			again := Make(v1.NodeCaptureSpec{Rings: []v1.NodeRing{ring("good")}, Clusters: test.asked}, f)
			assert.Equal(t, got.Clusters, again.Clusters, "others take memory all the time, which is no news")
		})
	}
}

// A set of queues that is to grow but cannot stays as it was.
func TestWhatCannotGrowStays(t *testing.T) {
	f := withMemory(map[string]Taken{"ids": {Bytes: 64 << 20}})
	f.Good = v1.NodeCaptureSpec{Rings: []v1.NodeRing{ring("good")}, Clusters: []v1.NodeCluster{cluster("ids", 4, "good")}}
	got := Make(v1.NodeCaptureSpec{
		Rings: []v1.NodeRing{ring("good")}, Clusters: []v1.NodeCluster{withSlots(cluster("ids", 4, "good"), 262144)},
	}, f)
	verdict := got.Clusters["ids"]
	assert.True(t, verdict.Planned)
	assert.Equal(t, v1.ReasonNodeMemoryInsufficient, verdict.Reason)
	assert.Contains(t, verdict.Message, "until then it stays as it was")
	assert.EqualValues(t, 8<<20, got.Plans[v1.EngineKernelModule].Clusters[0].QueueBytes)
}

// An interface gets more RX queues, and there is no memory for as many queues of the ring. The ring keeps its present
// queues, and gets the others when there is memory.
func TestQueuesOfAnRxQueueThatCannotGrowStay(t *testing.T) {
	perRxQueue := ring("mirror", func(s *v1.CaptureRingSpec) {
		all, limit := intstr.FromString(v1.QueuesPerRxQueue), resource.MustParse("64Gi")
		s.Queues, s.MemoryLimit = &all, &limit
	})
	spec := v1.NodeCaptureSpec{Rings: []v1.NodeRing{perRxQueue}, Clusters: []v1.NodeCluster{cluster("new", 1, "mirror")}}
	f := withMemory(map[string]Taken{"mirror": {Bytes: 4 * 8 << 20, Lanes: 1}})
	f.QueueCounts = map[string]int{"mirror": 4}
	require.True(t, Make(spec, f).Clusters["mirror"].Ready())
	f.Interfaces[1].RxQueues = 64
	f.Memory.Available = 300 << 20

	for name, good := range map[string]v1.NodeCaptureSpec{"accepted": spec, "not known": {}} {
		f.Good = good
		got := Make(spec, f)
		verdict := got.Clusters["mirror"]
		assert.True(t, verdict.Planned && verdict.Fed && !verdict.AsBefore, name)
		assert.Equal(t, v1.ReasonNodeMemoryInsufficient, verdict.Reason)
		assert.Regexp(t, "^64 queues of 8Mi need 516 MiB, .*; until then there are 4, as before$", verdict.Message)
		assert.True(t, got.Rings["mirror"].Ready() && got.Clusters["new"].Ready())
		planned := got.Plans[v1.EngineKernelModule].Clusters[0]
		assert.Equal(t, []int{4, 1}, []int{planned.Queues, planned.Lanes})
		assert.Equal(t, spec, got.Good(spec, good), "nobody changed it")
	}

	// A change that comes with it is withheld.
	f.Good = spec
	changed := v1.NodeCaptureSpec{Rings: []v1.NodeRing{perRxQueue}}
	changed.Rings[0].Spec.Slots = 8192
	got := Make(changed, f)
	assert.True(t, got.Clusters["mirror"].Planned && got.Clusters["mirror"].AsBefore)
	assert.Equal(t, 4, got.Plans[v1.EngineKernelModule].Clusters[0].Queues)

	f.Memory.Available = 1 << 30
	got = Make(spec, f)
	assert.True(t, got.Clusters["mirror"].Ready(), got.Clusters["mirror"].Message)
	assert.Equal(t, 64, got.Plans[v1.EngineKernelModule].Clusters[0].Queues)
}

// What is too large for an engine is refused in the plan, by its largest area.
func TestLargestArea(t *testing.T) {
	planned := func(slots int32) string {
		f, c, limit := facts(), cluster("ids", 1, "good"), resource.MustParse("4Gi")
		ebpf := f.Engines[v1.EngineEBPF]
		ebpf.Lanes, ebpf.LaneTail, ebpf.MaxQueue = 4, 68<<10, 511<<20
		f.Engines[v1.EngineEBPF] = ebpf
		c.Spec.Slots, c.Spec.MemoryLimit = slots, &limit
		ring := ring("good", func(s *v1.CaptureRingSpec) { s.Engine, s.SnapLength = v1.EngineEBPF, 65535 })
		return Make(v1.NodeCaptureSpec{Rings: []v1.NodeRing{ring}, Clusters: []v1.NodeCluster{c}}, f).Clusters["ids"].Message
	}
	assert.NotContains(t, planned(2048), "at most")
	assert.Contains(t, planned(4096), "need 512Mi a queue; at most 256Mi can be made")
}

// If spec.memoryLimit has no room for all lanes, there are fewer. The existing ones stay when the limit is raised.
func TestFewerLanes(t *testing.T) {
	lanes := func(limit string, f Facts) int {
		c, bytes := cluster("ids", 2, "good"), resource.MustParse(limit)
		c.Spec.MemoryLimit = &bytes
		got := Make(v1.NodeCaptureSpec{Rings: []v1.NodeRing{ring("good")}, Clusters: []v1.NodeCluster{c}}, f)
		assert.True(t, got.Clusters["ids"].Ready(), got.Clusters["ids"].Message)
		return got.Plans[v1.EngineKernelModule].Clusters[0].Lanes
	}
	assert.Equal(t, 0, lanes("32Mi", facts()), "all")
	assert.Equal(t, 1, lanes("31Mi", facts()))
	assert.Equal(t, 1, lanes("64Mi", withMemory(map[string]Taken{"ids": {Bytes: 16 << 20, Lanes: 1}})))
	assert.Equal(t, 1, lanes("31Mi", withMemory(map[string]Taken{"ids": {Bytes: 32 << 20, Lanes: 2}})))
}

// Where the node has no room for all lanes there are fewer, but a few are held against it as they are.
func TestFewerLanesOnSmallNodes(t *testing.T) {
	planned := func(total uint64) (int, string) {
		f := withMemory(nil)
		module := f.Engines[v1.EngineKernelModule]
		module.Lanes = 17
		f.Engines[v1.EngineKernelModule] = module
		f.Memory.Total, f.Memory.Reserve = total, 0
		got := Make(v1.NodeCaptureSpec{Rings: []v1.NodeRing{ring("good")}, Clusters: []v1.NodeCluster{cluster("ids", 4, "good")}}, f)
		if !got.Clusters["ids"].Ready() {
			return 0, got.Clusters["ids"].Message
		}
		return got.Plans[v1.EngineKernelModule].Clusters[0].Lanes, ""
	}
	lanes, _ := planned(1 << 30)
	assert.Equal(t, 0, lanes, "all")
	lanes, _ = planned(300 << 20)
	assert.Equal(t, 9, lanes)
	lanes, why := planned(100 << 20)
	assert.Equal(t, 0, lanes)
	assert.Contains(t, why, "times 4 CPU lanes")
}

// All sets of queues get a few lanes before one gets more. So as many are ready as if none could have more.
func TestFewLanesForAllFirst(t *testing.T) {
	lanes := func(most int) (lanes []int) {
		f := withMemory(nil)
		module := f.Engines[v1.EngineKernelModule]
		module.Lanes = most
		f.Engines[v1.EngineKernelModule] = module
		f.Memory.Total, f.Memory.Available, f.Memory.Reserve = 4<<30, 4<<30, 512<<20
		spec := v1.NodeCaptureSpec{Rings: []v1.NodeRing{ring("good")}}
		for i := range 7 {
			c := cluster(fmt.Sprintf("c%d", i), 4, "good")
			c.Spec.Slots = 16384
			spec.Clusters = append(spec.Clusters, c)
		}
		got := Make(spec, f)
		assert.Contains(t, got.Clusters["c6"].Message, "times 4 CPU lanes need 516 MiB")
		for _, c := range got.Plans[v1.EngineKernelModule].Clusters {
			lanes = append(lanes, c.Lanes)
		}
		return lanes
	}
	assert.Equal(t, []int{0, 0, 0, 0, 0, 0}, lanes(4), "all")
	assert.Equal(t, []int{7, 4, 4, 4, 4, 4}, lanes(17))
}

// What a set of queues has not taken yet counts as available, but only for this set.
func TestMemoryToCome(t *testing.T) {
	ready := func(toCome uint64) bool {
		f := withMemory(map[string]Taken{"other": {Bytes: 128 << 20, ToCome: toCome, Lanes: 2}})
		f.Memory.Available = 256<<20 + 40<<20
		got := Make(v1.NodeCaptureSpec{Rings: []v1.NodeRing{ring("good")}, Clusters: []v1.NodeCluster{cluster("ids", 1, "good")}}, f)
		return got.Clusters["ids"].Ready()
	}
	assert.True(t, ready(0))
	assert.False(t, ready(32<<20))
}
