// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/intstr"

	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// rejected are the reasons by which a change of a spec is refused, and what was there before stays. Others are the
// node's: they hold for the spec before, too.
var rejected = map[string]bool{
	v1.ReasonInvalidFilter: true, v1.ReasonUnsupported: true, v1.ReasonMemoryLimitExceeded: true,
	v1.ReasonAgentTooOld: true,
}

const asBefore = "; until then it stays as it was before the change"

// goodRing is the spec of the same ring that was planned last. A ring that was deleted and made again is another.
func goodRing(good v1.NodeCaptureSpec, ring v1.NodeRing) (v1.NodeRing, bool) {
	i := slices.IndexFunc(good.Rings, func(r v1.NodeRing) bool { return r.Name == ring.Name && r.UID == ring.UID })
	if i < 0 {
		return v1.NodeRing{}, false
	}
	return good.Rings[i], true
}

// goodCluster is the spec of the same cluster that was planned last; of a ring's own queues, that of the ring.
func goodCluster(good v1.NodeCaptureSpec, cluster v1.NodeCluster) (v1.NodeCluster, bool) {
	i := slices.IndexFunc(good.Clusters, func(c v1.NodeCluster) bool { return c.Name == cluster.Name && c.UID == cluster.UID })
	if i >= 0 {
		return good.Clusters[i], true
	}
	ring, ok := goodRing(good, v1.NodeRing{Name: cluster.Name, UID: cluster.UID})
	if !ok || ring.Spec.Queues == nil {
		return v1.NodeCluster{}, false
	}
	return ownQueues(ring, goodCount(ring, cluster)), true
}

// goodCount is the number of own queues that the ring had; one for each RX queue is as many as there are now.
func goodCount(ring v1.NodeRing, now v1.NodeCluster) int32 {
	if ring.Spec.Queues.Type == intstr.String {
		return now.Spec.Queues
	}
	return v1.QueueCount(ring.Spec.Queues)
}

// Good are the specs that a plan can go back to: those that are planned as they ask, and for those that were refused,
// what was good before.
func (r Result) Good(spec, before v1.NodeCaptureSpec) v1.NodeCaptureSpec {
	var good v1.NodeCaptureSpec
	for _, ring := range spec.Rings {
		own, hasQueues := r.Clusters[ring.Name]
		verdict := r.Rings[ring.Name]
		if (verdict.Ready() || verdict.Planned && verdict.Reason == v1.ReasonPodNotTapped) && (!hasQueues || own.Planned && !rejected[own.Reason]) {
			good.Rings = append(good.Rings, ring)
		} else if last, ok := goodRing(before, ring); ok {
			good.Rings = append(good.Rings, last)
		}
	}
	for _, cluster := range spec.Clusters {
		if verdict := r.Clusters[cluster.Name]; verdict.Planned && !rejected[verdict.Reason] {
			good.Clusters = append(good.Clusters, cluster)
		} else if last, ok := goodCluster(before, cluster); ok {
			good.Clusters = append(good.Clusters, last)
		}
	}
	return good
}
