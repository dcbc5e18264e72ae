// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcap/ringcap/node-agent/capture"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// podFacts returns the facts of a node with pods of two namespaces. web-1 has two interfaces, one pod runs on the
// node's own, one starts, and one has an interface that cannot be tapped.
func podFacts() Facts {
	f := facts()
	for index := 10; index < 14; index++ {
		f.Interfaces = append(f.Interfaces, Interface{Name: fmt.Sprintf("veth%d", index), Index: index, RxQueues: 1})
	}
	web, shop := map[string]string{"app": "web"}, map[string]string{"team": "shop"}
	f.Pods = []Pod{
		{Namespace: "shop", Name: "web-1", Labels: web, NamespaceLabels: shop, Interfaces: []int{10, 11}},
		{Namespace: "shop", Name: "db", Labels: map[string]string{"app": "db"}, NamespaceLabels: shop, Interfaces: []int{12}},
		{Namespace: "other", Name: "web-2", Labels: web, Interfaces: []int{13}},
		{Namespace: "other", Name: "web-3", Labels: web},
		{Namespace: "kube", Name: "agent", HostNetwork: true, Labels: map[string]string{"app": "agent"}},
		{Namespace: "kube", Name: "vlan", Labels: map[string]string{"app": "vlan"}, Problem: "macvlan"},
	}
	return f
}

func makeRing(t *testing.T, text string, f Facts) (Verdict, capture.Plan) {
	t.Helper()
	got := Make(v1.NodeCaptureSpec{Rings: []v1.NodeRing{written(t, text)}}, f)
	return got.Rings["mirror"], got.Plans[v1.EngineKernelModule]
}

func TestPodsAreTapped(t *testing.T) {
	for text, want := range map[string]map[string]string{
		`{podSelector: {matchLabels: {app: web}}}`:                                                  {"veth10": "shop/web-1", "veth11": "shop/web-1", "veth13": "other/web-2"},
		`{podSelector: {matchLabels: {app: web}}, namespaceSelector: {matchLabels: {team: shop}}}`:  {"veth10": "shop/web-1", "veth11": "shop/web-1"},
		`{podSelector: {}, namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: other}}}`: {"veth13": "other/web-2"},
		`{podSelector: {matchLabels: {kubernetes.io/metadata.name: db}}}`:                           {"veth12": "shop/db"},
		`{podSelector: {matchLabels: {app: web}}, name: "veth1[13]"}`:                               {"veth11": "shop/web-1", "veth13": "other/web-2"},
		`{podSelector: {matchExpressions: [{key: app, operator: In, values: [db, none]}]}}`:         {"veth12": "shop/db"},
		`{podSelector: {matchLabels: {app: none}}}`:                                                 nil,
	} {
		verdict, p := makeRing(t, "{interfaces: ["+text+"], direction: Both}", podFacts())
		assert.True(t, verdict.Ready(), "%s: %s", text, verdict.Message)
		assert.Equal(t, want, verdict.Pods, text)
		assert.Len(t, verdict.Interfaces, len(want), text)
		require.Len(t, p.Rings, 1, text)
		for _, tap := range p.Rings[0].Taps {
			assert.Equal(t, capture.Both, tap.Direction)
			assert.Contains(t, want, tap.Interface)
		}
	}
}

// With a queue for each RX queue, the selected pods' interface with the most RX queues gives the number. It does not
// decrease when that interface goes.
func TestQueuesForEachRxQueueOfPods(t *testing.T) {
	f := podFacts()
	for i := range f.Interfaces {
		f.Interfaces[i].RxQueues = map[string]int{"veth11": 2, "veth12": 8, "veth13": 4}[f.Interfaces[i].Name]
	}
	gone := podFacts()
	gone.Pods, gone.QueueCounts = gone.Pods[:1], map[string]int{"mirror": 4}
	for text, want := range map[string][2]int{
		`{podSelector: {matchLabels: {app: web}}}`:                       {4, 4},
		`{podSelector: {matchLabels: {app: web}}, name: "veth1[01]"}`:    {2, 4},
		`{podSelector: {matchLabels: {app: web}}, name: "veth12"}`:       {1, 4},
		`{podSelector: {matchLabels: {app: web}}}, {name: "*12"}`:        {8, 4},
		`{podSelector: {matchExpressions: [{key: app, operator: And}]}}`: {1, 4},
	} {
		for i, facts := range []Facts{f, gone} {
			ring := written(t, "{interfaces: ["+text+"], queues: PerRxQueue, balance: RxQueue}")
			b := builder{facts: facts}
			assert.EqualValues(t, want[i], b.countQueues(ring), text)
		}
	}
}

func TestPodsBesideAnInterface(t *testing.T) {
	verdict, _ := makeRing(t, `{interfaces: [{name: eth0}, {podSelector: {matchLabels: {app: db}}}]}`, podFacts())
	assert.True(t, verdict.Ready(), verdict.Message)
	assert.Equal(t, []string{"eth0", "veth12"}, verdict.Interfaces)
	assert.Equal(t, map[string]string{"veth12": "shop/db"}, verdict.Pods)
}

// Pods that cannot be tapped are reported. The rest is captured.
func TestPodsThatCannotBeTapped(t *testing.T) {
	verdict, _ := makeRing(t, `{interfaces: [{podSelector: {matchLabels: {app: agent}}}]}`, podFacts())
	assert.True(t, verdict.Ready())
	assert.Equal(t, []string{"kube/agent: hostNetwork: it has no interface of its own"}, verdict.PodsNotTapped)

	// The node's own interfaces are not that pod's, even if they are listed as the pod's.
	f := podFacts()
	f.Pods[4].Interfaces = []int{f.Interfaces[0].Index, 13}
	verdict, p := makeRing(t, `{interfaces: [{podSelector: {matchLabels: {app: agent}}}]}`, f)
	assert.True(t, verdict.Ready())
	assert.Empty(t, verdict.Pods)
	assert.Empty(t, p.Rings[0].Taps)

	verdict, p = makeRing(t, `{interfaces: [{podSelector: {}}]}`, podFacts())
	assert.True(t, verdict.Planned)
	assert.Equal(t, v1.ReasonPodNotTapped, verdict.Reason)
	assert.Equal(t, "spec.interfaces[].podSelector: kube/vlan: macvlan", verdict.Message)
	assert.Len(t, p.Rings[0].Taps, 4)
	assert.Len(t, verdict.PodsNotTapped, 2)
}

// Beyond the limit, the earliest ones stay.
func TestMorePodsThanARingTaps(t *testing.T) {
	f := podFacts()
	f.Interfaces = append(f.Interfaces, Interface{Name: "late0", Index: 1000})
	for i := range maxTaps + 5 {
		f.Interfaces = append(f.Interfaces, Interface{Name: fmt.Sprintf("cali%d", i), Index: 100 + i})
		f.Pods = append(f.Pods, Pod{Namespace: "n", Name: fmt.Sprintf("p%d", i), Labels: map[string]string{"many": ""}, Interfaces: []int{100 + i}})
	}
	verdict, p := makeRing(t, `{interfaces: [{podSelector: {matchLabels: {many: ""}}}, {name: late0}]}`, f)
	assert.Equal(t, v1.ReasonPodNotTapped, verdict.Reason)
	assert.Contains(t, verdict.Message, fmt.Sprintf("n/p%d: the ring has %d interfaces", maxTaps+4, maxTaps))
	require.Len(t, p.Rings[0].Taps, maxTaps)
	assert.Equal(t, "cali0", p.Rings[0].Taps[0].Interface)
	assert.Equal(t, "late0", p.Rings[0].Taps[maxTaps-1].Interface)
	assert.Len(t, verdict.PodsNotTapped, 6)
	assert.Len(t, verdict.Pods, maxTaps-1)
}

// While the pods are not known, taps stay. So an agent that has just started loses no packets.
func TestTapsStayWhilePodsAreUnknown(t *testing.T) {
	f := podFacts()
	f.Pods, f.PodsUnknown = nil, "forbidden"
	f.Taps = map[string][]capture.Tap{"mirror": {{Index: 10, Direction: capture.Both}, {Index: 99}}}
	verdict, p := makeRing(t, `{interfaces: [{podSelector: {}}], direction: Both}`, f)
	assert.Equal(t, v1.ReasonPodNotTapped, verdict.Reason)
	assert.Contains(t, verdict.Message, "forbidden")
	assert.Equal(t, []capture.Tap{{Interface: "veth10", Index: 10, Direction: capture.Both}}, p.Rings[0].Taps)
}

func TestPodSelectorsAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		`{interfaces: [{podSelector: {}}], transparentMode: 2}`:                                             "spec.transparentMode 2: the interfaces of pods are captured in mode 0",
		`{interfaces: [{podSelector: {matchLabels: {"no label": x}}}]}`:                                     "spec.interfaces[0].podSelector",
		`{interfaces: [{podSelector: {}, namespaceSelector: {matchExpressions: [{key: a, operator: X}]}}]}`: "spec.interfaces[0].namespaceSelector",
		`{interfaces: [{podSelector: {}, name: "["}]}`:                                                      `spec.interfaces[0].name "["`,
		`{interfaces: [{podSelector: {}, rxQueues: "1"}]}`:                                                  "spec.interfaces[0].rxQueues 1: veth10 has 1 RX queues",
	} {
		verdict, _ := makeRing(t, text, podFacts())
		assert.False(t, verdict.Planned, text)
		assert.Contains(t, verdict.Message, want, text)
	}
	f := podFacts()
	f.NoPods = true
	verdict, _ := makeRing(t, `{interfaces: [{podSelector: {}}]}`, f)
	assert.Contains(t, verdict.Message, "without Kubernetes")
}
