// SPDX-License-Identifier: Apache-2.0

package status

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringcap/ringcap/node-agent/capture"
	"github.com/ringcap/ringcap/node-agent/datapath"
	"github.com/ringcap/ringcap/node-agent/plan"
	"github.com/ringcap/ringcap/operator/api/counters"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// lineReport is the report of a ring in line with a queue.
func lineReport(queue capture.InlineStats) datapath.Report {
	line := datapath.Object{Made: true, Fed: true, Engine: v1.EngineKernelModule, Decision: plan.Verdict{
		Planned: true, Interfaces: []string{"eth1", "eth2"}, Pairs: []string{"eth1-eth2"},
	}}
	return datapath.Report{
		Rings: map[string]datapath.Object{"ips": line}, Clusters: map[string]datapath.Object{"ips": line},
		Observations: map[v1.Engine]capture.Observation{v1.EngineKernelModule: {
			Rings: map[string]capture.RingState{"ips": {
				Stats:  capture.RingStats{Seen: 20, Passed: 12, Filtered: 8},
				Inline: &capture.InlineStats{Bridged: 6, Lost: map[capture.Loss]uint64{capture.LossDown: 2}},
			}},
			Clusters: map[string]capture.ClusterState{"ips": {Queues: []capture.QueueStats{{Inline: &queue}}}},
		}},
	}
}

func TestARingInLineInTheStatus(t *testing.T) {
	since := time.Date(2026, 1, 1, 0, 0, 1, 500e6, time.UTC)
	built := Build(Input{Report: lineReport(capture.InlineStats{
		Held: 1, Passed: 2, Replaced: 1, Blocked: 1, Unanswered: 1, Bypassed: map[capture.Event]uint64{capture.EventHung: 3},
		Stopped: map[capture.Event]uint64{capture.EventFull: 2}, Lost: map[capture.Loss]uint64{capture.LossTooLong: 1}, ShuntPassed: 7,
		ShuntBlocked: 8, Injected: 9, NotInjected: 10, Late: 5, Unknown: 6,
		Episodes: 2, EpisodeTime: time.Second,
		Now: &capture.Episode{Event: capture.EventHung, Since: since, Duration: 250 * time.Millisecond, Packets: 3},
	})})
	assert.Equal(t, &v1.InlineRingStatus{
		Pairs: []string{"eth1-eth2"}, Bridged: 6, Lost: []v1.DropCount{{Reason: "down", Packets: 2}},
	}, built.Rings[0].Inline)
	queue := built.Clusters[0].Queues[0].Inline
	require.NotNil(t, queue.Since)
	assert.Equal(t, since.Truncate(time.Second), queue.Since.Time)
	queue.Since = nil
	assert.Equal(t, &v1.InlineQueueStatus{
		Event: "hung", SincePackets: 3, Episodes: 2, EpisodeMilliseconds: 1250, Held: 1, Passed: 2, Replaced: 1, Blocked: 1, Unanswered: 1,
		Bypassed: []v1.DropCount{{Reason: "hung", Packets: 3}}, Stopped: []v1.DropCount{{Reason: "full", Packets: 2}},
		Lost: []v1.DropCount{{Reason: "toolong", Packets: 1}}, LateVerdicts: 5, UnknownVerdicts: 6,
		ShuntPassed: 7, ShuntBlocked: 8, Injected: 9, NotInjected: 10,
	}, queue)
	assert.Equal(t, &v1.InlineQueueStatus{Event: "hung", Episodes: 2}, counters.Without(built).Clusters[0].Queues[0].Inline,
		"its state changes without packets only by events")
}

func TestInlineTransitions(t *testing.T) {
	deciding := v1.InlineQueueStatus{Episodes: 1, EpisodeMilliseconds: 1000, Bypassed: []v1.DropCount{{Reason: "hung", Packets: 10}}}
	hung, blocked := deciding, deciding
	hung.Event, hung.Episodes = "hung", 2
	blocked.Event, blocked.Blocking = "unattended", true
	back := v1.InlineQueueStatus{Episodes: 2, EpisodeMilliseconds: 1500, Bypassed: []v1.DropCount{{Reason: "hung", Packets: 14}}}
	const counted = "queue 0 of ips: the consumer decides on packets; since the last report it did not for 500ms in all: 4 packets bypassed it, and 0 were blocked"
	for name, test := range map[string]struct {
		was, is v1.InlineQueueStatus
		want    []Transition
	}{
		"nothing":    {was: deciding, is: deciding},
		"still hung": {was: hung, is: hung},
		"hung": {was: deciding, is: hung, want: []Transition{{Warning: true, Reason: v1.ReasonInlineBypassed, Ring: "ips",
			Message: "queue 0 of ips: packets bypass the consumer, because a packet waited for longer than spec.inline.hungAfter, and the consumer has not caught up"}}},
		"blocked": {was: deciding, is: blocked, want: []Transition{{Warning: true, Reason: v1.ReasonInlineBlocked, Ring: "ips",
			Message: "queue 0 of ips: packets are blocked, because the queue has no consumer"}}},
		"back":           {was: hung, is: back, want: []Transition{{Reason: v1.ReasonInlineBack, Ring: "ips", Message: counted}}},
		"there and back": {was: deciding, is: back, want: []Transition{{Reason: v1.ReasonInlineBack, Ring: "ips", Message: counted}}},
	} {
		t.Run(name, func(t *testing.T) {
			of := func(s v1.InlineQueueStatus) v1.NodeCaptureStatus {
				return v1.NodeCaptureStatus{Clusters: []v1.NodeClusterStatus{{Name: "ips", Queues: []v1.QueueStatus{{Inline: &s}}}}}
			}
			assert.Equal(t, test.want, Transitions(of(test.was), of(test.is), nil))
		})
	}
}
