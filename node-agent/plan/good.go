// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// goodRing returns the last accepted spec of the same ring. A ring that was deleted and made again is another ring.
func goodRing(good v1.NodeCaptureSpec, ring v1.NodeRing) (v1.NodeRing, bool) {
	i := slices.IndexFunc(good.Rings, func(r v1.NodeRing) bool { return r.Name == ring.Name && r.UID == ring.UID })
	if i < 0 {
		return v1.NodeRing{}, false
	}
	return good.Rings[i], true
}

// goodCluster returns the last accepted spec of the same Cluster.
func goodCluster(good v1.NodeCaptureSpec, cluster v1.NodeCluster) (v1.NodeCluster, bool) {
	i := slices.IndexFunc(good.Clusters, func(c v1.NodeCluster) bool { return c.Name == cluster.Name && c.UID == cluster.UID })
	if i < 0 {
		return v1.NodeCluster{}, false
	}
	return good.Clusters[i], true
}

// Good returns the specs that a later plan can go back to. For an object that is planned as its spec asks, this is
// that spec. For any other object, it is the previous good spec. A deleted object has none.
func (r Result) Good(spec, before v1.NodeCaptureSpec) v1.NodeCaptureSpec {
	var good v1.NodeCaptureSpec
	for _, ring := range spec.Rings {
		if r.Rings[ring.Name].accepted() && (ring.Spec.Queues == nil || r.Clusters[ring.Name].accepted()) {
			good.Rings = append(good.Rings, ring)
		} else if last, ok := goodRing(before, ring); ok {
			good.Rings = append(good.Rings, last)
		}
	}
	for _, cluster := range spec.Clusters {
		if r.Clusters[cluster.Name].accepted() {
			good.Clusters = append(good.Clusters, cluster)
		} else if last, ok := goodCluster(before, cluster); ok {
			good.Clusters = append(good.Clusters, last)
		}
	}
	return good
}

// Unchanged returns the good specs, but for each changed object its previous good spec. A later plan can go back to
// these while it is not known whether an engine supports the changes.
func Unchanged(good, before v1.NodeCaptureSpec) v1.NodeCaptureSpec {
	var unchanged v1.NodeCaptureSpec
	for _, ring := range good.Rings {
		if last, ok := goodRing(before, ring); ok {
			ring = last
		}
		unchanged.Rings = append(unchanged.Rings, ring)
	}
	for _, cluster := range good.Clusters {
		if last, ok := goodCluster(before, cluster); ok {
			cluster = last
		}
		unchanged.Clusters = append(unchanged.Clusters, cluster)
	}
	return unchanged
}

// accepted reports whether the object is planned by its current spec.
func (v Verdict) accepted() bool { return v.Planned && !v.AsBefore }
