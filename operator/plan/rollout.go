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

// Nodes get a ring and its edits in waves: a spec that does not work on some node, or harms it, stops at the first wave. The
// state of a rollout is only in the NodeCaptures: what is in their specs and what their agents report. A node on which no
// version ever worked loses nothing when it refuses a version: the rollout never waits for a node that has lacked the interface,
// or the engine, from the start.

// Rollout is the progress of an object's present version on its nodes. A Cluster is given to all of them at once, and only
// has Outdated nodes.
type Rollout struct {
	// Outdated nodes do not have it in their spec yet. Of these, Waiting ones keep the previous version until it is their turn,
	// and the others get it now. Silent ones are the Waiting nodes that have no turn until their agents report again.
	// Unavailable nodes have it in their spec, and their agents reported then, or report now, but not yet that it works, nor
	// that it does not on a node where none ever worked. Each list is sorted.
	Outdated, Waiting, Silent, Unavailable []string
	// MaxUnavailable is the maximum number of Unavailable nodes.
	MaxUnavailable int
}

// ringDraft is a ring with its entries for nodes.
type ringDraft struct {
	ring *v1alpha1.CaptureRing
	// selector of nodes. If it is invalid it selects no node, and unreadable is the error.
	selector   labels.Selector
	unreadable error
	// entry is what nodes should have of it, without Awaited and Worked.
	entry v1alpha1.NodeRing
	// nodes that the selector selects, by name.
	nodes []ringNode
}

// ringNode is a node that a ring selects, with its present entry of the ring, nil for none.
type ringNode struct {
	*nodeDraft
	has *v1alpha1.NodeRing
	// updated: the entry is the present version. behind: the entry does not work there, or not yet.
	updated, behind bool
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
	draft.shareSpec()
	return draft
}

// shareSpec makes the entry share memory with an equal entry of a node, which other nodes share too: comparing the present specs
// of nodes with the planned ones is faster then.
func (r *ringDraft) shareSpec() {
	for _, node := range r.nodes {
		if node.has != nil && node.has.Revision == r.entry.Revision && equality.Semantic.DeepEqual(node.has.Spec, r.entry.Spec) {
			r.entry.Spec = node.has.Spec
			return
		}
	}
}

func (r *ringDraft) on(node *nodeDraft) ringNode {
	has := node.currentRing(r.ring)
	return ringNode{node, has, has != nil && r.isCurrent(has), has != nil && node.Behind[r.ring.Name]}
}

// encoded returns an entry as it is stored, except for commas. It was decoded from JSON: encoding it cannot fail.
func encoded(entry any) []byte {
	text, _ := json.Marshal(entry)
	return text
}

// rollout returns the progress, and which nodes wait. It never waits for a node whose agent does not report, except for one that
// became silent after it got the present version: this version may be the cause, so the node counts. A silent node on which the
// previous version works keeps it until its agent reports again: after an outage of the API server all nodes seem to be silent
// at once. A silent node without a working version, or one that never reported, gets the present version at once, because it may
// help.
func (r *ringDraft) rollout() Rollout {
	rollout := Rollout{MaxUnavailable: maxUnavailable(r.ring.Spec.Rollout, len(r.nodes))}
	var failing, next []string
	for _, node := range r.nodes {
		if !node.updated {
			rollout.Outdated = append(rollout.Outdated, node.Name)
		}
		switch {
		case node.updated:
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
	// Nodes on which the previous version does not work come first: so the number of nodes without a working version stays
	// within the limit, even if each version fails on other nodes.
	next = append(failing, next...)
	free := min(max(rollout.MaxUnavailable-len(rollout.Unavailable), 0), len(next))
	rollout.Waiting = append(next[free:], rollout.Silent...)
	slices.Sort(rollout.Waiting)
	return rollout
}

// entryFor returns the ring's present version for a node that is due, or that has it already.
func (r *ringDraft) entryFor(node ringNode) *v1alpha1.NodeRing {
	entry := r.entry
	if node.updated {
		entry.Awaited, entry.Worked = node.has.Awaited, node.has.Worked
	} else {
		entry.Awaited = node.Live
		entry.Worked = node.has != nil && (node.has.Worked || !node.behind)
	}
	return &entry
}

// isCurrent reports whether a node's entry is the present version. An entry of an earlier operator has no revision, possibly no
// version, and no fields that are new. If it asks for the same, the upgrade of the operator is not an edit.
func (r *ringDraft) isCurrent(has *v1alpha1.NodeRing) bool {
	if has.Revision == "" {
		return equality.Semantic.DeepEqual(defaulted(forNodes(has.Spec)), defaulted(r.entry.Spec))
	}
	return has.Revision == r.entry.Revision
}

// defaulted returns a copy with defaults.
func defaulted(spec v1alpha1.CaptureRingSpec) *v1alpha1.CaptureRingSpec {
	whole := spec.DeepCopy()
	whole.Default()
	return whole
}

// maxUnavailable returns the maximum number of unavailable nodes, at least 1. The API server accepts only numbers and
// percentages.
func maxUnavailable(r *v1alpha1.Rollout, nodes int) int {
	given := intstr.FromString(v1alpha1.DefaultMaxUnavailable)
	if r != nil && r.MaxUnavailable != nil {
		given = *r.MaxUnavailable
	}
	n, _ := intstr.GetScaledValueFromIntOrPercent(&given, nodes, true)
	return max(n, 1)
}
