// SPDX-License-Identifier: Apache-2.0

// Package snapshot reads what the controllers decide upon.
package snapshot

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
	"github.com/ringcap/ringcap/operator/plan"
	"github.com/ringcap/ringcap/operator/report"
)

// osLabel is the label that kubelets put on their nodes.
const osLabel = "kubernetes.io/os"

// Snapshot is the state of all that concerns ringcap, as the cache has it. Its objects are shared with the cache of a
// caching reader when the reader is told not to copy: do not change them.
type Snapshot struct {
	Rings    []v1alpha1.CaptureRing
	Clusters []v1alpha1.Cluster
	Nodes    []plan.Node
	// Captures by node name.
	Captures map[string]*v1alpha1.NodeCapture
	// Suspended is for who takes the snapshot to set: nodes are to have nothing.
	Suspended bool
}

// NodeMetadata is the kind by which nodes are watched: their names and labels suffice.
func NodeMetadata() *metav1.PartialObjectMetadata {
	node := &metav1.PartialObjectMetadata{}
	node.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Node"})
	return node
}

// Take reads the state. Nodes are those that can have an agent: Linux ones.
func Take(ctx context.Context, reader client.Reader) (*Snapshot, error) {
	var rings v1alpha1.CaptureRingList
	if err := reader.List(ctx, &rings); err != nil {
		return nil, fmt.Errorf("list CaptureRings: %w", err)
	}
	var clusters v1alpha1.ClusterList
	if err := reader.List(ctx, &clusters); err != nil {
		return nil, fmt.Errorf("list Clusters: %w", err)
	}
	var captures v1alpha1.NodeCaptureList
	// Thousands of them, which nobody here changes.
	if err := reader.List(ctx, &captures, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list NodeCaptures: %w", err)
	}
	nodes := &metav1.PartialObjectMetadataList{}
	nodes.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "NodeList"})
	if err := reader.List(ctx, nodes); err != nil {
		return nil, fmt.Errorf("list Nodes: %w", err)
	}

	s := &Snapshot{Rings: rings.Items, Clusters: clusters.Items, Captures: map[string]*v1alpha1.NodeCapture{}}
	for i := range captures.Items {
		s.Captures[captures.Items[i].Name] = &captures.Items[i]
	}
	for _, node := range nodes.Items {
		if os, known := node.Labels[osLabel]; !known || os == "linux" {
			s.Nodes = append(s.Nodes, plan.Node{Name: node.Name, Labels: node.Labels})
		}
	}
	return s, nil
}

// Rules are what plans are made by, beside the state.
type Rules struct {
	// CheckFilter says why a filter does not compile.
	CheckFilter func(expression string) error
	// FleetBytes is the most that the specs of all NodeCaptures may take; 0 for no bound.
	FleetBytes int64
	// Now is the time.
	Now func() time.Time
}

// Plan plans for the state.
func (s *Snapshot) Plan(rules Rules) plan.Plan {
	current := make(map[string]v1alpha1.NodeCaptureSpec, len(s.Captures))
	for name, capture := range s.Captures {
		current[name] = capture.Spec
	}
	nodes, now := slices.Clone(s.Nodes), rules.Now()
	for i := range nodes {
		observe(&nodes[i], s.Captures[nodes[i].Name], now)
	}
	return plan.Make(plan.Input{
		Rings: s.Rings, Clusters: s.Clusters, Nodes: nodes, Current: current,
		CheckFilter: rules.CheckFilter, FleetBytes: rules.FleetBytes, Suspended: s.Suspended,
	})
}

// observe notes whether a node's agent reports, and which of the rings that the node was told of do not work there as told by its last
// report.
func observe(node *plan.Node, capture *v1alpha1.NodeCapture, now time.Time) {
	if capture == nil {
		return
	}
	node.Live = report.Fresh(capture, now)
	node.Silent = !node.Live && capture.Status.ObservedTime != nil
	node.Behind, node.Refused = map[string]bool{}, map[string]bool{}
	for i := range capture.Spec.Rings {
		if told := &capture.Spec.Rings[i]; !report.Working(capture, told) {
			node.Behind[told.Name] = true
			node.Refused[told.Name] = report.Refused(capture, told)
		}
	}
}
