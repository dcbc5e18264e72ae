// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"time"
)

// StaleAfter is the age from which on a node's report does not count any more: of its status and its agent's Lease the younger is asked.
const StaleAfter = 3 * time.Minute

// Silence says why there is no report of the node to go by; it is empty where there is one. A nil NodeCapture is one that was not made yet.
// The text does not change while the node stays silent.
func (c *NodeCapture) Silence(now time.Time) string {
	if c == nil || c.Status.ObservedTime == nil {
		return "no agent has reported yet: see that an agent's pod runs on the node"
	}
	return SilentSince(c.Status.ObservedTime.Time, StaleAfter, now)
}

// SilentSince says that a node was heard at that time for the last time, where this is longer ago than stale; else nothing.
func SilentSince(heard time.Time, stale time.Duration, now time.Time) string {
	if now.Sub(heard) <= stale {
		return ""
	}
	return fmt.Sprintf("its agent has not reported since %s: see the agent's pod on the node", heard.UTC().Format(time.RFC3339))
}
