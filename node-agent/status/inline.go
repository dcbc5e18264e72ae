// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ringcap/ringcap/node-agent/capture"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

func inlineRing(pairs []string, stats *capture.InlineStats) *v1.InlineRingStatus {
	if stats == nil {
		return nil
	}
	return &v1.InlineRingStatus{Pairs: pairs, Bridged: int64(stats.Bridged), Lost: countsOf(capture.Losses, stats.Lost)}
}

// inlineQueue returns the status of a queue in line; nil for another queue.
func inlineQueue(stats *capture.InlineStats) *v1.InlineQueueStatus {
	if stats == nil {
		return nil
	}
	status := &v1.InlineQueueStatus{
		Episodes: int64(stats.Episodes), EpisodeMilliseconds: stats.PastTime().Milliseconds(),
		Held: int64(stats.Held), Passed: int64(stats.Passed), Replaced: int64(stats.Replaced), Blocked: int64(stats.Blocked),
		Unanswered: int64(stats.Unanswered), Bypassed: countsOf(capture.Events, stats.Bypassed),
		Stopped: countsOf(capture.Events, stats.Stopped), Lost: countsOf(capture.Losses, stats.Lost),
		ShuntPassed: int64(stats.ShuntPassed), ShuntBlocked: int64(stats.ShuntBlocked),
		Injected: int64(stats.Injected), NotInjected: int64(stats.NotInjected),
		LateVerdicts: int64(stats.Late), UnknownVerdicts: int64(stats.Unknown),
	}
	if now := stats.Now; now != nil {
		status.Event, status.Blocking, status.SincePackets = now.Event.String(), now.Blocked, int64(now.Packets)
		if !now.Since.IsZero() {
			since := metav1.NewTime(now.Since.Truncate(time.Second))
			status.Since = &since
		}
	}
	return status
}

func countsOf[K comparable](keys []K, counts map[K]uint64) (list []v1.DropCount) {
	for _, key := range keys {
		if packets := counts[key]; packets > 0 {
			list = append(list, v1.DropCount{Reason: fmt.Sprint(key), Packets: int64(packets)})
		}
	}
	return list
}

// inlineTransitions returns where packets began to go past the consumers of a ring in line, and where they came back.
// What began and ended since the last status is one transition.
func inlineTransitions(was, is v1.NodeClusterStatus) (found []Transition) {
	for _, queue := range is.Queues {
		if queue.Inline == nil {
			continue
		}
		before := v1.InlineQueueStatus{}
		if i := slices.IndexFunc(was.Queues, func(q v1.QueueStatus) bool { return q.Queue == queue.Queue }); i >= 0 && was.Queues[i].Inline != nil {
			before = *was.Queues[i].Inline
		}
		if reason, message := inlineTransition(before, *queue.Inline); reason != "" {
			found = append(found, Transition{
				Warning: reason != v1.ReasonInlineBack, Reason: reason, Ring: is.Name, Message: fmt.Sprintf("queue %d of %s: %s", queue.Queue, is.Name, message),
			})
		}
	}
	return found
}

// inlineTransition returns no reason if there is nothing to tell. The counters of a queue that was made again begin at 0.
func inlineTransition(was, is v1.InlineQueueStatus) (reason, message string) {
	switch {
	case is.Event != "" && (is.Event != was.Event || is.Blocking != was.Blocking):
		if is.Blocking {
			return v1.ReasonInlineBlocked, "packets are blocked, because " + inlineCauses[is.Event]
		}
		return v1.ReasonInlineBypassed, "packets bypass the consumer, because " + inlineCauses[is.Event]
	case is.Event == "" && (was.Event != "" || is.Episodes > was.Episodes):
		if is.Episodes < was.Episodes {
			was = v1.InlineQueueStatus{}
		}
		return v1.ReasonInlineBack, fmt.Sprintf("the consumer decides on packets; since the last report it did not for %s in all: %d packets bypassed it, and %d were blocked",
			time.Duration(is.EpisodeMilliseconds-was.EpisodeMilliseconds)*time.Millisecond,
			sumOf(is.Bypassed)-sumOf(was.Bypassed), sumOf(is.Stopped)-sumOf(was.Stopped))
	}
	return "", ""
}

var inlineCauses = map[string]string{
	capture.EventUnattended.String(): "the queue has no consumer",
	capture.EventFull.String():       "the queue was full, and the consumer has not caught up",
	capture.EventHung.String():       "a packet waited for longer than spec.inline.hungAfter, and the consumer has not caught up",
}

func sumOf(counts []v1.DropCount) (sum int64) {
	for _, count := range counts {
		sum += count.Packets
	}
	return sum
}
