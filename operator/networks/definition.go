// SPDX-License-Identifier: Apache-2.0

// Package networks writes the NetworkAttachmentDefinitions by which Multus hands virtual functions to pods, and, where it is asked
// to own them, the pools that sriov-network-device-plugin puts them into.
package networks

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
	"github.com/ringcap/ringcap/operator/plan"
)

const (
	// ringLabel is on all definitions that the operator writes.
	ringLabel = "ringcap.io/ring"
	// poolAnnotation tells Multus which resource's device is the network's.
	poolAnnotation = "k8s.v1.cni.cncf.io/resourceName"
)

// definitionKind is of the Network Plumbing Working Group, and comes with Multus.
var definitionKind = schema.GroupVersionKind{Group: "k8s.cni.cncf.io", Version: "v1", Kind: "NetworkAttachmentDefinition"}

// definition is the object of a network. Multus adds the device that the kubelet gave to the pod to its configuration.
func definition(n plan.Network) *unstructured.Unstructured {
	// A struct's order of fields is the text's.
	config, _ := json.Marshal(struct {
		CNIVersion string `json:"cniVersion"`
		Name       string `json:"name"`
		Type       string `json:"type"`
	}{"1.0.0", n.Ring, "host-device"})
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"config": string(config)}}}
	object.SetGroupVersionKind(definitionKind)
	object.SetNamespace(n.Namespace)
	object.SetName(n.Ring)
	object.SetLabels(map[string]string{ringLabel: n.Ring, managedBy: operator})
	object.SetAnnotations(map[string]string{poolAnnotation: n.Resource})
	object.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: "CaptureRing", Name: n.Ring, UID: n.UID, Controller: new(true),
	}})
	return object
}

// bring makes have what the network asks for, and leaves alone what others added; changed says whether it was otherwise.
func bring(have *unstructured.Unstructured, n plan.Network) (changed bool) {
	want := definition(n)
	spec, _, _ := unstructured.NestedMap(have.Object, "spec")
	if config, _, _ := unstructured.NestedString(want.Object, "spec", "config"); len(spec) != 1 || spec["config"] != config {
		have.Object["spec"], changed = want.Object["spec"], true
	}
	labels, more := merge(have.GetLabels(), want.GetLabels())
	have.SetLabels(labels)
	annotations, yetMore := merge(have.GetAnnotations(), want.GetAnnotations())
	have.SetAnnotations(annotations)
	return changed || more || yetMore
}

func merge(have, want map[string]string) (all map[string]string, changed bool) {
	all = map[string]string{}
	for key, value := range have {
		all[key] = value
	}
	for key, value := range want {
		changed = changed || all[key] != value
		all[key] = value
	}
	return all, changed
}
