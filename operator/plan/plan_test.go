// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
	"github.com/ringcap/ringcap/operator/plan"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// ring is a defaulted CaptureRing that was made so many seconds after the epoch.
func ring(name string, age int, change ...func(*v1alpha1.CaptureRing)) v1alpha1.CaptureRing {
	r := v1alpha1.CaptureRing{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(epoch.Add(time.Duration(age) * time.Second))},
		Spec:       v1alpha1.CaptureRingSpec{Interfaces: []v1alpha1.InterfaceSelector{{Name: "eth0"}}},
	}
	r.Spec.Default()
	for _, c := range change {
		c(&r)
	}
	return r
}

func cluster(name string, age int, rings ...string) v1alpha1.Cluster {
	c := v1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(epoch.Add(time.Duration(age) * time.Second))},
		Spec:       v1alpha1.ClusterSpec{Rings: rings, Queues: 2},
	}
	c.Spec.Default()
	return c
}

func withFilter(bpf string) func(*v1alpha1.CaptureRing) {
	return func(r *v1alpha1.CaptureRing) { r.Spec.Filter = &v1alpha1.Filter{BPF: bpf} }
}

func withQueues(n int32) func(*v1alpha1.CaptureRing) {
	return func(r *v1alpha1.CaptureRing) { r.Spec.Queues = v1alpha1.Queues(n) }
}

func deleting(r *v1alpha1.CaptureRing) { r.DeletionTimestamp = &metav1.Time{Time: epoch} }

func on(key, value string) func(*v1alpha1.CaptureRing) {
	return func(r *v1alpha1.CaptureRing) { r.Spec.NodeSelector = v1alpha1.NodesWith(key, value) }
}

func withRule(source, destination string) func(*v1alpha1.CaptureRing) {
	return func(r *v1alpha1.CaptureRing) {
		r.Spec.Filter = &v1alpha1.Filter{Rules: []v1alpha1.Rule{{
			Action: v1alpha1.RulePass, Match: v1alpha1.RuleMatch{Source: source, Destination: destination},
		}}}
	}
}

func quick(r *v1alpha1.CaptureRing) { r.Spec.QuickMode, r.Spec.Queues = true, v1alpha1.Queues(1) }

func mode(mode v1alpha1.TransparentMode) func(*v1alpha1.CaptureRing) {
	return func(r *v1alpha1.CaptureRing) { r.Spec.TransparentMode = &mode }
}

// told is what a node has of the objects when they were accepted.
func told(rings []v1alpha1.CaptureRing, clusters []v1alpha1.Cluster) v1alpha1.NodeCaptureSpec {
	return plan.Make(plan.Input{Rings: rings, Clusters: clusters, Nodes: []plan.Node{{Name: "n"}}}).Nodes["n"]
}

func checkFilter(expression string) error {
	switch expression {
	case "bad":
		return errors.New("syntax error")
	case "unknown":
		return fmt.Errorf("%w: no compiler", plan.ErrFilterUnknown)
	}
	return nil
}

type (
	rings    = []v1alpha1.CaptureRing
	clusters = []v1alpha1.Cluster
)

// TestVerdicts: one node, which may have been told something before. rings and clusters of the node are by name, and
// "name!" where the node's entry is the object as it is.
func TestVerdicts(t *testing.T) {
	threeQueues := cluster("c", 0, "a", "b")
	threeQueues.Spec.Queues = 3
	small := func(r *v1alpha1.CaptureRing) { m := resource.MustParse("1Mi"); r.Spec.MemoryLimit = &m }
	tests := map[string]struct {
		rings    rings
		clusters clusters
		before   v1alpha1.NodeCaptureSpec
		// want maps kind/name to the reason and a part of the message.
		want map[string][2]string
		// node lists what the node has.
		node []string
	}{
		"a ring and a cluster": {
			rings: rings{ring("m", 0)}, clusters: clusters{cluster("c", 1, "m")},
			want: map[string][2]string{"ring/m": {"Accepted", ""}, "cluster/c": {"Accepted", ""}},
			node: []string{"ring/m!", "cluster/c!"},
		},
		"a rule that makes no sense": {
			rings: rings{ring("m", 0, withRule("10.0.0.0/8", "::/0"))},
			want:  map[string][2]string{"ring/m": {"InvalidFilter", `spec.filter.rules[0].match.destination ::/0: must be of the same IP version as source 10.0.0.0/8`}},
		},
		"quick rings over one interface, and a cluster over one": {
			rings: rings{ring("a", 1, quick), ring("b", 0, quick), ring("plain", 3)}, clusters: clusters{cluster("c", 1, "a")},
			want: map[string][2]string{"ring/a": {"Accepted", ""}, "ring/b": {"Accepted", ""}, "ring/plain": {"Accepted", ""}, "cluster/c": {"Accepted", ""}},
			node: []string{"ring/a!", "ring/b!", "ring/plain!", "cluster/c!"},
		},
		"a mode that excludes another, on different nodes": {
			rings: rings{ring("a", 0, mode(2), on("k", "x")), ring("b", 1, mode(0), on("k", "y"))},
			want:  map[string][2]string{"ring/a": {"Accepted", ""}, "ring/b": {"Accepted", ""}},
		},
		"modes that exclude each other": {
			rings: rings{ring("a", 0, mode(2)), ring("b", 1, mode(0)), ring("c", 2, mode(2))},
			want: map[string][2]string{
				"ring/a": {"Accepted", ""}, "ring/c": {"Accepted", ""},
				"ring/b": {"ModeConflict", `spec.transparentMode 0: CaptureRing "a", which is older, has the same interface in mode 2`},
			},
			node: []string{"ring/a!", "ring/c!"},
		},
		"modes that go together": {
			rings: rings{ring("a", 0, mode(1)), ring("b", 1, mode(0))},
			want:  map[string][2]string{"ring/a": {"Accepted", ""}, "ring/b": {"Accepted", ""}},
			node:  []string{"ring/a!", "ring/b!"},
		},
		"a cluster's filter that does not compile": {
			rings: rings{ring("m", 0)}, clusters: clusters{func() v1alpha1.Cluster {
				c := cluster("c", 1, "m")
				c.Spec.Filter = &v1alpha1.Filter{BPF: "bad"}
				return c
			}()},
			want: map[string][2]string{"cluster/c": {"InvalidFilter", `spec.filter.bpf "bad"`}},
			node: []string{"ring/m!"},
		},
		"a new filter that does not compile": {
			rings: rings{ring("m", 0, withFilter("bad"))}, clusters: clusters{cluster("c", 1, "m")},
			want: map[string][2]string{
				"ring/m":    {"InvalidFilter", `spec.filter.bpf "bad": syntax error; see pcap-filter(7)`},
				"cluster/c": {"RingNotAccepted", `CaptureRing "m" is not accepted (InvalidFilter)`},
			},
		},
		"a filter that does not compile any more": {
			rings: rings{ring("m", 0, withFilter("bad"))}, clusters: clusters{cluster("c", 1, "m")},
			before: told(rings{ring("m", 0)}, clusters{cluster("c", 1, "m")}),
			want:   map[string][2]string{"ring/m": {"InvalidFilter", ""}, "cluster/c": {"RingNotAccepted", ""}},
			node:   []string{"ring/m", "cluster/c!"},
		},
		"a filter that cannot be checked": {
			rings: rings{ring("m", 0, withFilter("unknown"))}, before: told(rings{ring("m", 0)}, nil),
			want: map[string][2]string{"ring/m": {"Pending", "no compiler"}},
			node: []string{"ring/m"},
		},
		"an invalid ring of the same name as a former one": {
			rings:  rings{ring("m", 0, withFilter("bad"), func(r *v1alpha1.CaptureRing) { r.UID = "another" })},
			before: told(rings{ring("m", 0)}, nil),
			want:   map[string][2]string{"ring/m": {"InvalidFilter", ""}},
		},
		"a cluster's ring is older": {
			rings: rings{ring("x", 0)}, clusters: clusters{cluster("x", 1, "x")},
			want: map[string][2]string{"ring/x": {"Accepted", ""}, "cluster/x": {"NameConflict", `CaptureRing "x" has this name already`}},
			node: []string{"ring/x!"},
		},
		"a ring's cluster is older": {
			rings: rings{ring("m", 0), ring("x", 2)}, clusters: clusters{cluster("x", 1, "m")},
			want: map[string][2]string{"ring/x": {"NameConflict", `Cluster "x" has this name already`}, "cluster/x": {"Accepted", ""}},
			node: []string{"ring/m!", "cluster/x!"},
		},
		"equally old": {
			rings: rings{ring("m", 0), ring("x", 1)}, clusters: clusters{cluster("x", 1, "m")},
			want: map[string][2]string{"ring/x": {"Accepted", ""}, "cluster/x": {"NameConflict", ""}},
			node: []string{"ring/m!", "ring/x!"},
		},
		"equally old, but nodes know the cluster": {
			rings: rings{ring("m", 0), ring("x", 1)},
			clusters: clusters{func() v1alpha1.Cluster {
				c := cluster("x", 1, "m")
				c.Finalizers = []string{v1alpha1.FinalizerNodes}
				return c
			}()},
			want: map[string][2]string{"ring/x": {"NameConflict", ""}, "cluster/x": {"Accepted", ""}},
			node: []string{"ring/m!", "cluster/x!"},
		},
		"the name's holder is being deleted": {
			rings: rings{ring("m", 0), ring("x", 0, deleting)}, clusters: clusters{cluster("x", 1, "m")},
			want: map[string][2]string{"ring/x": {"Deleting", ""}, "cluster/x": {"NameConflict", "is being deleted; this Cluster follows"}},
			node: []string{"ring/m!"},
		},
		"a ring that is not there": {
			clusters: clusters{cluster("c", 0, "m")},
			want:     map[string][2]string{"cluster/c": {"RingNotFound", `there is no CaptureRing "m"`}},
		},
		"one of two rings is deleted": {
			rings: rings{ring("a", 0), ring("b", 0, deleting)}, clusters: clusters{cluster("c", 0, "a", "b")},
			before: told(rings{ring("a", 0), ring("b", 0)}, clusters{cluster("c", 0, "a", "b")}),
			want:   map[string][2]string{"ring/b": {"Deleting", ""}, "cluster/c": {"RingNotFound", `CaptureRing "b" is being deleted`}},
			node:   []string{"ring/a!", "cluster/c"},
		},
		"the only ring is deleted": {
			rings: rings{ring("a", 0, deleting)}, clusters: clusters{cluster("c", 0, "a")},
			before: told(rings{ring("a", 0)}, clusters{cluster("c", 0, "a")}),
			want:   map[string][2]string{"cluster/c": {"RingNotFound", ""}},
		},
		"memory that does not suffice": {
			rings: rings{ring("m", 0, withQueues(3), small)},
			want:  map[string][2]string{"ring/m": {"MemoryLimitExceeded", "spec.memoryLimit 1Mi: 3 queues of 4096 slots of 1536 bytes need at least 24 MiB"}},
		},
		"memory that suffices nowhere, at the defaults": {
			rings: rings{ring("fits", 0, withQueues(128)), ring("m", 0, withQueues(129))},
			want:  map[string][2]string{"ring/fits": {"Accepted", ""}, "ring/m": {"MemoryLimitExceeded", "need at least 1032 MiB"}},
			node:  []string{"ring/fits!"},
		},
		"the same memory by either engine": {
			rings: rings{
				ring("module", 0, withQueues(128), func(r *v1alpha1.CaptureRing) { r.Spec.SnapLength = 2000 }),
				ring("ebpf", 0, withQueues(128), func(r *v1alpha1.CaptureRing) { r.Spec.SnapLength, r.Spec.Engine = 2000, v1alpha1.EngineEBPF }),
			},
			want: map[string][2]string{"ring/module": {"Accepted", ""}, "ring/ebpf": {"Accepted", ""}},
			node: []string{"ring/ebpf!", "ring/module!"},
		},
		"more than a queue can be": {
			rings: rings{ring("m", 0, withQueues(1), func(r *v1alpha1.CaptureRing) {
				limit := resource.MustParse("64Gi")
				r.Spec.Slots, r.Spec.MemoryLimit = 4194304, &limit
			})},
			want: map[string][2]string{"ring/m": {"Unsupported", "need 8192 MiB a queue, and at most 1024"}},
		},
		"a ring without queues needs none": {
			rings: rings{ring("m", 0, small)},
			want:  map[string][2]string{"ring/m": {"Accepted", ""}},
			node:  []string{"ring/m!"},
		},
		"a cluster's memory is by its longest packets": {
			rings:    rings{ring("a", 0), ring("b", 0, func(r *v1alpha1.CaptureRing) { r.Spec.SnapLength = 65535 })},
			clusters: clusters{threeQueues},
			want:     map[string][2]string{"cluster/c": {"MemoryLimitExceeded", "3 queues of 4096 slots of 65535 bytes need at least 1536 MiB"}},
			node:     []string{"ring/a!", "ring/b!"},
		},
		"a ring that does not select the node": {
			rings: rings{ring("m", 0, on("a", "b"))}, clusters: clusters{cluster("c", 0, "m")},
			before: told(rings{ring("m", 0)}, clusters{cluster("c", 0, "m")}),
			want:   map[string][2]string{"ring/m": {"Accepted", ""}, "cluster/c": {"Accepted", ""}},
		},
		"a cluster over a ring that is here and one that is elsewhere": {
			rings: rings{ring("a", 0), ring("b", 0, on("a", "b"))}, clusters: clusters{cluster("c", 0, "a", "b")},
			want: map[string][2]string{"cluster/c": {"Accepted", ""}},
			node: []string{"ring/a!", "cluster/c"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := plan.Make(plan.Input{
				Rings: tc.rings, Clusters: tc.clusters, Nodes: []plan.Node{{Name: "n"}},
				Current: map[string]v1alpha1.NodeCaptureSpec{"n": tc.before}, CheckFilter: checkFilter,
			})
			verdicts := map[string]plan.Verdict{}
			for name, v := range got.Rings {
				verdicts["ring/"+name] = v
			}
			for name, v := range got.Clusters {
				verdicts["cluster/"+name] = v
			}
			for object, want := range tc.want {
				require.Equal(t, want[0], verdicts[object].Reason, "%s: %s", object, verdicts[object].Message)
				require.Contains(t, verdicts[object].Message, want[1])
			}
			require.Equal(t, tc.node, has(got.Nodes["n"], tc.rings, tc.clusters))
			for _, object := range tc.node {
				v := verdicts[trimMark(object)]
				require.Equal(t, []string{"n"}, v.Nodes, object)
			}
		})
	}
}

func trimMark(s string) string {
	if s[len(s)-1] == '!' {
		return s[:len(s)-1]
	}
	return s
}

func has(spec v1alpha1.NodeCaptureSpec, rs rings, cs clusters) []string {
	var out []string
	for _, entry := range spec.Rings {
		mark := ""
		for _, r := range rs {
			if r.Name == entry.Name && equal(r.Spec, entry.Spec) {
				mark = "!"
			}
		}
		out = append(out, "ring/"+entry.Name+mark)
	}
	for _, entry := range spec.Clusters {
		mark := ""
		for _, c := range cs {
			if c.Name == entry.Name && equal(c.Spec, entry.Spec) {
				mark = "!"
			}
		}
		out = append(out, "cluster/"+entry.Name+mark)
	}
	return out
}

func equal(a, b any) bool { return equality.Semantic.DeepEqual(a, b) }

// TestUnchecked: what waits for the compiler of filters is planned again, ring or cluster.
func TestUnchecked(t *testing.T) {
	filtered := cluster("c", 0, "m")
	filtered.Spec.Filter = &v1alpha1.Filter{BPF: "unknown"}
	for name, in := range map[string]plan.Input{
		"ring":    {Rings: rings{ring("m", 0, withFilter("unknown"))}},
		"cluster": {Rings: rings{ring("m", 0)}, Clusters: clusters{filtered}},
	} {
		t.Run(name, func(t *testing.T) {
			made := plan.Make(in)
			require.False(t, made.Unchecked())
			in.CheckFilter = checkFilter
			made = plan.Make(in)
			require.True(t, made.Unchecked())
		})
	}
}

// TestInputStays: rings are the cache's, which others read meanwhile. What prints an amount notes the text in it.
func TestInputStays(t *testing.T) {
	little := ring("m", 0, func(r *v1alpha1.CaptureRing) { m := resource.MustParse("0.5Mi"); r.Spec.MemoryLimit = &m })
	little.Spec.Queues = v1alpha1.Queues(1)
	before := little.DeepCopy()
	p := plan.Make(plan.Input{Rings: rings{little}})
	require.Contains(t, p.Rings["m"].Message, "spec.memoryLimit 512Ki: 1 queues")
	require.Equal(t, *before, little)
}

// TestPairs: an interface is in the pair of one ring, the oldest; and no ring in mode 2 has it too. Others may capture it.
func TestPairs(t *testing.T) {
	pair := func(a, b string) func(*v1alpha1.CaptureRing) {
		return func(r *v1alpha1.CaptureRing) {
			r.Spec.Interfaces, r.Spec.Queues = nil, v1alpha1.Queues(256)
			r.Spec.Inline = &v1alpha1.Inline{Pairs: []v1alpha1.InterfacePair{{Interfaces: []string{a, b}}}}
			r.Spec.Default()
		}
	}
	ringOnly := func(r *v1alpha1.CaptureRing) {
		mode := v1alpha1.TransparentModeRingOnly
		r.Spec.TransparentMode = &mode
	}
	p := plan.Make(plan.Input{Rings: rings{
		ring("old", 0, pair("eth0", "eth1")), ring("young", 1, pair("eth2", "eth1")), ring("other", 2, pair("eth2", "eth3")),
		ring("elsewhere", 3, pair("eth0", "eth1"), on("k", "v")), ring("copies", 4), ring("takes", 5, ringOnly),
	}})
	require.Equal(t, v1alpha1.ReasonAccepted, p.Rings["old"].Reason, "its 256 queues have at most 4Mi each")
	require.Equal(t, v1alpha1.ReasonModeConflict, p.Rings["young"].Reason)
	require.Contains(t, p.Rings["young"].Message, `CaptureRing "old", which is older, has eth1 in a pair`)
	require.Equal(t, v1alpha1.ReasonAccepted, p.Rings["other"].Reason)
	require.Equal(t, v1alpha1.ReasonModeConflict, p.Rings["elsewhere"].Reason)
	require.Equal(t, v1alpha1.ReasonAccepted, p.Rings["copies"].Reason)
	require.Equal(t, v1alpha1.ReasonModeConflict, p.Rings["takes"].Reason)
}

// TestOutputsOfARing: a ring feeds at most MaxOutputs sets of queues, the oldest.
func TestOutputsOfARing(t *testing.T) {
	cs := clusters{}
	for i := range v1alpha1.MaxOutputs {
		cs = append(cs, cluster(fmt.Sprintf("c%d", i), i, "m"))
	}
	in := plan.Input{Rings: rings{ring("m", 0)}, Clusters: cs, Nodes: []plan.Node{{Name: "n"}}}
	before := plan.Make(in)
	require.Len(t, before.Nodes["n"].Clusters, v1alpha1.MaxOutputs)

	// Queues of its own are one more: the youngest cluster goes.
	in.Rings[0] = ring("m", 0, withQueues(1))
	in.Current = before.Nodes
	after := plan.Make(in)
	require.Len(t, after.Nodes["n"].Clusters, v1alpha1.MaxOutputs-1)
	youngest := after.Clusters[fmt.Sprintf("c%d", v1alpha1.MaxOutputs-1)]
	require.Equal(t, v1alpha1.ReasonLimitExceeded, youngest.Reason)
	require.Contains(t, youngest.Message, `CaptureRing "m" feeds 8 sets of queues already`)
}

// TestLimitOfRings: a node's list is bounded; the oldest are on it.
func TestLimitOfRings(t *testing.T) {
	var rs rings
	for i := range v1alpha1.MaxRings + 1 {
		rs = append(rs, ring(fmt.Sprintf("r%03d", i), v1alpha1.MaxRings-i))
	}
	p := plan.Make(plan.Input{Rings: rs, Nodes: []plan.Node{{Name: "n"}}})
	require.Len(t, p.Nodes["n"].Rings, v1alpha1.MaxRings)
	require.Equal(t, v1alpha1.ReasonLimitExceeded, p.Rings["r000"].Reason, "the youngest")
	require.Empty(t, p.Rings["r000"].Nodes)

	// What is for other nodes takes no room here.
	for i := range rs {
		on("pool", fmt.Sprint(i%2))(&rs[i])
	}
	require.Equal(t, v1alpha1.ReasonAccepted, plan.Make(plan.Input{Rings: rs}).Rings["r000"].Reason)
}

// TestLimitOfRules: what would make a NodeCapture too large to be stored is refused, with its size.
func TestLimitOfRules(t *testing.T) {
	many := func(r *v1alpha1.CaptureRing) {
		r.Spec.Filter = &v1alpha1.Filter{}
		for range 4096 {
			r.Spec.Filter.Rules = append(r.Spec.Filter.Rules, v1alpha1.Rule{Action: v1alpha1.RuleDrop, Match: v1alpha1.RuleMatch{
				Source: "2001:db8:1111:2222:3333:4444:5555:6666", Destination: "2001:db8:1111:2222:3333:4444:5555:7777"}})
		}
	}
	p := plan.Make(plan.Input{Rings: rings{ring("a", 0, many), ring("b", 1, many), ring("c", 2), ring("d", 3, many, on("k", "v"))}})
	require.Equal(t, v1alpha1.ReasonAccepted, p.Rings["a"].Reason)
	require.Equal(t, v1alpha1.ReasonLimitExceeded, p.Rings["b"].Reason)
	require.Contains(t, p.Rings["b"].Message, "together with 1 older CaptureRings for the nodes that it may be on")
	require.Equal(t, v1alpha1.ReasonAccepted, p.Rings["c"].Reason)
	require.Equal(t, v1alpha1.ReasonLimitExceeded, p.Rings["d"].Reason, "it may be on the nodes of a")
}

// TestOrderDoesNotMatter: the same objects in another order make the same plan.
func TestOrderDoesNotMatter(t *testing.T) {
	nodes := []plan.Node{{Name: "a", Labels: map[string]string{"k": "v"}}, {Name: "b"}}
	one := plan.Make(plan.Input{
		Rings: rings{ring("m", 0), ring("o", 1, on("k", "v"))}, Clusters: clusters{cluster("c", 2, "m"), cluster("d", 1, "o", "m")}, Nodes: nodes,
	})
	other := plan.Make(plan.Input{
		Rings: rings{ring("o", 1, on("k", "v")), ring("m", 0)}, Clusters: clusters{cluster("d", 1, "o", "m"), cluster("c", 2, "m")},
		Nodes: []plan.Node{nodes[1], nodes[0]},
	})
	require.Equal(t, one, other)
	require.Equal(t, []string{"a", "b"}, one.Rings["m"].Nodes)
	require.Equal(t, []string{"a"}, one.Rings["o"].Nodes)
}

// TestPools: where two rings tell what one pool is, the older does; one that is refused keeps its own, one that goes does not.
func TestPools(t *testing.T) {
	over := func(resource, driver string) func(*v1alpha1.CaptureRing) {
		return func(r *v1alpha1.CaptureRing) {
			r.Spec.Interfaces = []v1alpha1.InterfaceSelector{{ResourceName: resource, Pool: &v1alpha1.FunctionPool{Drivers: []string{driver}}}}
		}
	}
	made := plan.Make(plan.Input{
		Rings: []v1alpha1.CaptureRing{
			ring("newer", 2, over("a/z", "igbvf")), ring("older", 1, over("a/z", "iavf")), ring("refused", 3, over("a/b", "ixgbevf"), withFilter("wrong")),
			ring("going", 0, over("a/c", "igbvf"), deleting), ring("asks", 4, func(r *v1alpha1.CaptureRing) { r.Spec.Interfaces[0].ResourceName = "a/d" }),
		},
		CheckFilter: func(string) error { return errors.New("no such thing") },
	})
	require.Equal(t, []plan.Pool{
		{Resource: "a/b", Ring: "refused", UID: "uid-refused", FunctionPool: v1alpha1.FunctionPool{Drivers: []string{"ixgbevf"}}},
		{Resource: "a/z", Ring: "older", UID: "uid-older", FunctionPool: v1alpha1.FunctionPool{Drivers: []string{"iavf"}}},
	}, made.Pools)
}

// Until nodes have a Cluster's present version in their spec, what their agents report is about the last one.
func TestOutdatedClusters(t *testing.T) {
	in := plan.Input{Nodes: []plan.Node{{Name: "a"}, {Name: "b"}}, Rings: rings{ring("r", 0)}, Clusters: clusters{cluster("c", 1, "r")}}
	made := plan.Make(in)
	require.Equal(t, []string{"a", "b"}, made.Clusters["c"].Outdated)
	in.Current = map[string]v1alpha1.NodeCaptureSpec{"a": made.Nodes["a"], "b": {}}
	require.Equal(t, []string{"b"}, plan.Make(in).Clusters["c"].Outdated)
	in.Current["b"] = made.Nodes["b"]
	require.Empty(t, plan.Make(in).Clusters["c"].Outdated)
	in.Clusters[0].Spec.Consumers = &v1alpha1.Consumers{Namespaces: []string{"elsewhere"}}
	require.Equal(t, []string{"a", "b"}, plan.Make(in).Clusters["c"].Outdated)
}
