// SPDX-License-Identifier: Apache-2.0

// Package snapshot reads the state that the controllers decide on.
package snapshot

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
	"github.com/ringcap/ringcap/operator/plan"
	"github.com/ringcap/ringcap/operator/report"
	"github.com/ringcap/ringcap/operator/suspend"
)

// osLabel is the label that kubelets put on their nodes.
const osLabel = "kubernetes.io/os"

// Snapshot is the state of all objects that ringcap uses, and the plan for it. Its objects are shared with the cache, and the
// plan with other snapshots: do not change them.
type Snapshot struct {
	// Mark is the state of an uninstall. If the operator's Deployment is gone the snapshot has nothing else.
	Mark suspend.State
	// Rings and Clusters are by name.
	Rings    []v1alpha1.CaptureRing
	Clusters []v1alpha1.Cluster
	// Captures by node name. ObservedTime is the time of the node's last heartbeat, in its status or its agent's Lease.
	Captures map[string]*v1alpha1.NodeCapture
	// Since is when the operator began to read reports of nodes.
	Since time.Time
	// Plan is the plan for this state.
	Plan plan.Plan

	// nodes are by name.
	nodes []plan.Node
}

// NodeMetadata is the type with which nodes are watched: their names and labels are enough.
func NodeMetadata() *metav1.PartialObjectMetadata {
	node := &metav1.PartialObjectMetadata{}
	node.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Node"})
	return node
}

// NodeMetadataList returns an empty list of them.
func NodeMetadataList() *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "NodeList"})
	return list
}

// take reads the state. It has only nodes that can have an agent: those with Linux.
func take(ctx context.Context, reader client.Reader) (*Snapshot, error) {
	var rings v1alpha1.CaptureRingList
	var clusters v1alpha1.ClusterList
	var captures v1alpha1.NodeCaptureList
	nodes := NodeMetadataList()
	for _, kind := range []struct {
		name string
		list client.ObjectList
	}{{"CaptureRings", &rings}, {"Clusters", &clusters}, {"NodeCaptures", &captures}, {"Nodes", nodes}} {
		// There are thousands, and nobody here changes them.
		if err := reader.List(ctx, kind.list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list %s: %w", kind.name, err)
		}
	}
	s := &Snapshot{Rings: rings.Items, Clusters: clusters.Items, Captures: map[string]*v1alpha1.NodeCapture{}}
	for i := range captures.Items {
		s.Captures[captures.Items[i].Name] = &captures.Items[i]
	}
	if err := addHeartbeats(ctx, reader, s.Captures); err != nil {
		return nil, err
	}
	for _, node := range nodes.Items {
		if os, known := node.Labels[osLabel]; !known || os == "linux" {
			s.nodes = append(s.nodes, plan.Node{Name: node.Name, Labels: node.Labels})
		}
	}
	// A cache has no order.
	slices.SortFunc(s.Rings, func(a, b v1alpha1.CaptureRing) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(s.Clusters, func(a, b v1alpha1.Cluster) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(s.nodes, func(a, b plan.Node) int { return strings.Compare(a.Name, b.Name) })
	return s, nil
}

// observe sets whether a node's agent reports, and which rings of the node's spec do not work there by its last report.
func observe(node *plan.Node, capture *v1alpha1.NodeCapture, now time.Time) {
	if capture == nil {
		return
	}
	node.Live = report.Fresh(capture, now)
	node.Silent = !node.Live && capture.Status.ObservedTime != nil
	for i := range capture.Spec.Rings {
		entry := &capture.Spec.Rings[i]
		if report.Working(capture, entry) {
			continue
		}
		if node.Behind == nil { // most nodes have none
			node.Behind, node.Refused = map[string]bool{}, map[string]bool{}
		}
		node.Behind[entry.Name], node.Refused[entry.Name] = true, report.Refused(capture, entry)
	}
}
