// SPDX-License-Identifier: Apache-2.0

package status

import v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"

// keepConsumers names the last known consumer of queues of which the kubelet says nothing, with the time as of which it is: of
// all, while the kubelet cannot be asked; and of those that have been attached ever since, for a kubelet that was just started
// leaves pods out that it has. last is the status before this one, by an earlier agent too.
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
