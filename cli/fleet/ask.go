// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/ringcap/ringcap/operator/api/counters"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

const (
	// atOnce is the number of agents to ask in parallel.
	atOnce = 32
	// answerWithin is the timeout for an agent's answer, askWithin the one for all agents.
	answerWithin = 3 * time.Second
	askWithin    = 15 * time.Second
)

// Asker asks an agent for its counters.
type Asker func(ctx context.Context, agent v1.NodeAgent) (counters.Report, error)

// Counted is the time of a node's counters in a snapshot.
type Counted struct {
	Time time.Time
	// Why they are from the NodeCapture, up to five minutes old; empty if the agent has just sent them.
	Why string
}

// Live reports whether the agent has just sent them.
func (c Counted) Live() bool { return c.Why == "" }

// CountedOn returns the time of the counters of a node.
func (s *Snapshot) CountedOn(node *v1.NodeCapture) Counted {
	if counted, ok := s.Counted[node.Name]; ok {
		return counted
	}
	return counted(node, "its agent was not asked")
}

func counted(node *v1.NodeCapture, why string) Counted {
	c := Counted{Why: why}
	if at := node.Status.ObservedTime; at != nil {
		c.Time = at.Time
	}
	return c
}

// Ask replaces the counters in NodeCaptures by the agents' current ones, on the nodes that have one of the rings, or on all. If
// an agent does not answer the counters stay, and CountedOn returns why. It takes no longer than askWithin.
func (s *Snapshot) Ask(ctx context.Context, ask Asker, rings ...string) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	r := round{ask: ask, denied: map[string]string{}}
	s.Counted = map[string]Counted{}
	var group sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for i := range s.Nodes {
		node := &s.Nodes[i]
		if !s.worthAsking(node, rings) {
			continue
		}
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			c := r.one(ctx, node)
			r.mu.Lock()
			defer r.mu.Unlock()
			s.Counted[node.Name] = c
		})
	}
	group.Wait()
	s.Denied = r.right
}

// worthAsking reports whether a node has counters and a live agent.
func (s *Snapshot) worthAsking(node *v1.NodeCapture, rings []string) bool {
	return s.Silence(node) == "" && slices.ContainsFunc(node.Status.Rings, func(r v1.NodeRingStatus) bool {
		return len(rings) == 0 || slices.Contains(rings, r.Name)
	})
}

// round is the state of one Ask.
type round struct {
	ask Asker
	mu  sync.Mutex
	// denied is why the user may not ask agents, by namespace; right is the missing right.
	denied map[string]string
	right  string
}

// one asks one agent, and writes its answer into the node's status.
func (r *round) one(ctx context.Context, node *v1.NodeCapture) Counted {
	agent := node.Status.Agent
	if agent == nil {
		return counted(node, "its agent cannot be asked: it is of an earlier version")
	}
	r.mu.Lock()
	denied := r.denied[agent.Namespace]
	r.mu.Unlock()
	if denied != "" {
		return counted(node, denied)
	}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	report, err := r.ask(ctx, *agent)
	switch {
	case apierrors.IsForbidden(err):
		return counted(node, r.deny(agent.Namespace))
	case ctx.Err() != nil:
		return counted(node, "its agent did not answer in time")
	case err != nil:
		return counted(node, fmt.Sprintf("its agent does not answer: %v", err))
	case report.Node != node.Name:
		return counted(node, fmt.Sprintf("pod %s/%s answers for another node, %q", agent.Namespace, agent.Pod, report.Node))
	}
	report.Into(&node.Status)
	return Counted{Time: report.Time.Time}
}

func (r *round) deny(namespace string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.right = fmt.Sprintf("you may not ask the agents for their counters, which needs the verb get on pods/proxy in namespace %s: "+
		"counters are those of the NodeCaptures, up to five minutes old", namespace)
	r.denied[namespace] = "you may not ask its agent"
	return r.denied[namespace]
}
