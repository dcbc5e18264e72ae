// SPDX-License-Identifier: Apache-2.0

package podcapture

import (
	"context"
	"fmt"
	"regexp"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
	"github.com/ringcap/ringcap/operator/snapshot"
)

// podNodes holds which nodes have the pods of rings.
type podNodes struct {
	// nodes has the names of all Nodes and NodeCaptures: a Node has no NodeCapture at first, and a NodeCapture outlives its Node.
	nodes map[string]bool
	// pods is the number of pods that each ring captures, by its name.
	pods map[string]int32
	// has is true if the node has pods that the ring selects, captured or not.
	has map[ringNode]bool
}

// ringNode is a ring on a node.
type ringNode struct{ ring, node string }

// findPods reads from the nodes' reports which pods rings select.
func (r *Reconciler) findPods(ctx context.Context) (podNodes, error) {
	on := podNodes{nodes: map[string]bool{}, pods: map[string]int32{}, has: map[ringNode]bool{}}
	nodes := snapshot.NodeMetadataList()
	// There are thousands, and nobody here changes them.
	if err := r.Client.List(ctx, nodes, client.UnsafeDisableDeepCopy); err != nil {
		return on, fmt.Errorf("list Nodes: %w", err)
	}
	for i := range nodes.Items {
		on.nodes[nodes.Items[i].Name] = true
	}
	var captures v1alpha1.NodeCaptureList
	if err := r.Client.List(ctx, &captures, client.UnsafeDisableDeepCopy); err != nil {
		return on, fmt.Errorf("list NodeCaptures: %w", err)
	}
	r.nodes = len(captures.Items)
	for i := range captures.Items {
		on.add(&captures.Items[i])
	}
	return on, nil
}

func (on podNodes) add(capture *v1alpha1.NodeCapture) {
	on.nodes[capture.Name] = true
	// A pod may have several interfaces, on its one node.
	counted := map[[2]string]bool{}
	for _, tapped := range capture.Status.Interfaces {
		for _, ring := range tapped.Rings {
			if key := [2]string{ring, tapped.Pod}; tapped.Pod != "" && !counted[key] {
				counted[key] = true
				on.pods[ring]++
				on.has[ringNode{ring, capture.Name}] = true
			}
		}
	}
	for i := range capture.Status.Rings {
		if ring := &capture.Status.Rings[i]; len(ring.PodsNotTapped) > 0 {
			on.has[ringNode{ring.Name, capture.Name}] = true
		}
	}
}

// words matches what can be a node's name.
var words = regexp.MustCompile(`[a-z0-9]([-.a-z0-9]*[a-z0-9])?`)

// redact returns a ring's message without the names of nodes that have no pods of the ring. Users of a namespace may know the
// nodes of its pods, but no others.
func (on podNodes) redact(ring, message string) string {
	return words.ReplaceAllStringFunc(message, func(word string) string {
		if on.nodes[word] && !on.has[ringNode{ring, word}] {
			return "another node"
		}
		return word
	})
}
