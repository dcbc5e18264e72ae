// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringcap/ringcap/operator/api/counters"
	"github.com/ringcap/ringcap/operator/api/heartbeat"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// unseen is the age at which a node's status is stale if the user may not read its Lease: the status is not written while only
// counters change.
const unseen = counters.EveryWithLease + v1.StaleAfter

// readLeases reads the agents' Leases, in the namespaces of their pods.
func (s *Snapshot) readLeases(ctx context.Context, c client.Reader) error {
	s.renewed, s.hidden = map[client.ObjectKey]time.Time{}, map[string]bool{}
	asked := map[string]bool{}
	for i := range s.Nodes {
		agent := s.Nodes[i].Status.Agent
		// An agent may report a namespace that cannot exist: it has no Lease, and must not prevent reading the others.
		if agent == nil || asked[agent.Namespace] || len(validation.IsDNS1123Label(agent.Namespace)) > 0 {
			continue
		}
		asked[agent.Namespace] = true
		var leases coordinationv1.LeaseList
		err := c.List(ctx, &leases, client.InNamespace(agent.Namespace), client.MatchingLabels(heartbeat.Labels()))
		if apierrors.IsForbidden(err) {
			s.hidden[agent.Namespace] = true
			s.LeasesDenied = fmt.Sprintf("you may not see whether agents are there, which needs the verb list on leases in namespace %s: "+
				"a node counts as silent after %.0f minutes, not %.0f", agent.Namespace, unseen.Minutes(), v1.StaleAfter.Minutes())
			continue
		}
		if err != nil {
			return fmt.Errorf("list Leases in namespace %s: %w", agent.Namespace, err)
		}
		for j := range leases.Items {
			s.renewed[client.ObjectKeyFromObject(&leases.Items[j])] = heartbeat.Time(&leases.Items[j])
		}
	}
	return nil
}

// Silence returns why a node's report is missing or stale, empty if it is neither. A report is the node's status or its agent's
// Lease.
func (s *Snapshot) Silence(node *v1.NodeCapture) string {
	if node.Status.ObservedTime == nil {
		return node.Silence(s.Now)
	}
	at, stale := node.Status.ObservedTime.Time, v1.StaleAfter
	if agent := node.Status.Agent; agent != nil {
		if renewed := s.renewed[client.ObjectKey{Namespace: agent.Namespace, Name: heartbeat.Name(node.Name)}]; renewed.After(at) {
			at = renewed
		}
		if s.hidden[agent.Namespace] {
			stale = unseen
		}
	}
	return v1.SilentSince(at, stale, s.Now)
}
