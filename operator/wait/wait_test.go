// SPDX-License-Identifier: Apache-2.0

package wait_test

import (
	"bytes"
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
	"github.com/ringcap/ringcap/operator/testenv"
	"github.com/ringcap/ringcap/operator/wait"
)

var env testenv.Env

func TestMain(m *testing.M) { os.Exit(env.Run(m)) }

// briefly gives a wait some time, and returns what it said and its error.
func briefly(t *testing.T, do func(context.Context, *bytes.Buffer) error) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
	defer cancel()
	var out bytes.Buffer
	err := do(ctx, &out)
	return out.String(), err
}

func TestRing(t *testing.T) {
	c := env.Client(t)
	look := func() (string, error) {
		return briefly(t, func(ctx context.Context, out *bytes.Buffer) error { return wait.Ring(ctx, c, "r", out) })
	}
	out, err := look()
	require.ErrorContains(t, err, "gave up waiting: there is no CaptureRing r")
	require.Equal(t, "waiting: there is no CaptureRing r\n", out, "once")

	ring := &v1alpha1.CaptureRing{ObjectMeta: metav1.ObjectMeta{Name: "r"}}
	ring.Spec.Interfaces = []v1alpha1.InterfaceSelector{{Name: "eth0"}}
	require.NoError(t, c.Create(t.Context(), ring))
	_, err = look()
	require.ErrorContains(t, err, "the operator has not processed CaptureRing r yet: is its pod running")

	condition := metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNoNodes, Message: "no node has the labels",
		ObservedGeneration: ring.Generation, LastTransitionTime: metav1.Now(),
	}
	ring.Status.Conditions = []metav1.Condition{condition}
	require.NoError(t, c.Status().Update(t.Context(), ring))
	_, err = look()
	require.EqualError(t, err, "gave up waiting: CaptureRing r is not ready: NoNodes: no node has the labels")

	condition.Status, condition.Message = metav1.ConditionTrue, "on 2 of 2 nodes"
	ring.Status.Conditions = []metav1.Condition{condition}
	require.NoError(t, c.Status().Update(t.Context(), ring))
	out, err = look()
	require.NoError(t, err)
	require.Equal(t, "CaptureRing r: on 2 of 2 nodes\n", out)
}

// What a DaemonSet's pods lack is said in the words of the scheduler or of the container that failed.
func TestDaemonSet(t *testing.T) {
	c := env.Client(t)
	labels := map[string]string{"app": "leave"}
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "x"}}, InitContainers: []corev1.Container{{Name: "i", Image: "x"}}},
	}
	set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "leave", Namespace: "default"}}
	set.Spec = appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template}
	require.NoError(t, c.Create(t.Context(), set))
	look := func() error {
		_, err := briefly(t, func(ctx context.Context, out *bytes.Buffer) error {
			return wait.DaemonSet(ctx, c, client.ObjectKeyFromObject(set), out)
		})
		return err
	}
	require.EqualError(t, look(), "gave up waiting: the pods of DaemonSet leave are not made yet")

	pod := func(name, node string, status corev1.PodStatus) {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: labels}, Spec: template.Spec}
		p.Spec.NodeName = node
		require.NoError(t, c.Create(t.Context(), p))
		p.Status = status
		require.NoError(t, c.Status().Update(t.Context(), p))
	}
	pod("done", "n1", corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}})
	pod("fails", "n2", corev1.PodStatus{Phase: corev1.PodPending, InitContainerStatuses: []corev1.ContainerStatus{{
		Name: "i", LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: "node-agent: held\n"}},
	}}})
	pod("waits", "", corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "no free ports",
	}}})
	set.Status = appsv1.DaemonSetStatus{ObservedGeneration: set.Generation, DesiredNumberScheduled: 3, NumberReady: 1}
	require.NoError(t, c.Status().Update(t.Context(), set))
	require.EqualError(t, look(), "gave up waiting: 1 of 3 nodes are done\n  pod fails (n2): node-agent: held\n  pod waits (no node yet): no free ports")

	set.Status.NumberReady = 3
	require.NoError(t, c.Status().Update(t.Context(), set))
	require.NoError(t, look())
}
