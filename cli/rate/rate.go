// SPDX-License-Identifier: Apache-2.0

// Package rate computes rates from the counters of nodes. It is pure: callers provide snapshots.
package rate

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/ringcap/ringcap/cli/fleet"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Row is a ring on a node. Rates are per second, over the time between the last two counts of the node.
type Row struct {
	Ring   string    `json:"ring"`
	Node   string    `json:"node"`
	Engine v1.Engine `json:"engine"`
	// Known: there were two counts to compare. Silent: the node no longer reports. Age of the last count, seconds, unless the
	// agent has just sent it.
	Known  bool    `json:"known"`
	Silent bool    `json:"silent"`
	Age    float64 `json:"age,omitempty"`
	// Seconds between the counts.
	Seconds  float64 `json:"seconds"`
	Seen     float64 `json:"seen"`
	Bits     float64 `json:"bits"`
	Filtered float64 `json:"filtered"`
	// Delivered and Dropped are sums over the queues that the ring feeds; a set that several rings feed counts for each.
	Delivered float64            `json:"delivered"`
	Dropped   float64            `json:"dropped"`
	ByReason  map[string]float64 `json:"byReason,omitempty"`
	// Truncated is the rate of delivered packets that were cut.
	Truncated float64 `json:"truncated"`
	// Shunted is the rate of packets that were not delivered because their flows are shunted.
	Shunted  float64 `json:"shunted"`
	Queues   int     `json:"queues"`
	Attached int     `json:"attached"`
	// UnreadBytes now.
	UnreadBytes int64 `json:"unreadBytes"`
}

// Meter keeps the last two different counts of each node. The zero value is ready; it is not safe for concurrent use.
type Meter struct {
	nodes map[string]counts
	now   fleet.Snapshot
}

type counts struct{ before, last count }

type count struct {
	v1.NodeCapture
	time time.Time
}

// Add adds a snapshot.
func (m *Meter) Add(s fleet.Snapshot) {
	known := m.nodes
	m.nodes, m.now = map[string]counts{}, s
	for _, node := range s.Nodes {
		r := known[node.Name]
		if at := s.CountedOn(&node).Time; !at.Equal(r.last.time) {
			r.before, r.last = r.last, count{node, at}
		}
		m.nodes[node.Name] = r
	}
}

// Rows returns all rings on all nodes, sorted by loss, then by packets seen.
func (m *Meter) Rows() []Row {
	rows := []Row{}
	for i := range m.now.Rings {
		ring := &m.now.Rings[i]
		sets := m.now.Over(ring)
		for _, node := range m.now.Nodes {
			r := m.nodes[node.Name]
			if on := fleet.RingOn(&r.last.NodeCapture, ring.Name); on != nil {
				row := rowOf(r, *on, sets)
				row.Silent = m.now.Silence(&node) != ""
				if !m.now.CountedOn(&node).Live() {
					row.Age = max(m.now.Now.Sub(r.last.time), 0).Round(time.Second).Seconds()
				}
				rows = append(rows, row)
			}
		}
	}
	slices.SortStableFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(b.Dropped, a.Dropped), cmp.Compare(b.Seen, a.Seen), strings.Compare(a.Ring, b.Ring), strings.Compare(a.Node, b.Node))
	})
	return rows
}

func rowOf(r counts, on v1.NodeRingStatus, sets []string) Row {
	row := Row{Ring: on.Name, Node: r.last.Name, Engine: on.Engine}
	before := fleet.RingOn(&r.before.NodeCapture, on.Name)
	if before != nil {
		row.Seconds = r.last.time.Sub(r.before.time).Seconds()
	}
	// If counters are lower than before, the ring was created again.
	row.Known = row.Seconds > 0 && on.Seen >= before.Seen && on.SeenBytes >= before.SeenBytes
	if row.Known {
		row.Seen = float64(on.Seen-before.Seen) / row.Seconds
		row.Bits = float64(on.SeenBytes-before.SeenBytes) * 8 / row.Seconds
		row.Filtered = float64(on.Filtered-before.Filtered) / row.Seconds
	}
	for _, set := range sets {
		row.queues(fleet.QueuesOn(&r.before.NodeCapture, set), fleet.QueuesOn(&r.last.NodeCapture, set))
	}
	return row
}

func (row *Row) queues(before, last *v1.NodeClusterStatus) {
	if last == nil {
		return
	}
	now := last.Totals()
	row.Queues += int(now.Queues)
	row.Attached += int(now.Attached)
	row.UnreadBytes += now.UnreadBytes
	if row.Known && before != nil {
		row.more(before.Totals(), now)
	}
}

// more adds what a set's queues got between two reports. The statuses may list different queues: only sums can be compared.
func (row *Row) more(before, last v1.QueueTotals) {
	if last.Delivered < before.Delivered || last.Queues != before.Queues {
		return // created again
	}
	row.Delivered += float64(last.Delivered-before.Delivered) / row.Seconds
	row.Shunted += float64(max(last.Shunted-before.Shunted, 0)) / row.Seconds
	row.Truncated += float64(max(last.Truncated-before.Truncated, 0)) / row.Seconds
	for _, d := range last.Dropped {
		more := float64(d.Packets) / row.Seconds
		if i := slices.IndexFunc(before.Dropped, func(b v1.DropCount) bool { return b.Reason == d.Reason }); i >= 0 {
			more -= float64(before.Dropped[i].Packets) / row.Seconds
		}
		if more <= 0 {
			continue
		}
		if row.ByReason == nil {
			row.ByReason = map[string]float64{}
		}
		row.ByReason[d.Reason] += more
		row.Dropped += more
	}
}
