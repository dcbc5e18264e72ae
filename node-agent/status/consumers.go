// SPDX-License-Identifier: Apache-2.0

package status

import v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"

// keepConsumers sets the last known consumer, and when it was known, of queues that the kubelet does not report. While the
// kubelet cannot be asked, these are all queues. Otherwise they are the queues that were attached and still are, because a
// kubelet that has just started leaves out pods that it has. last is the previous status, perhaps an earlier agent's.
func keepConsumers(status *v1.NodeCaptureStatus, last v1.NodeCaptureStatus, unknown bool) {
	if last.BootID != status.BootID {
		return
	}
	former := map[string]map[int32]v1.QueueStatus{}
	for _, cluster := range last.Clusters {
		former[cluster.Name] = map[int32]v1.QueueStatus{}
		for _, queue := range cluster.Queues {
			former[cluster.Name][queue.Queue] = queue
		}
	}
	for i, cluster := range status.Clusters {
		for j := range cluster.Queues {
			queue := &status.Clusters[i].Queues[j]
			was := former[cluster.Name][queue.Queue]
			if queue.Consumer != "" || was.Consumer == "" || !unknown && !(queue.Attached && was.Attached) {
				continue
			}
			queue.Consumer, queue.ConsumerAsOf = was.Consumer, was.ConsumerAsOf
			if queue.ConsumerAsOf == nil {
				queue.ConsumerAsOf = last.ObservedTime
			}
		}
	}
}
