// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ringcap/ringcap/node-agent/capture"
	"github.com/ringcap/ringcap/operator/api/consumers"
)

// NodePod is a pod of this node, as described by the API.
type NodePod struct {
	Pod
	// UIDs by which the cgroup tree knows it.
	UIDs []string
	// Ended means that none of its containers runs any more.
	Ended bool
	// Queues that its containers request, by ring or Cluster.
	Queues map[string]int
}

// Holding is a queue and the process that attached to it, 0 if that is not known.
type Holding struct {
	Queue capture.QueueID
	PID   int
}

// Overstay is a holding that must end, with the reason.
type Overstay struct {
	Holding
	Why string
}

// Keeper finds consumers that read queues of others. Either the kubelet allocated the queue to another pod or freed
// it, or the consumer's namespace may no longer have it. Keeper is for one goroutine, except for Who.
type Keeper struct {
	Access Access
	// Node lists this node's pods. latest asks for the latest list; without it the list costs the API server less. It
	// is called for what the kubelet's answer does not settle.
	Node func(ctx context.Context, latest bool) ([]NodePod, error)
	// Grace is how long a holding must be wrong before it ends. It gives a deleted pod time to release its queue.
	Grace time.Duration
	// Now is time.Now except in tests.
	Now func() time.Time

	// settled holds the holdings that are in order, with the grounds. suspect holds those that may not be.
	settled map[Holding]string
	suspect map[Holding]suspicion
	// permitted holds the namespaces that this agent has permitted the queues of a ring or Cluster at some time. kept
	// holds holdings that were logged as not in order and continue.
	permitted map[right]bool
	kept      map[Holding]bool
	// exempt holds holdings that nobody can end.
	exempt map[Holding]bool

	mu sync.Mutex
	// starts holds the start times of the processes that attached, from when the holding was first seen. It is 0 for
	// a process that had ended.
	starts map[Holding]uint64
	// names holds the pods that were seen, by UID.
	names map[string]Pod

	scan sync.Mutex
	// opened holds processes that have device nodes open, from the last scan.
	opened  map[string][]int
	scanned time.Time
}

// right is the right of a namespace to the queues of a ring or Cluster.
type right struct{ cluster, namespace string }

// suspicion tells why a holding may not be in order, since when, and for what period that must last. refused means
// that no owner of the queue may have it.
type suspicion struct {
	grounds string
	since   time.Time
	period  time.Duration
	refused bool
}

// maxPeriod is the longest time between two checks of a holding that was left to continue.
const maxPeriod = 5 * time.Minute

// remembered is how long a refused holding is kept after its end: see graceStart.
const remembered = time.Minute

// Overstays returns the holdings that must end now. asked reports whether a ring or Cluster is still wanted. If not,
// its queues are removed when its consumers end.
func (k *Keeper) Overstays(ctx context.Context, held []Holding, allocations map[capture.QueueID][]Pod, asked func(string) bool) []Overstay {
	now := k.Now()
	k.forget(held, now)
	k.noteStarts(held)
	k.remember(ctx, allocations, asked)
	var doubtful []doubt
	for _, h := range held {
		if k.exempt[h] {
			continue
		}
		d := k.doubt(ctx, h, allocations[h.Queue], asked(h.Queue.Cluster))
		if h.PID == 0 && len(d.owners) > 0 {
			// Nothing distinguishes a consumer that may not have the queue from the next one that gets it.
			delete(k.settled, h)
			delete(k.suspect, h)
			if d.refused != nil {
				k.keep(h, "A consumer may not have its queue any more, but its process is not known: it keeps the queue until it ends", d.refused)
			}
			continue
		}
		if k.settled[h] == d.grounds() {
			continue
		}
		delete(k.settled, h)
		s := k.suspect[h]
		if s.grounds != d.grounds() {
			s = suspicion{d.grounds(), k.graceStart(d, now), k.Grace, d.refused != nil}
			k.suspect[h] = s
		}
		if now.Sub(s.since) >= s.period {
			doubtful = append(doubtful, d)
		}
	}
	if len(doubtful) == 0 {
		return nil
	}
	return k.judge(ctx, doubtful, allocations, now)
}

// graceStart returns when the grace period of a new holding started. If no owner of the queue may have it, a consumer
// gains no time by opening it again as another process.
func (k *Keeper) graceStart(d doubt, now time.Time) time.Time {
	start := now
	for h, s := range k.suspect {
		if s.refused && h.Queue == d.Queue && s.grounds == d.grounds() && s.since.Before(start) {
			start = s.since
		}
	}
	return start
}

// Exempt marks a holding that cannot be ended. As long as it lasts, it is no longer an overstay.
func (k *Keeper) Exempt(h Holding) { k.exempt[h] = true }

// judge decides on holdings that were doubtful for the grace period. It checks those that it leaves again, at growing
// intervals, unless it has settled them.
func (k *Keeper) judge(ctx context.Context, doubtful []doubt, allocations map[capture.QueueID][]Pod, now time.Time) []Overstay {
	found, err := k.overstays(ctx, doubtful, allocations)
	if err != nil {
		slog.Warn("The holders of queues cannot be compared with the allocations; it is tried again", "error", err)
	}
	for _, d := range doubtful {
		s := k.suspect[d.Holding]
		delete(k.suspect, d.Holding)
		switch {
		case err != nil:
			k.suspect[d.Holding] = suspicion{d.grounds(), now, s.period, s.refused}
		case slices.ContainsFunc(found, func(o Overstay) bool { return o.Holding == d.Holding }):
			if s.refused {
				k.suspect[d.Holding] = s // it may have just closed the queue, to open it again
			}
		case len(d.owners) > 0:
			k.settled[d.Holding] = d.grounds()
		default:
			k.suspect[d.Holding] = suspicion{d.grounds(), now, min(2*s.period, maxPeriod), s.refused}
		}
	}
	return found
}

// overstays returns the doubtful holdings that must end. A decision to take a queue, or to settle a holding, needs
// the latest list of pods.
func (k *Keeper) overstays(ctx context.Context, doubtful []doubt, allocations map[capture.QueueID][]Pod) ([]Overstay, error) {
	for _, latest := range []bool{slices.ContainsFunc(doubtful, func(d doubt) bool { return len(d.owners) > 0 }), true} {
		pods, err := k.Node(ctx, latest)
		if err != nil {
			return nil, err
		}
		k.note(pods)
		var found []Overstay
		for _, d := range doubtful {
			if why := d.overstays(k.holder(d.Holding), pods, allocations); why != "" {
				found = append(found, Overstay{d.Holding, why})
			}
		}
		if latest || len(found) == 0 {
			return found, nil
		}
	}
	return nil, nil
}

// forget removes what is no longer held.
func (k *Keeper) forget(held []Holding, now time.Time) {
	if k.settled == nil {
		k.settled, k.suspect = map[Holding]string{}, map[Holding]suspicion{}
		k.permitted, k.kept, k.exempt = map[right]bool{}, map[Holding]bool{}, map[Holding]bool{}
	}
	gone := func(h Holding) bool { return !slices.Contains(held, h) }
	maps.DeleteFunc(k.exempt, func(h Holding, _ bool) bool { return gone(h) })
	maps.DeleteFunc(k.kept, func(h Holding, _ bool) bool { return gone(h) })
	maps.DeleteFunc(k.settled, func(h Holding, _ string) bool { return gone(h) })
	maps.DeleteFunc(k.suspect, func(h Holding, s suspicion) bool {
		return gone(h) && (!s.refused || now.Sub(s.since) >= remembered)
	})
}

// noteStarts records the start times of the processes that attached.
func (k *Keeper) noteStarts(held []Holding) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.starts == nil {
		k.starts = map[Holding]uint64{}
	}
	maps.DeleteFunc(k.starts, func(h Holding, _ uint64) bool { return !slices.Contains(held, h) })
	for _, h := range held {
		if _, seen := k.starts[h]; !seen {
			_, _, k.starts[h] = k.Access.stat(h.PID)
		}
	}
}

// remember records which pods may have the queues that they were given, even while they do not hold them.
func (k *Keeper) remember(ctx context.Context, allocations map[capture.QueueID][]Pod, asked func(string) bool) {
	for queue, owners := range allocations {
		for _, owner := range owners {
			if asked(queue.Cluster) && k.Access.Namespaces.checkNow(ctx, queue.Cluster, owner) == nil {
				k.permitted[right{queue.Cluster, owner.Namespace}] = true
			}
		}
	}
}

func (k *Keeper) note(pods []NodePod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.names = map[string]Pod{}
	for _, pod := range pods {
		for _, uid := range pod.UIDs {
			k.names[uid] = pod.Pod
		}
	}
}

// doubt is what is known of a holding without a look at its process or a request to the API server.
type doubt struct {
	Holding
	// owners are the pods to which the kubelet gave the queue. refused is the reason why none of them may have it.
	owners  []Pod
	refused error
	// allowed returns why a pod may not have it.
	allowed func(Pod) error
}

func (k *Keeper) doubt(ctx context.Context, h Holding, owners []Pod, asked bool) doubt {
	d := doubt{Holding: h, owners: owners, allowed: func(Pod) error { return nil }}
	if asked {
		d.allowed = func(pod Pod) error { return k.excluded(ctx, h, pod) }
	}
	for _, owner := range owners {
		if d.refused = d.allowed(owner); d.refused == nil {
			break
		}
	}
	return d
}

// excluded returns why a running consumer may not keep a queue: its namespace was permitted and no longer is. A
// consumer keeps its queue in three cases. Its namespace was never permitted (as after an upgrade from a release that
// checked less), the ring names no namespaces, or the labels of its namespace cannot be read.
func (k *Keeper) excluded(ctx context.Context, h Holding, pod Pod) error {
	err := k.Access.Namespaces.checkNow(ctx, h.Queue.Cluster, pod)
	its := right{h.Queue.Cluster, pod.Namespace}
	if err == nil {
		k.permitted[its] = true
	}
	if named := consumers.NotNamed(""); !errors.As(err, &named) {
		return nil
	}
	if k.permitted[its] {
		return err
	}
	k.keep(h, "A consumer may not have its queue, but had it before this agent started: it keeps the queue until its pod ends", err)
	return nil
}

// keep logs once why a holding continues although it is not in order.
func (k *Keeper) keep(h Holding, what string, reason error) {
	if !k.kept[h] {
		k.kept[h] = true
		slog.Warn(what, "cluster", h.Queue.Cluster, "queue", h.Queue.Queue, "holder", k.Who(h), "reason", reason)
	}
}

// grounds returns a text that stays equal as long as none of this changes.
func (d doubt) grounds() string {
	return fmt.Sprint(d.owners, d.refused)
}

// overstays explains why a process's holding must end. It returns nothing if the holding is in order, or if that
// cannot be decided.
func (d doubt) overstays(p process, pods []NodePod, allocations map[capture.QueueID][]Pod) string {
	switch {
	case d.refused != nil:
		return d.refused.Error()
	case len(d.owners) > 0:
		return d.isReallocated(p, pods)
	case p.pod != "":
		return d.isUnallocated(p, pods)
	case p.host:
		// A tool of the node's administrator may have what no other process may have.
		return ""
	}
	for _, pod := range pods {
		if pod.waits(d.Queue.Cluster, allocations) && d.allowed(pod.Pod) == nil {
			return ""
		}
	}
	return "no pod has it, and none that requests it waits for it"
}

// isReallocated reports that the kubelet has allocated the queue to the owners. If the process that attached has
// ended, or its pod is not known, one of the owners has the open queue. No other process outlived the allocation.
func (d doubt) isReallocated(p process, pods []NodePod) string {
	if p.pod == "" && !p.host {
		return ""
	}
	known := false
	for _, pod := range pods {
		if !slices.Contains(d.owners, pod.Pod) {
			continue
		}
		if slices.Contains(pod.UIDs, p.pod) {
			return ""
		}
		known = true
	}
	if !known {
		// The kubelet may run a pod that the API server does not know.
		return ""
	}
	return fmt.Sprintf("the kubelet gave it to pod %s", d.owners[0])
}

// isUnallocated reports that the kubelet has allocated the queue to no pod. This is so after init containers end, and
// for a moment when the kubelet starts.
func (d doubt) isUnallocated(p process, pods []NodePod) string {
	for _, pod := range pods {
		if !slices.Contains(pod.UIDs, p.pod) {
			continue
		}
		switch err := d.allowed(pod.Pod); {
		case err != nil:
			return err.Error()
		case pod.Ended:
			return fmt.Sprintf("pod %s has ended", pod.Pod)
		case pod.Queues[d.Queue.Cluster] == 0:
			return fmt.Sprintf("pod %s does not request it", pod.Pod)
		}
		return ""
	}
	return fmt.Sprintf("its pod (UID %s) is gone", p.pod)
}

// waits reports whether a pod requests more queues of a set than the kubelet has allocated to it.
func (p NodePod) waits(cluster string, allocations map[capture.QueueID][]Pod) bool {
	has := 0
	for queue, owners := range allocations {
		if queue.Cluster == cluster && slices.Contains(owners, p.Pod) {
			has++
		}
	}
	return !p.Ended && p.Queues[cluster] > has
}
