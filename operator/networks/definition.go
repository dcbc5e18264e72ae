// SPDX-License-Identifier: Apache-2.0

// Package networks writes the NetworkAttachmentDefinitions with which Multus attaches virtual functions to pods, and the pools
// of sriov-network-device-plugin that rings ask the operator to own.
package networks

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
	"github.com/ringcap/ringcap/operator/plan"
)

const (
	// ringLabel is on all definitions that the operator writes.
	ringLabel = "ringcap.io/ring"
	// poolAnnotation names the resource that Multus attaches a device of.
	poolAnnotation = "k8s.v1.cni.cncf.io/resourceName"
)

// definitionKind is defined by the Network Plumbing Working Group, and installed with Multus.
var definitionKind = schema.GroupVersionKind{Group: "k8s.cni.cncf.io", Version: "v1", Kind: "NetworkAttachmentDefinition"}

// definition returns the object of a network. Multus adds the device that the kubelet gave to the pod to its configuration.
func definition(n plan.Network) *unstructured.Unstructured {
	// A struct: the text has the fields in this order.
	config, _ := json.Marshal(struct {
		CNIVersion string `json:"cniVersion"`
		Name       string `json:"name"`
		Type       string `json:"type"`
	}{"1.0.0", n.Ring, "host-device"})
	object := object(definitionKind, types.NamespacedName{Namespace: n.Namespace, Name: n.Ring})
	object.Object["spec"] = map[string]any{"config": string(config)}
	object.SetLabels(map[string]string{ringLabel: n.Ring, managedBy: operator})
	object.SetAnnotations(map[string]string{poolAnnotation: n.Resource})
	owner := ownerOf(n.Ring, n.UID)
	owner.Controller = new(true)
	object.SetOwnerReferences([]metav1.OwnerReference{owner})
	return object
}

// object returns an object with only its kind and key.
func object(kind schema.GroupVersionKind, key types.NamespacedName) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetGroupVersionKind(kind)
	o.SetNamespace(key.Namespace)
	o.SetName(key.Name)
	return o
}

// ownerOf returns the ring as an owner reference.
func ownerOf(ring string, uid types.UID) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "CaptureRing", Name: ring, UID: uid}
}

// update sets in have what the network asks for, and keeps what others added; changed reports whether anything differed.
func update(have *unstructured.Unstructured, n plan.Network) (changed bool) {
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
