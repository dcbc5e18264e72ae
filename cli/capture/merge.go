// SPDX-License-Identifier: Apache-2.0

package capture

import "time"

// merger merges the packets of several streams, each in order, by time. A packet is held back until every open stream has a
// later one, but at most for maxWait, and while at most limit bytes are held: a node without traffic must not stop the others.
// It is not safe for concurrent use.
type merger struct {
	maxWait time.Duration
	limit   int // bytes held back

	lanes []lane
	held  int
	last  time.Time
	// disordered is the number of packets that came too late for their position.
	disordered int64
}

type lane struct {
	waiting []held
	ended   bool
}

type held struct {
	Packet
	arrived time.Time
}

func newMerger(streams int, maxWait time.Duration, limit int) *merger {
	return &merger{maxWait: maxWait, limit: limit, lanes: make([]lane, streams)}
}

func (m *merger) add(stream int, p Packet, now time.Time) {
	m.lanes[stream].waiting = append(m.lanes[stream].waiting, held{p, now})
	m.held += len(p.Data)
}

// end marks a stream as ended.
func (m *merger) end(stream int) { m.lanes[stream].ended = true }

// take returns the next packet in order, and its stream, if there is one that need not wait.
func (m *merger) take(now time.Time) (stream int, p Packet, ok bool) {
	oldest, complete := -1, true
	for i := range m.lanes {
		l := &m.lanes[i]
		switch {
		case len(l.waiting) == 0:
			complete = complete && l.ended
		case oldest < 0 || l.waiting[0].Time.Before(m.lanes[oldest].waiting[0].Time):
			oldest = i
		}
	}
	if oldest < 0 {
		return 0, Packet{}, false
	}
	l := &m.lanes[oldest]
	head := l.waiting[0]
	if !complete && m.held <= m.limit && now.Sub(head.arrived) < m.maxWait {
		return 0, Packet{}, false
	}
	l.waiting[0] = held{}
	l.waiting = l.waiting[1:]
	m.held -= len(head.Data)
	if head.Time.Before(m.last) {
		m.disordered++
	} else {
		m.last = head.Time
	}
	return oldest, head.Packet, true
}
