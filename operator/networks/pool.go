// SPDX-License-Identifier: Apache-2.0

package networks

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
	"github.com/ringcap/ringcap/operator/plan"
)

const (
	managedBy = "app.kubernetes.io/managed-by"
	operator  = "ringcap-operator"
	// configKey is the key that sriov-network-device-plugin's own manifests use for its configuration.
	configKey = "config.json"
	// poolsAnnotation on the device plugin's pods replaces them when the configuration changes.
	poolsAnnotation = "ringcap.io/pools"
)

var (
	configMapKind = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	daemonSetKind = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "DaemonSet"}
)

// DevicePlugin locates the configuration of sriov-network-device-plugin, and its pods.
type DevicePlugin struct {
	// ConfigMap is its configuration; the operator owns no pools if it is zero.
	ConfigMap client.ObjectKey
	// DaemonSets, in the same namespace, get new pods when the configuration changes, because it is only read at their start. If
	// there are none, somebody else must restart them.
	DaemonSets []string
}

// pools is the result of the last write; config is empty before the first.
type pools struct {
	config  string
	problem Problem
}

// config returns the configuration in the device plugin's format:
// https://github.com/k8snetworkplumbingwg/sriov-network-device-plugin, "Configurations".
func config(all []plan.Pool) string {
	type resource struct {
		Name      string                `json:"resourceName"`
		Prefix    string                `json:"resourcePrefix"`
		Selectors v1alpha1.FunctionPool `json:"selectors"`
	}
	list := []resource{}
	for _, p := range all {
		prefix, name, _ := strings.Cut(p.Resource, "/")
		list = append(list, resource{name, prefix, p.FunctionPool})
	}
	text, _ := json.MarshalIndent(map[string]any{"resourceList": list}, "", "  ")
	return string(text) + "\n"
}

// PoolOutcome returns the result of the last Write; false if it wrote other pools.
func (w *Writer) PoolOutcome(all []plan.Pool) (Problem, bool) {
	asked := config(all)
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pools.problem, w.pools.config == asked
}

// writePools writes the device plugin's configuration as planned, or deletes it if no ring asks for it; none is true if nothing
// is left to do.
func (w *Writer) writePools(ctx context.Context, all []plan.Pool) (now pools, none bool) {
	now.config = config(all)
	if w.Plugin.ConfigMap.Name == "" {
		if len(all) > 0 {
			now.problem = Problem{v1alpha1.ReasonPoolForbidden, "the operator may not write the configuration of sriov-network-device-plugin: " +
				"set operator.networks.pools.enabled in the chart's values, or leave spec.interfaces[].pool out"}
		}
		return now, len(all) == 0
	}
	have := object(configMapKind, w.Plugin.ConfigMap)
	err := w.Client.Get(ctx, w.Plugin.ConfigMap, have)
	there := err == nil
	switch {
	case len(all) == 0 && apierrors.IsForbidden(err):
		return now, true // without the right to it there is nothing of ours
	case client.IgnoreNotFound(err) != nil:
	case there && have.GetLabels()[managedBy] != operator:
		if len(all) > 0 {
			now.problem = Problem{v1alpha1.ReasonPoolConflict, fmt.Sprintf("the ConfigMap %s is somebody else's and stays as it is: remove it "+
				"if the operator should own the pools, else put the pool into it and leave spec.interfaces[].pool out", w.Plugin.ConfigMap)}
		}
		return now, len(all) == 0
	case len(all) == 0:
		if there {
			err = w.Client.Delete(ctx, have, client.Preconditions{UID: new(have.GetUID())})
		}
		return now, client.IgnoreNotFound(err) == nil
	case !there:
		err = w.Client.Create(ctx, w.configMap(all, now.config))
	case fill(have, w.configMap(all, now.config)):
		err = w.Client.Update(ctx, have)
	}
	if err == nil {
		err = w.restart(ctx, now.config)
	}
	now.problem = w.explainPools(err)
	return now, false
}

// configMap returns the pools' configuration, which is deleted with the last of their rings.
func (w *Writer) configMap(all []plan.Pool, config string) *unstructured.Unstructured {
	o := object(configMapKind, w.Plugin.ConfigMap)
	o.SetLabels(map[string]string{managedBy: operator})
	o.Object["data"] = map[string]any{configKey: config}
	var owners []metav1.OwnerReference
	for _, p := range all {
		owners = append(owners, ownerOf(p.Ring, p.UID))
	}
	o.SetOwnerReferences(owners)
	return o
}

// fill sets in have what it should be; changed reports whether anything differed.
func fill(have, want *unstructured.Unstructured) (changed bool) {
	if reflect.DeepEqual(have.Object["data"], want.Object["data"]) && reflect.DeepEqual(have.GetOwnerReferences(), want.GetOwnerReferences()) {
		return false
	}
	have.Object["data"] = want.Object["data"]
	have.SetOwnerReferences(want.GetOwnerReferences())
	return true
}

// restart makes the device plugin read its configuration, unless it has read this one: the DaemonSets replace their pods by
// their update strategy.
func (w *Writer) restart(ctx context.Context, config string) error {
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte(config)))
	if w.read == sum {
		return nil
	}
	patch := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{%q:%q}}}}}`, poolsAnnotation, sum)
	for _, name := range w.Plugin.DaemonSets {
		daemonSet := object(daemonSetKind, client.ObjectKey{Namespace: w.Plugin.ConfigMap.Namespace, Name: name})
		if err := w.Client.Patch(ctx, daemonSet, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			return err
		}
	}
	w.read = sum
	return nil
}

func (w *Writer) explainPools(err error) Problem {
	key := w.Plugin.ConfigMap
	switch {
	case err == nil:
		return Problem{}
	case apierrors.IsForbidden(err):
		return Problem{v1alpha1.ReasonPoolForbidden, fmt.Sprintf("the operator may not write the ConfigMap %s or restart what reads it: "+
			"set operator.networks.pools in the chart's values: %v", key, err)}
	case apierrors.IsNotFound(err):
		return Problem{v1alpha1.ReasonPoolNotWritten, fmt.Sprintf("there is no namespace %q or not all of the DaemonSets %s in it, which are to read the ConfigMap %s: install "+
			"sriov-network-device-plugin, or set operator.networks.pools in the chart's values", key.Namespace, strings.Join(w.Plugin.DaemonSets, ", "), key.Name)}
	}
	return Problem{v1alpha1.ReasonPoolNotWritten, fmt.Sprintf("the ConfigMap %s could not be written; the operator tries again: %v", key, err)}
}
