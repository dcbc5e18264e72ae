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
	// Until is when it is no longer waited for if it does not report again; zero if it is waited for in any case.
	Until time.Time
}

// HolderOf returns the node as a holder of the object; false if it does not have it. It also returns false for a node that has been
// silent too long to wait for: its agent removes what is not in its spec when it comes back. The operator has read reports from
// since on. A node that was silent before, possibly because the API server was down, gets the same time from since on if its last
// report has the object.
func HolderOf(capture *v1alpha1.NodeCapture, o Object, since, now time.Time) (Holder, bool) {
	h := Holder{Node: capture.Name}
	if planned(capture, o) {
		h.Why = "its NodeCapture still contains it"
		return h, true
	}
	if capture.Status.ObservedTime == nil {
		return h, false
	}
	heard := capture.Status.ObservedTime.Time
	if h.Until = heard.Add(v1alpha1.StaleAfter); heard.Before(since) {
		h.Until = since.Add(v1alpha1.StaleAfter)
	}
	if now.After(h.Until) {
		return h, false
	}
	silent := !Fresh(capture, now)
	if h.Why = leftOn(capture, o, silent); h.Why != "" && silent {
		h.Why += fmt.Sprintf("; its agent has not reported since %s: given up at %s",
			heard.UTC().Format(time.RFC3339), h.Until.UTC().Format(time.RFC3339))
	}
	return h, h.Why != ""
}

// leftOn returns why a node that should not have the object still has it; empty if it does not. A silent node has what it
// reported last: it may be behind with its spec for days, for objects that it never had.
func leftOn(capture *v1alpha1.NodeCapture, o Object, silent bool) string {
	if consumers, processes, there := queuesOf(capture, o.Name); there {
		var todo []string
		if len(consumers) > 0 {
			todo = append(todo, "delete "+strings.Join(consumers, ", "))
		}
		if len(processes) > 0 {
			todo = append(todo, "stop "+strings.Join(processes, ", "))
		}
		if len(todo) > 0 {
			return "its queues are in use: " + strings.Join(todo, "; ")
		}
		return "its queues are being removed"
	}
	if o.Ring && slices.ContainsFunc(capture.Status.Rings, func(r v1alpha1.NodeRingStatus) bool { return r.Name == o.Name }) {
		return "it is being removed"
	}
	if !silent && capture.Status.AppliedGeneration < capture.Generation {
		return fmt.Sprintf("its agent has not applied generation %d yet", capture.Generation)
	}
	return ""
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
	return fmt.Sprintf(" (which had it at %s; the kubelet does not report it now)", q.ConsumerAsOf.UTC().Format(time.RFC3339))
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
