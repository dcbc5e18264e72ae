// SPDX-License-Identifier: Apache-2.0

// Package networks writes the NetworkAttachmentDefinitions by which Multus hands virtual functions to pods, and, where it is asked
// to own them, the pools that sriov-network-device-plugin puts them into.
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
	object := object(definitionKind, types.NamespacedName{Namespace: n.Namespace, Name: n.Ring})
	object.Object["spec"] = map[string]any{"config": string(config)}
	object.SetLabels(map[string]string{ringLabel: n.Ring, managedBy: operator})
	object.SetAnnotations(map[string]string{poolAnnotation: n.Resource})
	owner := ownerOf(n.Ring, n.UID)
	owner.Controller = new(true)
	object.SetOwnerReferences([]metav1.OwnerReference{owner})
	return object
}

// object is an object of which nothing is known but what it is.
func object(kind schema.GroupVersionKind, key types.NamespacedName) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetGroupVersionKind(kind)
	o.SetNamespace(key.Namespace)
	o.SetName(key.Name)
	return o
}

// ownerOf is a ring as the owner of what goes with it.
func ownerOf(ring string, uid types.UID) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "CaptureRing", Name: ring, UID: uid}
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
