// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/ringcap/ringcap/node-agent/capture"
	"github.com/ringcap/ringcap/node-agent/datapath"
	"github.com/ringcap/ringcap/node-agent/status"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

const wantInline = `queue_inline_blocking{capture_cluster=ids,engine=EBPF,queue=0} 0
queue_inline_bypassing{capture_cluster=ids,engine=EBPF,queue=0} 1
queue_inline_episodes_total{capture_cluster=ids,engine=EBPF,queue=0} 3
queue_inline_held_packets{capture_cluster=ids,engine=EBPF,queue=0} 0
queue_inline_injected_packets_total{capture_cluster=ids,engine=EBPF,outcome=failed,queue=0} 6
queue_inline_injected_packets_total{capture_cluster=ids,engine=EBPF,outcome=sent,queue=0} 5
queue_inline_packets_total{capture_cluster=ids,engine=EBPF,outcome=blocked,queue=0,reason=} 1
queue_inline_packets_total{capture_cluster=ids,engine=EBPF,outcome=bypassed,queue=0,reason=full} 0
queue_inline_packets_total{capture_cluster=ids,engine=EBPF,outcome=bypassed,queue=0,reason=hung} 2
queue_inline_packets_total{capture_cluster=ids,engine=EBPF,outcome=bypassed,queue=0,reason=unattended} 0
queue_inline_packets_total{capture_cluster=ids,engine=EBPF,outcome=lost,queue=0,reason=down} 0
queue_inline_packets_total{capture_cluster=ids,engine=EBPF,outcome=lost,queue=0,reason=nomem} 0
queue_inline_packets_total{capture_cluster=ids,engine=EBPF,outcome=lost,queue=0,reason=refused} 0
queue_inline_packets_total{capture_cluster=ids,engine=EBPF,outcome=lost,queue=0,reason=toolong} 1
queue_inline_packets_total{capture_cluster=ids,engine=EBPF,outcome=passed,queue=0,reason=} 3
queue_inline_packets_total{capture_cluster=ids,engine=EBPF,outcome=replaced,queue=0,reason=} 0
queue_inline_packets_total{capture_cluster=ids,engine=EBPF,outcome=shunted,queue=0,reason=blocked} 8
queue_inline_packets_total{capture_cluster=ids,engine=EBPF,outcome=shunted,queue=0,reason=passed} 7
queue_inline_packets_total{capture_cluster=ids,engine=EBPF,outcome=stopped,queue=0,reason=full} 0
queue_inline_packets_total{capture_cluster=ids,engine=EBPF,outcome=stopped,queue=0,reason=hung} 0
queue_inline_packets_total{capture_cluster=ids,engine=EBPF,outcome=stopped,queue=0,reason=unattended} 0
queue_inline_packets_total{capture_cluster=ids,engine=EBPF,outcome=unanswered,queue=0,reason=} 0
queue_inline_undecided_seconds_total{capture_cluster=ids,engine=EBPF,queue=0} 2.5
queue_inline_unused_verdicts_total{capture_cluster=ids,engine=EBPF,queue=0,reason=late} 4
queue_inline_unused_verdicts_total{capture_cluster=ids,engine=EBPF,queue=0,reason=unknown} 0
ring_inline_bridged_packets_total{engine=EBPF,ring=mirror} 3
ring_inline_lost_packets_total{engine=EBPF,reason=down,ring=mirror} 0
ring_inline_lost_packets_total{engine=EBPF,reason=nomem,ring=mirror} 0
ring_inline_lost_packets_total{engine=EBPF,reason=refused,ring=mirror} 0
ring_inline_lost_packets_total{engine=EBPF,reason=toolong,ring=mirror} 0
`

// What is not in line has no such series; of what is, the account adds up.
func TestInlineSeries(t *testing.T) {
	c := NewCollector("1.2", "6.1.0-40-amd64")
	c.Set(report(), status.Module{})
	assert.NotContains(t, expose(t, c), "inline")
	c.Set(inLine(report()), status.Module{})
	lines := slices.DeleteFunc(strings.SplitAfter(expose(t, c), "\n"), func(line string) bool { return !strings.Contains(line, "inline") })
	assert.Equal(t, wantInline, strings.Join(lines, ""))
}

// inLine puts the ring and the queue of a report in line.
func inLine(r datapath.Report) datapath.Report {
	seen := r.Observations[v1.EngineEBPF]
	ring := seen.Rings["mirror"]
	ring.Inline = &capture.InlineStats{Bridged: 3}
	seen.Rings["mirror"] = ring
	seen.Clusters["ids"].Queues[0].Inline = &capture.InlineStats{
		Passed: 3, Blocked: 1, Bypassed: map[capture.Event]uint64{capture.EventHung: 2}, Lost: map[capture.Loss]uint64{capture.LossTooLong: 1},
		Injected: 5, NotInjected: 6, ShuntPassed: 7, ShuntBlocked: 8,
		Late: 4, Episodes: 3, EpisodeTime: 2 * time.Second, Now: &capture.Episode{Event: capture.EventHung, Duration: 500 * time.Millisecond},
	}
	return r
}
