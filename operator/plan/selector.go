// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// ringSelectsNodes refuses a selector that is invalid or empty. An empty one meant all nodes in earlier releases, and may be the
// rest of one that selected few: nodes keep what they have of the ring, and no other node gets it.
func (d *draft) ringSelectsNodes(ring *v1alpha1.CaptureRing) *Verdict {
	if err := d.drafts[ring.Name].unreadable; err != nil {
		return refuse(v1alpha1.ReasonInvalidNodeSelector, "spec.nodeSelector%v", err)
	}
	return nil
}

// candidates returns the nodes that have a label with the one value that the selector requires; all nodes if it requires no such
// label. Checking each node for each of hundreds of rings took half of the time of a plan.
func (d *draft) candidates(selector labels.Selector) []*nodeDraft {
	requirements, _ := selector.Requirements()
	for _, r := range requirements {
		if value, exact := selector.RequiresExactMatch(r.Key()); exact {
			return d.labelled(r.Key())[value]
		}
	}
	return d.nodes
}

// labelled returns the nodes by the values of a label.
func (d *draft) labelled(key string) map[string][]*nodeDraft {
	if nodes, known := d.byLabel[key]; known {
		return nodes
	}
	nodes := map[string][]*nodeDraft{}
	for _, node := range d.nodes {
		if value, has := node.Labels[key]; has {
			nodes[value] = append(nodes[value], node)
		}
	}
	d.byLabel[key] = nodes
	return nodes
}

// mayShareNode reports whether one node can have both rings: the requirements of both selectors on each label can be met
// together.
func (d *draft) mayShareNode(a, b *v1alpha1.CaptureRing) bool {
	mine, its := d.drafts[a.Name].selector, d.drafts[b.Name].selector
	one, _ := mine.Requirements()
	other, _ := its.Requirements()
	for _, r := range one {
		// Most rings that exclude each other select other pools: check that first.
		x, exact := mine.RequiresExactMatch(r.Key())
		if y, both := its.RequiresExactMatch(r.Key()); exact && both && x != y {
			return false
		}
	}
	for _, r := range one {
		if same := slices.DeleteFunc(slices.Clone(other), func(o labels.Requirement) bool { return o.Key() != r.Key() }); len(same) > 0 && !fit(append(same, r)) {
			return false
		}
	}
	return true
}

// fit reports whether a label can meet all of these requirements on its key.
func fit(requirements []labels.Requirement) bool {
	var allowed []string
	var bounded, there, absent bool
	for _, r := range requirements {
		switch r.Operator() {
		case selection.Equals, selection.In:
			values := r.Values()
			if !bounded {
				allowed = values.List()
			}
			allowed = slices.DeleteFunc(allowed, func(v string) bool { return !values.Has(v) })
			bounded, there = true, true
		case selection.Exists:
			there = true
		case selection.DoesNotExist:
			absent = true
		}
	}
	for _, r := range requirements {
		if r.Operator() == selection.NotIn {
			allowed = slices.DeleteFunc(allowed, r.Values().Has)
		}
	}
	return (!there || !absent) && (!bounded || len(allowed) > 0)
}

// forNodes returns the spec for nodes. The selector is left out: it is not for the agent. A ring with a selector that names an
// interface should report where the interface is missing, so whenMissing is set.
func forNodes(spec v1alpha1.CaptureRingSpec) v1alpha1.CaptureRingSpec {
	if spec.NodeSelector == nil {
		return spec
	}
	spec.NodeSelector = nil
	spec.Interfaces = slices.Clone(spec.Interfaces)
	for i := range spec.Interfaces {
		if s := &spec.Interfaces[i]; s.WhenMissing == "" && s.Name != "" && !strings.ContainsAny(s.Name, "*?") {
			s.WhenMissing = v1alpha1.WhenMissingReport
		}
	}
	if spec.Inline != nil {
		spec.Inline = spec.Inline.DeepCopy()
		for i := range spec.Inline.Pairs {
			if p := &spec.Inline.Pairs[i]; p.WhenMissing == "" {
				p.WhenMissing = v1alpha1.WhenMissingReport
			}
		}
	}
	return spec
}
