// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"slices"
	"strings"
)

// MaxListedQueues is how many queues the status of a NodeCapture lists: 12,800, which a node may have, would make it larger
// than an API object may be.
const MaxListedQueues = 512

// Totals sums up the counters of all queues of a set, listed or not; it leaves out the number of unnamed consumers.
func (s *NodeClusterStatus) Totals() QueueTotals {
	var all QueueTotals
	if s.Unlisted != nil {
		all = *s.Unlisted.DeepCopy()
		all.Unnamed = 0
	}
	for i := range s.Queues {
		all.Add(&s.Queues[i])
	}
	return all
}

// Add adds a queue. The reasons are sorted by name.
func (t *QueueTotals) Add(q *QueueStatus) {
	t.Queues++
	if q.Attached {
		t.Attached++
	}
	t.Delivered += q.Delivered
	t.DeliveredBytes += q.DeliveredBytes
	t.Truncated += q.Truncated
	t.TruncatedBytes += q.TruncatedBytes
	t.Shunted += q.Shunted
	t.ShuntedBytes += q.ShuntedBytes
	t.ShuntedFlows += q.ShuntedFlows
	t.ShuntsLost += q.ShuntsLost
	t.UnreadBytes += q.UnreadBytes
	for _, d := range q.Dropped {
		i, there := slices.BinarySearchFunc(t.Dropped, d, func(have, d DropCount) int { return strings.Compare(have.Reason, d.Reason) })
		if !there {
			t.Dropped = slices.Insert(t.Dropped, i, DropCount{Reason: d.Reason})
		}
		t.Dropped[i].Packets += d.Packets
	}
}

// DroppedPackets returns the sum over all reasons.
func (t *QueueTotals) DroppedPackets() (sum int64) {
	for _, d := range t.Dropped {
		sum += d.Packets
	}
	return sum
}
