// SPDX-License-Identifier: Apache-2.0

package rate

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ringcap/ringcap/cli/fleet"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

var begin = time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)

func report(name string, second int, seen, delivered, full int64) v1.NodeCapture {
	at := metav1.NewTime(begin.Add(time.Duration(second) * time.Second))
	return v1.NodeCapture{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1.NodeCaptureStatus{
		ObservedTime: &at,
		Rings:        []v1.NodeRingStatus{{Name: "mirror", Engine: v1.EngineEBPF, Seen: seen, SeenBytes: seen * 100, Passed: seen}},
		Clusters: []v1.NodeClusterStatus{{Name: "ids", Queues: []v1.QueueStatus{
			{Queue: 0, Attached: true, Delivered: delivered, Truncated: delivered / 10, Shunted: delivered / 20, Dropped: []v1.DropCount{{Reason: "full", Packets: full}}, UnreadBytes: 10},
			{Queue: 1},
		}}},
	}}
}

func at(second int, nodes ...v1.NodeCapture) fleet.Snapshot {
	counted := map[string]fleet.Counted{}
	for _, node := range nodes {
		counted[node.Name] = fleet.Counted{Time: node.Status.ObservedTime.Time}
	}
	return fleet.Snapshot{
		Counted: counted,
		Now:     begin.Add(time.Duration(second) * time.Second), Nodes: nodes,
		Rings:    []v1.CaptureRing{{ObjectMeta: metav1.ObjectMeta{Name: "mirror"}}},
		Clusters: []v1.Cluster{{ObjectMeta: metav1.ObjectMeta{Name: "ids"}, Spec: v1.ClusterSpec{Rings: []string{"mirror"}}}},
	}
}

func TestRates(t *testing.T) {
	var m Meter
	m.Add(at(1, report("a", 0, 1000, 900, 100), report("b", 0, 5000, 5000, 0)))
	require.False(t, m.Rows()[0].Known)
	m.Add(at(6, report("a", 5, 2000, 1500, 500), report("b", 4, 9000, 9000, 0)))
	want := []Row{
		{Ring: "mirror", Node: "a", Engine: v1.EngineEBPF, Known: true, Seconds: 5, Seen: 200, Bits: 160000, Delivered: 120, Dropped: 80, Truncated: 12, Shunted: 6,
			ByReason: map[string]float64{"full": 80}, Queues: 2, Attached: 1, UnreadBytes: 10},
		{Ring: "mirror", Node: "b", Engine: v1.EngineEBPF, Known: true, Seconds: 4, Seen: 1000, Bits: 800000, Delivered: 1000, Truncated: 100, Shunted: 50,
			Queues: 2, Attached: 1, UnreadBytes: 10},
	}
	require.Equal(t, want, m.Rows())
	// The same reports give the same rates again.
	m.Add(at(7, report("a", 5, 2000, 1500, 500), report("b", 4, 9000, 9000, 0)))
	require.Equal(t, want, m.Rows())
	var text bytes.Buffer
	require.NoError(t, Text(&text, m.Rows()))
	require.Equal(t, "RING    NODE  ENGINE  PKT/S  MBIT/S  FILTERED/S  DELIVERED/S  LOST/S  LOST  READ  UNREAD  WHY\n"+
		"mirror  a     EBPF    200    0.2     0           120          80      39%   1/2   10 B    full 80/s, shunted 6/s, truncated 12/s\n"+
		"mirror  b     EBPF    1,000  0.8     0           1,000        0       0%    1/2   10 B    shunted 50/s, truncated 100/s\n", text.String())
}

// A ring that was created again begins at 0, a node that is gone is removed, and a silent one is marked.
func TestChanges(t *testing.T) {
	var m Meter
	m.Add(at(1, report("a", 0, 1000, 900, 100)))
	m.Add(at(6, report("a", 5, 10, 10, 0)))
	require.False(t, m.Rows()[0].Known)
	require.Zero(t, m.Rows()[0].Dropped)
	m.Add(at(11, report("a", 10, 20, 20, 0)))
	require.True(t, m.Rows()[0].Known)
	m.Add(at(200, report("a", 10, 20, 20, 0)))
	require.True(t, m.Rows()[0].Silent)
	m.Add(at(201))
	require.Empty(t, m.Rows())
}
