// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// Observe reads the state of the data path from the kernel. It reads counters one after the other while programs
// update them. They add up exactly only while no packet is being processed.
func (e *Engine) Observe(ctx context.Context) (capture.Observation, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	observed := capture.Observation{
		Rings: map[string]capture.RingState{}, Clusters: map[string]capture.ClusterState{},
	}
	if err := e.env.tables.setClock(); err != nil {
		return observed, fmt.Errorf("eBPF engine: %w", err)
	}
	for name, c := range e.clusters {
		state, err := c.observe()
		if err != nil {
			return observed, fmt.Errorf("eBPF engine: cluster %s: %w", name, err)
		}
		observed.Clusters[name] = state
	}
	for name, r := range e.rings {
		stats, err := r.stats()
		if err != nil {
			return observed, fmt.Errorf("eBPF engine: ring %s: %w", name, err)
		}
		state := capture.RingState{Taps: r.tapsInPlace(), Stats: stats}
		if r.maps != nil {
			if state.Rules, err = r.maps.counts(); err != nil {
				return observed, fmt.Errorf("eBPF engine: ring %s: %w", name, err)
			}
			if state.Patterns, err = r.maps.patternCounts(); err != nil {
				return observed, fmt.Errorf("eBPF engine: ring %s: %w", name, err)
			}
		}
		observed.Rings[name] = state
	}
	return observed, ctx.Err()
}

func (r *ring) stats() (capture.RingStats, error) {
	var sum capture.RingStats
	byCPU := make([]ringCounters, int(r.counters.ValueSize())/int(unsafe.Sizeof(ringCounters{})))
	if err := r.counters.Lookup(uint32(0), byCPU); err != nil {
		return sum, fmt.Errorf("read its counters: %w", err)
	}
	for _, c := range byCPU {
		sum.Seen += c.Filtered + c.SampledOut + c.Passed + c.Directed + c.Reflected
		sum.SeenBytes += c.SeenBytes
		sum.Filtered += c.Filtered
		sum.SampledOut += c.SampledOut
		sum.Passed += c.Passed
		sum.Directed += c.Directed
		sum.Reflected += c.Reflected
		sum.ReflectFailed += c.ReflectFailed
	}
	return sum, nil
}

func (c *cluster) observe() (capture.ClusterState, error) {
	state := capture.ClusterState{Memory: c.memory(), Lanes: c.Lanes}
	for _, q := range c.queues {
		stats := q.observe()
		shunting, bytes := q.tables.shunting.read(q.index), uint64(0)
		stats.Shunted, stats.ShuntedBytes, stats.ShuntsLost = shunting.Packets, shunting.Bytes, shunting.Lost
		stats.ShuntedFlows, bytes = q.shunts.observe()
		state.Memory += bytes
		state.Queues = append(state.Queues, stats)
	}
	var byCPU []balanceAccount
	if err := c.tables.balance.Lookup(c.Base, &byCPU); err != nil {
		return state, fmt.Errorf("read its account: %w", err)
	}
	for _, account := range byCPU {
		state.Duplicated += account.Duplicated
		state.Spread += account.Spread
	}
	return state, nil
}

func (q *queue) observe() capture.QueueStats {
	q.mu.Lock()
	defer q.mu.Unlock()
	stats := capture.QueueStats{
		Dropped:  make(map[capture.DropReason]uint64, len(capture.DropReasons)),
		Attached: q.consumer != 0,
		Holder:   q.holder(),
	}
	if stats.Attached {
		stats.Attachment = q.attachment
	}
	sum := q.account.Before
	if q.area != nil {
		stats.UnreadBytes, stats.FullestLaneBytes = q.area.positions.unread(q.area.head)
		lanes := q.area.head.sum()
		sum.add(&lanes)
	}
	sum.report(&stats)
	stats.Dropped[capture.DropUnattended] += q.tables.unattended.sum(q.index)
	return stats
}
