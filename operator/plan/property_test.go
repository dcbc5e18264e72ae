// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
	"github.com/ringcap/ringcap/operator/plan"
)

// TestWhatNodesAreToldIsSound: whatever people write, in whatever order, and whatever was told before, a node is told
// what an agent can act upon, and soon nothing new when nothing changes.
func TestWhatNodesAreToldIsSound(t *testing.T) {
	reasons := map[string]int{}
	for seed := range uint64(400) {
		random := rand.New(rand.NewPCG(seed, 1))
		in := plan.Input{Nodes: []plan.Node{{Name: "a", Labels: map[string]string{"k": "v"}}, {Name: "b"}}, CheckFilter: checkFilter}
		for range 30 {
			change(random, &in)
			got := plan.Make(in)
			for _, verdict := range got.Clusters {
				reasons[verdict.Reason]++
			}
			for node, spec := range got.Nodes {
				requireSound(t, spec, "seed %d, node %s", seed, node)
			}
			in.Current = settle(t, in)
		}
	}
	for _, reason := range []string{
		v1alpha1.ReasonAccepted, v1alpha1.ReasonLimitExceeded, v1alpha1.ReasonNameConflict, v1alpha1.ReasonRingNotFound,
		v1alpha1.ReasonRingNotAccepted,
	} {
		require.Positive(t, reasons[reason], "the test met no %s", reason)
	}
	t.Log(reasons)
}

// settle plans until a plan over what the last one told tells the same: what is taken from the nodes at last may leave
// room for what did not fit before.
func settle(t *testing.T, in plan.Input) map[string]v1alpha1.NodeCaptureSpec {
	t.Helper()
	for range 4 {
		told := plan.Make(in).Nodes
		if equality.Semantic.DeepEqual(told, in.Current) {
			return told
		}
		in.Current = told
	}
	require.Fail(t, "the plan does not settle")
	return nil
}

// change makes, changes, deletes or removes some objects of few names.
func change(random *rand.Rand, in *plan.Input) {
	name := func() string { return string(rune('p' + random.IntN(5))) }
	for range 1 + random.IntN(6) {
		switch n := name(); random.IntN(6) {
		case 0:
			in.Rings = without(in.Rings, n, func(r v1alpha1.CaptureRing) string { return r.Name })
			in.Rings = append(in.Rings, ring(n, random.IntN(3), func(r *v1alpha1.CaptureRing) {
				vary(random, r)
			}))
		case 1:
			in.Rings = without(in.Rings, n, func(r v1alpha1.CaptureRing) string { return r.Name })
		case 2:
			in.Clusters = without(in.Clusters, n, func(c v1alpha1.Cluster) string { return c.Name })
		default:
			// Many over few rings, so that the limit is met.
			n = fmt.Sprintf("%s%d", n, random.IntN(3))
			if random.IntN(3) == 0 {
				n = name()
			}
			in.Clusters = without(in.Clusters, n, func(c v1alpha1.Cluster) string { return c.Name })
			in.Clusters = append(in.Clusters, cluster(n, random.IntN(3), []string{"p", "q", "r"}[:1+random.IntN(3)]...))
		}
	}
}

func vary(random *rand.Rand, r *v1alpha1.CaptureRing) {
	switch random.IntN(6) {
	case 0:
		withFilter("bad")(r)
	case 1:
		deleting(r)
	case 2:
		on("k", "v")(r)
	case 3:
		withQueues(1 + random.Int32N(40))(r) // 40 queues do not fit
	}
}

func without[T any](objects []T, name string, of func(T) string) []T {
	var left []T
	for _, object := range objects {
		if of(object) != name {
			left = append(left, object)
		}
	}
	return left
}

func requireSound(t *testing.T, spec v1alpha1.NodeCaptureSpec, format string, args ...any) {
	t.Helper()
	outputs, names := map[string]int{}, map[string]bool{}
	for _, r := range spec.Rings {
		require.False(t, names[r.Name], format, args)
		names[r.Name] = true
		outputs[r.Name] = 0
		if r.Spec.Queues != nil {
			outputs[r.Name]++
		}
	}
	for _, c := range spec.Clusters {
		require.False(t, names[c.Name], format, args)
		names[c.Name] = true
		require.NotEmpty(t, c.Spec.Rings, format, args)
		for _, r := range c.Spec.Rings {
			require.Contains(t, outputs, r, format, args)
			outputs[r]++
		}
	}
	for _, n := range outputs {
		require.LessOrEqual(t, n, v1alpha1.MaxOutputs, format, args)
	}
}
