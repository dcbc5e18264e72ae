// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
	"github.com/ringcap/ringcap/operator/plan"
)

// store is a cache: it lists copies of its objects in any order.
type store struct {
	client.Reader
	rings    []v1alpha1.CaptureRing
	captures []v1alpha1.NodeCapture
	nodes    []metav1.PartialObjectMetadata
}

func (s *store) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	switch l := list.(type) {
	case *v1alpha1.CaptureRingList:
		l.Items = shuffled(s.rings)
	case *v1alpha1.NodeCaptureList:
		l.Items = shuffled(s.captures)
	case *metav1.PartialObjectMetadataList:
		l.Items = shuffled(s.nodes)
	}
	return nil
}

func shuffled[T any](objects []T) []T {
	all := slices.Clone(objects)
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// world is a fleet of which the plans are counted.
type world struct {
	store
	Planner
	t     *testing.T
	now   time.Time
	plans int
	check error
}

// newWorld has eight nodes, with the labels n=0 to n=7, and a ring for all of them with a filter that each plan checks.
func newWorld(t *testing.T) *world {
	w := &world{t: t, now: time.Unix(1_000_000, 0)}
	for i := range 8 {
		w.nodes = append(w.nodes, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprint("node-", i), Labels: map[string]string{"n": fmt.Sprint(i)},
		}})
	}
	ring := v1alpha1.CaptureRing{ObjectMeta: metav1.ObjectMeta{Name: "mirror", UID: "1"}}
	ring.Spec.Interfaces, ring.Spec.Filter = []v1alpha1.InterfaceSelector{{Name: "eth0"}}, &v1alpha1.Filter{BPF: "tcp"}
	w.rings = []v1alpha1.CaptureRing{ring}
	w.Planner = Planner{Reader: &w.store, Now: func() time.Time { return w.now }, CheckFilter: func(string) error {
		w.plans++
		return w.check
	}}
	return w
}

// latest is the latest state, for which so many plans were made.
func (w *world) latest(plans int, why string) *Snapshot {
	w.t.Helper()
	w.plans = 0
	s, err := w.Latest(w.t.Context())
	require.NoError(w.t, err)
	require.Equal(w.t, plans, w.plans, why)
	return s
}

// carryOut writes what was planned. The cache does not have it yet.
func (w *world) carryOut(s *Snapshot) {
	for name, spec := range s.Plan.Nodes {
		capture := &v1alpha1.NodeCapture{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1}, Spec: spec}
		if now := s.Captures[name]; now != nil {
			capture.Generation = now.Generation + 1
		}
		w.Wrote(capture)
	}
}

// watch brings the cache up to what was written.
func (w *world) watch() {
	status := map[string]v1alpha1.NodeCaptureStatus{}
	for _, capture := range w.captures {
		status[capture.Name] = capture.Status
	}
	w.captures = nil
	for _, written := range w.written {
		capture := written.DeepCopy()
		capture.Status = status[capture.Name]
		w.captures = append(w.captures, *capture)
	}
}

// report has each agent report that everything it was told works, and count some packets more.
func (w *world) report() {
	for i := range w.captures {
		c := &w.captures[i]
		c.Status.ObservedTime, c.Status.AppliedGeneration = &metav1.Time{Time: w.now}, c.Generation
		seen := int64(0)
		if len(c.Status.Rings) > 0 {
			seen = c.Status.Rings[0].Seen
		}
		c.Status.Rings = []v1alpha1.NodeRingStatus{{Name: "mirror", ObservedRevision: c.Spec.Rings[0].Revision, Ready: true, Seen: seen + 1}}
	}
}

// TestOnePlanForTheSameState: nobody plans twice for one state, and nobody gets a plan for another one.
func TestOnePlanForTheSameState(t *testing.T) {
	w := newWorld(t)
	first := w.latest(1, "the first")
	w.latest(0, "nothing happened")
	w.carryOut(first)
	w.watch()
	w.latest(1, "nodes were told")
	w.report()
	w.latest(1, "agents report, and it works")
	w.now = w.now.Add(time.Minute)
	w.report()
	s := w.latest(0, "agents counted packets")
	require.EqualValues(t, 2, s.Captures["node-0"].Status.Rings[0].Seen, "the state is the present one all the same")
	w.rings[0].Status.Seen, w.rings[0].ResourceVersion = 8, "2"
	s = w.latest(0, "a status was written")
	require.Equal(t, w.rings[0], s.Rings[0])

	w.captures[0].Status.Rings[0].Ready = false
	w.latest(1, "it does not work any more somewhere")
	w.rings[0].Spec.SnapLength = 128
	w.latest(1, "the ring was edited")
	w.rings[0].Finalizers = []string{v1alpha1.FinalizerNodes}
	w.latest(1, "the ring has its name for good")
	w.nodes[0].Labels = map[string]string{"kubernetes.io/os": "windows"}
	require.Len(t, w.latest(1, "a node has other labels").Plan.Nodes, 7)
	w.captures[3].Spec.Rings = nil
	w.latest(1, "somebody else changed what a node is told")
	w.now = w.now.Add(v1alpha1.StaleAfter + time.Second)
	w.latest(1, "agents are silent")
	w.latest(0, "and stay so")
	w.check = plan.ErrFilterUnknown
	w.rings[0].Spec.Filter = &v1alpha1.Filter{BPF: "udp"}
	w.latest(1, "the filter was edited")
	w.latest(1, "it could not be checked")
	w.check = nil
	require.True(t, w.latest(1, "nor then").Plan.Rings["mirror"].Accepted())
	w.latest(0, "now it is")
}

// TestOnlyWhatWasWrittenIsTold: a node counts as told of a version from its write on, also while the cache is behind, and not because
// it is planned.
func TestOnlyWhatWasWrittenIsTold(t *testing.T) {
	w := newWorld(t)
	w.carryOut(w.latest(1, "the first"))
	w.watch()
	w.report()
	w.rings[0].Spec.SnapLength = 128
	s := w.latest(1, "the ring was edited")
	require.Len(t, s.Plan.Rings["mirror"].Outdated, 8)
	require.Len(t, s.Plan.Rings["mirror"].Waiting, 6, "a quarter at a time")
	require.Len(t, w.latest(0, "nothing was written").Plan.Rings["mirror"].Outdated, 8)

	w.carryOut(s)
	s = w.latest(1, "two nodes were told")
	told := s.Plan.Rings["mirror"]
	require.Len(t, told.Outdated, 6)
	require.Len(t, told.Unavailable, 2)
	node := s.Captures[told.Unavailable[0]]
	require.EqualValues(t, 128, node.Spec.Rings[0].Spec.SnapLength)
	require.EqualValues(t, 1, node.Status.Rings[0].Seen, "with what the cache has of the report")
	w.watch()
	require.Equal(t, told, w.latest(0, "the cache has it too").Plan.Rings["mirror"])
	require.Empty(t, w.written, "what the cache has need not be remembered")
}
