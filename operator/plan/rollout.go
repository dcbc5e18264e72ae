// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Nodes get a ring and its edits in waves: a spec that some node cannot have, or that harms it, stops at the first of them.
// Nothing is kept of a rollout but what nodes have been told and say. A node where no version ever worked loses nothing by another that
// it refuses: nobody waits for a node that lacks the interface, or the engine, from the start.

// Rollout is how far a ring's nodes have got with its present version.
type Rollout struct {
	// Untold nodes have not been told of it yet. Of these, Waiting ones keep what they had until it is their turn; it is that of
	// the others. Silent ones of those that wait have no turn until their agents report again. Unavailable ones have been told while
	// their agents reported, or report now, but not yet that it works, or that it does not where none ever worked. Sorted, each.
	Untold, Waiting, Silent, Unavailable []string
	// Most is how many nodes may be unavailable.
	Most int
}

// ringDraft is a ring that is planned with.
type ringDraft struct {
	ring *v1alpha1.CaptureRing
	// selector of nodes; of one that cannot be read, of none, and unreadable says why.
	selector   labels.Selector
	unreadable error
	// entry is what nodes are to have of it, but for Awaited and Worked.
	entry v1alpha1.NodeRing
	// nodes that it selects, by name.
	nodes []ringNode
}

// ringNode is a node that a ring selects, with what it has of the ring, nil for nothing.
type ringNode struct {
	*nodeDraft
	has *v1alpha1.NodeRing
	// told: what it has is the present version. behind: that, or the one before, does not work there.
	told, behind bool
}

func (d *draft) draftRing(ring *v1alpha1.CaptureRing) *ringDraft {
	draft := &ringDraft{ring: ring}
	if draft.selector, draft.unreadable = ring.Spec.NodeSelector.AsSelector(); draft.unreadable != nil {
		draft.selector = labels.Nothing()
	}
	draft.entry = v1alpha1.NodeRing{Name: ring.Name, UID: string(ring.UID), Version: v1alpha1.NodeEntryVersion, Spec: forNodes(ring.Spec)}
	draft.entry.Spec.Rollout = nil // it is the operator's, and changes nothing on a node
	sum := sha256.Sum256(encoded(draft.entry))
	draft.entry.Revision = hex.EncodeToString(sum[:8])
	for _, node := range d.candidates(draft.selector) {
		if draft.selector.Matches(labels.Set(node.Labels)) {
			draft.nodes = append(draft.nodes, draft.on(node))
		}
	}
	draft.share()
	return draft
}

// share makes the entry hold the same memory as that of a node that was told of it, which other nodes hold too: who compares what nodes
// have with what they are to have is done sooner.
func (r *ringDraft) share() {
	for _, node := range r.nodes {
		if node.has != nil && node.has.Revision == r.entry.Revision && equality.Semantic.DeepEqual(node.has.Spec, r.entry.Spec) {
			r.entry.Spec = node.has.Spec
			return
		}
	}
}

func (r *ringDraft) on(node *nodeDraft) ringNode {
	has := node.told(r.ring)
	return ringNode{node, has, has != nil && r.isTold(has), has != nil && node.Behind[r.ring.Name]}
}

// encoded is an entry as it is stored, but for commas. What came as JSON goes as such.
func encoded(entry any) []byte {
	text, _ := json.Marshal(entry)
	return text
}

// turns says how the rollout stands. Nobody waits for a node whose agent does not report. One that became silent when it had been told
// may have become so for that: it counts. One that is silent keeps what works there until its agent reports again: after an outage of
// the API server all nodes seem to be silent at once. One without anything that works, or of which no agent ever said anything, gets at
// once what may help it.
func (r *ringDraft) turns() Rollout {
	rollout := Rollout{Most: maxUnavailable(r.ring.Spec.Rollout, len(r.nodes))}
	var failing, next []string
	for _, node := range r.nodes {
		if !node.told {
			rollout.Untold = append(rollout.Untold, node.Name)
		}
		switch {
		case node.told:
			lossless := node.Refused[r.ring.Name] && !node.has.Worked
			if node.behind && !lossless && (node.Live || node.has.Awaited) {
				rollout.Unavailable = append(rollout.Unavailable, node.Name)
			}
		case node.Silent && !node.behind:
			rollout.Silent = append(rollout.Silent, node.Name)
		case !node.Live:
		case node.behind:
			failing = append(failing, node.Name)
		default:
			next = append(next, node.Name)
		}
	}
	// First those where the version before does not work: so no more nodes are without a working one than may be, even if
	// each version fails on nodes of its own.
	next = append(failing, next...)
	turns := min(max(rollout.Most-len(rollout.Unavailable), 0), len(next))
	rollout.Waiting = append(next[turns:], rollout.Silent...)
	slices.Sort(rollout.Waiting)
	return rollout
}

// entryFor is the ring's present version for a node whose turn it is, or that has it.
func (r *ringDraft) entryFor(node ringNode) *v1alpha1.NodeRing {
	entry := r.entry
	if node.told {
		entry.Awaited, entry.Worked = node.has.Awaited, node.has.Worked
	} else {
		entry.Awaited = node.Live
		entry.Worked = node.has != nil && (node.has.Worked || !node.behind)
	}
	return &entry
}

// isTold says whether a node that has this has the present version. What an operator before this one wrote has no revision, maybe no
// version, and the spec as the ring had it, without fields that are new: when it asks for the same, an upgrade is no edit.
func (r *ringDraft) isTold(has *v1alpha1.NodeRing) bool {
	if has.Revision == "" {
		return equality.Semantic.DeepEqual(defaulted(forNodes(has.Spec)), defaulted(r.entry.Spec))
	}
	return has.Revision == r.entry.Revision
}

// defaulted is a copy.
func defaulted(spec v1alpha1.CaptureRingSpec) *v1alpha1.CaptureRingSpec {
	whole := spec.DeepCopy()
	whole.Default()
	return whole
}

// maxUnavailable is a number of these nodes, 1 at least. The API takes nothing that is neither a number nor a percentage.
func maxUnavailable(r *v1alpha1.Rollout, nodes int) int {
	most := intstr.FromString(v1alpha1.DefaultMaxUnavailable)
	if r != nil && r.MaxUnavailable != nil {
		most = *r.MaxUnavailable
	}
	n, _ := intstr.GetScaledValueFromIntOrPercent(&most, nodes, true)
	return max(n, 1)
}
