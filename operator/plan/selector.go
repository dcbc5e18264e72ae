// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// ringSelectsNodes refuses a selector that cannot be read, and one that is empty. The latter meant all nodes once, and may be what is
// left of one that selected few: nodes keep what they have of the ring, and no other gets it.
func (d *draft) ringSelectsNodes(ring *v1alpha1.CaptureRing) *Verdict {
	if err := d.drafts[ring.Name].unreadable; err != nil {
		return refuse(v1alpha1.ReasonInvalidNodeSelector, "spec.nodeSelector%v", err)
	}
	return nil
}

// candidates are the nodes with a label that the selector asks for by one value; all nodes where it asks for none so. Looking at each
// node for each of hundreds of rings was half of a plan.
func (d *draft) candidates(selector labels.Selector) []*nodeDraft {
	requirements, _ := selector.Requirements()
	for _, r := range requirements {
		if value, exact := selector.RequiresExactMatch(r.Key()); exact {
			return d.labelled(r.Key())[value]
		}
	}
	return d.nodes
}

// labelled has the nodes by a label's value.
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

// mayShareNode says whether one node can have both rings: no label has to be what the other one's may not be.
func (d *draft) mayShareNode(a, b *v1alpha1.CaptureRing) bool {
	mine, its := d.drafts[a.Name].selector, d.drafts[b.Name].selector
	one, _ := mine.Requirements()
	other, _ := its.Requirements()
	for _, r := range one {
		// Most rings that exclude each other are for other pools: that is seen first.
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

// fit says whether a label can be as all requirements of its key have it.
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

// forNodes is the spec as nodes get it. Who names an interface and the nodes that have it wants to know where it is missing: that the
// agent is told, and not the selector, which is none of its business.
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
	return spec
}
