// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
	"github.com/ringcap/ringcap/operator/cleanup"
	"github.com/ringcap/ringcap/operator/suspend"
)

// deployment stands for the one that runs the operator: nothing runs pods here.
var deployment = client.ObjectKey{Namespace: "default", Name: "ringcap-operator"}

// createDeployment creates it, and lets the operator read it as the chart's Role does.
func createDeployment(ctx context.Context, admin client.Client) error {
	meta := metav1.ObjectMeta{Namespace: deployment.Namespace, Name: deployment.Name}
	return errors.Join(
		admin.Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"apps"}, Resources: []string{"deployments"}, ResourceNames: []string{deployment.Name}, Verbs: []string{"get", "list", "watch"},
		}, {
			APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get", "list", "watch"},
		}}}),
		admin.Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: deployment.Name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "ringcap-operator"}},
		}),
		admin.Create(ctx, newDeployment()))
}

func newDeployment() *appsv1.Deployment {
	labels := map[string]string{"app": "operator"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: deployment.Namespace, Name: deployment.Name},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "operator", Image: "operator"}}},
			},
		},
	}
}

// reinstall makes the Deployment a new one.
func (w *world) reinstall() {
	w.t.Helper()
	require.NoError(w.t, client.IgnoreNotFound(w.Delete(context.Background(), newDeployment())))
	require.NoError(w.t, w.Create(context.Background(), newDeployment()))
}

// keep is one attempt of the Job before an uninstall, which is interrupted when meanwhile is over; nil lets it succeed.
func (w *world) keep(meanwhile func()) (string, error) {
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	var out bytes.Buffer
	done := make(chan error, 1)
	go func() { done <- cleanup.Keep(ctx, w.Client, deployment, &out) }()
	if meanwhile != nil {
		meanwhile()
		cancel()
	}
	err := <-done
	return out.String(), err
}

// kept requires that the object is as the user left it, without a finalizer.
func (w *world) kept(before client.Object, spec func(client.Object) any) {
	w.t.Helper()
	now := before.DeepCopyObject().(client.Object)
	require.NoError(w.t, w.Get(w.t.Context(), client.ObjectKeyFromObject(before), now))
	require.Equal(w.t, before.GetUID(), now.GetUID())
	require.Equal(w.t, spec(before), spec(now))
	require.Empty(w.t, now.GetFinalizers())
	require.Empty(w.t, now.GetAnnotations())
	require.Empty(w.t, now.GetLabels())
}

func specOf(o client.Object) any {
	if ring, is := o.(*v1alpha1.CaptureRing); is {
		return ring.Spec
	}
	return o.(*v1alpha1.Cluster).Spec
}

// TestUninstallKeepsRings: an uninstall that keeps the objects takes them off the nodes and waits for pods with queues; it may be
// interrupted at each step and repeated; when the operator's Deployment is gone the operator writes nothing; a new one captures again.
func TestUninstallKeepsRings(t *testing.T) {
	w := newWorld(t)
	t.Cleanup(w.reinstall)
	w.node("kept")
	ring, cluster, refused := w.ring("kept"), w.cluster("kept-ids", "kept"), w.cluster("kept-nothing", "nonesuch")
	for _, object := range []client.Object{ring, cluster, refused} {
		w.create(object)
	}
	w.capture("kept", []string{"kept"}, []string{"kept-ids"})
	w.agent("kept", nil)
	w.expect(cluster, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	require.Contains(t, ring.Finalizers, v1alpha1.FinalizerNodes, w.Get(t.Context(), client.ObjectKeyFromObject(ring), ring))

	// A pod has a queue; the attempt ends before it goes.
	out, err := w.keep(func() {
		w.capture("kept", nil, nil)
		w.agent("kept", func(s *v1alpha1.NodeCaptureStatus) {
			queues := queuesStatus("kept-ids", 2)
			queues.Ready, queues.Reason, queues.Queues[0].Consumer = false, v1alpha1.ReasonQueueInUse, "ids/snort-0"
			s.Clusters = append(s.Clusters, queues)
		})
		w.expect(cluster, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonSuspending,
			"waiting for kept: its queues are in use: delete pod ids/snort-0")
	})
	require.ErrorContains(t, err, "delete the pods that hold queues, and try again")
	require.ErrorContains(t, err, "Cluster kept-ids: ")
	require.Contains(t, out, "waiting for\n")

	// It is called off: all is captured again.
	marked := newDeployment()
	update(w, marked, func(d *appsv1.Deployment) { delete(d.Annotations, suspend.Annotation) })
	w.capture("kept", []string{"kept"}, []string{"kept-ids"})
	w.agent("kept", nil)
	w.expect(ring, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)

	// The pod goes while the next attempt waits.
	done := make(chan error, 1)
	go func() {
		_, err := w.keep(nil)
		done <- err
	}()
	w.capture("kept", nil, nil)
	w.agent("kept", nil)
	require.NoError(t, <-done)
	w.kept(ring, specOf)
	w.kept(cluster, specOf)
	w.kept(refused, specOf)
	w.expect(ring, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonSuspended, "when ringcap is installed again, it is captured again")
	// Repeated, and with an object of which the operator had not heard.
	late := w.ring("kept-late")
	w.create(late)
	_, err = w.keep(nil)
	require.NoError(t, err)
	w.kept(late, specOf)

	// The Deployment goes before its pods do.
	require.NoError(t, w.Delete(t.Context(), newDeployment()))
	update(w, ring, func(r *v1alpha1.CaptureRing) { r.Spec.SnapLength = 512 })
	var before v1alpha1.NodeCapture
	require.NoError(t, w.Get(t.Context(), client.ObjectKey{Name: "kept"}, &before))
	require.NoError(t, w.Delete(t.Context(), before.DeepCopy()))
	require.Never(t, func() bool {
		return w.Get(t.Context(), client.ObjectKey{Name: "kept"}, &before) == nil
	}, 2*time.Second, 100*time.Millisecond, "the operator made a NodeCapture after its Deployment was gone")
	w.kept(ring, specOf)
	out, err = w.keep(nil)
	require.NoError(t, err, "repeated when there is nothing left to do")
	require.Contains(t, out, "is gone already")
	// A kept object can be deleted.
	require.NoError(t, w.Delete(t.Context(), late))
	require.Error(t, w.Get(t.Context(), client.ObjectKeyFromObject(late), late))

	// Installed again.
	require.NoError(t, w.Create(t.Context(), newDeployment()))
	w.capture("kept", []string{"kept"}, []string{"kept-ids"})
	w.agent("kept", nil)
	w.eventually(func(c *assert.CollectT) {
		require.NoError(c, w.Get(t.Context(), client.ObjectKeyFromObject(ring), ring))
		assert.Equal(c, []string{v1alpha1.FinalizerNodes}, ring.Finalizers)
	})
	w.expect(ring, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	w.expect(cluster, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
}
