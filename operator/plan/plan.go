// SPDX-License-Identifier: Apache-2.0

// Package plan decides which CaptureRings and Clusters are accepted and what each node shall have. It is pure: a plan
// depends on its input only.
package plan

import (
	"errors"
	"sort"
	"time"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// ErrFilterUnknown is what CheckFilter returns (wrapped) when it could not find out whether a filter compiles.
var ErrFilterUnknown = errors.New("the filter could not be checked")

// Node is what a plan needs to know of a node.
type Node struct {
	Name   string
	Labels map[string]string
	// Live: its agent reports. Silent: it does not, and did before.
	Live, Silent bool
	// Behind has the rings that the node was told of and that do not work there as told, or not yet, by its last report.
	Behind map[string]bool
	// Refused has those of them about which the agent has said so.
	Refused map[string]bool
}

// Input is what a plan is made of.
type Input struct {
	Rings    []v1alpha1.CaptureRing
	Clusters []v1alpha1.Cluster
	Nodes    []Node
	// Current is what nodes have been told before, by node name: what is not accepted any more keeps its last accepted
	// state there.
	Current map[string]v1alpha1.NodeCaptureSpec
	// CheckFilter says why an expression in the language of pcap-filter(7) does not compile; nil accepts all.
	CheckFilter func(expression string) error
	// Suspended: no node is to have anything, although the objects stay.
	Suspended bool
	// FleetBytes is the most that the specs of all NodeCaptures may take, encoded; 0 for no bound.
	FleetBytes int64
}

// Plan is what shall be.
type Plan struct {
	// Nodes has an entry for every node.
	Nodes map[string]v1alpha1.NodeCaptureSpec
	// Rings and Clusters have an entry for every object, by its name.
	Rings, Clusters map[string]Verdict
	// Networks are all that rings ask for.
	Networks []Network
	// Pools are all that rings ask the operator to own, one of each name.
	Pools []Pool
}

// Unchecked says whether an object waits for its filter to be checked: planning again may accept it.
func (p *Plan) Unchecked() bool {
	return anyPending(p.Rings) || anyPending(p.Clusters)
}

// Waiting says whether a node waits for its turn to get a ring.
func (p *Plan) Waiting() bool {
	for _, v := range p.Rings {
		if len(v.Waiting) > 0 {
			return true
		}
	}
	return false
}

func anyPending(verdicts map[string]Verdict) bool {
	for _, v := range verdicts {
		if v.Reason == v1alpha1.ReasonPending {
			return true
		}
	}
	return false
}

// Verdict is what was decided about an object.
type Verdict struct {
	// Reason is ReasonAccepted or says why it is not; Message says it to people.
	Reason, Message string
	// Nodes are the names of the nodes that shall have it, sorted. Of an object that is not accepted, those that keep
	// what they were given when it was.
	Nodes []string
	Rollout
}

// Accepted says whether the object is rolled out as it is.
func (v Verdict) Accepted() bool { return v.Reason == v1alpha1.ReasonAccepted }

// Keeps says whether nodes keep what they have of an object that is not accepted. What breaks a limit or another's
// name cannot stay; anything else is left in peace until it is mended or deleted.
func (v Verdict) Keeps() bool {
	switch v.Reason {
	case v1alpha1.ReasonNameConflict, v1alpha1.ReasonLimitExceeded, v1alpha1.ReasonDeleting, v1alpha1.ReasonSuspended:
		return false
	}
	return !v.Accepted()
}

// Make makes the plan.
func Make(in Input) Plan {
	rings, clusters := byAge(in.Rings, ringMeta), byAge(in.Clusters, clusterMeta)
	d := &draft{
		in: in, rings: map[string]*v1alpha1.CaptureRing{}, names: claimNames(rings, clusters), outputs: map[string]int{}, tapped: map[place][]*v1alpha1.CaptureRing{},
		plan: Plan{Nodes: map[string]v1alpha1.NodeCaptureSpec{}, Rings: map[string]Verdict{}, Clusters: map[string]Verdict{}},
	}
	d.nodes, d.byLabel, d.drafts = draftNodes(in), map[string]map[string][]*nodeDraft{}, map[string]*ringDraft{}
	d.ledger = d.open(rings, clusters)
	for _, ring := range rings {
		d.rings[ring.Name] = ring
		d.plan.Rings[ring.Name] = d.judgeRing(ring)
	}
	for _, cluster := range clusters {
		d.plan.Clusters[cluster.Name] = d.judgeCluster(cluster)
	}
	for _, ring := range rings {
		d.place(ring)
	}
	for _, node := range d.nodes {
		d.plan.Nodes[node.Name] = d.nodeSpec(node, clusters)
	}
	d.plan.Networks, d.plan.Pools = d.networks(rings), d.pools(rings)
	return d.plan
}

// draft is a plan that is being made.
type draft struct {
	in    Input
	rings map[string]*v1alpha1.CaptureRing
	names map[string]claim
	// nodes are by name.
	nodes []*nodeDraft
	// byLabel has them by the values of a label, for labels that selectors ask for.
	byLabel map[string]map[string][]*nodeDraft
	// drafts are of rings, by name.
	drafts map[string]*ringDraft
	ledger ledger
	// outputs counts the sets of queues that a ring feeds.
	outputs  map[string]int
	accepted struct {
		rings    []sized
		clusters int
	}
	// tapped has the accepted rings of each interface.
	tapped map[place][]*v1alpha1.CaptureRing
	plan   Plan
}

// meta is what orders objects.
type meta struct {
	created time.Time
	name    string
}

func ringMeta(r *v1alpha1.CaptureRing) meta { return meta{r.CreationTimestamp.Time, r.Name} }
func clusterMeta(c *v1alpha1.Cluster) meta  { return meta{c.CreationTimestamp.Time, c.Name} }

// byAge returns the objects oldest first: where not all can be had, who came first stays.
func byAge[T any](objects []T, of func(*T) meta) []*T {
	sorted := make([]*T, len(objects))
	for i := range objects {
		sorted[i] = &objects[i]
	}
	sort.Slice(sorted, func(i, j int) bool {
		a, b := of(sorted[i]), of(sorted[j])
		if !a.created.Equal(b.created) {
			return a.created.Before(b.created)
		}
		return a.name < b.name
	})
	return sorted
}
