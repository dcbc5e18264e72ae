// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// For a queue in line there is one more equation: passed of its ring is, over the queues, the sum of inline_packets and
// inline_held.

func (s sink) inlineRing(name, engine string, stats *capture.InlineStats) {
	if stats == nil {
		return
	}
	s.counter(ringBridged, stats.Bridged, name, engine)
	for _, reason := range capture.Losses {
		s.counter(ringInlineLost, stats.Lost[reason], name, engine, string(reason))
	}
}

// inlineQueue sends the samples of a queue, of its set, number and engine.
func (s sink) inlineQueue(stats *capture.InlineStats, queue ...string) {
	if stats == nil {
		return
	}
	with := func(labels ...string) []string { return slices.Concat(queue, labels) }
	for outcome, packets := range map[string]uint64{
		"passed": stats.Passed, "replaced": stats.Replaced, "blocked": stats.Blocked, "unanswered": stats.Unanswered,
	} {
		s.counter(queueInline, packets, with(outcome, "")...)
	}
	for _, event := range capture.Events {
		s.counter(queueInline, stats.Bypassed[event], with("bypassed", event.String())...)
		s.counter(queueInline, stats.Stopped[event], with("stopped", event.String())...)
	}
	for _, reason := range capture.Losses {
		s.counter(queueInline, stats.Lost[reason], with("lost", string(reason))...)
	}
	s.counter(queueInline, stats.ShuntPassed, with("shunted", "passed")...)
	s.counter(queueInline, stats.ShuntBlocked, with("shunted", "blocked")...)
	s.counter(queueInjected, stats.Injected, with("sent")...)
	s.counter(queueInjected, stats.NotInjected, with("failed")...)
	s.counter(queueUnused, stats.Late, with("late")...)
	s.counter(queueUnused, stats.Unknown, with("unknown")...)
	s.counter(queueEpisodes, stats.Episodes, queue...)
	s.gauge(queueHeld, float64(stats.Held), queue...)
	s.gauge(queueBypassing, boolean(stats.Now != nil && !stats.Now.Blocked), queue...)
	s.gauge(queueBlocking, boolean(stats.Now != nil && stats.Now.Blocked), queue...)
	s <- prometheus.MustNewConstMetric(queueUndecided.desc, prometheus.CounterValue, stats.PastTime().Seconds(), queue...)
}
