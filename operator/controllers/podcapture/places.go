// SPDX-License-Identifier: Apache-2.0

package podcapture

import (
	"context"
	"fmt"
	"regexp"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// places are where the pods of rings are.
type places struct {
	// nodes are all, by name.
	nodes map[string]bool
	// pods is how many a ring captures, by its name.
	pods map[string]int32
	// has says that a node has pods that the ring selects, captured or not.
	has map[place]bool
}

// place is a ring on a node.
type place struct{ ring, node string }

// findPods reads what nodes say of the pods that rings select.
func (r *Reconciler) findPods(ctx context.Context) (places, error) {
	on := places{nodes: map[string]bool{}, pods: map[string]int32{}, has: map[place]bool{}}
	var captures v1alpha1.NodeCaptureList
	// Thousands of them, which nobody here changes.
	if err := r.Client.List(ctx, &captures, client.UnsafeDisableDeepCopy); err != nil {
		return on, fmt.Errorf("list NodeCaptures: %w", err)
	}
	r.nodes = len(captures.Items)
	for i := range captures.Items {
		on.add(&captures.Items[i])
	}
	return on, nil
}

func (on places) add(capture *v1alpha1.NodeCapture) {
	on.nodes[capture.Name] = true
	// A pod may have several interfaces, on its one node.
	counted := map[[2]string]bool{}
	for _, tapped := range capture.Status.Interfaces {
		for _, ring := range tapped.Rings {
			if key := [2]string{ring, tapped.Pod}; tapped.Pod != "" && !counted[key] {
				counted[key] = true
				on.pods[ring]++
				on.has[place{ring, capture.Name}] = true
			}
		}
	}
	for i := range capture.Status.Rings {
		if ring := &capture.Status.Rings[i]; len(ring.PodsNotTapped) > 0 {
			on.has[place{ring.Name, capture.Name}] = true
		}
	}
}

// words are what names of nodes are made of.
var words = regexp.MustCompile(`[a-z0-9]([-.a-z0-9]*[a-z0-9])?`)

// discreet is a ring's message without the names of nodes that have no pods of it. Who has a namespace sees on which nodes its pods run, and
// no others.
func (on places) discreet(ring, message string) string {
	return words.ReplaceAllStringFunc(message, func(word string) string {
		if on.nodes[word] && !on.has[place{ring, word}] {
			return "another node"
		}
		return word
	})
}
