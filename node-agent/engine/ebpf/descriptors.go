// SPDX-License-Identifier: Apache-2.0

package ebpf

// describe completes a reply about the queue and returns the descriptors for the consumer. The caller closes them. If
// the attachment has ended, there are none. The data map is frozen, so its holder can only read it. A descriptor
// opened read-only could not be mapped. The agent itself holds only mappings.
func (q *queue) describe(reply *handoverReply, attachment uint64) (queueMaps, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.area == nil || attachment != q.attachment {
		return queueMaps{}, errStale
	}
	reply.MapID = q.area.id()
	reply.LaneSize, reply.NrLanes, reply.HeadSize = q.shape.laneSize, q.shape.lanes, q.shape.headSize
	reply.NrQueues = uint32(q.params.queues)
	reply.SnapLen = q.params.snapLen
	reply.Watermark = q.params.watermark
	reply.TimeoutUs = uint32(q.params.timeout.Microseconds())
	return q.open()
}
