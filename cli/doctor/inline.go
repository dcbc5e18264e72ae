// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"

	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// eventFixes are the fixes for the events at which the consumer of a queue in line does not decide on packets.
var eventFixes = map[string]string{
	"unattended": "run a pod that asks for the queue; spec.inline.whenUnattended sets what happens without one",
	"full":       "the consumer is slower than the traffic: give it more CPU, or raise spec.queues and the number of consumers",
	"hung":       "see the consumer's log and its CPU limit; if it needs that long, raise spec.inline.hungAfter",
}

// undecided reports queues in line whose consumers do not decide on packets now.
func undecided(f Facts) (found []Finding) {
	eachSet(f.Snapshot, func(node string, set *v1.NodeClusterStatus) {
		for i := range set.Queues {
			in := set.Queues[i].Inline
			if in == nil || in.Event == "" {
				continue
			}
			severity, what := Warning, "packets bypass its consumer"
			if in.Blocking {
				severity, what = Error, "packets are blocked"
			}
			found = append(found, Finding{severity, fmt.Sprintf("queue %d of %s on node %s", set.Queues[i].Queue, set.Name, node),
				fmt.Sprintf("%s (%s)", what, in.Event), eventFixes[in.Event]})
		}
	})
	return found
}
