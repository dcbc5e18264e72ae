// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"time"
)

// StaleAfter is the age at which a node's report is stale. A report is the node's status or its agent's Lease, whichever is
// younger.
const StaleAfter = 3 * time.Minute

// Silence returns why the node's report is missing or stale, and "" if it is neither. A nil NodeCapture is one that does not
// exist yet. The text does not change while the node stays silent.
func (c *NodeCapture) Silence(now time.Time) string {
	if c == nil || c.Status.ObservedTime == nil {
		return "no agent has reported yet: see that an agent's pod runs on the node"
	}
	return SilentSince(c.Status.ObservedTime.Time, StaleAfter, now)
}

// SilentSince returns a message that the node was last heard at that time if this is longer ago than stale, else "".
func SilentSince(heard time.Time, stale time.Duration, now time.Time) string {
	if now.Sub(heard) <= stale {
		return ""
	}
	return fmt.Sprintf("its agent has not reported since %s: see the agent's pod on the node", heard.UTC().Format(time.RFC3339))
}
