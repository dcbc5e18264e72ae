// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
	"github.com/ringcap/ringcap/operator/plan"
)

// fleet is some nodes with their agents, which a plan is carried out on. An agent has applied a revision of the ring "m", and
// that works there or not. An agent that is dead may never have said anything.
type fleet struct {
	ring    v1alpha1.CaptureRing
	fails   func(node string, snapLength int32) bool
	current map[string]v1alpha1.NodeCaptureSpec
	dead    map[string]bool
	never   map[string]bool
	applied map[string]string
	limit   int64
}

func newFleet(nodes int, most intstr.IntOrString) *fleet {
	f := &fleet{
		ring: ring("m", 0), current: map[string]v1alpha1.NodeCaptureSpec{}, dead: map[string]bool{}, applied: map[string]string{},
		fails: func(string, int32) bool { return false },
	}
	f.ring.Spec.Rollout = &v1alpha1.Rollout{MaxUnavailable: &most}
	for i := range nodes {
		f.current[fmt.Sprintf("n%02d", i)] = v1alpha1.NodeCaptureSpec{}
	}
	return f
}

// told is what the node was told of the ring last, nil for nothing.
func (f *fleet) told(node string) *v1alpha1.NodeRing {
	if rings := f.current[node].Rings; len(rings) > 0 {
		return &rings[0]
	}
	return nil
}

func (f *fleet) behind(node string) bool {
	told := f.told(node)
	return told != nil && (f.applied[node] != told.Revision || f.fails(node, told.Spec.SnapLength))
}

// refused reports whether the agent has applied the spec and reports that it does not work.
func (f *fleet) refused(node string) bool {
	told := f.told(node)
	return told != nil && f.applied[node] == told.Revision && f.fails(node, told.Spec.SnapLength)
}

func (f *fleet) plan() plan.Plan {
	in := plan.Input{Rings: rings{f.ring}, Current: f.current, FleetBytes: f.limit}
	for _, name := range slices.Sorted(maps.Keys(f.current)) {
		in.Nodes = append(in.Nodes, plan.Node{
			Name: name, Live: !f.dead[name], Silent: f.dead[name] && !f.never[name], Behind: map[string]bool{"m": f.behind(name)}, Refused: map[string]bool{"m": f.refused(name)},
		})
	}
	return plan.Make(in)
}

// write plans and has the nodes told; it returns the verdict and the nodes that were told something new.
func (f *fleet) write() (plan.Verdict, []string) {
	p := f.plan()
	var changed []string
	for _, name := range slices.Sorted(maps.Keys(f.current)) {
		before := f.told(name)
		f.current[name] = p.Nodes[name]
		if after := f.told(name); after != nil && (before == nil || before.Revision != after.Revision) {
			changed = append(changed, name)
		}
	}
	return p.Rings["m"], changed
}

// act has a node's agent apply what it was told.
func (f *fleet) act(node string) {
	if told := f.told(node); told != nil && !f.dead[node] {
		f.applied[node] = told.Revision
	}
}

// settle goes on until nothing changes, with agents that act at once.
func (f *fleet) settle() plan.Verdict {
	for {
		for node := range f.current {
			f.act(node)
		}
		if verdict, changed := f.write(); len(changed) == 0 {
			return verdict
		}
	}
}

// with are the nodes that were told of this snapLength.
func (f *fleet) with(snapLength int32) []string {
	var found []string
	for node := range f.current {
		if told := f.told(node); told != nil && told.Spec.SnapLength == snapLength {
			found = append(found, node)
		}
	}
	slices.Sort(found)
	return found
}

// TestRolloutInWaves: a new ring and an edit go to as many nodes at a time as may be unavailable, by name, the next when those have it.
func TestRolloutInWaves(t *testing.T) {
	f := newFleet(5, intstr.FromInt32(2))
	for _, want := range [][]string{{"n00", "n01"}, {"n02", "n03"}, {"n04"}, nil} {
		verdict, changed := f.write()
		require.Equal(t, want, changed)
		require.Equal(t, []string{"n00", "n01", "n02", "n03", "n04"}, verdict.Nodes)
		_, again := f.write()
		require.Empty(t, again, "the agents have not said anything")
		for node := range f.current {
			f.act(node)
		}
	}
	f.ring.Spec.SnapLength = 128
	verdict, changed := f.write()
	require.Equal(t, []string{"n00", "n01"}, changed)
	require.Equal(t, []string{"n02", "n03", "n04"}, verdict.Waiting)
	require.Equal(t, []string{"n00", "n01", "n02", "n03", "n04"}, verdict.Outdated)
	f.act("n01")
	verdict, changed = f.write()
	require.Equal(t, []string{"n02"}, changed, "n00 has not got it yet")
	require.Equal(t, []string{"n00"}, verdict.Unavailable)
	f.settle()
	require.Len(t, f.with(128), 5)
}

// TestRolloutPausesAndResumes: at the first nodes that fail, until the ring is corrected, which they get first; or until more may be
// unavailable.
func TestRolloutPausesAndResumes(t *testing.T) {
	f := newFleet(8, intstr.FromString("25%"))
	f.settle()
	f.fails = func(node string, snapLength int32) bool { return snapLength == 9999 && node >= "n03" }
	f.ring.Spec.SnapLength = 9999
	verdict := f.settle()
	require.Equal(t, []string{"n00", "n01", "n02", "n03", "n04"}, f.with(9999))
	require.Equal(t, []string{"n03", "n04"}, verdict.Unavailable)
	require.Equal(t, []string{"n05", "n06", "n07"}, verdict.Waiting)
	require.Equal(t, 2, verdict.MaxUnavailable)

	most := intstr.FromInt32(3)
	f.ring.Spec.Rollout.MaxUnavailable = &most
	_, changed := f.write()
	require.Equal(t, []string{"n05"}, changed, "of the rest nobody is told anything: rollout is the operator's")
	f.settle()

	f.ring.Spec.SnapLength = 512
	_, changed = f.write()
	require.Equal(t, []string{"n03", "n04", "n05"}, changed, "those where the version before does not work")
	f.settle()
	require.Len(t, f.with(512), 8)

	// Going back is an edit, too, and a node that never left the version has nothing to do.
	f.fails = func(node string, snapLength int32) bool { return snapLength == 9999 }
	f.ring.Spec.SnapLength = 9999
	f.settle()
	f.ring.Spec.SnapLength = 512
	_, changed = f.write()
	require.Equal(t, []string{"n00", "n01", "n02"}, changed)
}

// TestWhatDoesNotWait: nodes without a live agent neither wait nor are waited for, and removal is not held back.
func TestWhatDoesNotWait(t *testing.T) {
	f := newFleet(4, intstr.FromInt32(1))
	f.settle()
	f.dead["n01"], f.dead["n02"], f.never = true, true, map[string]bool{"n01": true, "n02": true}
	f.ring.Spec.SnapLength = 128
	_, changed := f.write()
	require.Equal(t, []string{"n00", "n01", "n02"}, changed)
	f.act("n00")
	_, changed = f.write()
	require.Equal(t, []string{"n03"}, changed)
	f.never = nil

	// One that falls silent when it has been told may have done so for that, and keeps its place until it is back or told of another.
	clear(f.dead)
	f.settle()
	f.ring.Spec.SnapLength = 256
	_, changed = f.write()
	require.Equal(t, []string{"n00"}, changed)
	f.dead["n00"] = true
	verdict, changed := f.write()
	require.Empty(t, changed)
	require.Equal(t, []string{"n00"}, verdict.Unavailable)
	f.ring.Spec.SnapLength = 512
	_, changed = f.write()
	require.Equal(t, []string{"n00", "n01"}, changed)
	clear(f.dead)
	f.settle()

	deleting(&f.ring)
	f.write()
	require.Empty(t, f.with(512))
}

// TestSilenceOfAll: when an API server is back after an outage, no agent has reported for a while, and all of them hear what they are
// told. A rollout that is paused stays so, and an edit waits for them.
func TestSilenceOfAll(t *testing.T) {
	f := newFleet(8, intstr.FromInt32(2))
	f.settle()
	f.fails = func(_ string, snapLength int32) bool { return snapLength == 9999 }
	f.ring.Spec.SnapLength = 9999
	f.settle()
	silence := func() {
		for node := range f.current {
			f.dead[node] = true
		}
	}
	silence()
	verdict, changed := f.write()
	require.Empty(t, changed)
	require.Equal(t, []string{"n02", "n03", "n04", "n05", "n06", "n07"}, verdict.Waiting)
	require.Equal(t, verdict.Waiting, verdict.Silent)
	clear(f.dead)
	f.settle()
	require.Equal(t, []string{"n00", "n01"}, f.with(9999))

	// A spec that does not work is corrected at once, because its agent may not report again before that.
	silence()
	f.ring.Spec.SnapLength = 512
	_, changed = f.write()
	require.Equal(t, []string{"n00", "n01"}, changed)
	delete(f.dead, "n05")
	_, changed = f.write()
	require.Equal(t, []string{"n05"}, changed)
	clear(f.dead)
	f.settle()
	require.Len(t, f.with(512), 8)
}

// TestNodesThatNeverHadIt: a new ring goes on where some nodes refuse it, and so does each edit of it; what works there counts from then on.
func TestNodesThatNeverHadIt(t *testing.T) {
	f := newFleet(4, intstr.FromInt32(1))
	lacks := map[string]bool{"n00": true, "n02": true}
	f.fails = func(node string, _ int32) bool { return lacks[node] }
	verdict := f.settle()
	require.Empty(t, verdict.Waiting)
	require.Empty(t, verdict.Unavailable)
	f.ring.Spec.SnapLength = 128
	_, changed := f.write()
	require.Equal(t, []string{"n00"}, changed, "until the agent has answered it counts")
	_, changed = f.write()
	require.Empty(t, changed)
	f.settle()
	require.Len(t, f.with(128), 4)

	clear(lacks)
	f.ring.Spec.SnapLength = 256
	f.settle()
	lacks["n00"] = true
	f.ring.Spec.SnapLength = 512
	verdict = f.settle()
	require.Equal(t, []string{"n00"}, verdict.Unavailable, "it worked there, and does not any more")
	require.Equal(t, []string{"n01", "n02", "n03"}, verdict.Waiting)
	f.ring.Spec.SnapLength = 1024
	verdict = f.settle()
	require.Equal(t, []string{"n00"}, verdict.Unavailable, "another bad edit takes no further node")
	require.Equal(t, []string{"n01", "n02", "n03"}, verdict.Waiting)
}

// TestRevision: entries that ask for the same have the same; what an operator before revisions wrote is the same when it asks for the same.
func TestRevision(t *testing.T) {
	f := newFleet(3, intstr.FromInt32(1))
	f.settle()
	first := f.told("n00").Revision
	require.NotEmpty(t, first)
	require.Nil(t, f.told("n00").Spec.Rollout)
	for node, spec := range f.current {
		spec.Rings[0].Revision = ""
		f.current[node], f.applied[node] = spec, ""
	}
	verdict, changed := f.write()
	require.Empty(t, verdict.Waiting)
	require.Len(t, changed, 3)
	require.Equal(t, first, f.told("n02").Revision)

	// Up to 2026-11-22 there was no version either, nothing was left out or filled in, and nodeTraffic was no field.
	f.ring.Spec.NodeSelector = &v1alpha1.NodeSelector{MatchExpressions: []v1alpha1.NodeSelectorRequirement{{Key: "x", Operator: "DoesNotExist"}}}
	for node, spec := range f.current {
		spec.Rings[0] = v1alpha1.NodeRing{Name: "m", UID: string(f.ring.UID), Spec: *f.ring.Spec.DeepCopy()}
		spec.Rings[0].Spec.Rollout, spec.Rings[0].Spec.NodeTraffic = nil, ""
		f.current[node], f.applied[node] = spec, ""
	}
	f.ring.Spec.NodeTraffic = v1alpha1.NodeTrafficRefuse
	f.fails = func(node string, _ int32) bool { return node == "n00" }
	verdict, changed = f.write()
	require.Empty(t, verdict.Waiting, "an upgrade is no edit")
	require.Empty(t, verdict.Outdated)
	require.Len(t, changed, 3)
	require.Equal(t, v1alpha1.WhenMissingReport, f.told("n02").Spec.Interfaces[0].WhenMissing)
	f.fails = func(string, int32) bool { return false }
	f.settle()
	first = f.told("n00").Revision

	f.ring.UID = "another"
	f.write()
	require.Nil(t, f.told("n02"), "another ring of the name waits, and the one before is gone")
	require.NotEqual(t, first, f.told("n00").Revision)
}

func TestMaxUnavailable(t *testing.T) {
	for _, c := range []struct {
		nodes int
		most  *intstr.IntOrString
		want  int
	}{
		{1, nil, 1},
		{4, nil, 1},
		{5, nil, 2},
		{5000, nil, 1250},
		{3, ptr(intstr.FromString("1%")), 1},
		{3, ptr(intstr.FromString("100%")), 3},
		{3, ptr(intstr.FromInt32(7)), 7},
	} {
		f := newFleet(c.nodes, intstr.FromInt32(1))
		if f.ring.Spec.Rollout.MaxUnavailable = c.most; c.most == nil {
			f.ring.Spec.Rollout = nil
		}
		require.Equal(t, c.want, f.plan().Rings["m"].MaxUnavailable, "%d nodes, %v", c.nodes, c.most)
	}
}

func ptr[T any](v T) *T { return &v }

// TestNoMoreThanMayBeUnavailable: whatever is edited, in whatever order agents act, fail, fall silent and come back, and whichever
// nodes come and go: the operator does not make more nodes unavailable than may be, it goes on when the ring is corrected, and then each
// node has the last version.
func TestNoMoreThanMayBeUnavailable(t *testing.T) {
	met := map[string]int{}
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 2))
		most := 1 + random.Int32N(4)
		f := newFleet(1+random.IntN(12), intstr.FromInt32(most))
		f.ring.Spec.SnapLength = 64 // works everywhere
		f.settle()
		steady := seed%2 == 0 // no node comes or goes, and no agent
		f.fails = func(node string, snapLength int32) bool {
			return (int(snapLength)*7+int(node[2]))%5 == 0 && snapLength != 64
		}
		for range 60 {
			f.disturb(random, steady)
			before := f.unavailable(f.ring.Spec.SnapLength)
			_, changed := f.write()
			given := slices.DeleteFunc(changed, func(n string) bool { return f.dead[n] })
			if len(given) > 0 {
				require.LessOrEqual(t, len(before)+len(given), int(most), "seed %d: %v are unavailable, and %v were told", seed, before, given)
				met["wave"]++
			}
			if len(f.unavailable(f.ring.Spec.SnapLength)) == int(most) && len(f.with(f.ring.Spec.SnapLength)) < len(f.current) {
				met["full"]++
			}
			if steady {
				require.LessOrEqual(t, len(f.unavailable(0)), int(most), "seed %d: whatever the version", seed)
			}
		}
		f.ring.Spec.SnapLength = 64
		clear(f.dead)
		f.settle()
		require.Len(t, f.with(64), len(f.current), "seed %d", seed)
		require.Empty(t, f.unavailable(0), "seed %d", seed)
	}
	require.Positive(t, met["wave"])
	require.Positive(t, met["full"])
	t.Log(met)
}

// unavailable are the nodes that were told of this snapLength, or of any with 0, while their agents were live or that are so now, and that
// do not have it, or not yet, where none ever worked.
func (f *fleet) unavailable(snapLength int32) []string {
	var found []string
	for node := range f.current {
		told := f.told(node)
		if told != nil && (!f.dead[node] || told.Awaited) && f.behind(node) && (told.Worked || !f.refused(node)) &&
			(snapLength == 0 || told.Spec.SnapLength == snapLength) {
			found = append(found, node)
		}
	}
	return found
}

func (f *fleet) disturb(random *rand.Rand, steady bool) {
	names := slices.Sorted(maps.Keys(f.current))
	some := names[random.IntN(len(names))]
	what := random.IntN(13)
	if steady {
		what = random.IntN(9)
	}
	switch what {
	case 0:
		f.ring.Spec.SnapLength = 100 + random.Int32N(4)
	default:
		f.act(some)
	case 9:
		f.dead[some] = true
	case 10, 11:
		delete(f.dead, some)
	case 12:
		if name := fmt.Sprintf("n%02d", random.IntN(14)); len(f.current) > 1 && name == some {
			delete(f.current, name)
			delete(f.applied, name)
		} else if _, there := f.current[name]; !there {
			f.current[name] = v1alpha1.NodeCaptureSpec{}
		}
	}
}

// TestEntriesShareMemory: what a node has already is planned for it in the same memory, which comparing finds out soon; what somebody
// changed there is not.
func TestEntriesShareMemory(t *testing.T) {
	m := ring("m", 0, withFilter("tcp"))
	entry := func(current v1alpha1.NodeCaptureSpec) v1alpha1.NodeRing {
		in := plan.Input{Rings: rings{m}, Nodes: []plan.Node{{Name: "n"}}, Current: map[string]v1alpha1.NodeCaptureSpec{"n": current}}
		return plan.Make(in).Nodes["n"].Rings[0]
	}
	current := told(rings{m}, nil)
	has := current.DeepCopy()
	require.Same(t, has.Rings[0].Spec.Filter, entry(*has).Spec.Filter)
	has.Rings[0].Spec.Filter.BPF = "udp"
	require.Equal(t, current.Rings[0], entry(*has))
}
