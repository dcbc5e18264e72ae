// SPDX-License-Identifier: Apache-2.0

package kmod

import (
	"slices"
	"time"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// inlineStatsOf returns the counters of a ring or queue by enum ringcap_inline_stat; nil for one that is not in line.
func inlineStatsOf(counts []uint64) *capture.InlineStats {
	if len(counts) <= inlineBypassMs {
		return nil
	}
	// An earlier module counts less.
	counts = append(slices.Clip(counts), make([]uint64, max(inlineStats-len(counts), 0))...)
	return &capture.InlineStats{
		Bridged: counts[inlineBridged], Held: counts[inlineHeld], Passed: counts[inlinePassed], Replaced: counts[inlineReplaced],
		Blocked: counts[inlineBlocked], Unanswered: counts[inlineUnanswered],
		Bypassed:    countsBy(capture.Events, counts[inlineBypassUnattended:]),
		Stopped:     countsBy(capture.Events, counts[inlineBlockUnattended:]),
		Lost:        countsBy(capture.Losses, counts[inlineTooLong:]),
		ShuntPassed: counts[inlineShuntPassed], ShuntBlocked: counts[inlineShuntBlocked],
		Injected: counts[inlineInjected], NotInjected: counts[inlineNotInjected],
		Late: counts[inlineLate], Unknown: counts[inlineUnknown],
		Episodes: counts[inlineBypasses], EpisodeTime: time.Duration(counts[inlineBypassMs]) * time.Millisecond,
	}
}

func countsBy[K comparable](keys []K, counts []uint64) map[K]uint64 {
	by := map[K]uint64{}
	for i, key := range keys {
		by[key] = counts[i]
	}
	return by
}

// episodeOf returns the present episode of a queue in line; nil for none. A queue without a consumer has one even if no
// packet has come.
func episodeOf(reply queueGetReply) *capture.Episode {
	if reply.Past != 0 || reply.PastMs != 0 || reply.PastPackets != 0 {
		lasted := time.Duration(reply.PastMs) * time.Millisecond
		return &capture.Episode{
			Event: capture.Event(reply.Past), Since: time.Now().Add(-lasted), Duration: lasted, Packets: reply.PastPackets,
		}
	}
	if reply.Attached == 0 {
		return &capture.Episode{Event: capture.EventUnattended}
	}
	return nil
}

// noteBlocked tells the queues of a cluster in line whether their packets are dropped at the present event.
func (c clusterObject) noteBlocked(queues []queueObject) {
	for _, queue := range queues {
		if in := queue.stats.Inline; in != nil && in.Now != nil {
			in.Now.Blocked = c.open&(1<<in.Now.Event) == 0
		}
	}
}
