// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
	"github.com/ringcap/ringcap/operator/report"
)

var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

var (
	ring    = report.Object{Name: "m", Ring: true}
	feeding = report.Object{Name: "m", Ring: true, OwnQueues: true}
	cluster = report.Object{Name: "ids"}
)

// capture is a node that has ring m, with a queue of its own, and cluster ids with two queues over it.
func capture(change ...func(*v1alpha1.NodeCapture)) *v1alpha1.NodeCapture {
	nc := &v1alpha1.NodeCapture{ObjectMeta: metav1.ObjectMeta{Name: "n", Generation: 3}}
	nc.Spec.Rings = []v1alpha1.NodeRing{{Name: "m"}}
	nc.Spec.Clusters = []v1alpha1.NodeCluster{{Name: "ids", Spec: v1alpha1.ClusterSpec{Rings: []string{"m"}}}}
	nc.Status = v1alpha1.NodeCaptureStatus{
		AppliedGeneration: 3, ObservedTime: &metav1.Time{Time: now.Add(-10 * time.Second)},
		Rings: []v1alpha1.NodeRingStatus{{Name: "m", Engine: v1alpha1.EngineEBPF, Ready: true, Seen: 100, Filtered: 20, Passed: 80}},
		Clusters: []v1alpha1.NodeClusterStatus{
			{Name: "m", Ready: true, Queues: []v1alpha1.QueueStatus{queue(0, 70, 10)}},
			{Name: "ids", Ready: true, Queues: []v1alpha1.QueueStatus{queue(0, 30, 20), queue(1, 30, 0)}},
		},
	}
	for _, c := range change {
		c(nc)
	}
	return nc
}

// unlisted gives a cluster more queues than its status lists.
func unlisted(nc *v1alpha1.NodeCapture) {
	nc.Status.Clusters[1].Unlisted = &v1alpha1.QueueTotals{Queues: 62, Attached: 1, Unnamed: 1, Delivered: 1000, Shunted: 4, Dropped: []v1alpha1.DropCount{{Reason: "full", Packets: 6}}}
}

func queue(number int32, delivered, full int64) v1alpha1.QueueStatus {
	return v1alpha1.QueueStatus{
		Queue: number, Attached: delivered == 30, Delivered: delivered,
		Dropped: []v1alpha1.DropCount{{Reason: "full", Packets: full}, {Reason: "unattended", Packets: 0}},
	}
}

// revision is what the node was told of the ring, and what its report is about.
func revision(told, observed string) func(*v1alpha1.NodeCapture) {
	return func(nc *v1alpha1.NodeCapture) {
		nc.Spec.Rings[0].Revision, nc.Status.Rings[0].ObservedRevision = told, observed
	}
}

// TestWorking: what a node was told last works there, queues and all, by its own word.
func TestWorking(t *testing.T) {
	told := v1alpha1.NodeRing{Name: "m", Spec: v1alpha1.CaptureRingSpec{Queues: v1alpha1.Queues(1)}}
	ringFails := func(nc *v1alpha1.NodeCapture) { nc.Status.Rings[0].Ready = false }
	queuesFail := func(nc *v1alpha1.NodeCapture) { nc.Status.Clusters[0].Ready = false }
	behind := func(nc *v1alpha1.NodeCapture) { nc.Generation++ }
	require.True(t, report.Working(capture(), &told), "an agent that knows no revisions")
	require.False(t, report.Working(capture(behind), &told), "such an agent")
	require.True(t, report.Working(capture(revision("1", "1"), behind), &told))
	require.False(t, report.Working(capture(revision("2", "1")), &told))
	require.False(t, report.Working(capture(revision("1", "1"), ringFails), &told))
	require.False(t, report.Working(capture(revision("1", "1"), queuesFail), &told))
	require.False(t, report.Working(&v1alpha1.NodeCapture{}, &told))
}

func TestOn(t *testing.T) {
	type state = report.State
	tests := map[string]struct {
		capture *v1alpha1.NodeCapture
		object  report.Object
		want    report.State
	}{
		"ring":                 {capture(), ring, state{Programmed: true, Ready: true}},
		"ring with own queues": {capture(), feeding, state{Programmed: true, Ready: true}},
		"cluster":              {capture(), cluster, state{Programmed: true, Ready: true}},
		"no NodeCapture": {nil, ring, state{
			Reason: v1alpha1.ReasonNodeNotReporting, Message: "no agent has reported yet: see that an agent's pod runs on the node",
		}},
		"stale": {
			capture(func(nc *v1alpha1.NodeCapture) {
				nc.Status.ObservedTime.Time = now.Add(-v1alpha1.StaleAfter - time.Second)
			}), ring,
			state{Silent: true, Reason: v1alpha1.ReasonNodeNotReporting, Message: "its agent has not reported since 2026-01-01T11:56:59Z: see the agent's pod on the node"},
		},
		"it may still start": {
			capture(func(nc *v1alpha1.NodeCapture) {
				nc.CreationTimestamp.Time, nc.Status = now.Add(-time.Minute), v1alpha1.NodeCaptureStatus{}
			}), ring,
			state{Reason: v1alpha1.ReasonNodeNotReporting, Message: "no agent has reported yet: see that an agent's pod runs on the node"},
		},
		"another ring's edit": {
			capture(revision("1", "1"), func(nc *v1alpha1.NodeCapture) { nc.Generation = 4 }), feeding, state{Programmed: true, Ready: true},
		},
		"its own edit": {
			capture(revision("2", "1"), func(nc *v1alpha1.NodeCapture) { nc.Generation = 4 }), feeding,
			state{Reason: v1alpha1.ReasonPending, Message: "its agent has not applied generation 4 yet (it is at 3)"},
		},
		"generation behind": {
			capture(func(nc *v1alpha1.NodeCapture) { nc.Generation = 4 }), cluster,
			state{Reason: v1alpha1.ReasonPending, Message: "its agent has not applied generation 4 yet (it is at 3)"},
		},
		"not there yet": {
			capture(func(nc *v1alpha1.NodeCapture) { nc.Status.Rings = nil }), ring,
			state{Reason: v1alpha1.ReasonPending, Message: "its agent has not applied generation 3 yet (it is at 3)"},
		},
		"engine in trouble": {
			capture(func(nc *v1alpha1.NodeCapture) {
				nc.Status.AppliedGeneration = 0
				nc.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionProgrammed, Reason: v1alpha1.ReasonEngineError, Message: "no bpffs"}}
			}), ring,
			state{Reason: v1alpha1.ReasonEngineError, Message: "no bpffs"},
		},
		"refused, generation behind": {
			capture(func(nc *v1alpha1.NodeCapture) {
				nc.Generation, nc.Status.Rings[0].Ready, nc.Status.Rings[0].Reason, nc.Status.Rings[0].Message = 4, false, v1alpha1.ReasonInterfaceNotFound, "no eth7"
			}), ring,
			state{Reason: v1alpha1.ReasonInterfaceNotFound, Message: "no eth7"},
		},
		"none of the interfaces": {
			capture(func(nc *v1alpha1.NodeCapture) {
				nc.Status.Rings[0].Reason, nc.Status.Rings[0].Message, nc.Status.Clusters = v1alpha1.ReasonInterfaceAbsent, "no eth7", nil
			}), feeding,
			state{Programmed: true, Ready: true, Absent: true, Reason: v1alpha1.ReasonInterfaceAbsent, Message: "no eth7"},
		},
		"queues not offered yet": {
			capture(func(nc *v1alpha1.NodeCapture) { nc.Status.Clusters[0].Ready = false }), feeding,
			state{Programmed: true, Reason: v1alpha1.ReasonNotReady},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.want.Node = "n"
			require.Equal(t, tc.want, report.On("n", tc.capture, tc.object, now))
		})
	}
}

func TestHolderOf(t *testing.T) {
	untold := func(nc *v1alpha1.NodeCapture) { nc.Spec = v1alpha1.NodeCaptureSpec{} }
	processes := func(nc *v1alpha1.NodeCapture) {
		for i := range nc.Status.Clusters {
			if len(nc.Status.Clusters[i].Queues) > 1 {
				nc.Status.Clusters[i].Queues[0].Holder = "process 7 (tcpdump), which runs in no pod"
			}
		}
	}
	rid := func(nc *v1alpha1.NodeCapture) { untold(nc); nc.Status.Rings, nc.Status.Clusters = nil, nil }
	tests := map[string]struct {
		capture *v1alpha1.NodeCapture
		object  report.Object
		why     string
	}{
		"told":     {capture(), cluster, "its NodeCapture still contains it"},
		"attached": {capture(untold), cluster, "its queues are in use: delete the consumer of queue 0, the consumer of queue 1"},
		"pod":      {capture(untold, func(nc *v1alpha1.NodeCapture) { nc.Status.Clusters[0].Queues[0].Consumer = "ns/pod" }), ring, "its queues are in use: delete pod ns/pod"},
		"pod, it seems": {capture(untold, func(nc *v1alpha1.NodeCapture) {
			nc.Status.Clusters[0].Queues[0].Consumer, nc.Status.Clusters[0].Queues[0].ConsumerAsOf = "ns/pod", &metav1.Time{Time: time.Unix(0, 0)}
		}), ring, "its queues are in use: delete pod ns/pod (which had it at 1970-01-01T00:00:00Z; the kubelet does not report it now)"},
		"process":        {capture(untold, processes), cluster, "its queues are in use: delete the consumer of queue 1; stop process 7 (tcpdump), which runs in no pod (queue 0)"},
		"not named":      {capture(untold, unlisted), cluster, "its queues are in use: delete the consumer of queue 0, the consumer of queue 1, the consumers of 1 more queues"},
		"not in use":     {capture(untold), ring, "its queues are being removed"},
		"ring only":      {capture(untold, func(nc *v1alpha1.NodeCapture) { nc.Status.Clusters = nil }), ring, "it is being removed"},
		"not applied":    {capture(rid, func(nc *v1alpha1.NodeCapture) { nc.Generation = 4 }), ring, "its agent has not applied generation 4 yet"},
		"rid of it":      {capture(rid), ring, ""},
		"silent":         {capture(untold, func(nc *v1alpha1.NodeCapture) { nc.Status.ObservedTime.Time = now.Add(-time.Hour) }), cluster, ""},
		"never reported": {capture(untold, func(nc *v1alpha1.NodeCapture) { nc.Status = v1alpha1.NodeCaptureStatus{} }), cluster, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			holder, holds := report.HolderOf(tc.capture, tc.object, time.Time{}, now)
			require.Equal(t, tc.why != "", holds)
			require.Equal(t, "n", holder.Node)
			if holds {
				require.Equal(t, tc.why, holder.Why)
			}
		})
	}
}

// TestSilenceBeforeAnybodyListened: an operator that has just started, maybe after an outage of the API server, gives nodes the time to
// report again. It does not wait for a node that did not have the object, nor for one that never reported.
func TestSilenceBeforeAnybodyListened(t *testing.T) {
	silent := func(nc *v1alpha1.NodeCapture) {
		nc.Spec, nc.Status.ObservedTime.Time = v1alpha1.NodeCaptureSpec{}, now.Add(-time.Hour)
	}
	holds := func(nc *v1alpha1.NodeCapture, o report.Object, listened time.Duration) bool {
		_, holds := report.HolderOf(nc, o, now.Add(-listened), now)
		return holds
	}
	require.True(t, holds(capture(silent), cluster, 0))
	require.True(t, holds(capture(silent), ring, v1alpha1.StaleAfter))
	require.False(t, holds(capture(silent), ring, v1alpha1.StaleAfter+time.Second))
	require.False(t, holds(capture(silent), report.Object{Name: "other", Ring: true}, 0))
	require.False(t, holds(capture(silent, func(nc *v1alpha1.NodeCapture) { nc.Status.ObservedTime = nil }), ring, 0))

	// One that is down gets each edit of any object, and applies none.
	behind := func(nc *v1alpha1.NodeCapture) { nc.Generation++ }
	require.False(t, holds(capture(silent, behind), report.Object{Name: "other", Ring: true}, 0))
	require.False(t, holds(capture(silent, behind), report.Object{Name: "other"}, 0))
	require.True(t, holds(capture(silent, behind), ring, 0))
	require.True(t, holds(capture(func(nc *v1alpha1.NodeCapture) { nc.Spec = v1alpha1.NodeCaptureSpec{} }, behind), report.Object{Name: "other"}, 0),
		"one that reports may have got it since its last report")

	holder, _ := report.HolderOf(capture(silent), cluster, now.Add(-time.Minute), now)
	require.Equal(t, "its queues are in use: delete the consumer of queue 0, the consumer of queue 1; "+
		"its agent has not reported since 2026-01-01T11:00:00Z: given up at 2026-01-01T12:02:00Z", holder.Why)
	require.Equal(t, now.Add(2*time.Minute), holder.Until)
	holder, _ = report.HolderOf(capture(func(nc *v1alpha1.NodeCapture) { nc.Spec = v1alpha1.NodeCaptureSpec{} }), ring, now.Add(-time.Hour), now)
	require.Equal(t, "its queues are being removed", holder.Why)
	require.Equal(t, now.Add(v1alpha1.StaleAfter-10*time.Second), holder.Until)
}

// TestSum: a ring's sums are over what it feeds; a Cluster's seen is what was offered to it.
func TestSum(t *testing.T) {
	captures := map[string]*v1alpha1.NodeCapture{
		"a": capture(),
		"b": capture(func(nc *v1alpha1.NodeCapture) { nc.Status.Rings[0].Engine = v1alpha1.EngineKernelModule }),
		"c": {},
	}
	require.Equal(t, report.Sums{Queues: 6, QueuesAttached: 4, Seen: 200, Delivered: 260, Dropped: 60, Engines: "EBPF,KernelModule"}, report.ByName(captures).Sum(feeding))
	require.Equal(t, report.Sums{Queues: 4, QueuesAttached: 4, Seen: 160, Delivered: 120, Dropped: 40, Engines: "EBPF,KernelModule"}, report.ByName(captures).Sum(cluster))
	require.Equal(t, report.Sums{}, report.ByName(captures).Sum(report.Object{Name: "other"}))
	unlisted(captures["a"])
	require.Equal(t, report.Sums{Queues: 66, QueuesAttached: 5, Seen: 1170, Delivered: 1120, Shunted: 4, Dropped: 46, Engines: "EBPF,KernelModule"}, report.ByName(captures).Sum(cluster))
}
