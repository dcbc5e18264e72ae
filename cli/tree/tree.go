// SPDX-License-Identifier: Apache-2.0

// Package tree builds the tree ring -> node -> queue -> consumer of a snapshot, sorted by severity. It is pure.
package tree

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ringcap/ringcap/cli/fleet"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Health is the sort key: the worst first.
type Health string

// The values of Health.
const (
	// Failed: it does not work as asked.
	Failed Health = "Failed"
	// Degraded: it works, but packets are or were lost.
	Degraded Health = "Degraded"
	Healthy  Health = "Healthy"
)

var badness = map[Health]int{Failed: 2, Degraded: 1, Healthy: 0}

// Worst returns the worse of two values.
func Worst(a, b Health) Health {
	if badness[b] > badness[a] {
		return b
	}
	return a
}

// Tree has all rings.
type Tree struct {
	Health Health `json:"health"`
	// Problems without a ring: Clusters over rings that do not exist.
	Problems []string `json:"problems,omitempty"`
	Rings    []Ring   `json:"rings"`
}

// Account counts the packets that a ring saw: seen is the sum of the others.
type Account struct {
	Seen       int64 `json:"seen"`
	Filtered   int64 `json:"filtered"`
	SampledOut int64 `json:"sampledOut"`
	Reflected  int64 `json:"reflected"`
	Absorbed   int64 `json:"absorbed"`
	Directed   int64 `json:"directed"`
	Passed     int64 `json:"passed"`
}

func (a *Account) add(b Account) {
	a.Seen, a.Filtered, a.SampledOut = a.Seen+b.Seen, a.Filtered+b.Filtered, a.SampledOut+b.SampledOut
	a.Reflected, a.Absorbed, a.Directed = a.Reflected+b.Reflected, a.Absorbed+b.Absorbed, a.Directed+b.Directed
	a.Passed += b.Passed
}

// Ring is a CaptureRing. Its account is the sum of its nodes' accounts, in packets.
type Ring struct {
	Name     string   `json:"name"`
	Health   Health   `json:"health"`
	Problems []string `json:"problems,omitempty"`
	Account
	Nodes []Node `json:"nodes,omitempty"`
}

// Node is a ring on one node.
type Node struct {
	Name         string    `json:"name"`
	Health       Health    `json:"health"`
	Problem      string    `json:"problem,omitempty"`
	Engine       v1.Engine `json:"engine,omitempty"`
	EngineReason string    `json:"engineReason,omitempty"`
	Interfaces   []string  `json:"interfaces,omitempty"`
	// CountersAge is the age of the counters, and CountersWhy the reason, unless the node's agent has just sent them.
	CountersAge string `json:"countersAge,omitempty"`
	CountersWhy string `json:"countersWhy,omitempty"`
	Account
	// Inline is set for a ring in line: seen is bridged, lost and passed.
	Inline *v1.InlineRingStatus `json:"inline,omitempty"`
	Queues []Queue              `json:"queues,omitempty"`
	// Unlisted queues, by set: the status of a node with very many queues has only sums of them.
	Unlisted []Unlisted `json:"unlisted,omitempty"`
}

// Queue is one queue of a set that the ring feeds on that node. A set over several rings is below each of them. ConsumerAge is
// how long ago the kubelet last reported the consumer, if it does not report one now.
type Queue struct {
	Set         string           `json:"set"`
	Queue       int32            `json:"queue"`
	Health      Health           `json:"health"`
	Problem     string           `json:"problem,omitempty"`
	Attached    bool             `json:"attached"`
	Consumer    string           `json:"consumer,omitempty"`
	ConsumerAge string           `json:"consumerAge,omitempty"`
	Holder      string           `json:"holder,omitempty"`
	Delivered   int64            `json:"delivered"`
	Truncated   int64            `json:"truncated,omitempty"`
	Shunted     int64            `json:"shunted,omitempty"`
	Dropped     map[string]int64 `json:"dropped,omitempty"`
	UnreadBytes int64            `json:"unreadBytes"`
	// Inline is set for a queue in line.
	Inline *v1.InlineQueueStatus `json:"inline,omitempty"`
}

// Unlisted are the queues of a set that a node's status only sums up. Its fields are those of Queue.
type Unlisted struct {
	Set         string           `json:"set"`
	Health      Health           `json:"health"`
	Problem     string           `json:"problem,omitempty"`
	Queues      int32            `json:"queues"`
	Attached    int32            `json:"attached"`
	Delivered   int64            `json:"delivered"`
	Truncated   int64            `json:"truncated,omitempty"`
	Shunted     int64            `json:"shunted,omitempty"`
	Dropped     map[string]int64 `json:"dropped,omitempty"`
	UnreadBytes int64            `json:"unreadBytes"`
}

// Of returns the tree of a snapshot: of the named rings, or of all.
func Of(s fleet.Snapshot, names ...string) Tree {
	t := Tree{Health: Healthy, Rings: []Ring{}}
	for i := range s.Rings {
		if len(names) > 0 && !slices.Contains(names, s.Rings[i].Name) {
			continue
		}
		ring := ringOf(s, &s.Rings[i])
		t.Health = Worst(t.Health, ring.Health)
		t.Rings = append(t.Rings, ring)
	}
	if len(names) == 0 {
		t.orphans(s)
	}
	slices.SortStableFunc(t.Rings, func(a, b Ring) int { return worstFirst(a.Health, b.Health, a.Name, b.Name) })
	return t
}

func worstFirst(a, b Health, nameA, nameB string) int {
	return cmp.Or(badness[b]-badness[a], strings.Compare(nameA, nameB))
}

// orphans adds the Clusters over rings that do not exist.
func (t *Tree) orphans(s fleet.Snapshot) {
	for _, c := range s.Clusters {
		if slices.ContainsFunc(c.Spec.Rings, func(r string) bool { return s.Ring(r) != nil }) {
			continue
		}
		t.Health = Failed
		t.Problems = append(t.Problems, fmt.Sprintf("Cluster %s: no CaptureRing %s exists", c.Name, strings.Join(c.Spec.Rings, ", ")))
	}
}

func ringOf(s fleet.Snapshot, from *v1.CaptureRing) Ring {
	ring := Ring{Name: from.Name, Health: Healthy}
	ring.conditions(s, from)
	sets := s.Over(from)
	for _, placement := range s.Placements(from.Name) {
		n := nodeOf(placement, sets, s.Now)
		n.counted(s.CountedOn(placement.Node), s.Now)
		ring.Health = Worst(ring.Health, n.Health)
		ring.add(n.Account)
		ring.Nodes = append(ring.Nodes, n)
	}
	slices.SortStableFunc(ring.Nodes, func(a, b Node) int { return worstFirst(a.Health, b.Health, a.Name, b.Name) })
	return ring
}

// conditions adds problems in the conditions of the ring and of the Clusters over it.
func (r *Ring) conditions(s fleet.Snapshot, from *v1.CaptureRing) {
	if len(from.Status.Conditions) == 0 {
		r.fail("the operator has not processed it yet: see that the operator's pod runs")
	} else if c := fleet.Wrong(from.Status.Conditions); c != nil {
		r.fail(fmt.Sprintf("%s: %s", c.Reason, c.Message))
	}
	for _, c := range fleet.Advice(from.Status.Conditions) {
		r.degrade(fmt.Sprintf("%s: %s", c.Reason, c.Message))
	}
	for _, cluster := range s.Clusters {
		if !slices.Contains(cluster.Spec.Rings, from.Name) {
			continue
		}
		if c := fleet.Wrong(cluster.Status.Conditions); c != nil {
			r.fail(fmt.Sprintf("Cluster %s: %s: %s", cluster.Name, c.Reason, c.Message))
		}
		for _, c := range fleet.Advice(cluster.Status.Conditions) {
			r.degrade(fmt.Sprintf("Cluster %s: %s: %s", cluster.Name, c.Reason, c.Message))
		}
	}
}

func (r *Ring) fail(problem string) {
	r.Health = Failed
	r.Problems = append(r.Problems, problem)
}

func (r *Ring) degrade(problem string) {
	r.Health = Worst(r.Health, Degraded)
	r.Problems = append(r.Problems, problem)
}

func nodeOf(from fleet.Placement, sets []string, now time.Time) Node {
	n := Node{Name: from.Node.Name, Health: Healthy}
	if on := from.Status; on != nil {
		n.Engine, n.EngineReason, n.Interfaces = on.Engine, on.EngineReason, on.Interfaces
		n.Inline = on.Inline
		n.Account = Account{on.Seen, on.Filtered, on.SampledOut, on.Reflected, on.Absorbed, on.Directed, on.Passed}
	}
	for _, set := range sets {
		n.queues(fleet.QueuesOn(from.Node, set), now)
	}
	slices.SortStableFunc(n.Queues, func(a, b Queue) int {
		return cmp.Or(badness[b.Health]-badness[a.Health], strings.Compare(a.Set, b.Set), int(a.Queue-b.Queue))
	})
	if from.Problem != "" {
		n.Health, n.Problem = Failed, from.Problem
	}
	return n
}

// counted sets the age of the counters, if the node has any.
func (n *Node) counted(c fleet.Counted, now time.Time) {
	if n.Engine != "" && !c.Live() {
		n.CountersAge, n.CountersWhy = max(now.Sub(c.Time), 0).Round(time.Second).String(), c.Why
	}
}

func (n *Node) queues(set *v1.NodeClusterStatus, now time.Time) {
	if set == nil {
		return
	}
	if !set.Ready {
		n.Health = Failed
		n.Problem = fmt.Sprintf("queues of %s: %s: %s", set.Name, set.Reason, set.Message)
	}
	for _, q := range set.Queues {
		queue := queueOf(set.Name, q, now)
		n.Health = Worst(n.Health, queue.Health)
		n.Queues = append(n.Queues, queue)
	}
	if set.Unlisted != nil {
		rest := unlistedOf(set.Name, *set.Unlisted)
		n.Health = Worst(n.Health, rest.Health)
		n.Unlisted = append(n.Unlisted, rest)
	}
}

func queueOf(set string, from v1.QueueStatus, now time.Time) Queue {
	q := Queue{
		Set: set, Queue: from.Queue, Health: Healthy, Attached: from.Attached, Consumer: from.Consumer, Holder: from.Holder,
		Delivered: from.Delivered, Truncated: from.Truncated, Shunted: from.Shunted, UnreadBytes: from.UnreadBytes,
	}
	if from.ConsumerAsOf != nil {
		q.ConsumerAge = max(now.Sub(from.ConsumerAsOf.Time), 0).Round(time.Second).String()
	}
	if q.Dropped, q.Problem = lost(from.Dropped); q.Problem != "" {
		q.Health = Degraded
	}
	if from.Inline != nil {
		q.Inline = from.Inline
		q.Health, q.Problem = inlineHealth(from.Inline)
	}
	if !from.Attached {
		q.Health = Worst(q.Health, Degraded)
		q.Problem = strings.TrimSuffix("nobody reads it; "+q.Problem, "; ")
	}
	return q
}

func unlistedOf(set string, from v1.QueueTotals) Unlisted {
	u := Unlisted{
		Set: set, Health: Healthy, Queues: from.Queues, Attached: from.Attached, Delivered: from.Delivered, UnreadBytes: from.UnreadBytes,
		Truncated: from.Truncated, Shunted: from.Shunted,
	}
	if u.Dropped, u.Problem = lost(from.Dropped); u.Problem != "" {
		u.Health = Degraded
	}
	if idle := from.Queues - from.Attached; idle > 0 {
		u.Health = Degraded
		u.Problem = strings.TrimSuffix(fmt.Sprintf("nobody reads %d of them; %s", idle, u.Problem), "; ")
	}
	return u
}

// lost returns the reasons for which packets were lost, and their text for users.
func lost(dropped []v1.DropCount) (packets map[string]int64, problem string) {
	var reasons []string
	for _, d := range dropped {
		if d.Packets == 0 {
			continue
		}
		if packets == nil {
			packets = map[string]int64{}
		}
		packets[d.Reason] = d.Packets
		reasons = append(reasons, fmt.Sprintf("%s %s", Number(d.Packets), d.Reason))
	}
	if len(reasons) > 0 {
		problem = "lost " + strings.Join(reasons, ", ")
	}
	return packets, problem
}
