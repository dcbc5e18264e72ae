// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// makeNamespaces makes namespaces in which pods can be made.
func makeNamespaces(t *testing.T, admin client.Client, names ...string) {
	t.Helper()
	for _, name := range names {
		require.NoError(t, admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
		require.NoError(t, admin.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: name}}))
	}
}

// consumer is a pod with a container that requests one of each resource.
func consumer(namespace string, resources ...corev1.ResourceName) *corev1.Pod {
	limits := corev1.ResourceList{}
	for _, name := range resources {
		limits[name] = resource.MustParse("1")
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "c-", Namespace: namespace},
		Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: "other", Image: "x"},
			{Name: "c", Image: "x", Resources: corev1.ResourceRequirements{Limits: limits}},
		}},
	}
}

// TestNamespacesOfConsumers: pods get queues where the ring or the Cluster permits them, and other pods are not affected.
func TestNamespacesOfConsumers(t *testing.T) {
	admin := env.Client(t)
	installPolicies(t, admin)
	makeNamespaces(t, admin, "inside", "outside")
	queues := intstr.FromInt32(1)
	only := v1alpha1.QueueSettings{Consumers: &v1alpha1.Consumers{Namespaces: []string{"elsewhere", "inside"}}}
	ring := func(name string, settings v1alpha1.QueueSettings) *v1alpha1.CaptureRing {
		return &v1alpha1.CaptureRing{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.CaptureRingSpec{
			Interfaces: []v1alpha1.InterfaceSelector{{Name: "eth0"}}, Queues: &queues, QueueSettings: settings,
		}}
	}
	closed, unset := ring("closed", only), ring("unset", v1alpha1.QueueSettings{})
	open := ring("open", v1alpha1.QueueSettings{Consumers: &v1alpha1.Consumers{Namespaces: []string{"*"}}})
	byLabel := ring("by-label", v1alpha1.QueueSettings{Consumers: &v1alpha1.Consumers{NamespaceSelector: &metav1.LabelSelector{
		MatchLabels: map[string]string{"kubernetes.io/metadata.name": "inside"},
		MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpIn, Values: []string{"inside", "x"}},
			{Key: "team", Operator: metav1.LabelSelectorOpDoesNotExist},
			{Key: "team", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"web"}},
		},
	}}})
	twin := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "open"}, Spec: v1alpha1.ClusterSpec{Rings: []string{"closed"}, Queues: 1, QueueSettings: only}}
	flows := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "by-flow"}, Spec: twin.Spec}
	inherits := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "inherits"}, Spec: v1alpha1.ClusterSpec{Rings: []string{"closed"}, Queues: 1}}
	for _, object := range []client.Object{closed, open, unset, byLabel, twin, flows, inherits} {
		require.NoError(t, admin.Create(t.Context(), object))
		t.Cleanup(func() { _ = admin.Delete(t.Context(), object) })
	}
	twin.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNameConflict, LastTransitionTime: metav1.Now(),
	}}
	require.NoError(t, admin.Status().Update(t.Context(), twin))
	create := func(pod *corev1.Pod) error { return admin.Create(t.Context(), pod) }
	// The API server learns policies and their parameters some time after they were made.
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		assert.True(c, apierrors.IsForbidden(create(consumer("outside", "ringcap.io/closed"))))
		assert.True(c, apierrors.IsForbidden(create(consumer("outside", "ringcap.io/by-flow"))))
		assert.True(c, apierrors.IsForbidden(create(consumer("outside", "ringcap.io/by-label"))))
		assert.True(c, apierrors.IsForbidden(create(consumer("outside", "ringcap.io/unset"))))
		assert.NoError(c, create(consumer("outside", "ringcap.io/open")))
	}, 30*time.Second, 100*time.Millisecond)

	err := create(consumer("outside", "ringcap.io/open", "ringcap.io/closed"))
	require.ErrorContains(t, err, "ringcap.io/closed is not for pods of namespace outside: spec.consumers of CaptureRing closed names elsewhere, inside; ")
	require.ErrorContains(t, create(consumer("inside", "ringcap.io/unset")), "spec.consumers of CaptureRing unset names no namespace; ")
	require.ErrorContains(t, create(consumer("outside", "ringcap.io/by-flow")), "of Cluster by-flow names")
	early := consumer("outside")
	early.Spec.InitContainers = consumer("outside", "ringcap.io/closed").Spec.Containers[1:]
	early.Spec.InitContainers[0].Name = "early"
	require.True(t, apierrors.IsForbidden(create(early)))

	require.NoError(t, create(consumer("inside", "ringcap.io/open", "ringcap.io/closed", "ringcap.io/by-flow", "ringcap.io/by-label")))
	require.NoError(t, create(consumer("outside", "ringcap.io/inherits")), "the agents know which rings feed it")
	require.NoError(t, create(consumer("outside", "ringcap.io/not-there", "example.com/gpu")))
	require.NoError(t, create(consumer("outside")))

	// As soon as the namespace is added, its pods are let in.
	flows.Spec.Consumers.Namespaces = append(flows.Spec.Consumers.Namespaces, "outside")
	require.NoError(t, admin.Update(t.Context(), flows))
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		assert.NoError(c, create(consumer("outside", "ringcap.io/by-flow")))
	}, 30*time.Second, 100*time.Millisecond)
}
