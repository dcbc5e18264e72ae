// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// Namespaces says from which namespaces pods may have the queues of a ring or Cluster. Its methods may be called by
// several goroutines.
type Namespaces struct {
	mu sync.Mutex
	// allowed by ring or Cluster; an empty list allows all.
	allowed map[string][]string
	known   chan struct{}
}

// NewNamespaces knows nothing yet.
func NewNamespaces() *Namespaces { return &Namespaces{known: make(chan struct{})} }

// Set says it for all rings and Clusters.
func (n *Namespaces) Set(allowed map[string][]string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.allowed == nil {
		close(n.known)
	}
	n.allowed = allowed
}

// of returns the namespaces of a ring or Cluster. Until they are known, which is so for a moment after the agent's start,
// it waits.
func (n *Namespaces) of(ctx context.Context, cluster string) ([]string, error) {
	select {
	case <-n.known:
	case <-ctx.Done():
		return nil, errors.New("the API server has not said yet which namespaces' pods may have it: try again")
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	allowed, ok := n.allowed[cluster]
	if !ok {
		return nil, fmt.Errorf("nobody asks for %s any more: its queues go when their consumers do", cluster)
	}
	return allowed, nil
}

// check returns nil if a pod may have queues of the ring or Cluster.
func (n *Namespaces) check(ctx context.Context, cluster string, pod Pod) error {
	allowed, err := n.of(ctx, cluster)
	if err != nil {
		return err
	}
	if len(allowed) > 0 && !slices.Contains(allowed, pod.Namespace) {
		return fmt.Errorf("pod %s may not have queues of %s: its spec.consumers.namespaces names %s, not %s: "+
			"add the namespace there, or run the pod elsewhere", pod, cluster, strings.Join(allowed, ", "), pod.Namespace)
	}
	return nil
}

// MayStart returns nil if the container to which the kubelet is about to give a queue may have it. It does not ask the
// API server.
func (p Pods) MayStart(ctx context.Context, queue capture.QueueID) error {
	allowed, err := p.Namespaces.of(ctx, queue.Cluster)
	if err != nil || len(allowed) == 0 {
		return err
	}
	allocations, err := p.Allocations.Allocations(ctx)
	if err != nil {
		return err
	}
	owners := allocations[queue]
	if len(owners) == 0 {
		// The kubelet lists no init containers that end.
		return fmt.Errorf("the kubelet does not say which pod gets queue %d of %s, whose spec.consumers.namespaces names %s: "+
			"request it in a container that goes on", queue.Queue, queue.Cluster, strings.Join(allowed, ", "))
	}
	for _, owner := range owners {
		if err := p.Namespaces.check(ctx, queue.Cluster, owner); err != nil {
			return err
		}
	}
	return nil
}
