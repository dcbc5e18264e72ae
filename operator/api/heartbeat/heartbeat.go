// SPDX-License-Identifier: Apache-2.0

// Package heartbeat defines how a node shows that it is alive while its NodeCapture's status does not change: its agent renews a
// Lease, which costs the API server a small part of a write of the status. It is pure.
package heartbeat

import (
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// prefix of a Lease's name, before its node's; the chart's admission policy uses it too.
const prefix = "ringcap-agent-"

// Name returns the name of a node's Lease, in the namespace of its agent. The API server refuses it if the node's name has more
// than 239 characters.
func Name(node string) string { return prefix + node }

// Node returns the node of the Lease with this name, if it is a node's.
func Node(lease string) (node string, ok bool) { return strings.CutPrefix(lease, prefix) }

// Labels returns the labels of all nodes' Leases.
func Labels() map[string]string {
	return map[string]string{"app.kubernetes.io/name": "ringcap", "app.kubernetes.io/component": "agent-heartbeat"}
}

// Time returns when a Lease was renewed last; zero if never.
func Time(lease *coordinationv1.Lease) time.Time {
	if lease.Spec.RenewTime == nil {
		return time.Time{}
	}
	return lease.Spec.RenewTime.Time
}
