// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"slices"

	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// queueEntry is the entry of a queue in a status.
type queueEntry struct {
	cluster, queue int
	// first queue of its consumer in its set
	first    bool
	attached bool
	dropped  int64
}

// bound leaves at most limit queues in a status, over all its sets, and sums up the others. The API server accepts
// objects of at most 1.5 MiB. One queue of each consumer comes first, because the operator must know the consumers.
// Then come the queues that lost most.
func bound(status *v1.NodeCaptureStatus, limit int) {
	entries := queueEntries(status)
	if len(entries) <= limit {
		return
	}
	slices.SortStableFunc(entries, func(a, b queueEntry) int {
		return cmp.Or(sooner(a.first, b.first), cmp.Compare(b.dropped, a.dropped), sooner(a.attached, b.attached))
	})
	listed := map[[2]int]bool{}
	for _, p := range entries[:limit] {
		listed[[2]int{p.cluster, p.queue}] = true
	}
	for i := range status.Clusters {
		sumUp(&status.Clusters[i], func(queue int) bool { return listed[[2]int{i, queue}] })
	}
}

func sooner(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

func queueEntries(status *v1.NodeCaptureStatus) (entries []queueEntry) {
	for i, cluster := range status.Clusters {
		known := map[string]bool{}
		for j := range cluster.Queues {
			q := &cluster.Queues[j]
			first := held(q) && !known[q.Consumer]
			known[q.Consumer] = known[q.Consumer] || held(q)
			alone := v1.QueueTotals{Dropped: q.Dropped}
			entries = append(entries, queueEntry{i, j, first, q.Attached, alone.DroppedPackets()})
		}
	}
	return entries
}

// held reports whether the queue has a consumer: a pod, or a process outside of pods, which has no name.
func held(q *v1.QueueStatus) bool { return q.Consumer != "" || q.Attached }

// sumUp keeps the listed queues of a set.
func sumUp(cluster *v1.NodeClusterStatus, listed func(queue int) bool) {
	var kept []v1.QueueStatus
	named := map[string]bool{}
	for i, q := range cluster.Queues {
		if listed(i) {
			kept = append(kept, q)
			named[q.Consumer] = named[q.Consumer] || held(&q)
		}
	}
	if len(kept) == len(cluster.Queues) {
		return
	}
	others := &v1.QueueTotals{}
	for i := range cluster.Queues {
		q := &cluster.Queues[i]
		if listed(i) {
			continue
		}
		others.Add(q)
		if held(q) && !named[q.Consumer] {
			others.Unnamed++
		}
	}
	cluster.Queues, cluster.Unlisted = kept, others
}
