// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"fmt"

	"github.com/cilium/ebpf"
)

// descriptors are what a consumer gets: the ring buffer, of which a holder can map everything but its own page only
// for reading and which has no elements to update, and the counters, which are frozen: a descriptor opened read-only could
// not be mapped.
type descriptors struct {
	data, stats *ebpf.Map
}

func (d descriptors) close() {
	for _, m := range []*ebpf.Map{d.data, d.stats} {
		if m != nil {
			m.Close()
		}
	}
}

// describe completes a reply about the queue and returns its descriptors, which the caller closes; for an attachment that is
// over there are none.
func (q *queue) describe(reply *handoverReply, attachment uint64) (descriptors, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var d descriptors
	if q.data == nil || attachment != q.attachment {
		return d, errStale
	}
	reply.MapID = q.dataID
	reply.DataSize = q.bytes
	reply.NrStats = q.stats.MaxEntries()
	reply.NrQueues = uint32(q.params.queues)
	reply.SnapLen = q.params.snapLen
	reply.Watermark = q.params.watermark
	reply.TimeoutUs = uint32(q.params.timeout.Microseconds())
	reply.Left = q.left

	var err error
	if d.data, err = q.data.Clone(); err != nil {
		return d, fmt.Errorf("duplicate the ring buffer's descriptor: %w", err)
	}
	if d.stats, err = q.stats.Clone(); err != nil {
		d.close()
		return d, fmt.Errorf("duplicate the counters' descriptor: %w", err)
	}
	return d, nil
}
