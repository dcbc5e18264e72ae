// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Holder is a node that still has, or may have, an object that is being deleted.
type Holder struct {
	Node string
	// Why it still has it, for users.
	Why string
}

// HolderOf returns the node as a holder of the object; false if it does not have it, or has been silent for so long that waiting
// for it makes no sense: its agent removes what is not in its spec when it comes back. The operator has read reports since a
// time: a node that was silent before, possibly because the API server was down, has as long from then on.
func HolderOf(capture *v1alpha1.NodeCapture, o Object, since, now time.Time) (Holder, bool) {
	h := Holder{Node: capture.Name}
	if planned(capture, o) {
		h.Why = "its NodeCapture still contains it"
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

// planned reports whether the object is still in the node's spec.
func planned(capture *v1alpha1.NodeCapture, o Object) bool {
	if o.Ring {
		return slices.ContainsFunc(capture.Spec.Rings, func(r v1alpha1.NodeRing) bool { return r.Name == o.Name })
	}
	return slices.ContainsFunc(capture.Spec.Clusters, func(c v1alpha1.NodeCluster) bool { return c.Name == o.Name })
}

// lastKnown marks a consumer that may no longer have the queue.
func lastKnown(q v1alpha1.QueueStatus) string {
	if q.ConsumerAsOf == nil {
		return ""
	}
	return fmt.Sprintf(" (which had it at %s; the kubelet does not say now)", q.ConsumerAsOf.UTC().Format(time.RFC3339))
}

// queuesOf reports whether the node has queues of that name, and returns the pods, and the processes without such a pod, that
// hold some.
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
			consumers = append(consumers, fmt.Sprintf("the consumers of %d more queues", c.Unlisted.Unnamed))
		}
		return consumers, processes, true
	}
	return nil, nil, false
}
