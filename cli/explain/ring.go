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

// Ring explains what a ring does with packets.
type Ring struct {
	spec       v1.CaptureRingSpec
	placements []Step
	filter     *filter
	clusters   []output
}

// output is a set of queues that the ring feeds.
type output struct {
	name   string
	filter *filter
}

// Answer is the explanation for one packet.
type Answer struct {
	Verdict Verdict `json:"verdict"`
	Steps   []Step  `json:"steps"`
	// Queues has a step for each set of queues: whether it gets the packet.
	Queues []Step `json:"queues,omitempty"`
}

// New returns the Ring for a ring of a snapshot.
func New(s fleet.Snapshot, ring *v1.CaptureRing, compile Compile) (*Ring, error) {
	r := &Ring{spec: ring.Spec, placements: placements(s, ring)}
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

// placements lists where the ring captures: packets elsewhere are not captured.
func placements(s fleet.Snapshot, ring *v1.CaptureRing) []Step {
	if c := fleet.Wrong(ring.Status.Conditions); c != nil && c.Type == v1.ConditionAccepted {
		return []Step{{"ring", NotCaptured, fmt.Sprintf("it is not accepted: %s: %s", c.Reason, c.Message)}}
	}
	var taps, broken []string
	for _, p := range s.Placements(ring.Name) {
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

// Placements lists where the ring captures, and where it should and does not.
func (r *Ring) Placements() []Step { return r.placements }

// Tapped reports whether it captures on any node.
func (r *Ring) Tapped() bool { return best(r.placements) == Captured }

// Packet explains a packet that passes one of the interfaces. data is the packet on the wire; synthetic: the user gave only its
// headers.
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

// queues runs the filter of every set; a rule may have chosen one queue.
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

// verdict returns the result of steps that must all pass.
func verdict(steps []Step) Verdict { return weigh(steps, NotCaptured, Captured) }

// best returns the result of steps of which one must pass.
func best(steps []Step) Verdict { return weigh(steps, Captured, NotCaptured) }

// weigh returns decisive if any step has that verdict, else Depends if any step has that, else otherwise.
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
