// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// earlierSelector is what the CRD had for spec.nodeSelector.
var earlierSelector = map[string]any{"type": "object", "maxProperties": int64(16), "additionalProperties": map[string]any{"type": "string"}}

// TestWhatEarlierReleasesStored: a selector that was stored before the CRD was upgraded is not lost with it. It selects the same
// nodes, its status and finalizers can be written, and the command that rewrites it does. Other values that are refused now do
// not keep a status from being written either.
func TestWhatEarlierReleasesStored(t *testing.T) {
	c := env.Client(t)
	crd := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}}
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Name: "capturerings.ringcap.io"}, crd))
	versions := crd.Object["spec"].(map[string]any)["versions"].([]any)
	path := []string{"schema", "openAPIV3Schema", "properties", "spec", "properties"}
	schema := func(s map[string]any) {
		require.NoError(t, unstructured.SetNestedMap(versions[0].(map[string]any), s, path...))
		require.NoError(t, c.Update(t.Context(), crd))
		versions = crd.Object["spec"].(map[string]any)["versions"].([]any)
	}
	now, _, _ := unstructured.NestedMap(versions[0].(map[string]any), path...)
	earlier := runtime.DeepCopyJSON(now)
	earlier["nodeSelector"] = earlierSelector
	const rules = "x-kubernetes-validations"
	unstructured.RemoveNestedField(earlier, "memoryLimit", rules)
	unstructured.RemoveNestedField(earlier, "filter", rules)
	unstructured.RemoveNestedField(earlier, "filter", "properties", "rules", rules)
	schema(earlier)
	upgraded := false
	upgrade := func() {
		if !upgraded {
			schema(now)
		}
		upgraded = true
	}
	t.Cleanup(upgrade)

	ring := func(name, selector string) string {
		return strings.Replace(ring, "NAME", name, 1) + "  nodeSelector: " + selector
	}
	require.Eventually(t, func() bool {
		_, err := create(t, c, ring("old", "{role: sensor, kubernetes.io/os: linux}"))
		return err == nil
	}, time.Minute, 100*time.Millisecond, "the API server takes the earlier CRD")
	_, err := create(t, c, ring("all", "{}")+"\n  memoryLimit: 100m\n  filter: {defaultAction: Drop, rules: [{action: Pass, match: {source: 10.0.0.1/8}}]}")
	require.NoError(t, err)
	_, err = create(t, c, strings.Replace(ring("drops", "{role: sensor}"), "  nodeS", "  filter: {defaultAction: Drop}\n  nodeS", 1))
	require.NoError(t, err)
	upgrade()
	require.Eventually(t, func() bool {
		_, err := create(t, c, ring("new", "{matchLabels: {role: sensor}}"))
		return err == nil
	}, time.Minute, 100*time.Millisecond, "the API server takes the CRD")

	var old, all, drops v1alpha1.CaptureRing
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Name: "drops"}, &drops))
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Name: "old"}, &old))
	require.True(t, old.Spec.NodeSelector.Old)
	require.Equal(t, "kubernetes.io/os=linux,role=sensor", old.Spec.NodeSelector.String())
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Name: "all"}, &all))
	require.Equal(t, &v1alpha1.NodeSelector{}, all.Spec.NodeSelector)

	for _, r := range []*v1alpha1.CaptureRing{&old, &all, &drops} {
		before := r.DeepCopy()
		meta.SetStatusCondition(&r.Status.Conditions, metav1.Condition{Type: "Accepted", Status: "True", Reason: "Accepted"})
		require.NoError(t, c.Status().Patch(t.Context(), r, client.MergeFrom(before)))
		before = r.DeepCopy()
		r.Finalizers = []string{v1alpha1.FinalizerNodes}
		require.NoError(t, c.Patch(t.Context(), r, client.MergeFrom(before)))
		before = r.DeepCopy()
		r.Finalizers = nil
		require.NoError(t, c.Patch(t.Context(), r, client.MergeFrom(before)))
	}
	require.True(t, old.Spec.NodeSelector.Old)

	_, patch, _ := strings.Cut(strings.TrimSuffix(old.Spec.NodeSelector.Rewrite("old"), "'"), "-p '")
	require.NoError(t, c.Patch(t.Context(), &old, client.RawPatch(types.MergePatchType, []byte(patch))))
	require.False(t, old.Spec.NodeSelector.Old)
	require.Equal(t, "kubernetes.io/os=linux,role=sensor", old.Spec.NodeSelector.String())

	// A manifest that still has the earlier form, applied again.
	require.NoError(t, c.Patch(t.Context(), &old, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"nodeSelector":{"role":"sensor"}}}`))))
	_, err = old.Spec.NodeSelector.AsSelector()
	require.ErrorContains(t, err, ".role: there is no such field beside matchLabels and matchExpressions")

	// A rollback: the earlier form can be written back as soon as the earlier CRD is, and not before.
	back := func() error {
		r := &v1alpha1.CaptureRing{ObjectMeta: metav1.ObjectMeta{Name: "new"}}
		return c.Patch(t.Context(), r, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"nodeSelector":{"matchLabels":null,"matchExpressions":null,"role":"sensor"}}}`)))
	}
	require.ErrorContains(t, back(), "selects by no label")
	schema(earlier)
	upgraded = false
	require.Eventually(t, func() bool { return back() == nil }, time.Minute, 100*time.Millisecond, "the API server takes the earlier CRD")
	upgrade()
	require.Eventually(t, func() bool {
		_, err := create(t, c, ring("newer", "{matchLabels: {role: sensor}}"))
		return err == nil
	}, time.Minute, 100*time.Millisecond, "the API server takes the CRD")
}
