// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// holdersOf returns the pods that have a queue of the node's kernel module. known is false if a queue has an unknown consumer,
// which cannot be evicted.
func holdersOf(capture *v1alpha1.NodeCapture) (holders []types.NamespacedName, known bool) {
	served := servedByModule(capture)
	for _, cluster := range capture.Status.Clusters {
		if !served[cluster.Name] {
			continue
		}
		if cluster.Unlisted != nil && cluster.Unlisted.Unnamed > 0 {
			return nil, false
		}
		for _, queue := range cluster.Queues {
			namespace, name, pod := strings.Cut(queue.Consumer, "/")
			if !pod && queue.Attached {
				return nil, false
			}
			holder := types.NamespacedName{Namespace: namespace, Name: name}
			if pod && !slices.Contains(holders, holder) {
				holders = append(holders, holder)
			}
		}
	}
	return holders, true
}

// servedByModule returns the sets of queues that rings in the module feed.
func servedByModule(capture *v1alpha1.NodeCapture) map[string]bool {
	served := map[string]bool{}
	for _, ring := range capture.Status.Rings {
		served[ring.Name] = ring.Engine == v1alpha1.EngineKernelModule
	}
	for _, cluster := range capture.Spec.Clusters {
		served[cluster.Name] = slices.ContainsFunc(cluster.Spec.Rings, func(ring string) bool { return served[ring] })
	}
	return served
}
