// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/ringcap/ringcap/node-agent/plan"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
	"github.com/ringcap/ringcap/operator/testenv"
)

var api testenv.Env

func TestMain(m *testing.M) { os.Exit(api.Run(m)) }

// podRing is what a node is asked for by a ring over pods, of namespaces by that label.
func podRing(namespaceLabel string) v1.NodeCaptureSpec {
	selector := v1.InterfaceSelector{PodSelector: &metav1.LabelSelector{}}
	if namespaceLabel != "" {
		selector.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{namespaceLabel: "x"}}
	}
	return v1.NodeCaptureSpec{Rings: []v1.NodeRing{{Name: "r", Spec: v1.CaptureRingSpec{Interfaces: []v1.InterfaceSelector{selector}}}}}
}

// consumersByLabel is what a node is asked for by a ring for pods of namespaces with a label.
func consumersByLabel() v1.NodeCaptureSpec {
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"team": "x"}}
	return v1.NodeCaptureSpec{Rings: []v1.NodeRing{{Name: "r", Spec: v1.CaptureRingSpec{
		QueueSettings: v1.QueueSettings{Consumers: &v1.Consumers{NamespaceSelector: selector}},
	}}}}
}

func TestWhatASpecNeeds(t *testing.T) {
	for name, test := range map[string]struct {
		spec             v1.NodeCaptureSpec
		pods, namespaces bool
	}{
		"no pods":           {spec: v1.NodeCaptureSpec{Rings: []v1.NodeRing{{Spec: v1.CaptureRingSpec{Interfaces: []v1.InterfaceSelector{{Name: "eth0"}}}}}}},
		"pods":              {podRing(""), true, false},
		"of a namespace":    {podRing("kubernetes.io/metadata.name"), true, false},
		"of some of a kind": {podRing("team"), true, true},
		"consumers of some": {consumersByLabel(), false, true},
		"a Cluster's": {v1.NodeCaptureSpec{Clusters: []v1.NodeCluster{{Spec: v1.ClusterSpec{
			QueueSettings: consumersByLabel().Rings[0].Spec.QueueSettings,
		}}}}, false, true},
	} {
		pods, namespaces := needs(test.spec)
		assert.Equal(t, test.pods, pods, name)
		assert.Equal(t, test.namespaces, namespaces, name)
	}
}

// An agent watches the pods of its own node, and only while a ring asks for them; with the rights that the chart gives.
func TestPodsOfANode(t *testing.T) {
	c := api.Client(t)
	create := func(pod *corev1.Pod) {
		t.Helper()
		pod.Spec.Containers = []corev1.Container{{Name: "c", Image: "none"}}
		// Nothing here makes service accounts' tokens.
		pod.Spec.AutomountServiceAccountToken = new(bool)
		require.NoError(t, c.Create(t.Context(), pod))
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"team": "x"}}}
	require.NoError(t, c.Create(t.Context(), namespace))
	require.NoError(t, c.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: "shop"}}))
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Namespace: "shop", Labels: map[string]string{"app": name}}
	}
	create(&corev1.Pod{ObjectMeta: meta("here"), Spec: corev1.PodSpec{NodeName: "n1"}})
	create(&corev1.Pod{ObjectMeta: meta("hostnet"), Spec: corev1.PodSpec{NodeName: "n1", HostNetwork: true}})
	create(&corev1.Pod{ObjectMeta: meta("elsewhere"), Spec: corev1.PodSpec{NodeName: "n2"}})

	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "agents"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "watch"}},
	}}
	require.NoError(t, c.Create(t.Context(), role))
	require.NoError(t, c.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "agents"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "agents"},
		Subjects: []rbacv1.Subject{{Kind: "User", Name: "agent", APIGroup: rbacv1.GroupName}},
	}))
	changed := make(chan struct{}, 100)
	w, err := newPodWatch(api.NewUser(t, "agent"), "n1", "", func() { changed <- struct{}{} })
	require.NoError(t, err)
	w.start(t.Context())
	_, unknown := w.Pods()
	assert.NotEmpty(t, unknown, "nobody asked")

	here := plan.Pod{Namespace: "shop", Name: "here", Labels: map[string]string{"app": "here"}}
	hostnet := plan.Pod{Namespace: "shop", Name: "hostnet", Labels: map[string]string{"app": "hostnet"}, HostNetwork: true}
	eventually := func(want ...plan.Pod) {
		t.Helper()
		require.EventuallyWithT(t, func(t *assert.CollectT) {
			pods, unknown := w.Pods()
			assert.Empty(t, unknown)
			assert.Equal(t, want, pods)
		}, 20*time.Second, 10*time.Millisecond)
	}
	w.want(t.Context(), podRing(""))
	eventually(here, hostnet)
	assert.NotEmpty(t, changed)

	// Pods that were found without the labels of namespaces do not count once these are needed, and the reason why
	// labels are unknown is reported.
	w.want(t.Context(), podRing("team"))
	_, unknown = w.Pods()
	assert.NotEmpty(t, unknown)
	require.Eventually(t, func() bool {
		_, unknown := w.Pods()
		return strings.Contains(unknown, "forbidden") && strings.Contains(unknown, "namespaces")
	}, 20*time.Second, 10*time.Millisecond)
	role.Rules[0].Resources = []string{"pods", "namespaces"}
	require.NoError(t, c.Update(t.Context(), role))
	here.NamespaceLabels = map[string]string{"kubernetes.io/metadata.name": "shop", "team": "x"}
	hostnet.NamespaceLabels = here.NamespaceLabels
	eventually(here, hostnet)

	require.NoError(t, c.Delete(t.Context(), &corev1.Pod{ObjectMeta: meta("hostnet")}))
	create(&corev1.Pod{ObjectMeta: meta("late"), Spec: corev1.PodSpec{NodeName: "n1"}})
	late := plan.Pod{Namespace: "shop", Name: "late", Labels: map[string]string{"app": "late"}, NamespaceLabels: here.NamespaceLabels}
	// The API server waits for a kubelet before a pod that was running is gone.
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		pods, _ := w.Pods()
		assert.Contains(t, pods, late)
	}, 20*time.Second, 10*time.Millisecond)

	// The labels of namespaces alone, for consumers.
	w.want(t.Context(), consumersByLabel())
	found, err := w.labels(t.Context(), "shop")
	require.NoError(t, err)
	assert.Equal(t, here.NamespaceLabels, found)
	_, err = w.labels(t.Context(), "not-there")
	assert.ErrorContains(t, err, "not found")

	w.want(t.Context(), v1.NodeCaptureSpec{})
	_, err = w.labels(t.Context(), "shop")
	assert.ErrorContains(t, err, "has not said them yet")
	_, unknown = w.Pods()
	assert.NotEmpty(t, unknown)
	w.want(t.Context(), podRing(""))
	require.Eventually(t, func() bool { pods, _ := w.Pods(); return len(pods) >= 2 }, 20*time.Second, 10*time.Millisecond)
}

// The API server lets anybody who may make pods make one that calls itself the mirror of another. It gets that one's
// UID, by which the other's interfaces and queues would be found, only where the kubelet alone can have said so.
func TestNobodyIsAnothersMirror(t *testing.T) {
	c := api.Client(t)
	require.NoError(t, c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "thieves"}}))
	require.NoError(t, c.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: "thieves"}}))
	for name, claimed := range map[string]string{"anothers": sensorUID, "static": staticUID} {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "thieves", Annotations: map[string]string{mirrorAnnotation: claimed}},
			Spec:       corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "c", Image: "none"}}, AutomountServiceAccountToken: new(bool)},
		}
		require.NoError(t, c.Create(t.Context(), pod))
		o, alive := object(pod, nil)
		if name == "anothers" {
			assert.Equal(t, string(pod.UID), o.UID)
			assert.Equal(t, []string{string(pod.UID)}, uidsOf(pod))
			continue
		}
		assert.False(t, alive, "no kubelet reports that it runs")
		pod.Status.Phase = corev1.PodRunning
		o, alive = object(pod, nil)
		assert.True(t, alive)
		assert.Equal(t, claimed, o.UID)
		kept, err := trimPod(pod)
		require.NoError(t, err)
		same, _ := object(kept.(*corev1.Pod), nil)
		assert.Equal(t, o, same)
	}
}

// The loop does not wait for labels; a container's start does, for a moment.
func TestLabelsThatAreNotThereYet(t *testing.T) {
	w, err := newPodWatch(&rest.Config{Host: "http://127.0.0.1:1"}, "n1", "", func() {})
	require.NoError(t, err)
	w.want(t.Context(), consumersByLabel())
	began := time.Now()
	_, err = w.knownLabels(t.Context(), "shop")
	assert.ErrorContains(t, err, "has not said them yet")
	assert.Less(t, time.Since(began), requestTimeout/5)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	began = time.Now()
	_, err = w.labels(ctx, "shop")
	assert.ErrorContains(t, err, "has not said them yet")
	assert.GreaterOrEqual(t, time.Since(began), 200*time.Millisecond)
}
