// SPDX-License-Identifier: Apache-2.0

package kmod

import (
	"fmt"
	"strings"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// Holders lists, in text for users, who would lose something with the module. These are consumers of queues, by pod
// if that is known, pairs of interfaces that a ring is between, and the makers of rings and clusters that are not this program's.
func Holders(pods map[capture.QueueID][]string) ([]string, error) {
	c, err := dial()
	if err != nil {
		return nil, err
	}
	defer c.close()
	have, err := c.objects()
	if err != nil {
		return nil, err
	}
	var holders []string
	for _, ring := range have.rings {
		if !ours(ring.generation) {
			holders = append(holders, fmt.Sprintf("ring %s of another program", ring.name))
		} else if ring.inline != nil {
			holders = append(holders, fmt.Sprintf("ring %s, which is in line: without the module its pairs carry nothing, so delete it first, or boot", ring.name))
		}
	}
	for _, cluster := range have.clusters {
		if !ours(cluster.generation) {
			holders = append(holders, fmt.Sprintf("cluster %s of another program", cluster.name))
		}
		queues, err := c.queues(cluster.name)
		if err != nil {
			return nil, err
		}
		for _, queue := range queues {
			id := capture.QueueID{Cluster: cluster.name, Queue: queue.number}
			switch {
			case len(pods[id]) > 0:
				holders = append(holders, fmt.Sprintf("pod %s with queue %d of %s", strings.Join(pods[id], " and "), id.Queue, id.Cluster))
			case queue.stats.Holder != 0:
				holders = append(holders, fmt.Sprintf("process %d, the consumer of queue %d of %s", queue.stats.Holder, id.Queue, id.Cluster))
			case queue.stats.Attached:
				holders = append(holders, fmt.Sprintf("the consumer of queue %d of %s", id.Queue, id.Cluster))
			}
		}
	}
	return holders, nil
}
