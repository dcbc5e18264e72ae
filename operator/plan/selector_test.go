// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
	"github.com/ringcap/ringcap/operator/plan"
)

func onNodes(t *testing.T, selector string) func(*v1alpha1.CaptureRing) {
	return func(r *v1alpha1.CaptureRing) {
		require.NoError(t, yaml.Unmarshal([]byte(selector), &r.Spec.NodeSelector))
	}
}

var threeNodes = []plan.Node{
	{Name: "a", Labels: map[string]string{"kubernetes.io/hostname": "a", "role": "sensor"}},
	{Name: "b", Labels: map[string]string{"kubernetes.io/hostname": "b"}},
	{Name: "c", Labels: map[string]string{"kubernetes.io/hostname": "c", "role": "web"}},
}

// TestNodeSelectors: the nodes that a nodeSelector puts a ring on; one that cannot be read puts it on none.
func TestNodeSelectors(t *testing.T) {
	for selector, want := range map[string]struct {
		nodes           []string
		reason, message string
	}{
		"null":                        {[]string{"a", "b", "c"}, "Accepted", ""},
		"{matchLabels: {role: web}}":  {[]string{"c"}, "Accepted", ""},
		"{matchLabels: {role: null}}": {nil, "Accepted", ""},
		"{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [a, b]}]}":                           {[]string{"a", "b"}, "Accepted", ""},
		"{matchExpressions: [{key: role, operator: NotIn, values: [web]}]}":                                           {[]string{"a", "b"}, "Accepted", ""},
		"{matchLabels: {role: web}, matchExpressions: [{key: role, operator: Exists}]}":                               {[]string{"c"}, "Accepted", ""},
		"{matchLabels: {role: web}, matchExpressions: [{key: kubernetes.io/hostname, operator: NotIn, values: [c]}]}": {nil, "Accepted", ""},
		"{matchExpressions: [{key: role, operator: DoesNotExist}]}":                                                   {[]string{"b"}, "Accepted", ""},
		"{role: sensor}":     {[]string{"a"}, "Accepted", `kubectl patch capturering r --type=merge -p '{"spec":{"nodeSelector":{"matchLabels":{"role":"sensor"},"role":null}}}'`},
		"{matchLabels: odd}": {nil, "Accepted", "as in earlier releases"},
		"{}":                 {nil, "InvalidNodeSelector", "spec.nodeSelector is {}, which selects no node: leave it out for all nodes"},
		"{matchLabels: {}}":  {nil, "InvalidNodeSelector", "leave it out for all nodes"},
		"{matchNames: [a]}":  {nil, "InvalidNodeSelector", "spec.nodeSelector.matchNames: there is no such field"},
		"{matchLabels: {role: web}, role: sensor}":             {nil, "InvalidNodeSelector", "spec.nodeSelector.role: there is no such field"},
		"{matchLabels: {a b: web}}":                            {nil, "InvalidNodeSelector", "spec.nodeSelector.matchLabels[a b]"},
		"{matchExpressions: [{key: role, operator: Perhaps}]}": {nil, "InvalidNodeSelector", "spec.nodeSelector.matchExpressions[0]"},
		"{matchExpressions: [{key: role, operator: In}]}":      {nil, "InvalidNodeSelector", "spec.nodeSelector.matchExpressions[0]"},
	} {
		t.Run(selector, func(t *testing.T) {
			p := plan.Make(plan.Input{Rings: rings{ring("r", 0, onNodes(t, selector))}, Nodes: threeNodes})
			require.Equal(t, want.nodes, p.Rings["r"].Nodes)
			require.Equal(t, want.reason, p.Rings["r"].Reason, p.Rings["r"].Message)
			require.Contains(t, p.Rings["r"].Message, want.message)
		})
	}
}

// TestAnEmptySelectorTakesNothingAway: it meant all nodes once. Nodes keep the ring, and no other gets it.
func TestAnEmptySelectorTakesNothingAway(t *testing.T) {
	before := plan.Make(plan.Input{Rings: rings{ring("r", 0, onNodes(t, "{matchLabels: {role: web}}"))}, Nodes: threeNodes})
	after := plan.Make(plan.Input{Rings: rings{ring("r", 0, onNodes(t, "{}"))}, Nodes: threeNodes, Current: before.Nodes})
	require.Equal(t, []string{"c"}, after.Rings["r"].Nodes)
	require.Equal(t, before.Nodes, after.Nodes)
}

// TestNodesAreToldWhereAnInterfaceMustBe: of a selector an agent needs no more.
func TestNodesAreToldWhereAnInterfaceMustBe(t *testing.T) {
	r := ring("r", 0, onNodes(t, "{matchLabels: {role: web}}"))
	r.Spec.Interfaces = []v1alpha1.InterfaceSelector{{Name: "eth0"}, {Name: "eth*"}, {Driver: "igb"}, {Name: "eth1", WhenMissing: v1alpha1.WhenMissingIgnore}}
	was := r.DeepCopy()
	told := plan.Make(plan.Input{Rings: rings{r}, Nodes: threeNodes}).Nodes["c"].Rings[0].Spec
	require.Nil(t, told.NodeSelector)
	require.Equal(t, []v1alpha1.InterfaceSelector{
		{Name: "eth0", WhenMissing: v1alpha1.WhenMissingReport}, {Name: "eth*"}, {Driver: "igb"}, {Name: "eth1", WhenMissing: v1alpha1.WhenMissingIgnore},
	}, told.Interfaces)
	require.Equal(t, was, &r, "the ring itself is shared")
}

// TestRingsThatMeetOnNoNode: two rings over one interface in modes that exclude each other do so only where both may be.
func TestRingsThatMeetOnNoNode(t *testing.T) {
	for _, tc := range []struct {
		a, b  string
		apart bool
	}{
		{"{matchLabels: {role: web}}", "{matchLabels: {role: sensor}}", true},
		{"{matchLabels: {role: web}}", "{matchLabels: {pool: sensor}}", false},
		{"{matchLabels: {role: web}}", "{matchExpressions: [{key: role, operator: In, values: [web, sensor]}]}", false},
		{"{matchLabels: {role: web}}", "{matchExpressions: [{key: role, operator: In, values: [db, sensor]}]}", true},
		{"{matchLabels: {role: web}}", "{matchExpressions: [{key: role, operator: NotIn, values: [web]}]}", true},
		{"{matchLabels: {role: web}}", "{matchExpressions: [{key: role, operator: NotIn, values: [db]}]}", false},
		{"{matchExpressions: [{key: role, operator: Exists}]}", "{matchExpressions: [{key: role, operator: DoesNotExist}]}", true},
		{"{matchExpressions: [{key: role, operator: NotIn, values: [web]}]}", "{matchExpressions: [{key: role, operator: DoesNotExist}]}", false},
		{"null", "{matchLabels: {role: sensor}}", false},
	} {
		for _, pair := range [][2]string{{tc.a, tc.b}, {tc.b, tc.a}} {
			p := plan.Make(plan.Input{Rings: rings{ring("a", 0, mode(2), onNodes(t, pair[0])), ring("b", 1, mode(0), onNodes(t, pair[1]))}})
			require.Equal(t, tc.apart, p.Rings["b"].Accepted(), "%v", pair)
		}
	}
}

// TestAllInterfacesAreRemarked: lo and the cluster's network are seldom meant.
func TestAllInterfacesAreRemarked(t *testing.T) {
	r := ring("r", 0)
	r.Spec.Interfaces = []v1alpha1.InterfaceSelector{{Name: "eth*"}, {Name: "*", Driver: "igb"}, {Name: "*"}}
	verdict := plan.Make(plan.Input{Rings: rings{r}}).Rings["r"]
	require.True(t, verdict.Accepted())
	require.Equal(t, "the spec is valid; spec.interfaces[2].name '*' is every interface of a node: lo, the cluster's network and all pods, too", verdict.Message)
}
