// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/ringcap/ringcap/operator/api/heartbeat"
	"github.com/ringcap/ringcap/operator/api/v1alpha1"
	"github.com/ringcap/ringcap/operator/report"
)

// TestANodeIsHeardByItsStatusOrItsLease, of which the later counts; and only once it has reported.
func TestANodeIsHeardByItsStatusOrItsLease(t *testing.T) {
	require.NoError(t, v1alpha1.AddToScheme(scheme.Scheme))
	now := time.Unix(1_000_000, 0)
	const long, fresh, never = time.Hour, time.Minute, -1
	for name, test := range map[string]struct {
		status, lease time.Duration // ago
		reports       bool
	}{
		"neither":                    {never, never, false},
		"a status of long ago":       {long, never, false},
		"a fresh status":             {fresh, never, true},
		"both of long ago":           {long, long, false},
		"a fresh Lease":              {long, fresh, true},
		"a fresh status, old Lease":  {fresh, long, true},
		"both":                       {fresh, fresh / 2, true},
		"the Lease of one before it": {never, fresh, false},
	} {
		t.Run(name, func(t *testing.T) {
			capture := &v1alpha1.NodeCapture{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
			var objects []client.Object
			if test.status != never {
				capture.Status.ObservedTime = &metav1.Time{Time: now.Add(-test.status)}
			}
			if test.lease != never {
				objects = append(objects, lease(heartbeat.Name("n1"), now.Add(-test.lease)), lease(heartbeat.Name("gone"), now))
			}
			want := capture.DeepCopy()
			require.Equal(t, test.reports, report.Fresh(taken(t, append(objects, capture)).Captures["n1"], now))
			heardAt(capture, now)
			require.Equal(t, want.Status, capture.Status, "what is the cache's stays as it is")
		})
	}
	// Leases of others do not count, nor does one that was never renewed.
	old := &v1alpha1.NodeCapture{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: v1alpha1.NodeCaptureStatus{ObservedTime: &metav1.Time{Time: now.Add(-long)}}}
	others := lease(heartbeat.Name("n1"), now)
	others.Labels = nil
	require.False(t, report.Fresh(taken(t, []client.Object{old, others}).Captures["n1"], now))
	other := lease("n1", now)
	require.False(t, report.Fresh(taken(t, []client.Object{old, other}).Captures["n1"], now))
	unused := lease(heartbeat.Name("n1"), now)
	unused.Spec.RenewTime = nil
	require.False(t, report.Fresh(taken(t, []client.Object{old, unused}).Captures["n1"], now))
}

func lease(name string, at time.Time) *coordinationv1.Lease {
	renewed := metav1.NewMicroTime(at)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ringcap-system", Name: name, Labels: heartbeat.Labels()},
		Spec:       coordinationv1.LeaseSpec{RenewTime: &renewed},
	}
}

func taken(t *testing.T, objects []client.Object) *Snapshot {
	t.Helper()
	s, err := take(t.Context(), fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).WithLists(&corev1.NodeList{}).Build())
	require.NoError(t, err)
	return s
}

// TestOfLeasesTheCacheKeepsLittle: there are thousands.
func TestOfLeasesTheCacheKeepsLittle(t *testing.T) {
	sent := lease("ringcap-agent-n1", time.Unix(1_000_000, 0))
	sent.ResourceVersion, sent.ManagedFields = "7", []metav1.ManagedFieldsEntry{{Manager: "node-agent"}}
	sent.OwnerReferences = []metav1.OwnerReference{{Name: "n1"}}
	want := lease(sent.Name, sent.Spec.RenewTime.Time)
	want.ResourceVersion = "7"
	got, err := leasesOf("ringcap-system").Transform(sent)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// TestANodesClock: a node with a clock that is behind or ahead counts as heard while its reports change, and as silent when they do not.
func TestANodesClock(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	for name, off := range map[string]time.Duration{"behind": -time.Hour, "right": 0, "ahead": time.Hour} {
		t.Run(name, func(t *testing.T) {
			seen, now := &beats{}, now
			reportAt := func(at time.Time) *v1alpha1.NodeCapture {
				captures := map[string]*v1alpha1.NodeCapture{
					"n1": {Status: v1alpha1.NodeCaptureStatus{ObservedTime: &metav1.Time{Time: at.Add(off)}}}, "never": {},
				}
				seen.see(captures, now)
				require.Nil(t, captures["never"].Status.ObservedTime)
				return captures["n1"]
			}
			require.Equal(t, off >= 0, report.Fresh(reportAt(now), now), "how old the first report is nobody knows")
			require.True(t, report.Fresh(reportAt(now.Add(-10*v1alpha1.StaleAfter)), now), "a report that was not there before is new")
			for range 5 {
				now = now.Add(time.Minute)
				require.True(t, report.Fresh(reportAt(now), now))
			}
			last := now
			now = now.Add(v1alpha1.StaleAfter)
			require.True(t, report.Fresh(reportAt(last), now))
			now = now.Add(time.Second)
			require.False(t, report.Fresh(reportAt(last), now))
			off -= time.Minute
			require.True(t, report.Fresh(reportAt(last), now), "a clock that was put right")
		})
	}
	seen := &beats{nodes: map[string]beat{"gone": {}}}
	seen.see(nil, now)
	require.Empty(t, seen.nodes)
}
