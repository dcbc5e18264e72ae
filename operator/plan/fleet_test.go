// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
	"github.com/ringcap/ringcap/operator/plan"
)

// stored is what the entries of all nodes take.
func stored(t *testing.T, specs map[string]v1alpha1.NodeCaptureSpec) int64 {
	t.Helper()
	bytes := 0
	for _, spec := range specs {
		for i := range spec.Rings {
			text, err := json.Marshal(spec.Rings[i])
			require.NoError(t, err)
			bytes += len(text)
		}
		for i := range spec.Clusters {
			text, err := json.Marshal(spec.Clusters[i])
			require.NoError(t, err)
			bytes += len(text)
		}
	}
	return int64(bytes)
}

func long(bytes int) func(*v1alpha1.CaptureRing) { return withFilter(strings.Repeat("x", bytes)) }

// TestFleetLimit: what is new and does not fit is refused with the figures, an edit that does not fit leaves the ring as it was, and
// nobody else loses anything.
func TestFleetLimit(t *testing.T) {
	in := plan.Input{
		Nodes: []plan.Node{{Name: "n1"}, {Name: "n2"}}, FleetBytes: 20 << 10,
		Rings: rings{ring("old", 0, long(3000)), ring("young", 1, long(3000)), ring("youngest", 2, long(6000))},
	}
	p := plan.Make(in)
	require.True(t, p.Rings["old"].Accepted() && p.Rings["young"].Accepted())
	refused := p.Rings["youngest"]
	require.Equal(t, v1alpha1.ReasonFleetLimitExceeded, refused.Reason)
	require.Empty(t, refused.Nodes)
	require.Contains(t, refused.Message, "would take 14 KiB (now 0 KiB), and those of all CaptureRings and Clusters may take 20 KiB, of which 15 KiB are taken")
	require.Contains(t, refused.Message, "--fleet-limit")

	in.Current = p.Nodes
	in.Rings[0] = ring("old", 0, long(9000))
	p = plan.Make(in)
	require.Equal(t, v1alpha1.ReasonFleetLimitExceeded, p.Rings["old"].Reason, "although it is the older one")
	require.Equal(t, []string{"n1", "n2"}, p.Rings["old"].Nodes)
	require.True(t, p.Rings["young"].Accepted())
	require.True(t, equality.Semantic.DeepEqual(in.Current, p.Nodes), "all stays as it was")

	// A cluster is counted, too; and what becomes smaller makes room, once the nodes have it so.
	in.Clusters = clusters{cluster("c", 0, "old", "young")}
	in.Clusters[0].Spec.Filter = &v1alpha1.Filter{BPF: strings.Repeat("y", 4000)}
	require.Equal(t, v1alpha1.ReasonRingNotAccepted, plan.Make(in).Clusters["c"].Reason)
	in.Rings[0] = ring("old", 0)
	p = plan.Make(in)
	require.Equal(t, v1alpha1.ReasonFleetLimitExceeded, p.Clusters["c"].Reason)
	in.Current = p.Nodes
	require.True(t, plan.Make(in).Clusters["c"].Accepted())

	// A limit that is lowered takes nothing away.
	in.Current, in.FleetBytes = plan.Make(in).Nodes, 1
	p = plan.Make(in)
	require.True(t, p.Rings["old"].Accepted() && p.Rings["young"].Accepted() && p.Clusters["c"].Accepted())
	// A node that joins gets what there is room for, here nothing.
	in.Nodes = append(in.Nodes, plan.Node{Name: "n3"})
	p = plan.Make(in)
	require.Equal(t, v1alpha1.ReasonFleetLimitExceeded, p.Rings["old"].Reason)
	require.Equal(t, []string{"n1", "n2"}, p.Rings["old"].Nodes)
	require.Empty(t, p.Nodes["n3"].Rings)
}

// TestHalfOfTheFleetLimitIsLeft to those who may write CaptureRings, whatever PodCaptures there are.
func TestHalfOfTheFleetLimitIsLeft(t *testing.T) {
	name := func(number int) string { return plan.RingName("shop", number) }
	ofNamespace := func(r *v1alpha1.CaptureRing) {
		long(3000)(r)
		r.Labels = map[string]string{v1alpha1.LabelPodCaptureNamespace: "shop"}
	}
	in := plan.Input{
		Nodes: []plan.Node{{Name: "n1"}, {Name: "n2"}}, FleetBytes: 40 << 10,
		Rings: rings{
			// An administrator's, made of a copy, is of no PodCapture.
			ring("copy", 0, ofNamespace), ring(name(0), 1, ofNamespace), ring(name(1), 2, ofNamespace), ring(name(2), 3, ofNamespace), ring("mirror", 4, long(6000)),
		},
	}
	for range 2 {
		p := plan.Make(in)
		require.True(t, p.Rings["copy"].Accepted() && p.Rings[name(0)].Accepted() && p.Rings[name(1)].Accepted())
		refused := p.Rings[name(2)]
		require.Equal(t, v1alpha1.ReasonFleetLimitExceeded, refused.Reason)
		require.Contains(t, refused.Message, "those of all PodCaptures may take 20 KiB, half of the operator's --fleet-limit")
		require.True(t, p.Rings["mirror"].Accepted(), p.Rings["mirror"].Message)
		in.Current = p.Nodes
	}
}

// TestTheFleetLimitHolds: whatever is made and edited, with rollouts that are under way, the nodes' specs take no more than they may;
// what is unchanged stays accepted, and what is refused stays as it was.
func TestTheFleetLimitHolds(t *testing.T) {
	refusals, full := 0, int64(0)
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 3))
		in := plan.Input{Nodes: []plan.Node{{Name: "a", Labels: map[string]string{"k": "v"}}, {Name: "b"}, {Name: "c"}}, FleetBytes: 16 << 10}
		var before plan.Plan
		for range 40 {
			edited := changeSizes(random, &in)
			for i := range in.Nodes {
				in.Nodes[i].Live, in.Nodes[i].Behind = random.IntN(4) > 0, map[string]bool{"p": random.IntN(2) == 0, "q": random.IntN(2) == 0}
			}
			got := plan.Make(in)
			bytes := stored(t, got.Nodes)
			require.LessOrEqual(t, bytes, in.FleetBytes, "seed %d", seed)
			full = max(full, bytes)
			for name, verdict := range got.Rings {
				if verdict.Reason != v1alpha1.ReasonFleetLimitExceeded {
					continue
				}
				refusals++
				require.False(t, name != edited && before.Rings[name].Accepted() && len(before.Rings[name].Outdated) == 0,
					"seed %d: %s was rolled out, and %s was edited", seed, name, edited)
				for node := range got.Nodes {
					require.Equal(t, entry(in.Current[node], name), entry(got.Nodes[node], name), "seed %d, %s on %s", seed, name, node)
				}
			}
			before, in.Current = got, got.Nodes
		}
	}
	require.Positive(t, refusals)
	require.Greater(t, full, int64(15<<10), "the limit was not met")
}

// changeSizes edits one object, in size or selector, and names it.
func changeSizes(random *rand.Rand, in *plan.Input) string {
	age := random.IntN(6)
	name := string(rune('p' + age))
	if random.IntN(4) == 0 {
		c := cluster("c"+name, age, name, "p")
		c.UID, c.Spec.Filter = "uid-c"+c.UID, &v1alpha1.Filter{BPF: strings.Repeat("y", random.IntN(3000))}
		in.Clusters = append(without(in.Clusters, c.Name, func(c v1alpha1.Cluster) string { return c.Name }), c)
		return c.Name
	}
	in.Rings = without(in.Rings, name, func(r v1alpha1.CaptureRing) string { return r.Name })
	if random.IntN(8) > 0 {
		r := ring(name, age, long(random.IntN(4000)))
		if random.IntN(3) == 0 {
			on("k", "v")(&r)
		}
		most := intstr.FromInt32(1)
		r.Spec.Rollout = &v1alpha1.Rollout{MaxUnavailable: &most}
		in.Rings = append(in.Rings, r)
	}
	return name
}

func entry(spec v1alpha1.NodeCaptureSpec, ring string) *v1alpha1.NodeRing {
	for i := range spec.Rings {
		if spec.Rings[i].Name == ring {
			return &spec.Rings[i]
		}
	}
	return nil
}
