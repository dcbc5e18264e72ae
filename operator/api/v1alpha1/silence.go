// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"time"
)

// StaleAfter is the age from which on a node's report does not count any more: agents renew it once a minute.
const StaleAfter = 3 * time.Minute

// Silence says why there is no report of the node to go by; it is empty where there is one. A nil NodeCapture is one that was not made yet.
// The text does not change while the node stays silent.
func (c *NodeCapture) Silence(now time.Time) string {
	if c == nil || c.Status.ObservedTime == nil {
		return "no agent has reported yet: see that an agent's pod runs on the node"
	}
	if now.Sub(c.Status.ObservedTime.Time) <= StaleAfter {
		return ""
	}
	return fmt.Sprintf("its agent has not reported since %s: see the agent's pod on the node", c.Status.ObservedTime.UTC().Format(time.RFC3339))
}
