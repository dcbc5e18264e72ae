// SPDX-License-Identifier: Apache-2.0

// Package counters separates the counters from the rest of a NodeCapture's status, because they change with every packet: agents
// write them to the API server every few minutes, and serve them at any time. It is pure.
package counters

import (
	"hash/fnv"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Path is where an agent serves its Report, beside its metrics.
const Path = "/counters"

// Report is an agent's counters. It contains no more than the agent's metrics do: of rings and sets of queues the names and
// counters, of queues whether they have a consumer, but not which.
type Report struct {
	Node string `json:"node"`
	// Time of the counters.
	Time     metav1.MicroTime       `json:"time"`
	Rings    []v1.NodeRingStatus    `json:"rings,omitempty"`
	Clusters []v1.NodeClusterStatus `json:"clusters,omitempty"`
}

// Of returns the report of a status. It shares nothing with the status.
func Of(node string, status v1.NodeCaptureStatus, at metav1.MicroTime) Report {
	r := Report{Node: node, Time: at}
	for i := range status.Rings {
		ring := v1.NodeRingStatus{Name: status.Rings[i].Name}
		copyFigures(ringFigures(&ring), ringFigures(&status.Rings[i]))
		ring.Inline = status.Rings[i].Inline.DeepCopy()
		r.Rings = append(r.Rings, ring)
	}
	for i := range status.Clusters {
		from := status.Clusters[i].DeepCopy()
		set := v1.NodeClusterStatus{Name: from.Name, Queues: from.Queues, Unlisted: from.Unlisted}
		copyFigures(setFigures(&set), setFigures(from))
		for j := range set.Queues {
			q := &set.Queues[j]
			q.Consumer, q.ConsumerAsOf, q.Holder = "", nil, ""
		}
		if set.Unlisted != nil {
			set.Unlisted.Unnamed = 0
		}
		r.Clusters = append(r.Clusters, set)
	}
	return r
}

// Into writes the counters into a status of the same node. It adds nothing that is not in the status, which has all other
// fields.
func (r *Report) Into(status *v1.NodeCaptureStatus) {
	for i := range status.Rings {
		to := &status.Rings[i]
		if at := slices.IndexFunc(r.Rings, func(ring v1.NodeRingStatus) bool { return ring.Name == to.Name }); at >= 0 {
			copyFigures(ringFigures(to), ringFigures(&r.Rings[at]))
			to.Inline = r.Rings[at].Inline.DeepCopy()
		}
	}
	for i := range status.Clusters {
		to := &status.Clusters[i]
		if at := slices.IndexFunc(r.Clusters, func(set v1.NodeClusterStatus) bool { return set.Name == to.Name }); at >= 0 {
			intoSet(to, r.Clusters[at].DeepCopy())
		}
	}
}

// intoSet replaces the queues by those that the report lists, which may differ, and keeps the consumers that the status names.
func intoSet(to, from *v1.NodeClusterStatus) {
	copyFigures(setFigures(to), setFigures(from))
	for i := range from.Queues {
		q := &from.Queues[i]
		at := slices.IndexFunc(to.Queues, func(was v1.QueueStatus) bool { return was.Queue == q.Queue })
		if at >= 0 {
			q.Consumer, q.ConsumerAsOf, q.Holder = to.Queues[at].Consumer, to.Queues[at].ConsumerAsOf, to.Queues[at].Holder
		}
	}
	if to.Unlisted != nil && from.Unlisted != nil {
		from.Unlisted.Unnamed = to.Unlisted.Unnamed
	}
	to.Queues, to.Unlisted = from.Queues, from.Unlisted
}

// Without returns a status without its counters and their time. It shares nothing with the status.
func Without(status v1.NodeCaptureStatus) v1.NodeCaptureStatus {
	state := *status.DeepCopy()
	state.ObservedTime = nil
	for i := range state.Rings {
		clearFigures(ringFigures(&state.Rings[i]))
		if in := state.Rings[i].Inline; in != nil {
			in.Bridged, in.Lost = 0, nil
		}
	}
	for i := range state.Clusters {
		c := &state.Clusters[i]
		clearFigures(setFigures(c))
		if c.Unlisted != nil {
			// Which queues are listed changes with the counters.
			all := c.Totals()
			c.Queues, c.Unlisted = nil, &v1.QueueTotals{Queues: all.Queues, Attached: all.Attached}
		}
		for j := range c.Queues {
			clearFigures(queueFigures(&c.Queues[j]))
			c.Queues[j].Dropped = nil
			if in := c.Queues[j].Inline; in != nil {
				// Episodes stay: each is worth an event.
				c.Queues[j].Inline = &v1.InlineQueueStatus{Event: in.Event, Blocking: in.Blocking, Episodes: in.Episodes}
			}
		}
	}
	return state
}

// SumsOf returns the sums over all nodes in the status of a CaptureRing or Cluster.
func SumsOf(status *v1.CaptureStatus) []*int64 {
	return []*int64{&status.Seen, &status.Delivered, &status.Shunted, &status.Dropped, &status.Truncated, &status.TruncatedBytes}
}

// Time between two writes of counters alone. Every is for the operator's sums in the status of a CaptureRing or Cluster, and for
// an agent that cannot renew a Lease; EveryWithLease is for an agent that renews its Lease.
const (
	Every          = time.Minute
	EveryWithLease = 5 * time.Minute
)

// Beat returns the number of the period that a time is in. Periods of different objects start at different times, so that the
// writes of many objects are spread, even if something happens to all of them at once.
func Beat(object string, at time.Time, period time.Duration) int64 {
	hash := fnv.New64a()
	hash.Write([]byte(object))
	return (at.UnixNano() + int64(hash.Sum64()%uint64(period))) / int64(period)
}

func ringFigures(r *v1.NodeRingStatus) []*int64 {
	return []*int64{&r.Seen, &r.SeenBytes, &r.Filtered, &r.SampledOut, &r.Reflected, &r.Absorbed, &r.Directed, &r.Passed}
}

func setFigures(c *v1.NodeClusterStatus) []*int64 { return []*int64{&c.Duplicated, &c.Spread} }

// queueFigures returns all counters except those by reason.
func queueFigures(q *v1.QueueStatus) []*int64 {
	return []*int64{
		&q.Delivered, &q.DeliveredBytes, &q.UnreadBytes, &q.Truncated, &q.TruncatedBytes, &q.Shunted, &q.ShuntedBytes, &q.ShuntedFlows,
		&q.ShuntsLost,
	}
}

func copyFigures(to, from []*int64) {
	for i := range to {
		*to[i] = *from[i]
	}
}

func clearFigures(figures []*int64) {
	for _, f := range figures {
		*f = 0
	}
}
