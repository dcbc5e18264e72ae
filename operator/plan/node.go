// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// nodeDraft is a node, with its current spec and its planned one.
type nodeDraft struct {
	Node
	current v1alpha1.NodeCaptureSpec
	spec    v1alpha1.NodeCaptureSpec
}

// draftNodes returns the nodes by name.
func draftNodes(in Input) []*nodeDraft {
	nodes := make([]*nodeDraft, 0, len(in.Nodes))
	for _, node := range in.Nodes {
		nodes = append(nodes, &nodeDraft{Node: node, current: in.Current[node.Name]})
	}
	slices.SortFunc(nodes, func(a, b *nodeDraft) int { return strings.Compare(a.Name, b.Name) })
	return nodes
}

// currentRing returns the node's entry of this ring, nil for none. Thousands of nodes share one spec: the caller must not change
// it.
func (n *nodeDraft) currentRing(ring *v1alpha1.CaptureRing) *v1alpha1.NodeRing {
	for i := range n.current.Rings {
		if r := &n.current.Rings[i]; r.Name == ring.Name && r.UID == string(ring.UID) {
			return r
		}
	}
	return nil
}

// assign adds the ring to the planned specs of its nodes, and the nodes to its verdict.
func (d *draft) assign(ring *v1alpha1.CaptureRing) {
	verdict := d.plan.Rings[ring.Name]
	draft := d.drafts[ring.Name]
	give := func(node *nodeDraft, entry *v1alpha1.NodeRing) {
		if entry != nil {
			node.spec.Rings = append(node.spec.Rings, *entry)
		}
	}
	switch {
	case verdict.Accepted():
		verdict.Rollout = draft.rollout()
		for _, node := range draft.nodes {
			verdict.Nodes = append(verdict.Nodes, node.Name)
			if _, waits := slices.BinarySearch(verdict.Waiting, node.Name); waits {
				give(node.nodeDraft, node.has)
			} else {
				give(node.nodeDraft, draft.entryFor(node))
			}
		}
	case verdict.Keeps():
		for _, node := range d.nodes {
			if entry := node.currentRing(ring); entry != nil {
				verdict.Nodes = append(verdict.Nodes, node.Name)
				give(node, entry)
			}
		}
	}
	d.plan.Rings[ring.Name] = verdict
}

// nodeSpec returns the node's planned spec, with the Clusters over the rings that assign has added; it adds the node to the
// verdicts of these Clusters.
func (d *draft) nodeSpec(node *nodeDraft, clusters []*v1alpha1.Cluster) v1alpha1.NodeCaptureSpec {
	spec := node.spec
	for _, cluster := range clusters {
		verdict := d.plan.Clusters[cluster.Name]
		if entry := clusterEntry(cluster, verdict, spec.Rings, node.current); entry != nil {
			spec.Clusters = append(spec.Clusters, *entry)
			verdict.Nodes = append(verdict.Nodes, node.Name)
			if verdict.Accepted() && !hasCluster(node.current, entry) {
				verdict.Outdated = append(verdict.Outdated, node.Name)
			}
			d.plan.Clusters[cluster.Name] = verdict
		}
	}
	// By name: sorted by age, a list would change its order when an object is created again.
	sort.Slice(spec.Rings, func(i, j int) bool { return spec.Rings[i].Name < spec.Rings[j].Name })
	sort.Slice(spec.Clusters, func(i, j int) bool { return spec.Clusters[i].Name < spec.Clusters[j].Name })
	return spec
}

// clusterEntry returns the node's planned entry of the Cluster, nil for none; rings are the node's planned rings.
func clusterEntry(cluster *v1alpha1.Cluster, verdict Verdict, rings []v1alpha1.NodeRing, current v1alpha1.NodeCaptureSpec) *v1alpha1.NodeCluster {
	var entry *v1alpha1.NodeCluster
	switch {
	case verdict.Accepted():
		entry = newClusterEntry(cluster)
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

// newClusterEntry returns the entry for nodes that have all of the Cluster's rings.
func newClusterEntry(cluster *v1alpha1.Cluster) *v1alpha1.NodeCluster {
	return &v1alpha1.NodeCluster{
		Name: cluster.Name, UID: string(cluster.UID), Version: v1alpha1.NodeEntryVersion, Spec: *cluster.Spec.DeepCopy(),
	}
}

// currentCluster returns a copy of the node's entry of this Cluster, nil for none.
func currentCluster(current v1alpha1.NodeCaptureSpec, cluster *v1alpha1.Cluster) *v1alpha1.NodeCluster {
	i := slices.IndexFunc(current.Clusters, func(c v1alpha1.NodeCluster) bool {
		return c.Name == cluster.Name && c.UID == string(cluster.UID)
	})
	if i < 0 {
		return nil
	}
	return current.Clusters[i].DeepCopy()
}

// hasCluster reports whether the node's present spec has this entry.
func hasCluster(current v1alpha1.NodeCaptureSpec, entry *v1alpha1.NodeCluster) bool {
	i := slices.IndexFunc(current.Clusters, func(c v1alpha1.NodeCluster) bool { return c.Name == entry.Name })
	return i >= 0 && equality.Semantic.DeepEqual(&current.Clusters[i], entry)
}
