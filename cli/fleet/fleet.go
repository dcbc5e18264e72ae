// SPDX-License-Identifier: Apache-2.0

// Package fleet reads the state of ringcap in a cluster, so that everything that evaluates it can be a pure function.
package fleet

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Snapshot is the state at one time. Lists are sorted by name.
type Snapshot struct {
	Now      time.Time
	Rings    []v1.CaptureRing
	Clusters []v1.Cluster
	Nodes    []v1.NodeCapture
	// Counted has the nodes with agents that were asked, by name, see Ask. Denied is the right that was missing for
	// it, for users.
	Counted map[string]Counted
	Denied  string
	// LeasesDenied is the right that is missing to detect early that a node is silent, for users.
	LeasesDenied string
	// renewed is when each agent's Lease was renewed. hidden has the namespaces with Leases that the user may not
	// read.
	renewed map[client.ObjectKey]time.Time
	hidden  map[string]bool
}

// Read reads a snapshot.
func Read(ctx context.Context, c client.Reader, now time.Time) (Snapshot, error) {
	var (
		rings    v1.CaptureRingList
		clusters v1.ClusterList
		nodes    v1.NodeCaptureList
	)
	for _, list := range []client.ObjectList{&rings, &clusters, &nodes} {
		if err := c.List(ctx, list); err != nil {
			return Snapshot{}, explain(err, list)
		}
	}
	s := Snapshot{Now: now, Rings: rings.Items, Clusters: clusters.Items, Nodes: nodes.Items}
	slices.SortFunc(s.Rings, func(a, b v1.CaptureRing) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(s.Clusters, func(a, b v1.Cluster) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(s.Nodes, func(a, b v1.NodeCapture) int { return strings.Compare(a.Name, b.Name) })
	return s, s.readLeases(ctx, c)
}

func explain(err error, list client.ObjectList) error {
	kind := strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%T", list), "*v1alpha1."), "List")
	switch {
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
		return fmt.Errorf("this cluster does not know the kind %s of ringcap.io: install the chart (helm install ringcap charts/ringcap); see 'ringcap doctor'", kind)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("list %ss: %w: your user needs the verbs get, list and watch on ringcap.io", kind, err)
	}
	return fmt.Errorf("list %ss: %w", kind, err)
}

// Ring returns a ring by name, nil if there is none.
func (s Snapshot) Ring(name string) *v1.CaptureRing {
	for i := range s.Rings {
		if s.Rings[i].Name == name {
			return &s.Rings[i]
		}
	}
	return nil
}

// Over returns the names of the sets of queues that a ring feeds: its own, if it has queues, and those of Clusters.
func (s Snapshot) Over(ring *v1.CaptureRing) []string {
	var names []string
	if ring.Spec.Queues != nil {
		names = append(names, ring.Name)
	}
	for _, c := range s.Clusters {
		if slices.Contains(c.Spec.Rings, ring.Name) {
			names = append(names, c.Name)
		}
	}
	return names
}

// Placement is a ring on one node.
type Placement struct {
	Node *v1.NodeCapture
	// Status is what the node reports about the ring, nil if nothing.
	Status *v1.NodeRingStatus
	// Problem is why the node does not capture as asked, empty if it does.
	Problem string
}

// Placements returns the nodes that should have a ring, or have it, except for nodes without its interfaces that it ignores.
func (s Snapshot) Placements(ring string) []Placement {
	var placements []Placement
	for i := range s.Nodes {
		p := Placement{Node: &s.Nodes[i], Status: RingOn(&s.Nodes[i], ring)}
		asked := slices.ContainsFunc(p.Node.Spec.Rings, func(r v1.NodeRing) bool { return r.Name == ring })
		if !asked && p.Status == nil || p.Status != nil && p.Status.Ready && p.Status.Reason == v1.ReasonInterfaceAbsent {
			continue
		}
		switch silence := s.Silence(p.Node); {
		case silence != "":
			p.Problem = silence
		case p.Status == nil:
			p.Problem = "its agent has not acted upon it yet"
		case !p.Status.Ready:
			p.Problem = p.Status.Reason + ": " + p.Status.Message
		}
		placements = append(placements, p)
	}
	return placements
}

// RingOn returns what a node reports about a ring, nil if nothing.
func RingOn(node *v1.NodeCapture, ring string) *v1.NodeRingStatus {
	for i := range node.Status.Rings {
		if node.Status.Rings[i].Name == ring {
			return &node.Status.Rings[i]
		}
	}
	return nil
}

// QueuesOn returns what a node reports about a set of queues, nil if nothing.
func QueuesOn(node *v1.NodeCapture, name string) *v1.NodeClusterStatus {
	for i := range node.Status.Clusters {
		if node.Status.Clusters[i].Name == name {
			return &node.Status.Clusters[i]
		}
	}
	return nil
}

// Advice returns the conditions that are warnings: a rollout waits for nodes that refuse it, no pod may have the queues, rules
// never decide, or packets are cut.
func Advice(conditions []metav1.Condition) []metav1.Condition {
	var warnings []metav1.Condition
	for _, kind := range []string{v1.ConditionRolledOut, v1.ConditionConsumersEffective, v1.ConditionRulesEffective, v1.ConditionPacketsWhole} {
		c := meta.FindStatusCondition(conditions, kind)
		// A rollout in progress is no problem, and Accepted reports an invalid filter.
		if c != nil && c.Status == metav1.ConditionFalse && c.Reason != v1.ReasonInvalidFilter && c.Reason != v1.ReasonRollingOut {
			warnings = append(warnings, *c)
		}
	}
	return warnings
}

// Admit returns the command with which a ring permits pods of a namespace, besides those that it permits already.
func Admit(ring *v1.CaptureRing, namespace string) string {
	var namespaces []string
	if ring.Spec.Consumers != nil {
		namespaces = slices.Clone(ring.Spec.Consumers.Namespaces)
	}
	return fmt.Sprintf(`kubectl patch capturering %s --type=merge -p '{"spec":{"consumers":{"namespaces":["%s"]}}}'`,
		ring.Name, strings.Join(append(namespaces, namespace), `","`))
}

// Wrong returns the first of Accepted, Programmed and Ready that is not true, nil if all are.
func Wrong(conditions []metav1.Condition) *metav1.Condition {
	for _, kind := range []string{v1.ConditionAccepted, v1.ConditionProgrammed, v1.ConditionReady} {
		if c := meta.FindStatusCondition(conditions, kind); c != nil && c.Status != metav1.ConditionTrue {
			return c
		}
	}
	return nil
}
