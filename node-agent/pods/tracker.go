// SPDX-License-Identifier: Apache-2.0

// Package pods knows the pods of this node. Access and Keeper decide which of their processes may have which queue.
// Tracker finds their interfaces, as they come and go. Pools holds the virtual functions that a device plugin has for
// them.
package pods

import (
	"context"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ringcap/ringcap/node-agent/plan"
)

// Object is a pod of this node as described by the API.
type Object struct {
	plan.Pod
	// UID by which the kubelet names its cgroup.
	UID string
	// Running means that its containers run, and it is not being deleted.
	Running bool
}

const (
	// soon is the interval of checks of a new pod. A pod that is no longer new is checked as soon when an interface
	// appears. Then the interval grows, up to seldom.
	soon, seldom = 200 * time.Millisecond, 10 * time.Second
	// lively is how long a pod is new. A running pod has its interfaces by then.
	lively = 10 * time.Second
)

// Problems of a running pod.
const (
	noProcess  = "the kubelet's cgroups, in which the agent looks, have no process of it"
	noVethPeer = "its interfaces have no veth peer on the node, as with macvlan, ipvlan and SR-IOV: leave it out of podSelector, or capture the node's interface"
)

// Tracker finds pods' interfaces. Any goroutine may call its methods.
type Tracker struct {
	// Cgroups of the node, which contain the kubelet's pods.
	Cgroups Cgroups
	// List returns the pods. The number tells what was asked for at the time; 0 means that they are not known.
	List func() ([]Object, uint64)
	// Changed is called when the result of Pods changes.
	Changed func()

	events chan struct{}
	// found is by UID. last holds the interfaces of the node at the last check. Both are for Run's goroutine only.
	found map[string]*finding
	last  vethPeers

	mu   sync.Mutex
	pods []plan.Pod
	of   uint64
}

// finding is what is known of a pod's interfaces.
type finding struct {
	indexes []int
	// missing is why there are none. since is when that began.
	missing string
	since   time.Time
	// next is when to check again if nothing happens. wait is the time from then to the following check.
	next time.Time
	wait time.Duration
}

// due reports whether a pod without interfaces must be checked.
func (f *finding) due(now time.Time) bool { return now.Sub(f.since) < lively || !now.Before(f.next) }

// checked notes that a pod was checked.
func (f *finding) checked(now time.Time) {
	f.next = now.Add(f.wait)
	if now.Sub(f.since) >= lively {
		f.wait = min(2*f.wait, seldom)
	}
}

// retryNow makes the pod due: an interface appeared, which may be its own.
func (f *finding) retryNow(now time.Time) { f.next, f.wait = now, soon }

// NewTracker makes a Tracker that checks nothing until Run.
func NewTracker(cgroups Cgroups, list func() ([]Object, uint64), changed func()) *Tracker {
	return &Tracker{Cgroups: cgroups, List: list, Changed: changed, events: make(chan struct{}, 1), found: map[string]*finding{}}
}

// Refresh triggers a check, because a pod or an interface came or went. It never blocks.
func (t *Tracker) Refresh() {
	select {
	case t.events <- struct{}{}:
	default:
	}
}

// Pods returns the pods of this node, sorted, with the number that List returned with them.
func (t *Tracker) Pods() ([]plan.Pod, uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.pods, t.of
}

// Run tracks the pods until ctx ends.
func (t *Tracker) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.events:
		case <-timer.C:
		}
		timer.Reset(t.update(time.Now()))
	}
}

// update checks once, and returns when to check again if nothing happens.
func (t *Tracker) update(now time.Time) (again time.Duration) {
	again = seldom
	objects, of := t.List()
	if of != 0 {
		if err := t.find(objects, now); err != nil {
			slog.Error("The interfaces of pods cannot be found; taps stay as they are", "error", err)
			return soon
		}
	}
	pods := make([]plan.Pod, 0, len(objects))
	for _, o := range objects {
		f := t.found[o.UID]
		switch {
		case f == nil:
		case len(f.indexes) > 0:
			o.Interfaces = f.indexes
		case o.Running && now.Sub(f.since) > lively:
			o.Problem = f.missing
		}
		if f != nil && len(f.indexes) == 0 {
			again = min(again, max(f.next.Sub(now), time.Millisecond))
		}
		pods = append(pods, o.Pod)
	}
	slices.SortFunc(pods, func(x, y plan.Pod) int { return strings.Compare(x.String(), y.String()) })
	t.mu.Lock()
	changed := t.of != of || !reflect.DeepEqual(t.pods, pods)
	t.pods, t.of = pods, of
	t.mu.Unlock()
	if changed {
		t.Changed()
	}
	return again
}

// find updates what was found. Once a pod's interfaces are found, it is not checked again: it got all of them before
// its first process began.
func (t *Tracker) find(objects []Object, now time.Time) error {
	links, err := listVethPeers()
	if err != nil {
		return err
	}
	appeared := slices.ContainsFunc(links.indexes, t.last.without)
	t.last = links
	found, wanted := map[string]*finding{}, map[string]bool{}
	for _, o := range objects {
		if o.HostNetwork {
			continue
		}
		f := t.found[o.UID]
		if f == nil {
			f = &finding{since: now, wait: soon}
		}
		found[o.UID] = f
		if slices.ContainsFunc(f.indexes, links.without) {
			f.indexes, f.since, f.wait = nil, now, soon
		}
		if appeared {
			f.retryNow(now)
		}
		if len(f.indexes) == 0 && f.due(now) {
			f.checked(now)
			wanted[o.UID] = true
		}
	}
	t.found = found
	if len(wanted) == 0 {
		return nil
	}
	return t.findInterfaces(wanted)
}

func (t *Tracker) findInterfaces(wanted map[string]bool) error {
	processes := map[string][]podProcess{}
	for uid := range wanted {
		var err error
		if processes[uid], err = processesOf(t.Cgroups, uid); err != nil {
			return err
		}
	}
	// This must be after the processes: a pod with a process has all of its interfaces.
	links, err := listVethPeers()
	if err != nil {
		return err
	}
	for uid := range wanted {
		f := t.found[uid]
		if f.missing = noProcess; len(processes[uid]) == 0 {
			continue
		}
		f.missing = noVethPeer
		if f.indexes, err = links.of(processes[uid]); err != nil {
			return err
		}
	}
	return nil
}
