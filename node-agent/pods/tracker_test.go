// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"github.com/ringcap/ringcap/node-agent/plan"
)

// tracked is a tracker of some pods, which the test makes look.
func (l *lab) tracked(pods ...*sandbox) (t *Tracker, changes *int) {
	changes = new(int)
	t = NewTracker(Cgroups(l.cgroups), func() ([]Object, uint64) {
		var objects []Object
		for _, s := range pods {
			objects = append(objects, s.object)
		}
		return objects, 1
	}, func() { *changes++ })
	return t, changes
}

func interfacesOf(t *Tracker) map[string][]int {
	found := map[string][]int{}
	pods, _ := t.Pods()
	for _, p := range pods {
		found[p.Name] = p.Interfaces
	}
	return found
}

func TestInterfacesAreFound(t *testing.T) {
	l := newLab(t)
	one, two := l.pod(nil), l.pod(nil)
	second := l.attach(two, "second", "net1")
	// The namespaces of a pod's later processes do not count: neither the node's nor another pod's.
	node, err := netns.Get()
	require.NoError(t, err)
	defer node.Close()
	l.process(one, node)
	l.process(one, two.namespace)
	tracker, changes := l.tracked(one, two)
	assert.Equal(t, seldom, tracker.update(time.Now()))
	assert.Equal(t, map[string][]int{one.object.Name: {one.index}, two.object.Name: {two.index, second}}, interfacesOf(tracker))
	assert.Equal(t, seldom, tracker.update(time.Now()))
	assert.Equal(t, 1, *changes)
}

// A pod that is starting: first nothing, then a process that has not entered its namespace yet, then it has.
func TestAPodStarts(t *testing.T) {
	l := newLab(t)
	s := l.pod(nil)
	l.kill(s)
	tracker, _ := l.tracked(s)
	assert.Equal(t, soon, tracker.update(time.Now()))
	node, err := netns.Get()
	require.NoError(t, err)
	defer node.Close()
	l.process(s, node)
	assert.Equal(t, soon, tracker.update(time.Now()))
	l.kill(s)
	l.process(s, s.namespace)
	assert.Equal(t, seldom, tracker.update(time.Now()))
	assert.Equal(t, map[string][]int{s.object.Name: {s.index}}, interfacesOf(tracker))
}

// A recreated sandbox has other interfaces.
func TestASandboxIsMadeAnew(t *testing.T) {
	l := newLab(t)
	s := l.pod(nil)
	tracker, _ := l.tracked(s)
	tracker.update(time.Now())
	l.remove(s)
	assert.Equal(t, soon, tracker.update(time.Now()))
	assert.Equal(t, map[string][]int{s.object.Name: nil}, interfacesOf(tracker))
	s.namespace = newNamespace(t)
	s.index = l.attach(s, s.name, "eth0")
	l.process(s, s.namespace)
	assert.Equal(t, seldom, tracker.update(time.Now()))
	assert.Equal(t, map[string][]int{s.object.Name: {s.index}}, interfacesOf(tracker))
}

// Running pods without a process, or without a veth peer on the node, are reported as such; pods that start are not.
func TestPodsWithoutInterfaces(t *testing.T) {
	l := newLab(t)
	macvlan, hidden, host := l.pod(nil), l.pod(nil), l.pod(nil)
	link, err := netlink.LinkByName(macvlan.name)
	require.NoError(t, err)
	require.NoError(t, netlink.LinkDel(link))
	l.kill(hidden)
	host.object.HostNetwork = true
	tracker, _ := l.tracked(macvlan, hidden, host)
	start := time.Now()
	assert.Equal(t, soon, tracker.update(start))
	problems := func() (all []string) {
		pods, _ := tracker.Pods()
		for _, p := range pods {
			all = append(all, p.Problem)
		}
		return all
	}
	assert.Equal(t, []string{"", "", ""}, problems())
	tracker.update(start.Add(lively + time.Second))
	assert.Equal(t, []string{noVethPeer, noProcess, ""}, problems())
	hidden.object.Running = false
	tracker.update(start.Add(lively + time.Second))
	assert.Equal(t, []string{noVethPeer, "", ""}, problems())
}

// A pod that never gets an interface is checked at growing intervals, however much happens on the node. When an
// interface appears, it is checked at once.
func TestAPodWithoutAnInterfaceIsNotLookedAtAllTheTime(t *testing.T) {
	l := newLab(t)
	s := l.pod(nil)
	link, err := netlink.LinkByName(s.name)
	require.NoError(t, err)
	require.NoError(t, netlink.LinkDel(link))
	tracker, _ := l.tracked(s)
	looks := func(from, to time.Time) (n int) {
		for now := from; now.Before(to); now = now.Add(50 * time.Millisecond) { // an event each
			before := tracker.found[s.object.UID]
			var last time.Time
			if before != nil {
				last = before.next
			}
			tracker.update(now)
			if tracker.found[s.object.UID].next != last {
				n++
			}
		}
		return n
	}
	start := time.Now()
	assert.Equal(t, 200, looks(start, start.Add(lively)), "while it is new")
	assert.Less(t, looks(start.Add(lively), start.Add(time.Minute)), 12)
	assert.Equal(t, 6, looks(start.Add(time.Minute), start.Add(2*time.Minute)))
	s.index = l.attach(s, s.name, "eth0")
	assert.Equal(t, seldom, tracker.update(start.Add(2*time.Minute)))
	assert.Equal(t, map[string][]int{s.object.Name: {s.index}}, interfacesOf(tracker))
}

func TestPodsAreNotKnownBeforeTheyAre(t *testing.T) {
	tracker := NewTracker(Cgroups(t.TempDir()), func() ([]Object, uint64) { return nil, 0 }, func() {})
	tracker.update(time.Now())
	pods, of := tracker.Pods()
	assert.Zero(t, of)
	assert.Equal(t, []plan.Pod{}, pods)
}
