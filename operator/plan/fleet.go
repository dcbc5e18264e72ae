// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Each node's NodeCapture repeats the specs of its rings and Clusters, and the API server's store is not large: all of them together
// have a bound. What nodes have is paid for; of what is new or changed the oldest is paid for first, and what does not fit is
// refused and stays as it was. So nobody loses anything for another's edit. Rings of PodCaptures have half of it: who may write those
// in a namespace must not use up what those who write CaptureRings need.

// DefaultFleetBytes is the bound that operators have by default. It leaves an etcd with its default quota, 2 GiB, room for each
// NodeCapture's status, and for what edits of all nodes leave behind until it is compacted.
const DefaultFleetBytes = 256 << 20

// ledger is what the entries of each ring and Cluster take on all nodes, bytes. It is empty where there is no bound.
type ledger struct {
	limit, total int64
	of           map[object]int64
	// namespaces has the rings of PodCaptures, and ofNamespaces is what these take of total.
	namespaces   map[object]bool
	ofNamespaces int64
	rings        map[ringKey]int64
	clusters     map[string]sizedCluster
}

// object is who pays.
type object struct{ kind, uid string }

func ringObject(r *v1alpha1.CaptureRing) object { return object{kindRing, string(r.UID)} }
func clusterObject(c *v1alpha1.Cluster) object  { return object{kindCluster, string(c.UID)} }

// ringKey is what entries of one size have in common.
type ringKey struct {
	uid, revision   string
	awaited, worked bool
}

// sizedCluster is an entry with the bytes that it takes.
type sizedCluster struct {
	entry *v1alpha1.NodeCluster
	bytes int64
}

// open makes the ledger of what the nodes have of these objects.
func (d *draft) open(rings []*v1alpha1.CaptureRing, clusters []*v1alpha1.Cluster) ledger {
	l := ledger{limit: d.in.FleetBytes, of: map[object]int64{}, namespaces: map[object]bool{}, rings: map[ringKey]int64{}, clusters: map[string]sizedCluster{}}
	if l.limit == 0 {
		return l
	}
	for _, r := range rings {
		l.of[ringObject(r)] = 0
		l.namespaces[ringObject(r)] = NamespaceOf(r) != ""
	}
	for _, c := range clusters {
		l.of[clusterObject(c)] = 0
	}
	for _, node := range d.nodes {
		for i := range node.current.Rings {
			l.addKnown(object{kindRing, node.current.Rings[i].UID}, l.ringBytes(&node.current.Rings[i]))
		}
		for i := range node.current.Clusters {
			l.addKnown(object{kindCluster, node.current.Clusters[i].UID}, l.clusterBytes(&node.current.Clusters[i]))
		}
	}
	return l
}

// addKnown leaves out what is gone: no node keeps it.
func (l *ledger) addKnown(o object, bytes int64) {
	if _, known := l.of[o]; known {
		l.add(o, bytes)
	}
}

func (l *ledger) add(o object, bytes int64) {
	l.total += bytes
	l.of[o] += bytes
	if l.namespaces[o] {
		l.ofNamespaces += bytes
	}
}

// drop takes out what nodes do not keep.
func (l *ledger) drop(o object) { l.add(o, -l.of[o]) }

// ringBytes is the size of an entry. Thousands of nodes have the same: it is encoded once.
func (l *ledger) ringBytes(entry *v1alpha1.NodeRing) int64 {
	key := ringKey{entry.UID, entry.Revision, entry.Awaited, entry.Worked}
	bytes, known := l.rings[key]
	if !known || entry.Revision == "" {
		bytes = int64(len(encoded(entry)))
		l.rings[key] = bytes
	}
	return bytes
}

func (l *ledger) clusterBytes(entry *v1alpha1.NodeCluster) int64 {
	last, known := l.clusters[entry.UID]
	if !known || !equality.Semantic.DeepEqual(last.entry, entry) {
		last = sizedCluster{entry, int64(len(encoded(entry)))}
		l.clusters[entry.UID] = last
	}
	return last.bytes
}

// pay refuses an object that is to take so many bytes in all and for which there is no room. What becomes smaller is given back when the
// nodes have it so.
func (l *ledger) pay(o object, bytes int64, cure string) *Verdict {
	more := bytes - l.of[o]
	if more <= 0 {
		return nil
	}
	if l.namespaces[o] && l.ofNamespaces+more > l.limit/2 {
		return refuse(v1alpha1.ReasonFleetLimitExceeded, "its entries in the NodeCaptures of its nodes are to take %d KiB (now %d KiB), and those of all PodCaptures "+
			"may take %d KiB, half of the operator's --fleet-limit, of which %d KiB are taken: %s, or wait until another PodCapture is deleted",
			kib(bytes), kib(l.of[o]), kib(l.limit/2), kib(l.ofNamespaces), cure)
	}
	if l.total+more > l.limit {
		return refuse(v1alpha1.ReasonFleetLimitExceeded, "its entries in the NodeCaptures of its nodes are to take %d KiB (now %d KiB), and those of all CaptureRings "+
			"and Clusters may take %d KiB, of which %d KiB are taken: %s, delete another, or raise the operator's --fleet-limit if etcd has the room",
			kib(bytes), kib(l.of[o]), kib(l.limit), kib(l.total), cure)
	}
	l.add(o, more)
	return nil
}

// kib is rounded up.
func kib(bytes int64) int64 { return (bytes + 1023) >> 10 }

// ringFitsTheFleet refuses what the API server's store has no room for on all nodes that the ring selects, also while some still have
// the version before.
func (d *draft) ringFitsTheFleet(ring *v1alpha1.CaptureRing) *Verdict {
	if d.ledger.limit == 0 {
		return nil
	}
	draft, bytes := d.drafts[ring.Name], int64(0)
	for _, node := range draft.nodes {
		takes := d.ledger.ringBytes(draft.entryFor(node))
		if node.has != nil {
			takes = max(takes, d.ledger.ringBytes(node.has))
		}
		bytes += takes
	}
	return d.ledger.pay(ringObject(ring), bytes, "write fewer rules and patterns, or select fewer nodes by spec.nodeSelector")
}

// clusterFitsTheFleet is asked of a Cluster whose rings are accepted: they come to the nodes that they select.
func (d *draft) clusterFitsTheFleet(cluster *v1alpha1.Cluster) *Verdict {
	if d.ledger.limit == 0 {
		return nil
	}
	nodes := map[string]bool{}
	for _, ring := range cluster.Spec.Rings {
		for _, node := range d.drafts[ring].nodes {
			nodes[node.Name] = true
		}
	}
	bytes := len(encoded(newClusterEntry(cluster))) * len(nodes)
	return d.ledger.pay(clusterObject(cluster), int64(bytes), "write a shorter filter, or name rings of fewer nodes")
}
