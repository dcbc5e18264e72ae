// SPDX-License-Identifier: Apache-2.0

package capture

import "time"

// Event is what keeps the consumer of a queue in line from deciding on packets. The values are those of enum
// ringcap_past.
type Event uint32

// The events.
const (
	EventUnattended Event = iota
	EventFull
	EventHung
)

// Events lists the events in the order of enum ringcap_past.
var Events = []Event{EventUnattended, EventFull, EventHung}

// String returns the word for the drop reason of the same cause.
func (e Event) String() string {
	return string([]DropReason{DropUnattended, DropFull, DropHung}[e])
}

// Inline sets what happens to the packets of queues in line at an event.
type Inline struct {
	// Bypass lists the events at which packets leave by the other interface. At the others they are dropped.
	Bypass []Event
	// HungAfter is how long a packet may wait for the consumer, 1 ms to 1 minute, in whole milliseconds.
	HungAfter time.Duration
}

// Loss is why a packet in line did not leave although it was to: a word.
type Loss string

// The reasons.
const (
	LossTooLong  Loss = "toolong"
	LossRefused  Loss = "refused"
	LossNoMemory Loss = "nomem"
	LossDown     Loss = "down"
)

// Losses lists the reasons in the order of enum ringcap_inline_stat.
var Losses = []Loss{LossTooLong, LossRefused, LossNoMemory, LossDown}

// InlineStats is the account of a ring in line, or of one of its queues. Of a ring: Seen = Bridged + all of Lost +
// Passed of RingStats. The latter is, over its queues, the sum of Held, Passed, Replaced, Blocked, Unanswered,
// ShuntPassed, ShuntBlocked and all of Bypassed, Stopped and Lost.
type InlineStats struct {
	// Bridged packets left at once, because the ring does not pass them to its queues. Only a ring has them.
	Bridged uint64
	// Held packets wait for a verdict now.
	Held uint64
	// Passed, Replaced and Blocked packets were decided on by the consumer. Unanswered ones it has released without a
	// verdict, and they did not leave.
	Passed, Replaced, Blocked, Unanswered uint64
	// Bypassed packets left at an event, and Stopped ones did not leave at one.
	Bypassed, Stopped map[Event]uint64
	Lost              map[Loss]uint64
	// ShuntPassed packets, of flows that the consumer has shunted, left without being asked about. ShuntBlocked ones did
	// not leave.
	ShuntPassed, ShuntBlocked uint64
	// Injected packets are the consumer's own that left, and NotInjected those that did not. They are in no sum.
	Injected, NotInjected uint64
	// Late verdicts were on packets that an event had taken. Unknown ones were on what never waited.
	Late, Unknown uint64
	// Episodes counts how often packets began to go past the consumer. EpisodeTime is how long they did, without Now.
	Episodes    uint64
	EpisodeTime time.Duration
	// Now is the present episode; nil while the consumer decides.
	Now *Episode
}

// PastTime returns how long packets went past the consumer in all.
func (s *InlineStats) PastTime() time.Duration {
	if s.Now == nil {
		return s.EpisodeTime
	}
	return s.EpisodeTime + s.Now.Duration
}

// Episode is a time in which the consumer does not decide on packets.
type Episode struct {
	Event Event
	// Blocked means that the packets are dropped. Otherwise they bypass the consumer.
	Blocked bool
	// Since is when it began, and Duration how long it has lasted. Both are zero for a queue without a consumer to which
	// no packet has come yet.
	Since    time.Time
	Duration time.Duration
	// Packets is the number of packets on which the consumer did not decide.
	Packets uint64
}
