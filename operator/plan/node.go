// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"sort"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// nodeSpec is what a node shall have; it notes the node in the verdicts.
func (d *draft) nodeSpec(node Node, rings []*v1alpha1.CaptureRing, clusters []*v1alpha1.Cluster) v1alpha1.NodeCaptureSpec {
	var spec v1alpha1.NodeCaptureSpec
	current := d.in.Current[node.Name]
	for _, ring := range rings {
		verdict := d.plan.Rings[ring.Name]
		if entry := ringEntry(ring, verdict, node, current); entry != nil {
			spec.Rings = append(spec.Rings, *entry)
			d.plan.Rings[ring.Name] = verdict.on(node)
		}
	}
	for _, cluster := range clusters {
		verdict := d.plan.Clusters[cluster.Name]
		if entry := clusterEntry(cluster, verdict, spec.Rings, current); entry != nil {
			spec.Clusters = append(spec.Clusters, *entry)
			d.plan.Clusters[cluster.Name] = verdict.on(node)
		}
	}
	// By name: age would reorder a list that did not change when an object is made anew.
	sort.Slice(spec.Rings, func(i, j int) bool { return spec.Rings[i].Name < spec.Rings[j].Name })
	sort.Slice(spec.Clusters, func(i, j int) bool { return spec.Clusters[i].Name < spec.Clusters[j].Name })
	return spec
}

// ringEntry is what the node shall have of the ring, nil for nothing. Thousands of nodes share one spec: it is not to be
// changed.
func ringEntry(ring *v1alpha1.CaptureRing, verdict Verdict, node Node, current v1alpha1.NodeCaptureSpec) *v1alpha1.NodeRing {
	if verdict.Accepted() {
		if !selects(ring.Spec.NodeSelector, node.Labels) {
			return nil
		}
		return &v1alpha1.NodeRing{Name: ring.Name, UID: string(ring.UID), Version: v1alpha1.NodeEntryVersion, Spec: ring.Spec}
	}
	if !verdict.Keeps() {
		return nil
	}
	i := slices.IndexFunc(current.Rings, func(r v1alpha1.NodeRing) bool { return r.Name == ring.Name && r.UID == string(ring.UID) })
	if i < 0 {
		return nil
	}
	return current.Rings[i].DeepCopy()
}

// selects says whether the node has all labels of the selector. It is asked for each ring of each node.
func selects(selector, labels map[string]string) bool {
	for key, value := range selector {
		if have, there := labels[key]; !there || have != value {
			return false
		}
	}
	return true
}

// clusterEntry is what the node shall have of the Cluster, nil for nothing; rings are those that the node shall have.
func clusterEntry(cluster *v1alpha1.Cluster, verdict Verdict, rings []v1alpha1.NodeRing, current v1alpha1.NodeCaptureSpec) *v1alpha1.NodeCluster {
	var entry *v1alpha1.NodeCluster
	switch {
	case verdict.Accepted():
		entry = &v1alpha1.NodeCluster{
			Name: cluster.Name, UID: string(cluster.UID), Version: v1alpha1.NodeEntryVersion, Spec: *cluster.Spec.DeepCopy(),
		}
	case verdict.Keeps():
		entry = currentCluster(current, cluster)
	}
	if entry == nil {
		return nil
	}
	entry.Spec.Rings = slices.DeleteFunc(entry.Spec.Rings, func(name string) bool {
		return !slices.ContainsFunc(rings, func(r v1alpha1.NodeRing) bool { return r.Name == name })
	})
	if len(entry.Spec.Rings) == 0 {
		return nil
	}
	return entry
}

// currentCluster is a copy of what the node was told of this very Cluster, nil for nothing.
func currentCluster(current v1alpha1.NodeCaptureSpec, cluster *v1alpha1.Cluster) *v1alpha1.NodeCluster {
	i := slices.IndexFunc(current.Clusters, func(c v1alpha1.NodeCluster) bool {
		return c.Name == cluster.Name && c.UID == string(cluster.UID)
	})
	if i < 0 {
		return nil
	}
	return current.Clusters[i].DeepCopy()
}

func (v Verdict) on(node Node) Verdict {
	v.Nodes = append(v.Nodes, node.Name)
	return v
}
