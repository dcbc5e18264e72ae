// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/ringcap/ringcap/node-agent/capture"
	"github.com/ringcap/ringcap/node-agent/datapath"
	"github.com/ringcap/ringcap/node-agent/pods"
	"github.com/ringcap/ringcap/node-agent/status"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// attachment tells a holding from a later one of the same process. A decision is about the one that was seen.
type attachment struct {
	engine v1.Engine
	number uint64
}

// holdings returns the queues with a consumer, and the attachment of each.
func holdings(report datapath.Report) (held []pods.Holding, attachments map[pods.Holding]attachment) {
	attachments = map[pods.Holding]attachment{}
	for engine, observation := range report.Observations {
		for name, cluster := range observation.Clusters {
			for i, queue := range cluster.Queues {
				if !queue.Attached {
					continue
				}
				h := pods.Holding{Queue: capture.QueueID{Cluster: name, Queue: i}, PID: queue.Holder}
				held, attachments[h] = append(held, h), attachment{engine, queue.Attachment}
			}
		}
	}
	return held, attachments
}

// takeBack revokes queues from holders that may not have them by the kubelet's allocation or by the ring.
func (a *Agent) takeBack(ctx context.Context, report datapath.Report, allocations map[capture.QueueID][]pods.Pod) {
	held, attachments := holdings(report)
	asked := func(name string) bool {
		cluster, there := report.Clusters[name]
		return there && !cluster.Orphaned
	}
	for _, o := range a.keeper.Overstays(ctx, held, allocations, asked) {
		seen := attachments[o.Holding]
		engine := a.Reconciler.Engine(seen.engine)
		if engine == nil || o.PID == 0 && !a.isUnowned(ctx, engine, o.Queue) {
			continue
		}
		who := a.keeper.Who(o.Holding)
		switch _, err := engine.TakeBack(ctx, o.Queue, capture.Holder{PID: o.PID, Attachment: seen.number}); {
		case errors.Is(err, capture.ErrNotFound):
			// The holder detached by itself.
		case errors.Is(err, capture.ErrUnsupported):
			a.keeper.Exempt(o.Holding)
			slog.Warn("A queue cannot be taken back: its holder keeps it until it ends", "cluster", o.Queue.Cluster, "queue", o.Queue.Queue,
				"holder", who, "reason", o.Why, "error", err)
		case err != nil:
			slog.Error("A queue cannot be taken back; it is tried again", "cluster", o.Queue.Cluster, "queue", o.Queue.Queue, "holder", who, "error", err)
		default:
			a.announceTakenBack(ctx, o.Queue, who, o.Why)
			a.Changed.Raise() // for the queue's new memory
		}
	}
}

// isUnowned checks again that a queue is held by an unknown process and is not allocated to a pod. Both may have
// changed, and revoking takes the queue from any holder.
func (a *Agent) isUnowned(ctx context.Context, engine capture.Engine, queue capture.QueueID) bool {
	seen, err := engine.Observe(ctx)
	if err != nil {
		return false
	}
	queues := seen.Clusters[queue.Cluster].Queues
	if queue.Queue >= len(queues) || !queues[queue.Queue].Attached || queues[queue.Queue].Holder != 0 {
		return false
	}
	allocations, err := a.Access.Allocations.Allocations(ctx)
	return err == nil && len(allocations[queue]) == 0
}

// announceTakenBack writes a log line and an Event. Any goroutine may call it.
func (a *Agent) announceTakenBack(ctx context.Context, queue capture.QueueID, who, why string) {
	slog.Warn("A queue was taken back", "cluster", queue.Cluster, "queue", queue.Queue, "holder", who, "reason", why)
	err := a.writer.WriteEvent(ctx, status.Transition{
		Warning: true, Reason: v1.ReasonQueueTakenBack,
		Message: fmt.Sprintf("queue %d of %s was taken back from %s: %s", queue.Queue, queue.Cluster, who, why),
	})
	if err != nil {
		slog.Warn("The Event of a queue that was taken back cannot be written", "error", err)
	}
}

// announceGiven announces that a queue was taken from its holder because the kubelet gives it to a pod. The kubelet
// does not wait for that.
func (a *Agent) announceGiven(queue capture.QueueID, from int) {
	who := a.keeper.Who(pods.Holding{Queue: queue, PID: from})
	go a.announceTakenBack(context.Background(), queue, who, "the kubelet gives it to another pod")
}

// holders returns the processes that read queues which the kubelet gave to no pod.
func (a *Agent) holders(report datapath.Report, allocations map[capture.QueueID][]pods.Pod) map[capture.QueueID]string {
	holders := map[capture.QueueID]string{}
	held, _ := holdings(report)
	for _, h := range held {
		if allocations != nil && len(allocations[h.Queue]) == 0 {
			holders[h.Queue] = a.keeper.Who(h)
		}
	}
	return holders
}

// inUse returns the processes for which each set of queues waits.
func (a *Agent) inUse(report datapath.Report) map[string]string {
	who := map[string]string{}
	for name, cluster := range report.Clusters {
		if cluster.Reason != v1.ReasonQueueInUse {
			continue
		}
		state, _ := report.Queues(name)
		if holders := a.holdersOf(name, state); len(holders) > 0 {
			who[name] = strings.Join(holders, "; ")
		}
	}
	return who
}

// holdersOf returns the first few holders.
func (a *Agent) holdersOf(name string, state capture.ClusterState) (holders []string) {
	const limit = 4
	for i, queue := range state.Queues {
		if queue.Attached && len(holders) < limit {
			holding := pods.Holding{Queue: capture.QueueID{Cluster: name, Queue: i}, PID: queue.Holder}
			holders = append(holders, fmt.Sprintf("queue %d is read by %s", i, a.keeper.Who(holding)))
		}
	}
	return holders
}
