// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// definitions is the kind as Multus installs it, as far as it is of interest here.
const definitions = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: network-attachment-definitions.k8s.cni.cncf.io}
spec:
  group: k8s.cni.cncf.io
  scope: Namespaced
  names: {plural: network-attachment-definitions, singular: network-attachment-definition, kind: NetworkAttachmentDefinition}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {config: {type: string}}}}}}
`

func manifest(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(text), object))
	return object
}

// allowNetworks gives the operator the right that the chart gives it with operator.networks.enabled.
func (w *world) allowNetworks() {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "networks"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{"k8s.cni.cncf.io"}, Resources: []string{"network-attachment-definitions"},
		Verbs: []string{"get", "list", "create", "update", "delete"},
	}}}
	w.create(role)
	w.create(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "networks"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "networks"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "ringcap-operator"}},
	})
}

// network is the NetworkAttachmentDefinition of the ring span in a namespace.
func (w *world) network(namespace string) (*unstructured.Unstructured, error) {
	object := manifest(w.t, "{apiVersion: k8s.cni.cncf.io/v1, kind: NetworkAttachmentDefinition}")
	return object, w.Get(w.t.Context(), client.ObjectKey{Namespace: namespace, Name: "span"}, object)
}

// touch makes the operator look at once.
func touch(r *v1alpha1.CaptureRing) { r.Spec.SnapLength++ }

// TestNetworks: a ring over a pool gets its networks once Multus, the right and the namespaces are there, and says until then
// what is missing. They follow the ring; what is somebody else's stays.
func TestNetworks(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"net-a", "net-b"} {
		require.NoError(t, w.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	ring := w.ring("span")
	ring.Spec.Interfaces = []v1alpha1.InterfaceSelector{{
		ResourceName: "example.com/vf", Network: &v1alpha1.PoolNetwork{Namespaces: []string{"net-a", "net-c"}},
	}}
	w.create(ring)
	written := v1alpha1.ConditionNetworksWritten
	w.expect(ring, written, metav1.ConditionFalse, v1alpha1.ReasonMultusMissing, "install Multus")
	require.NoError(t, w.Create(t.Context(), manifest(t, definitions)))
	w.expect(ring, written, metav1.ConditionFalse, v1alpha1.ReasonNetworkForbidden, "operator.networks.enabled")
	w.allowNetworks()
	update(w, ring, touch)
	w.expect(ring, written, metav1.ConditionFalse, v1alpha1.ReasonNamespaceNotFound, `"net-c"`)

	// One that was there before stays, and says so.
	foreign := manifest(t, "{apiVersion: k8s.cni.cncf.io/v1, kind: NetworkAttachmentDefinition, metadata: {name: span, namespace: net-b}, spec: {config: theirs}}")
	w.create(foreign)
	update(w, ring, func(r *v1alpha1.CaptureRing) { r.Spec.Interfaces[0].Network.Namespaces = []string{"net-a", "net-b"} })
	w.expect(ring, written, metav1.ConditionFalse, v1alpha1.ReasonNetworkConflict, "net-b/span is somebody else's")
	theirs, err := w.network("net-b")
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"config": "theirs"}, theirs.Object["spec"])

	update(w, ring, func(r *v1alpha1.CaptureRing) { r.Spec.Interfaces[0].Network.Namespaces = []string{"net-a"} })
	w.expect(ring, written, metav1.ConditionTrue, v1alpha1.ReasonWritten, "k8s.v1.cni.cncf.io/networks: span")
	ours, err := w.network("net-a")
	require.NoError(t, err)
	assert.Equal(t, "example.com/vf", ours.GetAnnotations()["k8s.v1.cni.cncf.io/resourceName"])

	// What somebody changed comes back; what the ring changes is changed.
	ours.Object["spec"] = map[string]any{"config": "{}"}
	require.NoError(t, w.Update(t.Context(), ours))
	update(w, ring, func(r *v1alpha1.CaptureRing) { r.Spec.Interfaces[0].ResourceName = "example.com/other" })
	w.eventually(func(c *assert.CollectT) {
		now, err := w.network("net-a")
		require.NoError(c, err)
		assert.Equal(c, "example.com/other", now.GetAnnotations()["k8s.v1.cni.cncf.io/resourceName"])
		assert.Equal(c, map[string]any{"config": `{"cniVersion":"1.0.0","name":"span","type":"host-device"}`}, now.Object["spec"])
	})

	// A ring that is refused keeps it, one that asks for none loses it.
	update(w, ring, func(r *v1alpha1.CaptureRing) { r.Spec.Filter = &v1alpha1.Filter{BPF: "no such thing"} })
	w.expect(ring, written, metav1.ConditionFalse, v1alpha1.ReasonInvalidFilter, "not accepted")
	_, err = w.network("net-a")
	require.NoError(t, err)
	update(w, ring, func(r *v1alpha1.CaptureRing) { r.Spec.Filter, r.Spec.Interfaces[0].Network = nil, nil })
	w.expect(ring, written, metav1.ConditionTrue, v1alpha1.ReasonNoNetwork)
	w.eventually(func(c *assert.CollectT) {
		_, err := w.network("net-a")
		assert.True(c, apierrors.IsNotFound(err), err)
	})
	_, err = w.network("net-b")
	require.NoError(t, err)
}
