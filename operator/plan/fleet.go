// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Each node's NodeCapture repeats the specs of its rings and Clusters, and the API server's store is small: all NodeCaptures
// together have a limit. What nodes have is already counted. New and changed objects reserve their bytes, the oldest first; an
// object that does not fit is refused, and its nodes keep the previous version. So an edit never takes anything away from other
// objects. Rings of PodCaptures may take half of the limit: users of namespaces must not use up what CaptureRings need.

// DefaultFleetBytes is the operator's default limit. It leaves room in an etcd with its default quota, 2 GiB, for the status of
// each NodeCapture and for the old revisions that an edit of all nodes leaves until compaction.
const DefaultFleetBytes = 256 << 20

// ledger counts the bytes that the entries of each ring and Cluster take on all nodes. It is empty without a limit.
type ledger struct {
	limit, total int64
	of           map[object]int64
	// namespaces holds the rings of PodCaptures; ofNamespaces is their part of total.
	namespaces   map[object]bool
	ofNamespaces int64
	rings        map[ringKey]int64
	clusters     map[string]sizedCluster
}

// object identifies a ring or Cluster in the ledger.
type object struct{ kind, uid string }

func ringObject(r *v1alpha1.CaptureRing) object { return object{kindRing, string(r.UID)} }
func clusterObject(c *v1alpha1.Cluster) object  { return object{kindCluster, string(c.UID)} }

// ringKey is equal for entries of equal size.
type ringKey struct {
	uid, revision   string
	awaited, worked bool
}

// sizedCluster is an entry with its size in bytes.
type sizedCluster struct {
	entry *v1alpha1.NodeCluster
	bytes int64
}

// openLedger returns the ledger of the entries that the nodes have of these objects.
func (d *draft) openLedger(rings []*v1alpha1.CaptureRing, clusters []*v1alpha1.Cluster) ledger {
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

// addKnown ignores objects that are gone: their entries are removed from all nodes.
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

// release removes an object; the nodes do not keep its entries.
func (l *ledger) release(o object) { l.add(o, -l.of[o]) }

// ringBytes returns the size of an entry. Thousands of nodes have equal entries, which are encoded once.
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

// reserve refuses an object if its entries need more bytes than are free. Bytes that an edit saves are free when the nodes have
// the edit.
func (l *ledger) reserve(o object, bytes int64, fix string) *Verdict {
	more := bytes - l.of[o]
	if more <= 0 {
		return nil
	}
	if l.namespaces[o] && l.ofNamespaces+more > l.limit/2 {
		return refuse(v1alpha1.ReasonFleetLimitExceeded, "its entries in the NodeCaptures of its nodes would take %d KiB (now %d KiB), and those of all PodCaptures "+
			"may take %d KiB, half of the operator's --fleet-limit, of which %d KiB are taken: %s, or wait until another PodCapture is deleted",
			kib(bytes), kib(l.of[o]), kib(l.limit/2), kib(l.ofNamespaces), fix)
	}
	if l.total+more > l.limit {
		return refuse(v1alpha1.ReasonFleetLimitExceeded, "its entries in the NodeCaptures of its nodes would take %d KiB (now %d KiB), and those of all CaptureRings "+
			"and Clusters may take %d KiB, of which %d KiB are taken: %s, delete another, or raise the operator's --fleet-limit if etcd has the room",
			kib(bytes), kib(l.of[o]), kib(l.limit), kib(l.total), fix)
	}
	l.add(o, more)
	return nil
}

// kib converts bytes to KiB, rounded up.
func kib(bytes int64) int64 { return (bytes + 1023) >> 10 }

// ringFitsTheFleet refuses a ring if there is no room for it on all nodes that it selects, also while some of them still have
// the previous version.
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
	return d.ledger.reserve(ringObject(ring), bytes, "write fewer rules and patterns, or select fewer nodes by spec.nodeSelector")
}

// clusterFitsTheFleet does the same for a Cluster, on the nodes that its rings select. Its rings must be accepted.
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
	return d.ledger.reserve(clusterObject(cluster), int64(bytes), "write a shorter filter, or name rings of fewer nodes")
}
