// SPDX-License-Identifier: Apache-2.0

package status

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/ringcap/ringcap/node-agent/capture"
	"github.com/ringcap/ringcap/node-agent/datapath"
	"github.com/ringcap/ringcap/node-agent/plan"
	"github.com/ringcap/ringcap/operator/api/counters"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// cutting is a node with a ring that has a snap length and one that has none; each feeds queues of its own, and both
// feed "both".
func cutting(given, whole, both uint64) datapath.Report {
	set := func(truncated uint64) capture.ClusterState {
		return capture.ClusterState{Queues: []capture.QueueStats{{}, {Truncated: truncated, TruncatedBytes: 10 * truncated}}}
	}
	return datapath.Report{
		Spec: v1.NodeCaptureSpec{Rings: []v1.NodeRing{
			{Name: "given", Spec: v1.CaptureRingSpec{SnapLength: 64}}, {Name: "whole"},
		}},
		Rings:    map[string]datapath.Object{"given": {Made: true, Engine: v1.EngineEBPF}, "whole": {Made: true, Engine: v1.EngineEBPF}},
		Clusters: map[string]datapath.Object{"given": {Engine: v1.EngineEBPF}, "whole": {Engine: v1.EngineEBPF}, "both": {Engine: v1.EngineEBPF}},
		Plan: plan.Result{
			Plans: map[v1.Engine]capture.Plan{v1.EngineEBPF: {Rings: []capture.Ring{
				{Name: "given", Outputs: []string{"both", "given"}}, {Name: "whole", Outputs: []string{"both", "whole"}},
			}}},
		},
		Observations: map[v1.Engine]capture.Observation{v1.EngineEBPF: {
			Rings:    map[string]capture.RingState{"given": {}, "whole": {}},
			Clusters: map[string]capture.ClusterState{"given": set(given), "whole": set(whole), "both": set(both)},
		}},
	}
}

// TestTruncationIsTroubleWhileItHappens: accounts go on, and what they said before this agent came is nobody's trouble.
func TestTruncationIsTroubleWhileItHappens(t *testing.T) {
	var known Truncation
	begun, whole := time.Now(), map[string]bool{"whole": true}
	after := func(d time.Duration) time.Time { return begun.Add(d) }
	assert.Empty(t, known.Refresh(cutting(5, 5, 5), begun), "from before")
	assert.Empty(t, known.Refresh(cutting(5, 5, 5), after(time.Second)))
	assert.Empty(t, known.Refresh(cutting(9, 5, 5), after(2*time.Second)), "as its spec asks")
	assert.Empty(t, known.Refresh(cutting(9, 5, 9), after(3*time.Second)), "perhaps as the other ring's spec asks")
	assert.Equal(t, whole, known.Refresh(cutting(9, 6, 9), after(4*time.Second)))
	assert.Equal(t, whole, known.Refresh(cutting(9, 6, 9), after(9*time.Minute)), "not a change with each packet")

	unobserved := cutting(9, 6, 9)
	unobserved.Observations = nil
	assert.Equal(t, whole, known.Refresh(unobserved, after(10*time.Minute)), "accounts that cannot be read")
	assert.Empty(t, known.Refresh(cutting(9, 6, 9), after(11*time.Minute)), "long ago")

	gone := cutting(9, 6, 9)
	delete(gone.Clusters, "whole")
	delete(gone.Observations[v1.EngineEBPF].Clusters, "whole")
	assert.Empty(t, known.Refresh(gone, after(12*time.Minute)))
	assert.Equal(t, whole, known.Refresh(cutting(9, 1, 9), after(13*time.Minute)), "made new, and packets were cut since")

	asked := cutting(9, 5, 9)
	asked.Spec.Rings[1].Spec.SnapLength = 128
	assert.Empty(t, known.Refresh(asked, after(14*time.Minute)), "a snap length was given")
	assert.Empty(t, known.Refresh(cutting(9, 8, 9), after(15*time.Minute)), "and left out, perhaps after packets were cut")
	assert.Equal(t, whole, known.Refresh(cutting(9, 9, 9), after(16*time.Minute)), "by a consumer that was told it")
}

func TestTruncatedPacketsAreCountedAndNoChangeOfState(t *testing.T) {
	built := Build(Input{Report: cutting(1, 2, 3), Truncating: map[string]bool{"whole": true}})
	assert.False(t, built.Rings[0].Truncating)
	assert.True(t, built.Rings[1].Truncating)
	queue := built.Clusters[2].Queues[1]
	assert.Equal(t, []int64{2, 20}, []int64{queue.Truncated, queue.TruncatedBytes})
	totals := built.Clusters[2].Totals()
	assert.Equal(t, []int64{2, 20}, []int64{totals.Truncated, totals.TruncatedBytes})

	more := Build(Input{Report: cutting(1, 4, 3), Truncating: map[string]bool{"whole": true}})
	assert.Equal(t, counters.Without(built), counters.Without(more))
	assert.NotEqual(t, counters.Without(built), counters.Without(Build(Input{Report: cutting(1, 2, 3)})))
}
