// SPDX-License-Identifier: Apache-2.0

package command

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringcap/ringcap/cli/capture"
	"github.com/ringcap/ringcap/cli/fleet"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// shop is a namespace with a Deployment. Its pods are on two nodes of the healthy fleet and on one without an agent.
func shop(t *testing.T) (*connection, *fleet.Snapshot) {
	t.Helper()
	web := map[string]string{"app": "web"}
	meta := func(name string, labels map[string]string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Namespace: "default", Labels: labels}
	}
	pod := func(name, node string, change ...func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: meta(name, web), Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
		for _, c := range change {
			c(p)
		}
		return p
	}
	have := append(objects(t, "healthy.yaml"),
		&appsv1.Deployment{ObjectMeta: meta("web", nil), Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: web}}},
		pod("web-1", "node-ebpf"), pod("web-2", "node-kmod"), pod("web-3", "node-kmod"), pod("web-4", "bare"), pod("web-5", ""),
		pod("done", "idle", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }),
		pod("host", "node-ebpf", func(p *corev1.Pod) { p.Spec.HostNetwork = true }),
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-kmod", Labels: map[string]string{corev1.LabelHostname: "kmod"}}},
	)
	a, _, _ := over(t, have)
	c, err := a.connect()
	require.NoError(t, err)
	s, err := fleet.Read(t.Context(), c, now)
	require.NoError(t, err)
	return c, &s
}

func TestADeploymentIsCaptured(t *testing.T) {
	c, s := shop(t)
	w, err := findWorkload(t.Context(), c, "deploy/web")
	require.NoError(t, err)
	plan, missing, err := w.plan(t.Context(), c, s, captureFlags{filter: "port 53", image: "agent:1", snapLength: 9000})
	require.NoError(t, err)
	assert.Equal(t, []string{
		"pod host has the network of its node node-ebpf: capture a ring over that, with -f", "node bare: no agent of ringcap runs there",
	}, missing)
	require.Len(t, plan.Nodes, 2)
	assert.Equal(t, "node-ebpf", plan.Nodes[0].Name)
	assert.Equal(t, "ringcap-cli-"+plan.ID+"-pods", plan.Ring)
	ring := plan.MadeRing()
	assert.Equal(t, []string{"default"}, ring.Spec.Consumers.Namespaces)
	assert.Equal(t, plan.Cluster().Labels, ring.Labels)
	assert.Equal(t, []string{ring.Name}, plan.Cluster().Spec.Rings)
	assert.Nil(t, ring.Spec.NodeSelector, "a node that cannot be looked up cannot be selected")
	assert.Equal(t, v1.DirectionBoth, ring.Spec.Direction)
	assert.Equal(t, "port 53", ring.Spec.Filter.BPF)
	assert.EqualValues(t, 9000, ring.Spec.SnapLength)
	assert.Equal(t, map[string]string{"app": "web"}, ring.Spec.Interfaces[0].PodSelector.MatchLabels)
	assert.Equal(t, map[string]string{nameLabel: "default"}, ring.Spec.Interfaces[0].NamespaceSelector.MatchLabels)

	plan.Nodes = plan.Nodes[:1]
	assert.ErrorContains(t, w.strays(t.Context(), c, plan, captureFlags{}), "not captured there: bare, node-kmod")
	assert.NoError(t, w.strays(t.Context(), c, plan, captureFlags{nodes: []string{"node-ebpf"}}))
}

// TestOnlyTheNamedNodesAreCaptured: of more than one, too.
func TestOnlyTheNamedNodesAreCaptured(t *testing.T) {
	c, s := shop(t)
	require.NoError(t, c.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-ebpf", Labels: map[string]string{corev1.LabelHostname: "ebpf"}}}))
	w, err := findWorkload(t.Context(), c, "deploy/web")
	require.NoError(t, err)
	for nodes, want := range map[string]string{
		"node-ebpf,node-kmod": "kubernetes.io/hostname in (ebpf,kmod)", "node-kmod": "kubernetes.io/hostname=kmod", "": "kubernetes.io/hostname in (ebpf,kmod)",
	} {
		f := captureFlags{image: "agent:1", snapLength: 1536}
		if nodes != "" {
			f.nodes = strings.Split(nodes, ",")
		}
		plan, _, err := w.plan(t.Context(), c, s, f)
		require.NoError(t, err)
		assert.Equal(t, want, plan.Made.NodeSelector.String(), nodes)
	}
}

func TestAPodIsCaptured(t *testing.T) {
	c, s := shop(t)
	w, err := findWorkload(t.Context(), c, "pod/web-2")
	require.NoError(t, err)
	plan, missing, err := w.plan(t.Context(), c, s, captureFlags{image: "agent:1"})
	require.NoError(t, err)
	assert.Empty(t, missing)
	assert.Equal(t, "node-kmod", plan.Nodes[0].Name)
	assert.Equal(t, "kubernetes.io/hostname=kmod", plan.Made.NodeSelector.String())
	assert.Equal(t, map[string]string{nameLabel: "web-2"}, plan.Made.Interfaces[0].PodSelector.MatchLabels)
	assert.Nil(t, plan.Made.Filter)
}

// TestAPodIsCapturedWithoutRightsInTheCluster: by a PodCapture, on all nodes that have such pods, of which nothing else is known.
func TestAPodIsCapturedWithoutRightsInTheCluster(t *testing.T) {
	c, _ := shop(t)
	require.False(t, onlyOwn(t.Context(), c), "who may nothing is told so by what is asked for first")
	w, err := findWorkload(t.Context(), c, "deploy/web")
	require.NoError(t, err)
	plan, missing, err := w.plan(t.Context(), c, nil, captureFlags{filter: "port 53", image: "agent:1", snapLength: 9000, slots: 64})
	require.NoError(t, err)
	assert.Equal(t, []string{"pod host has the network of its node node-ebpf: capture a ring over that, with -f"}, missing)
	assert.Len(t, plan.Nodes, 3)
	assert.EqualValues(t, 4, plan.Pods)
	assert.Nil(t, plan.MadeRing())
	assert.Equal(t, v1.PodCaptureSpec{
		PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, Slots: 64, SnapLength: 9000,
		Filter: &v1.Filter{BPF: "port 53"},
	}, plan.PodCapture().Spec)
	assert.Equal(t, "default", plan.PodCapture().Namespace)
}

func TestWorkloadsThatCannotBeCaptured(t *testing.T) {
	c, s := shop(t)
	for target, want := range map[string]string{
		"pod/host":  "has the network of its node",
		"pod/web-4": "node bare: no agent of ringcap runs there",
		"pod/web-5": "none of its pods runs",
		"pod/done":  "none of its pods runs",
	} {
		w, err := findWorkload(t.Context(), c, target)
		require.NoError(t, err)
		_, _, err = w.plan(t.Context(), c, s, captureFlags{image: "agent:1"})
		assert.ErrorContains(t, err, want, target)
	}
	w, err := findWorkload(t.Context(), c, "po/web-1")
	require.NoError(t, err)
	_, _, err = w.plan(t.Context(), c, s, captureFlags{image: "agent:1", nodes: []string{"node-kmod"}})
	assert.ErrorContains(t, err, "no pod of po/web-1 in namespace default runs on a node node-kmod")
	_, err = findWorkload(t.Context(), c, "pod/none")
	assert.True(t, client.IgnoreNotFound(err) == nil)
}

// TestARingMustAdmitTheCapture: the error states what to do, before anything is made.
func TestARingMustAdmitTheCapture(t *testing.T) {
	a, _, _ := over(t, []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"team": "web"}}}})
	c, err := a.connect()
	require.NoError(t, err)
	c.namespace = "shop"
	byLabel := func(team string) *v1.Consumers {
		return &v1.Consumers{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": team}}}
	}
	for name, test := range map[string]struct {
		consumers *v1.Consumers
		want      []string
	}{
		"nobody": {nil, []string{"CaptureRing mirror names no namespace", `-p '{"spec":{"consumers":{"namespaces":["shop"]}}}'`}},
		"others": {&v1.Consumers{Namespaces: []string{"a", "b"}}, []string{
			"names a, b, not shop", "capture in a namespace that the ring admits (--namespace a), or admit this one: ",
			`kubectl patch capturering mirror --type=merge -p '{"spec":{"consumers":{"namespaces":["a","b","shop"]}}}'`,
		}},
		"other labels": {byLabel("ids"), []string{"labels team=ids, not shop"}},
		"named":        {&v1.Consumers{Namespaces: []string{"shop"}}, nil},
		"labelled":     {byLabel("web"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			ring := &v1.CaptureRing{ObjectMeta: metav1.ObjectMeta{Name: "mirror"}}
			ring.Spec.Consumers = test.consumers
			err := admitted(t.Context(), c, ring)
			if test.want == nil {
				require.NoError(t, err)
			}
			for _, want := range test.want {
				require.ErrorContains(t, err, want)
			}
		})
	}
}

// TestCapturesPullAsAgentsDo: the pods have the agents' image and the names of their secrets, unless others are given.
func TestCapturesPullAsAgentsDo(t *testing.T) {
	agents := appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "agents", Namespace: "ringcap-system", Labels: map[string]string{
		"app.kubernetes.io/name": "ringcap", "app.kubernetes.io/component": "agent",
	}}}
	agents.Spec.Template.Spec = corev1.PodSpec{
		Containers: []corev1.Container{{Name: "agent", Image: "registry.example/agent@sha256:0a"}}, ImagePullSecrets: []corev1.LocalObjectReference{{Name: "theirs"}},
	}
	a, _, _ := over(t, []client.Object{&agents})
	c, err := a.connect()
	require.NoError(t, err)
	pulls := func(f captureFlags) (string, []corev1.LocalObjectReference) {
		plan, _, err := finishPlan(t.Context(), c, newPlan(c, f, "id"), nil)
		require.NoError(t, err)
		pod := plan.Pod(capture.Node{Name: "n"}, plan.Cluster())
		return pod.Spec.Containers[0].Image, pod.Spec.ImagePullSecrets
	}
	image, secrets := pulls(captureFlags{})
	require.Equal(t, "registry.example/agent@sha256:0a", image)
	require.Equal(t, []corev1.LocalObjectReference{{Name: "theirs"}}, secrets)
	image, secrets = pulls(captureFlags{image: "x", pullSecrets: []string{"a", "b"}})
	require.Equal(t, "x", image)
	require.Equal(t, []corev1.LocalObjectReference{{Name: "a"}, {Name: "b"}}, secrets)
	_, secrets = pulls(captureFlags{image: "x"})
	require.Empty(t, secrets)
}
