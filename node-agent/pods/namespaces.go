// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/ringcap/ringcap/node-agent/capture"
	"github.com/ringcap/ringcap/operator/api/consumers"
)

// Namespaces decides which namespaces' pods may have the queues of a ring or Cluster. Its methods may be called by
// several goroutines.
type Namespaces struct {
	mu sync.Mutex
	// allowed holds the rules by ring or Cluster.
	allowed map[string]consumers.Rule
	known   chan struct{}
	// Labels returns the labels of namespaces, for rules that ask for them. It may wait for them. KnownLabels returns
	// labels that are known at once. Both are set before Set is called.
	Labels, KnownLabels labels
}

type labels = func(ctx context.Context, namespace string) (map[string]string, error)

// NewNamespaces makes Namespaces without rules.
func NewNamespaces() *Namespaces { return &Namespaces{known: make(chan struct{})} }

// Set sets the rules of all rings and Clusters.
func (n *Namespaces) Set(allowed map[string]consumers.Rule) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.allowed == nil {
		close(n.known)
	}
	n.allowed = allowed
}

// of returns the rule of a ring or Cluster. It waits until the rules are known, for a moment after the agent's start.
func (n *Namespaces) of(ctx context.Context, cluster string) (consumers.Rule, error) {
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

// check returns nil if a pod may have queues of the ring or Cluster. If no namespace is named, the error wraps
// consumers.ErrNobody. Then new pods get no queues, and others keep theirs.
func (n *Namespaces) check(ctx context.Context, cluster string, pod Pod) error {
	return n.checkBy(ctx, n.Labels, cluster, pod)
}

// checkNow checks by the labels that are known at once.
func (n *Namespaces) checkNow(ctx context.Context, cluster string, pod Pod) error {
	return n.checkBy(ctx, n.KnownLabels, cluster, pod)
}

func (n *Namespaces) checkBy(ctx context.Context, of labels, cluster string, pod Pod) error {
	allowed, err := n.of(ctx, cluster)
	if err != nil {
		return err
	}
	known := func(namespace string) (map[string]string, error) { return of(ctx, namespace) }
	if err := allowed.Check(pod.Namespace, known); err != nil {
		return fmt.Errorf("pod %s may not have queues of %s: %w", pod, cluster, err)
	}
	return nil
}

// MayStart returns nil if the container to which the kubelet is about to give a queue may have it. It does not ask
// the API server.
func (a Access) MayStart(ctx context.Context, queue capture.QueueID) error {
	allowed, err := a.Namespaces.of(ctx, queue.Cluster)
	if err != nil || allowed.Everybody() {
		return err
	}
	allocations, err := a.Allocations.Allocations(ctx)
	if err != nil {
		return err
	}
	owners := allocations[queue]
	if len(owners) == 0 {
		// The kubelet does not list init containers that end.
		return fmt.Errorf("the kubelet does not report which pod gets queue %d of %s, and its spec.consumers does not name all namespaces: "+
			"request it in a container that goes on", queue.Queue, queue.Cluster)
	}
	for _, owner := range owners {
		if err := a.Namespaces.check(ctx, queue.Cluster, owner); err != nil {
			return err
		}
	}
	return nil
}
