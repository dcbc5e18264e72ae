// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
	"github.com/ringcap/ringcap/operator/networks"
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
func touch(r *v1alpha1.CaptureRing) { r.Spec.SnapLength = max(r.Spec.SnapLength, 64) + 1 }

// TestNetworks: a ring over a pool gets its networks once Multus, the right and the namespaces are there, and reports until
// then what is missing. The networks change and go with the ring; objects of others stay.
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

	// One that was there before stays, and the condition reports it.
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

// devicePlugin is as the operator of this suite was told.
var devicePlugin = networks.DevicePlugin{
	ConfigMap: client.ObjectKey{Namespace: "default", Name: "sriovdp-config"}, DaemonSets: []string{"device-plugin"},
}

// allowPools gives the operator the right that the chart gives it with operator.networks.pools.enabled.
func (w *world) allowPools() {
	meta := metav1.ObjectMeta{Name: "pools", Namespace: devicePlugin.ConfigMap.Namespace}
	w.create(&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create"}},
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{devicePlugin.ConfigMap.Name}, Verbs: []string{"get", "update", "delete"}},
		{APIGroups: []string{"apps"}, Resources: []string{"daemonsets"}, ResourceNames: devicePlugin.DaemonSets, Verbs: []string{"patch"}},
	}})
	w.create(&rbacv1.RoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "ringcap-operator"}},
	})
}

// pools is the device plugin's configuration, and the mark of its pods.
func (w *world) pools() (*corev1.ConfigMap, string, error) {
	var written corev1.ConfigMap
	var plugin appsv1.DaemonSet
	require.NoError(w.t, w.Get(w.t.Context(), client.ObjectKey{Namespace: "default", Name: "device-plugin"}, &plugin))
	return &written, plugin.Spec.Template.Annotations["ringcap.io/pools"], w.Get(w.t.Context(), devicePlugin.ConfigMap, &written)
}

// TestPools: the operator writes the device plugin's configuration where a ring asks it to own its pool, and nobody else does.
func TestPools(t *testing.T) {
	w := newWorld(t)
	labels := map[string]string{"name": "device-plugin"}
	ring := w.ring("span")
	ring.Spec.Interfaces = []v1alpha1.InterfaceSelector{{ResourceName: "example.com/vf", Pool: &v1alpha1.FunctionPool{Drivers: []string{"igbvf"}}}}
	w.create(ring)
	written := v1alpha1.ConditionNetworksWritten
	w.expect(ring, written, metav1.ConditionFalse, v1alpha1.ReasonPoolForbidden, "operator.networks.pools")
	w.allowPools()
	update(w, ring, touch)
	w.expect(ring, written, metav1.ConditionFalse, v1alpha1.ReasonPoolNotWritten, "install sriov-network-device-plugin")
	w.create(&appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "device-plugin"},
		Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "plugin", Image: "plugin"}}},
		}},
	})

	// One that was there before stays, and the condition reports it.
	foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "sriovdp-config"}, Data: map[string]string{"config.json": "theirs"}}
	ours, _, err := w.pools()
	require.NoError(t, err)
	require.NoError(t, w.Delete(t.Context(), ours))
	require.NoError(t, w.Create(t.Context(), foreign))
	update(w, ring, touch)
	w.expect(ring, written, metav1.ConditionFalse, v1alpha1.ReasonPoolConflict, "default/sriovdp-config is somebody else's")
	theirs, mark, err := w.pools()
	require.NoError(t, err)
	assert.Equal(t, "theirs", theirs.Data["config.json"])
	assert.Empty(t, mark)
	require.NoError(t, w.Delete(t.Context(), foreign))
	update(w, ring, touch)
	w.expect(ring, written, metav1.ConditionTrue, v1alpha1.ReasonWritten, "default/sriovdp-config")
	ours, first, err := w.pools()
	require.NoError(t, err)
	assert.JSONEq(t, `{"resourceList": [{"resourceName": "vf", "resourcePrefix": "example.com", "selectors": {"drivers": ["igbvf"]}}]}`, ours.Data["config.json"])
	require.Len(t, ours.OwnerReferences, 1)
	assert.Equal(t, ring.UID, ours.OwnerReferences[0].UID)
	assert.NotEmpty(t, first)

	// A second ring's pool is added. A ring that describes the pool of another ring is refused with a message.
	tail := w.ring("tail")
	tail.Spec.Interfaces = []v1alpha1.InterfaceSelector{{ResourceName: "example.com/vf", Pool: &v1alpha1.FunctionPool{Drivers: []string{"iavf"}}}}
	w.create(tail)
	w.expect(tail, written, metav1.ConditionFalse, v1alpha1.ReasonPoolConflict, "is defined by CaptureRing span")
	update(w, tail, func(r *v1alpha1.CaptureRing) { r.Spec.Interfaces[0].ResourceName = "example.com/more" })
	w.expect(tail, written, metav1.ConditionTrue, v1alpha1.ReasonWritten, "default/sriovdp-config")
	both, second, err := w.pools()
	require.NoError(t, err)
	var content struct{ ResourceList []any }
	require.NoError(t, json.Unmarshal([]byte(both.Data["config.json"]), &content))
	assert.Len(t, content.ResourceList, 2)
	assert.Len(t, both.OwnerReferences, 2)
	assert.NotEqual(t, first, second)

	// What somebody changed comes back; with the last pool all of it goes.
	both.Data["config.json"] = "{}"
	require.NoError(t, w.Update(t.Context(), both))
	update(w, tail, func(r *v1alpha1.CaptureRing) { r.Spec.Interfaces[0].Pool = nil })
	w.eventually(func(c *assert.CollectT) {
		now, mark, err := w.pools()
		require.NoError(c, err)
		assert.Equal(c, ours.Data, now.Data)
		assert.Equal(c, first, mark)
	})
	update(w, ring, func(r *v1alpha1.CaptureRing) { r.Spec.Interfaces[0].Pool = nil })
	w.eventually(func(c *assert.CollectT) {
		_, _, err := w.pools()
		assert.True(c, apierrors.IsNotFound(err), err)
	})
}
