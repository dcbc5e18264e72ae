// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Holder is a node that still has an object which is being deleted, or may have it.
type Holder struct {
	Node string
	// Why it has it still, for people.
	Why string
}

// HolderOf says whether the node still has the object; false once it does not, or has not reported for so long that
// waiting for it makes no sense: its agent removes what is not planned when it comes back. Nodes are listened to since a time: one
// that was silent before, maybe because the API server was away, gets as long from then on.
func HolderOf(capture *v1alpha1.NodeCapture, o Object, since, now time.Time) (Holder, bool) {
	h := Holder{Node: capture.Name}
	if planned(capture, o) {
		h.Why = "it is being told"
		return h, true
	}
	if !Fresh(capture, now) && (capture.Status.ObservedTime == nil || now.Sub(since) > v1alpha1.StaleAfter) {
		return h, false
	}
	if consumers, processes, there := queuesOf(capture, o.Name); there {
		var todo []string
		if len(consumers) > 0 {
			todo = append(todo, "delete "+strings.Join(consumers, ", "))
		}
		if len(processes) > 0 {
			todo = append(todo, "stop "+strings.Join(processes, ", "))
		}
		h.Why = "its queues are being removed"
		if len(todo) > 0 {
			h.Why = "its queues are in use: " + strings.Join(todo, "; ")
		}
		return h, true
	}
	if o.Ring && slices.ContainsFunc(capture.Status.Rings, func(r v1alpha1.NodeRingStatus) bool { return r.Name == o.Name }) {
		h.Why = "it is being removed"
		return h, true
	}
	if capture.Status.AppliedGeneration < capture.Generation {
		h.Why = fmt.Sprintf("its agent has not applied generation %d yet", capture.Generation)
		return h, true
	}
	return h, false
}

// planned says whether the node is still told to have it.
func planned(capture *v1alpha1.NodeCapture, o Object) bool {
	if o.Ring {
		return slices.ContainsFunc(capture.Spec.Rings, func(r v1alpha1.NodeRing) bool { return r.Name == o.Name })
	}
	return slices.ContainsFunc(capture.Spec.Clusters, func(c v1alpha1.NodeCluster) bool { return c.Name == o.Name })
}

// lastKnown marks a consumer that is not known to have the queue still.
func lastKnown(q v1alpha1.QueueStatus) string {
	if q.ConsumerAsOf == nil {
		return ""
	}
	return fmt.Sprintf(" (which had it at %s; the kubelet does not say now)", q.ConsumerAsOf.UTC().Format(time.RFC3339))
}

// queuesOf says whether the node has queues of that name, and which pods, or processes of no such pod, hold some.
func queuesOf(capture *v1alpha1.NodeCapture, name string) (consumers, processes []string, there bool) {
	for _, c := range capture.Status.Clusters {
		if c.Name != name {
			continue
		}
		for _, q := range c.Queues {
			switch {
			case q.Holder != "":
				processes = append(processes, fmt.Sprintf("%s (queue %d)", q.Holder, q.Queue))
			case q.Consumer != "":
				consumers = append(consumers, "pod "+q.Consumer+lastKnown(q))
			case q.Attached:
				consumers = append(consumers, fmt.Sprintf("the consumer of queue %d", q.Queue))
			}
		}
		if c.Unlisted != nil && c.Unlisted.Unnamed > 0 {
			consumers = append(consumers, fmt.Sprintf("the consumers of %d queues more", c.Unlisted.Unnamed))
		}
		return consumers, processes, true
	}
	return nil, nil, false
}
