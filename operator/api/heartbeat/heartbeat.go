// SPDX-License-Identifier: Apache-2.0

// Package heartbeat is how a node is known to report while its NodeCapture's status does not change: its agent renews a Lease, which
// costs the API server a small part of a write of the status. It is pure.
package heartbeat

import (
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// prefix of a Lease's name, before its node's; the chart's admission policy knows it.
const prefix = "ringcap-agent-"

// Name is that of a node's Lease, in the namespace of its agent. The API server refuses it where the node's name has more than 239
// characters.
func Name(node string) string { return prefix + node }

// Node is the node whose Lease has the name, if it is a node's.
func Node(lease string) (node string, ok bool) { return strings.CutPrefix(lease, prefix) }

// Labels are those of all nodes' Leases.
func Labels() map[string]string {
	return map[string]string{"app.kubernetes.io/name": "ringcap", "app.kubernetes.io/component": "agent-heartbeat"}
}

// Time is when a Lease was renewed last; zero if never.
func Time(lease *coordinationv1.Lease) time.Time {
	if lease.Spec.RenewTime == nil {
		return time.Time{}
	}
	return lease.Spec.RenewTime.Time
}
