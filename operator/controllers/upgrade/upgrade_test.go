// SPDX-License-Identifier: Apache-2.0

package upgrade_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
	"github.com/ringcap/ringcap/operator/controllers/upgrade"
	"github.com/ringcap/ringcap/operator/testenv"
)

var env testenv.Env

func TestMain(m *testing.M) { os.Exit(env.Run(m)) }

// fleet is a namespace of its own, on nodes of its own: nobody runs its pods, so one that is deleted stays, ending.
type fleet struct {
	*testing.T
	client    client.Client
	namespace string
	upgrader  upgrade.Upgrader
}

func newFleet(t *testing.T, policy upgrade.Policy, maxUnavailable int) *fleet {
	f := &fleet{T: t, client: env.Client(t), namespace: fmt.Sprintf("upgrade-%d", time.Now().UnixNano())}
	f.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}})
	f.upgrader = upgrade.Upgrader{
		Client: f.client, Reader: f.client, Namespace: f.namespace, Policy: policy, MaxUnavailable: maxUnavailable,
		Agents: labels.SelectorFromSet(labels.Set{"app": "agent"}), Now: func() time.Time { return time.Now().Add(time.Hour) },
	}
	t.Cleanup(func() {
		require.NoError(t, f.client.DeleteAllOf(context.Background(), &v1alpha1.NodeCapture{}))
	})
	return f
}

func (f *fleet) create(object client.Object) {
	f.Helper()
	require.NoError(f, f.client.Create(f.Context(), object))
}

// pod makes a pod that is ready on a node.
func (f *fleet) pod(name, app, node string) {
	f.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name, Labels: map[string]string{"app": app}}}
	pod.Spec = corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "i"}}}
	f.create(pod)
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	require.NoError(f, f.client.Status().Update(f.Context(), pod))
}

// node makes a node with an agent, and with a pod on each of the queues.
func (f *fleet) node(name, available string, engine v1alpha1.Engine, consumers ...string) {
	f.Helper()
	f.pod("agent-"+name, "agent", name)
	capture := &v1alpha1.NodeCapture{ObjectMeta: metav1.ObjectMeta{Name: name}}
	capture.Spec.Rings = []v1alpha1.NodeRing{{Name: "mirror"}}
	capture.Spec.Clusters = []v1alpha1.NodeCluster{{Name: "ids", Spec: v1alpha1.ClusterSpec{Rings: []string{"mirror"}}}}
	f.create(capture)
	queues := v1alpha1.NodeClusterStatus{Name: "ids"}
	for i, consumer := range consumers {
		f.pod(consumer, "consumer", name)
		queues.Queues = append(queues.Queues, v1alpha1.QueueStatus{Queue: int32(i), Consumer: f.namespace + "/" + consumer})
	}
	capture.Status.ModuleAvailable = available
	capture.Status.Rings = []v1alpha1.NodeRingStatus{{Name: "mirror", Engine: engine}}
	capture.Status.Clusters = []v1alpha1.NodeClusterStatus{queues}
	require.NoError(f, f.client.Status().Update(f.Context(), capture))
}

// ending are the pods that are being deleted, by name.
func (f *fleet) ending() []string {
	f.Helper()
	var pods corev1.PodList
	require.NoError(f, f.client.List(f.Context(), &pods, client.InNamespace(f.namespace)))
	names := []string{}
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp != nil {
			names = append(names, pod.Name)
		}
	}
	slices.Sort(names)
	return names
}

// renew plays the DaemonSet and the loader: the node's agent is there again, with the module that was available.
func (f *fleet) renew(node string) {
	f.Helper()
	old := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "agent-" + node}}
	require.NoError(f, f.client.Delete(f.Context(), old, client.GracePeriodSeconds(0)))
	f.pod("agent-"+node, "agent", node)
	var capture v1alpha1.NodeCapture
	require.NoError(f, f.client.Get(f.Context(), client.ObjectKey{Name: node}, &capture))
	capture.Status.ModuleAvailable = ""
	require.NoError(f, f.client.Status().Update(f.Context(), &capture))
}

func (f *fleet) once() []string {
	f.Helper()
	require.NoError(f, f.upgrader.Once(f.Context()))
	return f.ending()
}

// TestNodeByNode: one after the other by name, the next one when the last one's agent is ready again; nodes with holders and
// nodes with nothing to do are left alone.
func TestNodeByNode(t *testing.T) {
	f := newFleet(t, upgrade.WhenFree, 1)
	f.node("a", "0.2", v1alpha1.EngineKernelModule)
	f.node("b", "0.2", v1alpha1.EngineKernelModule, "held")
	f.node("c", "0.2", v1alpha1.EngineEBPF, "elsewhere")
	f.node("d", "", v1alpha1.EngineKernelModule)
	require.Equal(t, []string{"agent-a"}, f.once())
	require.Equal(t, []string{"agent-a"}, f.once(), "it is not ready again")
	f.renew("a")
	require.Equal(t, []string{"agent-c"}, f.once(), "the pod there has no queue of the module")
	f.renew("c")
	require.Empty(t, f.once())
}

// TestARingInLineKeepsItsModule: no agent is replaced for a module that its loader would not replace.
func TestARingInLineKeepsItsModule(t *testing.T) {
	f := newFleet(t, upgrade.Evict, 1)
	f.node("a", "0.2.0", v1alpha1.EngineKernelModule)
	var capture v1alpha1.NodeCapture
	require.NoError(t, f.client.Get(t.Context(), client.ObjectKey{Name: "a"}, &capture))
	capture.Status.Rings[0].Inline = &v1alpha1.InlineRingStatus{Pairs: []string{"eth1-eth2"}}
	require.NoError(t, f.client.Status().Update(t.Context(), &capture))
	require.Empty(t, f.once())
	require.Empty(t, f.ending())
}

// TestEvict: holders go with the agent, and one whom nobody can ask keeps the module.
func TestEvict(t *testing.T) {
	f := newFleet(t, upgrade.Evict, 2)
	f.node("a", "0.2", v1alpha1.EngineKernelModule, "one", "two")
	f.node("b", "0.2", v1alpha1.EngineKernelModule)
	f.node("c", "0.2", v1alpha1.EngineKernelModule, "three")
	var capture v1alpha1.NodeCapture
	require.NoError(t, f.client.Get(t.Context(), client.ObjectKey{Name: "b"}, &capture))
	capture.Status.Clusters[0].Queues = []v1alpha1.QueueStatus{{Attached: true}}
	require.NoError(t, f.client.Status().Update(t.Context(), &capture))
	f.node("d", "0.2", v1alpha1.EngineKernelModule, "four")
	require.NoError(t, f.client.Get(t.Context(), client.ObjectKey{Name: "d"}, &capture))
	capture.Status.Clusters[0].Unlisted = &v1alpha1.QueueTotals{Queues: 1, Unnamed: 1}
	require.NoError(t, f.client.Status().Update(t.Context(), &capture))
	require.Equal(t, []string{"agent-a", "agent-c", "one", "three", "two"}, f.once())
}

// TestDisruptionBudgetHolds: an eviction that is refused is told of, and tried again.
func TestDisruptionBudgetHolds(t *testing.T) {
	f := newFleet(t, upgrade.Evict, 1)
	f.node("a", "0.2", v1alpha1.EngineKernelModule, "one")
	none := intstr.FromInt32(0)
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "none"}}
	budget.Spec = policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &none, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "consumer"}}}
	f.create(budget)
	budget.Status.ObservedGeneration = budget.Generation
	require.NoError(t, f.client.Status().Update(t.Context(), budget))
	require.ErrorContains(t, f.upgrader.Once(t.Context()), "evict "+f.namespace+"/one from node a")
	require.Equal(t, []string{"agent-a"}, f.ending())
}

// TestAnAgentIsNotReplacedAtOnceAgain: its loader has just tried.
func TestAnAgentIsNotReplacedAtOnceAgain(t *testing.T) {
	f := newFleet(t, upgrade.WhenFree, 1)
	f.upgrader.Now = time.Now
	f.node("a", "0.2", v1alpha1.EngineKernelModule)
	require.Empty(t, f.once())
}
