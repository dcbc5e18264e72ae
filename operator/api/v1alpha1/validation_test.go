// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
	"github.com/ringcap/ringcap/operator/testenv"
)

var env testenv.Env

func TestMain(m *testing.M) { os.Exit(env.Run(m)) }

const ring = `
apiVersion: ringcap.io/v1alpha1
kind: CaptureRing
metadata: {name: NAME}
spec:
  interfaces: [{name: mirror0}]
`

const cluster = `
apiVersion: ringcap.io/v1alpha1
kind: Cluster
metadata: {name: NAME}
spec:
  rings: [mirror]
  queues: 2
`

const podCapture = `
apiVersion: ringcap.io/v1alpha1
kind: PodCapture
metadata: {name: pods, namespace: default}
spec:
  podSelector: {}
`

func create(t *testing.T, c client.Client, manifest string) (*unstructured.Unstructured, error) {
	t.Helper()
	u := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(manifest), &u.Object))
	err := c.Create(t.Context(), u)
	if err == nil {
		t.Cleanup(func() { require.NoError(t, client.IgnoreNotFound(c.Delete(context.Background(), u))) })
	}
	return u, err
}

// TestRefusedBySchema: each bad value is refused with the field's name and what to write instead.
func TestRefusedBySchema(t *testing.T) {
	name := func(manifest, name string) string { return strings.Replace(manifest, "NAME", name, 1) }
	long := strings.Repeat("x", 56)
	tests := map[string]struct{ manifest, field, message string }{
		"ring, no queues":                {name(ring, "r") + "  queues: 0", "spec.queues", "must be 1 to 256"},
		"ring, too many queues":          {name(ring, "r") + "  queues: 100000", "spec.queues", "must be 1 to 256"},
		"cluster, no queues":             {strings.Replace(name(cluster, "c"), "queues: 2", "queues: 0", 1), "spec.queues", "must be 1 to 256"},
		"cluster, too many queues":       {strings.Replace(name(cluster, "c"), "queues: 2", "queues: 100000", 1), "spec.queues", "must be 1 to 256"},
		"queues is a word":               {name(ring, "r") + "  queues: many", "spec.queues", "or PerRxQueue"},
		"ring's long name":               {name(ring, long), "name", "at most 55"},
		"cluster's dotted name":          {name(cluster, "a.b"), "name", "a-z, 0-9 and '-'"},
		"no interfaces":                  {strings.Replace(name(ring, "r"), "[{name: mirror0}]", "[]", 1), "spec.interfaces", "at least 1"},
		"interface with a slash":         {strings.Replace(name(ring, "r"), "mirror0", "a/b", 1), "spec.interfaces[0].name", "ip-link(8)"},
		"interface's long name":          {strings.Replace(name(ring, "r"), "mirror0", "sixteen-letters-", 1), "spec.interfaces[0].name", "15"},
		"no rings":                       {strings.Replace(name(cluster, "c"), "[mirror]", "[]", 1), "spec.rings", "at least 1"},
		"a ring twice":                   {strings.Replace(name(cluster, "c"), "[mirror]", "[a, a]", 1), "spec.rings", "Duplicate"},
		"unknown engine":                 {name(ring, "r") + "  engine: DPDK", "spec.engine", `"Auto", "KernelModule", "EBPF"`},
		"unknown direction":              {name(ring, "r") + "  direction: Up", "spec.direction", `"Receive"`},
		"unknown balance":                {name(cluster, "c") + "  balance: Luck", "spec.balance", `"Flow"`},
		"mode of a later version":        {name(ring, "r") + "  transparentMode: 3", "spec.transparentMode", "must be 0 or Stack (any driver)"},
		"a mode of another name":         {name(ring, "r") + "  transparentMode: Driving", "spec.transparentMode", "2 or RingOnly"},
		"no snap length":                 {name(ring, "r") + "  snapLength: 0", "spec.snapLength", "64"},
		"few slots":                      {name(ring, "r") + "  slots: 1", "spec.slots", "16"},
		"high watermark":                 {name(ring, "r") + "  watermark: 100", "spec.watermark", "90"},
		"zero timeout":                   {name(ring, "r") + "  watermarkTimeout: 0s", "spec.watermarkTimeout", "between 1ms and 10s"},
		"long timeout":                   {name(cluster, "c") + "  watermarkTimeout: 1m", "spec.watermarkTimeout", "between 1ms and 10s"},
		"timeout without a unit":         {name(ring, "r") + "  watermarkTimeout: '10'", "spec.watermarkTimeout", "between 1ms and 10s"},
		"timeout is a number":            {name(ring, "r") + "  watermarkTimeout: 10", "spec.watermarkTimeout", "with its unit, such as 10ms"},
		"timeout of a day":               {name(ring, "r") + "  watermarkTimeout: 1d", "spec.watermarkTimeout", "with its unit, such as 10ms"},
		"memory limit in MB":             {name(ring, "r") + "  memoryLimit: 256MB", "spec.memoryLimit", "such as 256Mi (units are Ki, Mi, Gi, Ti)"},
		"negative memory limit":          {name(cluster, "c") + "  memoryLimit: -1Gi", "spec.memoryLimit", "at least 4Ki"},
		"memory limit in thousandths":    {name(ring, "r") + "  memoryLimit: 100m", "spec.memoryLimit", "at least 4Ki"},
		"memory limit of ten":            {name(ring, "r") + "  memoryLimit: 10", "spec.memoryLimit", "at least 4Ki"},
		"a prefix with host bits":        {name(ring, "r") + "  filter: {rules: [{action: Drop, match: {source: 10.0.0.1/8}}]}", "spec.filter.rules", "write 10.0.0.0/8 for the network of 10.0.0.1/8"},
		"an inner prefix with host bits": {name(cluster, "c") + "  filter: {rules: [{action: Drop, match: {innerDestination: 'fd00::1/8'}}]}", "spec.filter.rules", "a prefix has bits behind its length"},
		"dropping without rules":         {name(ring, "r") + "  filter: {defaultAction: Drop}", "spec.filter", "drops everything: give rules"},
		"memory limit is a word":         {name(ring, "r") + "  memoryLimit: lots", "spec.memoryLimit", "spec.memoryLimit"},
		"no label of nodes":              {name(ring, "r") + "  nodeSelector: {}", "spec.nodeSelector", "leave nodeSelector out for all nodes"},
		"empty labels of nodes":          {name(ring, "r") + "  nodeSelector: {matchLabels: {}}", "spec.nodeSelector", "leave nodeSelector out for all nodes"},
		"nodes as they once were":        {name(ring, "r") + "  nodeSelector: {role: sensor}", "spec.nodeSelector", "nodeSelector: {matchLabels: {role: sensor}}"},
		"nodes by a bad operator":        {name(ring, "r") + "  nodeSelector: {matchExpressions: [{key: role, operator: Is, values: [a]}]}", "spec.nodeSelector.matchExpressions[0].operator", `"In", "NotIn"`},
		"nodes by no value":              {name(ring, "r") + "  nodeSelector: {matchExpressions: [{key: role, operator: In}]}", "spec.nodeSelector.matchExpressions[0]", "In and NotIn need values"},
		"nodes by useless values":        {name(ring, "r") + "  nodeSelector: {matchExpressions: [{key: role, operator: Exists, values: [a]}]}", "spec.nodeSelector.matchExpressions[0]", "leave values out with Exists"},
		"nodes by a bad key":             {name(ring, "r") + "  nodeSelector: {matchExpressions: [{key: a b, operator: Exists}]}", "spec.nodeSelector.matchExpressions[0].key", "such as role or kubernetes.io/hostname"},
		"filter too long":                {name(ring, "r") + "  filter: {bpf: '" + strings.Repeat("x", 8193) + "'}", "spec.filter.bpf", "8192"},
	}
	c := env.Client(t)
	for test, tc := range tests {
		t.Run(test, func(t *testing.T) {
			requireRefused(t, c, tc.manifest, tc.field, tc.message)
		})
	}
}

// TestAllQueuesInAWord: the error lists the values of queues, and does not mention validation rules about other values.
func TestAllQueuesInAWord(t *testing.T) {
	_, err := create(t, env.Client(t), strings.Replace(ring, "NAME", "r", 1)+"  queues: all")
	require.ErrorContains(t, err, "must be 1 to 256")
	require.NotContains(t, err.Error(), "RxQueue gives each")
}

// TestPodCapturesStayInTheirNamespace: what reaches further is refused, and so are fields that only a CaptureRing has.
func TestPodCapturesStayInTheirNamespace(t *testing.T) {
	c := env.Client(t)
	filter := func(text string) string { return podCapture + "  filter: {" + text + "}" }
	for manifest, message := range map[string]string{
		strings.Replace(podCapture, "  podSelector: {}", "  queues: 1", 1):           "spec.podSelector",
		filter("plugins: [{name: p}]"):                                               "only a CaptureRing has them",
		filter("rules: [{action: Pass}, {action: Queue, queue: {cluster: others}}]"): "the actions Pass and Drop here",
		filter("rules: [{action: Reflect, reflectTo: eth0}]"):                        "the actions Pass and Drop here",
		filter("rules: [{action: Learn}]"):                                           "the actions Pass and Drop here",
		podCapture + "  queues: 17":                                                  "spec.queues",
	} {
		requireRefused(t, c, manifest, "spec", message)
	}
	c = client.WithFieldValidation(c, metav1.FieldValidationStrict)
	for _, field := range []string{
		"namespaceSelector: {}", "interfaces: [{name: eth0}]", "nodeTraffic: Allow", "transparentMode: 2", "nic: {}", "engine: EBPF",
		"consumers: {namespaces: ['*']}", "memoryLimit: 1Ti", "quickMode: true", "defragment: true",
	} {
		_, err := create(t, c, podCapture+"  "+field)
		require.ErrorContains(t, err, "unknown field \"spec."+strings.Split(field, ":")[0]+"\"")
	}
	_, err := create(t, c, filter("bpf: tcp, rules: [{action: Drop, match: {protocol: UDP}}], vlans: [1], payload: [{text: x}]")+"\n  sampling: {oneIn: 2}")
	require.NoError(t, err)
}

// requireRefused requires that the API server names the field and the problem.
func requireRefused(t *testing.T, c client.Client, manifest, field, message string) {
	t.Helper()
	_, err := create(t, c, manifest)
	require.Error(t, err)
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	require.ErrorContains(t, err, field)
	require.ErrorContains(t, err, message)
}

// TestDefaults: what the API server fills in is what Default fills in where there is none.
func TestDefaults(t *testing.T) {
	c := env.Client(t)

	u, err := create(t, c, strings.Replace(ring, "NAME", "defaults", 1))
	require.NoError(t, err)
	var served, local v1alpha1.CaptureRing
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(u), &served))
	require.NoError(t, yaml.Unmarshal([]byte(ring), &local))
	local.Spec.Default()
	requireSameYAML(t, local.Spec, served.Spec)

	u, err = create(t, c, strings.Replace(cluster, "NAME", "defaults", 1))
	require.NoError(t, err)
	var servedCluster, localCluster v1alpha1.Cluster
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(u), &servedCluster))
	require.NoError(t, yaml.Unmarshal([]byte(cluster), &localCluster))
	localCluster.Spec.Default()
	requireSameYAML(t, localCluster.Spec, servedCluster.Spec)
}

// TestNodeCaptureHoldsDefaultedSpecs: a NodeCapture made of defaulted specs is valid and comes back as it was sent.
func TestNodeCaptureHoldsDefaultedSpecs(t *testing.T) {
	c := env.Client(t)
	var r v1alpha1.CaptureRing
	var cl v1alpha1.Cluster
	require.NoError(t, yaml.Unmarshal([]byte(ring), &r))
	require.NoError(t, yaml.Unmarshal([]byte(cluster), &cl))
	r.Spec.Default()
	cl.Spec.Default()
	nc := &v1alpha1.NodeCapture{}
	nc.Name = "node-1.example.com"
	nc.Spec.Rings = []v1alpha1.NodeRing{{Name: "mirror", UID: "u1", Spec: r.Spec}}
	nc.Spec.Clusters = []v1alpha1.NodeCluster{{Name: "ids", UID: "u2", Spec: cl.Spec}}
	sent := nc.Spec.DeepCopy()
	require.NoError(t, c.Create(t.Context(), nc))
	t.Cleanup(func() { require.NoError(t, c.Delete(context.Background(), nc)) })
	requireSameYAML(t, *sent, nc.Spec)
	require.EqualValues(t, 1, nc.Generation)

	require.NoError(t, c.Update(t.Context(), nc))
	require.EqualValues(t, 1, nc.Generation, "an update that changes nothing must not look like a change to the agent")
}

// TestNodeCaptureThatDoesNotDecode: the API server refuses what is not a list of entries, and takes entries with wrong
// specs. A list of NodeCaptures then has all others, and the problem of that one.
func TestNodeCaptureThatDoesNotDecode(t *testing.T) {
	c := env.Client(t)
	apply := func(name, spec string) error {
		u := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal([]byte("apiVersion: ringcap.io/v1alpha1\nkind: NodeCapture\nmetadata: {name: "+name+"}\nspec: "+spec), u))
		err := c.Create(t.Context(), u)
		if err == nil {
			t.Cleanup(func() { require.NoError(t, c.Delete(context.Background(), u)) })
		}
		return err
	}
	for _, spec := range []string{
		"{rings: mirror}", "{rings: [mirror]}", "{rings: [{name: mirror, spec: all}]}", "{rings: [{name: 5, spec: {}}]}",
		"{rings: [{spec: {}}]}", "{clusters: [{name: ids, version: new, spec: {}}]}", "{rings: [{name: a, spec: {}}, {name: a, spec: {}}]}",
	} {
		require.True(t, apierrors.IsInvalid(apply("refused", spec)), spec)
	}
	require.NoError(t, apply("wrong", "{rings: [{name: mirror, spec: {snapLength: long}}]}"))
	require.NoError(t, apply("right", "{rings: [{name: mirror, spec: {snapLength: 96}}]}"))
	var list v1alpha1.NodeCaptureList
	require.NoError(t, c.List(t.Context(), &list))
	found := map[string]v1alpha1.NodeCaptureSpec{}
	for _, nc := range list.Items {
		found[nc.Name] = nc.Spec
	}
	require.Contains(t, found["wrong"].Undecodable, "snapLength")
	require.Empty(t, found["wrong"].Rings)
	require.Empty(t, found["right"].Undecodable)
	require.EqualValues(t, 96, found["right"].Rings[0].Spec.SnapLength)
}

func requireSameYAML(t *testing.T, want, got any) {
	t.Helper()
	w, err := yaml.Marshal(want)
	require.NoError(t, err)
	g, err := yaml.Marshal(got)
	require.NoError(t, err)
	require.Equal(t, string(w), string(g))
}

// TestTwoRingsOfOneName: the API server has one object of a name; the second creation fails and changes nothing.
func TestTwoRingsOfOneName(t *testing.T) {
	c := env.Client(t)
	first, err := create(t, c, strings.Replace(ring, "NAME", "twice", 1))
	require.NoError(t, err)
	_, err = create(t, c, strings.Replace(ring, "NAME", "twice", 1)+"  queues: 4")
	require.True(t, apierrors.IsAlreadyExists(err), "%v", err)
	require.ErrorContains(t, err, `"twice" already exists`)
	var is v1alpha1.CaptureRing
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(first), &is))
	require.Nil(t, is.Spec.Queues)
}

// TestTransparentModeByItsWord: who reads a ring gets the number.
func TestTransparentModeByItsWord(t *testing.T) {
	c := env.Client(t)
	for mode, word := range []string{"Stack", "Driver", "RingOnly"} {
		u, err := create(t, c, strings.Replace(ring, "NAME", "by-word", 1)+"  transparentMode: "+word)
		require.NoError(t, err)
		var r v1alpha1.CaptureRing
		require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(u), &r))
		require.EqualValues(t, mode, r.Spec.Mode())
		text, err := yaml.Marshal(r.Spec)
		require.NoError(t, err)
		require.Contains(t, string(text), fmt.Sprintf("transparentMode: %d\n", mode))
		require.NoError(t, c.Delete(t.Context(), u))
	}
}

// TestOneNameForAllKinds: kubectl get ringcap.
func TestOneNameForAllKinds(t *testing.T) {
	c := env.Client(t)
	for _, kind := range []string{"capturerings", "clusters", "nodecaptures"} {
		crd := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}}
		require.NoError(t, c.Get(t.Context(), client.ObjectKey{Name: kind + ".ringcap.io"}, crd))
		categories, _, _ := unstructured.NestedStringSlice(crd.Object, "status", "acceptedNames", "categories")
		require.Contains(t, categories, "ringcap", kind)
	}
}
