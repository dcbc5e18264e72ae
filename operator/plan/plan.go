// SPDX-License-Identifier: Apache-2.0

// Package plan decides which CaptureRings and Clusters are accepted and which of them each node should have. It is pure: a plan
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

// Node is a node as a plan sees it.
type Node struct {
	Name   string
	Labels map[string]string
	// Live: its agent reports. Silent: its agent does not report, and did before.
	Live, Silent bool
	// Behind holds the rings of the node's spec that do not work there in this version, or not yet, by its last report.
	Behind map[string]bool
	// Refused holds those of them that the agent has refused.
	Refused map[string]bool
}

// Input is all that a plan depends on.
type Input struct {
	Rings    []v1alpha1.CaptureRing
	Clusters []v1alpha1.Cluster
	Nodes    []Node
	// Current is the present spec of each node, by its name. An object that is no longer accepted keeps its last accepted
	// version there.
	Current map[string]v1alpha1.NodeCaptureSpec
	// CheckFilter returns why an expression in the language of pcap-filter(7) does not compile; nil accepts all.
	CheckFilter func(expression string) error
	// Suspended means that no node should have anything, although the objects are kept.
	Suspended bool
	// FleetBytes is the maximum encoded size of the specs of all NodeCaptures together; 0 for no limit.
	FleetBytes int64
}

// Plan is the desired state of all nodes.
type Plan struct {
	// Nodes has an entry for every node.
	Nodes map[string]v1alpha1.NodeCaptureSpec
	// Rings and Clusters have an entry for every object, by its name.
	Rings, Clusters map[string]Verdict
	// Networks are the networks that rings ask for.
	Networks []Network
	// Pools are the pools that rings ask the operator to own, one for each name.
	Pools []Pool
}

// Unchecked reports whether an object waits until its filter can be checked: the next plan may accept it.
func (p *Plan) Unchecked() bool {
	return anyPending(p.Rings) || anyPending(p.Clusters)
}

// Waiting reports whether any node waits for its turn to get a ring.
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

// Verdict is the decision about an object.
type Verdict struct {
	// Reason is ReasonAccepted, or why it is not accepted; Message explains it.
	Reason, Message string
	// Nodes are the names of the nodes that should have it, sorted. For an object that is not accepted, they are the nodes that
	// keep the version that was accepted last.
	Nodes []string
	Rollout
}

// Accepted reports whether nodes get the object in its present version.
func (v Verdict) Accepted() bool { return v.Reason == v1alpha1.ReasonAccepted }

// Keeps reports whether nodes keep what they have of an object that is not accepted. An object that exceeds a limit or has
// another's name is removed; any other stays as it was until it is corrected or deleted.
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
		in: in, rings: map[string]*v1alpha1.CaptureRing{}, names: claimNames(rings, clusters), outputs: map[string]int{}, tapped: map[interfaceKey][]*v1alpha1.CaptureRing{},
		plan: Plan{Nodes: map[string]v1alpha1.NodeCaptureSpec{}, Rings: map[string]Verdict{}, Clusters: map[string]Verdict{}},
	}
	d.nodes, d.byLabel, d.drafts = draftNodes(in), map[string]map[string][]*nodeDraft{}, map[string]*ringDraft{}
	d.ledger = d.openLedger(rings, clusters)
	for _, ring := range rings {
		d.rings[ring.Name] = ring
		d.plan.Rings[ring.Name] = d.judgeRing(ring)
	}
	for _, cluster := range clusters {
		d.plan.Clusters[cluster.Name] = d.judgeCluster(cluster)
	}
	for _, ring := range rings {
		d.assign(ring)
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
	// byLabel indexes them by the values of the labels that selectors ask for.
	byLabel map[string]map[string][]*nodeDraft
	// drafts are of rings, by name.
	drafts map[string]*ringDraft
	ledger ledger
	// outputs is the number of sets of queues that each ring feeds.
	outputs  map[string]int
	accepted struct {
		rings    []sized
		clusters int
	}
	// tapped holds the accepted rings of each interface.
	tapped map[interfaceKey][]*v1alpha1.CaptureRing
	plan   Plan
}

// meta is the sort key of objects.
type meta struct {
	created time.Time
	name    string
}

func ringMeta(r *v1alpha1.CaptureRing) meta { return meta{r.CreationTimestamp.Time, r.Name} }
func clusterMeta(c *v1alpha1.Cluster) meta  { return meta{c.CreationTimestamp.Time, c.Name} }

// byAge returns the objects sorted by age: where a limit is exceeded, the oldest objects are accepted.
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
