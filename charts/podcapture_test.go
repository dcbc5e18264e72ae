// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// as is a client of a user who has a ClusterRole in one namespace.
func as(t *testing.T, user, namespace, role string) client.Client {
	t.Helper()
	c, err := client.New(env.NewUser(t, user), client.Options{Scheme: clientgoscheme.Scheme})
	require.NoError(t, err)
	require.NoError(t, env.Client(t).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}))
	return c
}

// TestWhoEditsANamespaceCapturesItsPods: a user with edit rights in a namespace can create PodCaptures there, but not elsewhere, and can
// write neither their status nor objects of the cluster. A viewer of the namespace can read them. The roles are aggregated to
// Kubernetes' own, unless that is switched off.
func TestWhoEditsANamespaceCapturesItsPods(t *testing.T) {
	admin, objects := env.Client(t), decode(t, render(t, "--set=crds.install=false"))
	edit := find[*rbacv1.ClusterRole](t, objects, "ringcap-podcapture-edit")
	view := find[*rbacv1.ClusterRole](t, objects, "ringcap-podcapture-view")
	for role, aggregated := range map[*rbacv1.ClusterRole][]string{edit: {"admin", "edit"}, view: {"view"}} {
		for _, to := range aggregated {
			require.Equal(t, "true", role.Labels["rbac.authorization.k8s.io/aggregate-to-"+to])
		}
		require.NoError(t, admin.Create(t.Context(), role))
	}
	makeNamespaces(t, admin, "team", "team-other")
	editor, viewer := as(t, "editor", "team", edit.Name), as(t, "viewer", "team", view.Name)
	capture := func(namespace string) *v1alpha1.PodCapture {
		return &v1alpha1.PodCapture{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
	}
	mine := capture("team")
	require.NoError(t, editor.Create(t.Context(), mine))
	mine.Spec.Queues = 2
	require.NoError(t, editor.Update(t.Context(), mine))
	require.NoError(t, viewer.Get(t.Context(), client.ObjectKeyFromObject(mine), mine))
	for what, err := range map[string]error{
		"another namespace": editor.Create(t.Context(), capture("team-other")),
		"status":            editor.Status().Update(t.Context(), mine),
		"rings": editor.Create(t.Context(), &v1alpha1.CaptureRing{
			ObjectMeta: metav1.ObjectMeta{Name: "team"}, Spec: v1alpha1.CaptureRingSpec{Interfaces: []v1alpha1.InterfaceSelector{{Name: "*"}}},
		}),
		"see rings": editor.List(t.Context(), &v1alpha1.CaptureRingList{}),
		"view":      viewer.Delete(t.Context(), mine),
	} {
		require.True(t, apierrors.IsForbidden(err), "%s: %v", what, err)
	}
	require.NoError(t, editor.Delete(t.Context(), mine))

	require.Contains(t, find[*appsv1.Deployment](t, objects, "ringcap-operator").Spec.Template.Spec.Containers[0].Args, "--pod-captures-per-namespace=4")
	for _, object := range decode(t, render(t, "--set=crds.install=false,podCapture.maxPerNamespace=0")) {
		require.NotContains(t, object.GetName(), "podcapture")
	}
}
