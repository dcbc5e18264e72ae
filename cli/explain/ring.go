// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ringcap/ringcap/cli/fleet"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Ring can be asked about packets.
type Ring struct {
	spec     v1.CaptureRingSpec
	places   []Step
	filter   *filter
	clusters []output
}

// output is a set of queues that the ring feeds.
type output struct {
	name   string
	filter *filter
}

// Answer is what becomes of one packet.
type Answer struct {
	Verdict Verdict `json:"verdict"`
	Steps   []Step  `json:"steps"`
	// Queues says of each set of queues whether it gets the packet.
	Queues []Step `json:"queues,omitempty"`
}

// New prepares a ring of a snapshot.
func New(s fleet.Snapshot, ring *v1.CaptureRing, compile Compile) (*Ring, error) {
	r := &Ring{spec: ring.Spec, places: places(s, ring)}
	var err error
	if r.filter, err = newFilter(ring.Spec.Filter, compile); err != nil {
		return nil, fmt.Errorf("CaptureRing %s: %w", ring.Name, err)
	}
	if ring.Spec.Queues != nil {
		r.clusters = append(r.clusters, output{ring.Name, &filter{}})
	}
	for _, c := range s.Clusters {
		if !slices.Contains(c.Spec.Rings, ring.Name) {
			continue
		}
		f, err := newFilter(c.Spec.Filter, compile)
		if err != nil {
			return nil, fmt.Errorf("Cluster %s: %w", c.Name, err)
		}
		r.clusters = append(r.clusters, output{c.Name, f})
	}
	return r, nil
}

// places says where the ring taps: no packet of elsewhere is captured.
func places(s fleet.Snapshot, ring *v1.CaptureRing) []Step {
	if c := fleet.Wrong(ring.Status.Conditions); c != nil && c.Type == v1.ConditionAccepted {
		return []Step{{"ring", NotCaptured, fmt.Sprintf("it is not accepted: %s: %s", c.Reason, c.Message)}}
	}
	var taps, broken []string
	for _, p := range s.Places(ring.Name) {
		if p.Problem != "" {
			broken = append(broken, p.Node.Name+": "+p.Problem)
		} else {
			taps = append(taps, p.Node.Name+" "+strings.Join(p.Status.Interfaces, ","))
		}
	}
	steps := []Step{}
	if len(taps) > 0 {
		steps = append(steps, Step{"interfaces", Captured, "if it passes " + direction(ring.Spec.Direction) + " " + strings.Join(taps, "; ")})
	} else if len(broken) == 0 {
		return []Step{{"interfaces", NotCaptured, "no node has it; its nodeSelector: " + cmp.Or(ring.Spec.NodeSelector.String(), "none, which is all nodes")}}
	}
	for _, b := range broken {
		verdict := Depends
		if len(taps) == 0 {
			verdict = NotCaptured
		}
		steps = append(steps, Step{"interfaces", verdict, "not on node " + b})
	}
	return steps
}

func direction(d v1.Direction) string {
	switch d {
	case v1.DirectionTransmit:
		return "out of"
	case v1.DirectionBoth:
		return "in by or out of"
	}
	return "in by"
}

// Places says where the ring taps, and where it should and does not.
func (r *Ring) Places() []Step { return r.places }

// Tapped says whether it taps anything at all.
func (r *Ring) Tapped() bool { return best(r.places) == Captured }

// Packet says what becomes of a packet that passes one of the interfaces. data is the packet on the wire; synthetic: a
// person gave its headers only.
func (r *Ring) Packet(data []byte, synthetic bool) Answer {
	p := packet{headers: parse(data), bytes: data, synthetic: synthetic}
	a := Answer{Steps: r.filter.steps(p)}
	if n := r.spec.Sampling; n != nil && n.OneIn > 1 && verdict(a.Steps) != NotCaptured {
		a.Steps = append(a.Steps, Step{"sampling", Depends, fmt.Sprintf("1 in %d packets passes (by %s)", n.OneIn, n.By)})
	}
	a.Verdict = verdict(a.Steps)
	if a.Verdict == NotCaptured {
		return a
	}
	a.Queues = r.queues(p)
	if best := best(a.Queues); best != Captured {
		a.Verdict = best
	}
	return a
}

// queues asks every set; a rule may have chosen one queue.
func (r *Ring) queues(p packet) []Step {
	if decided, unknown := decide(r.filter.rules, p.headers); decided != nil && unknown == nil && decided.Queue != nil {
		return []Step{{"queues", Captured, fmt.Sprintf("%s@%d gets it, by %s", decided.Queue.Cluster, decided.Queue.Queue, decided.name)}}
	}
	if len(r.clusters) == 0 {
		return []Step{{"queues", NotCaptured, "the ring has no queues, and no Cluster names it: set spec.queues or make a Cluster"}}
	}
	var steps []Step
	for _, c := range r.clusters {
		asked := c.filter.steps(p)
		step := Step{"queues", verdict(asked), c.name + " gets it"}
		if i := slices.IndexFunc(asked, func(s Step) bool { return s.Verdict == step.Verdict }); i >= 0 {
			step.Why = c.name + ": " + asked[i].Why
		}
		steps = append(steps, step)
	}
	return steps
}

// verdict of steps that must all be passed.
func verdict(steps []Step) Verdict { return weigh(steps, NotCaptured, Captured) }

// best of steps one of which is enough.
func best(steps []Step) Verdict { return weigh(steps, Captured, NotCaptured) }

// weigh: one step that is decisive is enough, one that depends leaves it open, and without either it is otherwise.
func weigh(steps []Step, decisive, otherwise Verdict) Verdict {
	has := func(v Verdict) bool { return slices.ContainsFunc(steps, func(s Step) bool { return s.Verdict == v }) }
	switch {
	case has(decisive):
		return decisive
	case has(Depends):
		return Depends
	default:
		return otherwise
	}
}
