// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/ringcap/ringcap/node-agent/capture"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// goodFacts are facts of a node that accepted a spec.
func goodFacts(accepted v1.NodeCaptureSpec) (Result, Facts) {
	f := facts()
	first := Make(accepted, f)
	f.Good = first.Good(accepted, v1.NodeCaptureSpec{})
	return first, f
}

func withMode(mode v1.TransparentMode) func(*v1.CaptureRingSpec) {
	return func(s *v1.CaptureRingSpec) { s.TransparentMode, s.NIC.Driver.Policy = &mode, v1.DriverReplace }
}

// A ring is withheld as a whole: not its filter taken and its queues left.
func TestAChangeIsRefusedAsAWhole(t *testing.T) {
	spec := func(expression string, slots int32) v1.NodeCaptureSpec {
		return v1.NodeCaptureSpec{Rings: []v1.NodeRing{ring("mirror", withBPF(expression), withQueues(2), func(s *v1.CaptureRingSpec) { s.Slots = slots })}}
	}
	first, f := goodFacts(spec("udp", 4096))
	got := Make(spec("too long", 1<<19), f)
	assert.Equal(t, first.Plans, got.Plans)
	got = Make(spec("tcp", 1<<19), f)
	assert.Equal(t, first.Plans, got.Plans)
	assert.Equal(t, v1.ReasonMemoryLimitExceeded, got.Rings["mirror"].Reason)
	assert.Equal(t, v1.ReasonMemoryLimitExceeded, got.Clusters["mirror"].Reason)
	assert.True(t, got.Rings["mirror"].AsBefore)
	assert.Equal(t, f.Good, got.Good(spec("tcp", 1<<19), f.Good))
}

// If the node cannot do something at present, no change is at fault, and the accepted spec cannot be applied either:
// its queues stay as they are for their consumers.
func TestTheNodesTroubleIsNoChanges(t *testing.T) {
	accepted := v1.NodeCaptureSpec{
		Rings:    []v1.NodeRing{ring("mirror", withQueues(2)), ring("other", withInterface("eth1"))},
		Clusters: []v1.NodeCluster{cluster("ids", 1, "mirror", "other"), cluster("probe", 1, "mirror")},
	}
	first, f := goodFacts(accepted)
	f.Interfaces = f.Interfaces[2:] // eth0 is gone, and eth1 there
	f.Queues = map[string]v1.Engine{"mirror": v1.EngineKernelModule, "ids": v1.EngineKernelModule, "probe": v1.EngineKernelModule}
	changed := accepted
	changed.Rings = []v1.NodeRing{
		ring("mirror", withQueues(2), func(s *v1.CaptureRingSpec) { s.Slots = 1 << 14 }),
		ring("other", withInterface("eth1"), withBPF("tcp")),
	}
	got := Make(changed, f)
	assert.Equal(t, v1.ReasonInterfaceNotFound, got.Rings["mirror"].Reason)
	assert.NotContains(t, got.Rings["mirror"].Message, "until then")
	assert.True(t, got.Rings["other"].Ready(), "its change is made")
	assert.Equal(t, first.Plans[v1.EngineKernelModule].Clusters, got.Plans[v1.EngineKernelModule].Clusters)
}

// One object's change takes nothing from another that nobody changed; where it does no harm it is made.
func TestAChangeThatHarmsAnother(t *testing.T) {
	large := func(s *v1.CaptureRingSpec) { s.SnapLength = 60000 }
	accepted := v1.NodeCaptureSpec{
		Rings:    []v1.NodeRing{ring("a"), ring("b", withInterface("eth1"))},
		Clusters: []v1.NodeCluster{cluster("ids", 8, "a", "b")},
	}
	first, f := goodFacts(accepted)
	changed := accepted
	changed.Rings = []v1.NodeRing{ring("a", large), ring("b", withInterface("eth1"), withBPF("tcp"))}
	got := Make(changed, f)
	assert.Equal(t, v1.ReasonMemoryLimitExceeded, got.Rings["a"].Reason)
	assert.Regexp(t, `^Cluster "ids", which was accepted before, could not stay: .* until then it stays`, got.Rings["a"].Message)
	assert.True(t, got.Clusters["ids"].Ready())
	assert.Equal(t, first.Plans[v1.EngineKernelModule].Clusters, got.Plans[v1.EngineKernelModule].Clusters)

	// A new Cluster is refused, and the ring's change is made.
	changed.Clusters = []v1.NodeCluster{cluster("new", 8, "a")}
	got = Make(changed, f)
	assert.True(t, got.Rings["a"].Ready())
	assert.Equal(t, v1.ReasonMemoryLimitExceeded, got.Clusters["new"].Reason)
}

func TestAChangeToQuickModeIsMade(t *testing.T) {
	quick := func(s *v1.CaptureRingSpec) { s.QuickMode = true }
	accepted := v1.NodeCaptureSpec{Rings: []v1.NodeRing{ring("a", withQueues(1), quick), ring("b", withQueues(1))}}
	first, f := goodFacts(accepted)
	got := Make(v1.NodeCaptureSpec{Rings: []v1.NodeRing{accepted.Rings[0], ring("b", withQueues(1), quick)}}, f)
	assert.True(t, got.Rings["b"].Ready(), got.Rings["b"].Message)
	assert.True(t, got.Plans[v1.EngineKernelModule].Rings[1].Quick)
	assert.Equal(t, first.Plans[v1.EngineKernelModule].Clusters, got.Plans[v1.EngineKernelModule].Clusters)
}

// A ring waits for its driver without its taps, as it always did; where that fails it is as before, and the driver is
// tried again at its own pace.
func TestAChangeThatNeedsAnotherDriver(t *testing.T) {
	accepted := v1.NodeCaptureSpec{Rings: []v1.NodeRing{ring("mirror", withQueues(2))}}
	first, f := goodFacts(accepted)
	changed := v1.NodeCaptureSpec{Rings: []v1.NodeRing{ring("mirror", withQueues(2), withMode(2))}}
	fact := &f.Interfaces[1].DriverFact
	*fact = DriverFact{Name: "igb", Replacement: "igb_ringcap"}
	got := Make(changed, f)
	assert.Equal(t, v1.ReasonPending, got.Rings["mirror"].Reason)
	assert.Contains(t, got.Drivers, "eth0")
	assert.Equal(t, accepted, got.Good(changed, f.Good))

	fact.Failed = "no link"
	got = Make(changed, f)
	assert.Equal(t, v1.ReasonDriverReplaceFailed, got.Rings["mirror"].Reason)
	assert.Equal(t, first.Plans, got.Plans)
	assert.Contains(t, got.Drivers, "eth0")

	// Nor is a driver put back and replaced again and again for the sake of a change that is refused for something else.
	*fact = DriverFact{Name: "igb_ringcap", Aware: true, Stock: "igb"}
	changed.Rings[0].Spec.Slots = 1 << 19
	got = Make(changed, f)
	assert.Equal(t, v1.ReasonMemoryLimitExceeded, got.Rings["mirror"].Reason)
	assert.Equal(t, first.Plans, got.Plans)
	assert.Contains(t, got.Drivers, "eth0")
	assert.Equal(t, capture.TransparentMode(0), got.Plans[v1.EngineKernelModule].Rings[0].Mode)
}
