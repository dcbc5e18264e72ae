// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"github.com/stretchr/testify/assert"

	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// TestWhenMissing: a node without the interface is not one of the ring's nodes, unless the ring's spec makes it one.
func TestWhenMissing(t *testing.T) {
	selectors := func(list ...v1.InterfaceSelector) func(*v1.CaptureRingSpec) {
		return func(s *v1.CaptureRingSpec) { s.Interfaces = list }
	}
	gone, glob := v1.InterfaceSelector{Name: "gone0"}, v1.InterfaceSelector{Name: "gone*"}
	ignored, reported := gone, glob
	ignored.WhenMissing, reported.WhenMissing = v1.WhenMissingIgnore, v1.WhenMissingReport
	for name, test := range map[string]struct {
		change []func(*v1.CaptureRingSpec)
		alone  bool
		reason string
	}{
		"a name":                     {change: []func(*v1.CaptureRingSpec){selectors(gone)}, reason: v1.ReasonInterfaceAbsent},
		"a name on named nodes":      {change: []func(*v1.CaptureRingSpec){selectors(gone), onNodes}, reason: v1.ReasonInterfaceNotFound},
		"a glob on named nodes":      {change: []func(*v1.CaptureRingSpec){selectors(glob), onNodes}, reason: v1.ReasonInterfaceAbsent},
		"a driver on named nodes":    {change: []func(*v1.CaptureRingSpec){selectors(v1.InterfaceSelector{Driver: "igb"}), onNodes}, reason: v1.ReasonInterfaceAbsent},
		"a pool":                     {change: []func(*v1.CaptureRingSpec){selectors(v1.InterfaceSelector{ResourceName: "a.com/vf"})}, reason: v1.ReasonInterfaceAbsent},
		"to be ignored":              {change: []func(*v1.CaptureRingSpec){selectors(ignored), onNodes}, reason: v1.ReasonInterfaceAbsent},
		"to be reported":             {change: []func(*v1.CaptureRingSpec){selectors(reported)}, reason: v1.ReasonInterfaceNotFound},
		"one of two":                 {change: []func(*v1.CaptureRingSpec){selectors(gone, v1.InterfaceSelector{Name: "eth0"})}},
		"one of two, to be reported": {change: []func(*v1.CaptureRingSpec){selectors(reported, v1.InterfaceSelector{Name: "eth0"})}, reason: v1.ReasonInterfaceNotFound},
		"without Kubernetes":         {change: []func(*v1.CaptureRingSpec){selectors(gone)}, alone: true, reason: v1.ReasonInterfaceNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts()
			f.NoPods = test.alone
			got := Make(v1.NodeCaptureSpec{
				Rings: []v1.NodeRing{ring("r", append(test.change, withQueues(1))...)}, Clusters: []v1.NodeCluster{cluster("ids", 1, "r")},
			}, f)
			verdict := got.Rings["r"]
			assert.Equal(t, test.reason, verdict.Reason)
			assert.Equal(t, test.reason == v1.ReasonInterfaceAbsent, verdict.Absent())
			assert.Equal(t, test.reason == "", verdict.Ready())
			for _, set := range []string{"r", "ids"} {
				assert.Equal(t, verdict.Absent(), got.Clusters[set].Absent(), set)
				assert.Equal(t, test.reason == "", got.Clusters[set].Planned, "no queues where no packets come: "+set)
			}
		})
	}
}

// TestAnInterfaceThatWentIsReported: existing queues show that packets were asked for.
func TestAnInterfaceThatWentIsReported(t *testing.T) {
	f := facts()
	f.Queues = map[string]v1.Engine{"ids": v1.EngineKernelModule}
	got := Make(v1.NodeCaptureSpec{Rings: []v1.NodeRing{ring("r", withInterface("gone0"))}, Clusters: []v1.NodeCluster{cluster("ids", 1, "r")}}, f)
	assert.True(t, got.Clusters["ids"].Planned)
	assert.False(t, got.Clusters["ids"].Absent())
	assert.Equal(t, v1.ReasonInterfaceNotFound, got.Rings["r"].Reason)
}
