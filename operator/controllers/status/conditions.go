// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
	"github.com/ringcap/ringcap/operator/plan"
	"github.com/ringcap/ringcap/operator/report"
	"github.com/ringcap/ringcap/operator/snapshot"
)

// subject is the CaptureRing or Cluster that a status is for.
type subject struct {
	report.Object
	meta    metav1.Object
	verdict plan.Verdict
	state   *snapshot.Snapshot
	reports report.Reports
	// fed means that its packets go to some queue.
	fed bool
}

// outcome is a condition's content.
type outcome struct {
	ok              bool
	reason, message string
}

// fill sets the status of the subject.
func (r *Reconciler) fill(status *v1alpha1.CaptureStatus, s *subject) {
	status.ObservedGeneration = s.meta.GetGeneration()
	states := r.onNodes(s)
	var sums report.Sums
	if s.verdict.Reason != v1alpha1.ReasonNameConflict { // else they would be the other's
		sums = s.reports.Sum(s.Object)
	}
	here, silent := reachable(states)
	status.NodesDesired, status.NodesReady, status.NodesNotReporting = int32(len(states)), 0, int32(len(silent))
	for _, state := range states {
		if state.Ready {
			status.NodesReady++
		}
	}
	status.Queues, status.QueuesAttached = sums.Queues, sums.QueuesAttached
	status.Seen, status.Delivered, status.Shunted, status.Dropped = sums.Seen, sums.Delivered, sums.Shunted, sums.Dropped
	status.Truncated, status.TruncatedBytes = sums.Truncated, sums.TruncatedBytes
	status.Engines = sums.Engines

	accepted := s.accepted()
	programmed := s.programmed(here).but(silent)
	ready := s.ready(here).but(silent)
	switch {
	case s.meta.GetDeletionTimestamp() != nil:
		deleting := r.deleting(s)
		accepted, programmed, ready = deleting, deleting, deleting
	case s.state.Mark.Marked:
		suspended := r.suspended(s)
		accepted, programmed, ready = suspended, suspended, suspended
	}
	s.set(status, v1alpha1.ConditionAccepted, accepted)
	s.set(status, v1alpha1.ConditionProgrammed, programmed)
	s.set(status, v1alpha1.ConditionReady, ready)
	s.set(status, v1alpha1.ConditionDegraded, degraded(silent, len(states)))
}

func (s *subject) set(status *v1alpha1.CaptureStatus, condition string, o outcome) {
	value := metav1.ConditionFalse
	if o.ok {
		value = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: condition, Status: value, ObservedGeneration: s.meta.GetGeneration(), Reason: o.reason, Message: o.message,
	})
}

// onNodes returns the subject's state on each node that should have it.
func (r *Reconciler) onNodes(s *subject) []report.State {
	now := r.Planner.Now()
	states := make([]report.State, 0, len(s.verdict.Nodes))
	for _, node := range s.verdict.Nodes {
		state := report.On(node, s.state.Captures[node], s.Object, now)
		if _, outdated := slices.BinarySearch(s.verdict.Outdated, node); outdated && state.Reason != v1alpha1.ReasonNodeNotReporting {
			state = report.State{Node: node, Reason: v1alpha1.ReasonPending, Message: "its NodeCapture is about to get this version"}
			if s.Ring {
				state.Message = "it waits for its turn to get this version: see the condition RolledOut"
			}
		}
		states = append(states, state)
	}
	return concerned(states)
}

// reachable splits the states: here are nodes whose agents report, or may still start; silent are the names of the others. If
// all nodes are silent, here holds all of them.
func reachable(states []report.State) (here []report.State, silent []string) {
	for _, state := range states {
		if state.Silent {
			silent = append(silent, state.Node)
		} else {
			here = append(here, state)
		}
	}
	if len(here) == 0 {
		return states, silent
	}
	return here, silent
}

// but adds the names of the nodes that the outcome does not cover.
func (o outcome) but(silent []string) outcome {
	if o.ok && len(silent) > 0 {
		o.message += fmt.Sprintf("; not counted, for their agents do not report: %s", names(silent))
	}
	return o
}

// degraded returns the condition that names the silent nodes.
func degraded(silent []string, nodes int) outcome {
	if len(silent) == 0 {
		return outcome{false, v1alpha1.ReasonAllReporting, "the agents of all nodes report"}
	}
	return outcome{true, v1alpha1.ReasonNodeNotReporting, fmt.Sprintf("the agents of %d of %s do not report: see the agents' pods on %s",
		len(silent), counted(nodes), names(silent))}
}

// concerned leaves out the nodes that have none of the interfaces, if the ring permits that. If no other node is left, it is an
// error on all of them.
func concerned(states []report.State) []report.State {
	here := slices.DeleteFunc(slices.Clone(states), func(s report.State) bool { return s.Absent })
	if len(here) > 0 {
		return here
	}
	for i := range states {
		states[i].Programmed, states[i].Ready, states[i].Reason = false, false, v1alpha1.ReasonInterfaceNotFound
	}
	return states
}

func (s *subject) accepted() outcome {
	o := outcome{ok: s.verdict.Accepted(), reason: s.verdict.Reason, message: s.verdict.Message}
	if !o.ok && len(s.verdict.Nodes) > 0 {
		who := names(s.verdict.Nodes)
		if plan.NamespaceOf(s.meta) != "" {
			// Users of a namespace read this unredacted, because it quotes their spec.
			who = counted(len(s.verdict.Nodes))
		}
		o.message += fmt.Sprintf("; until then, %s %s what was accepted last",
			who, map[bool]string{true: "keeps", false: "keep"}[len(s.verdict.Nodes) == 1])
	}
	return o
}

func (s *subject) programmed(states []report.State) outcome {
	if refused, o := s.refused(); refused {
		return o
	}
	if bad := failing(states, func(state report.State) bool { return state.Programmed }); len(bad) > 0 {
		return worst(bad, len(states))
	}
	return outcome{true, v1alpha1.ReasonProgrammed, fmt.Sprintf("in the data path of %s", counted(len(states)))}
}

func (s *subject) ready(states []report.State) outcome {
	if refused, o := s.refused(); refused {
		return o
	}
	if !s.fed {
		return outcome{false, v1alpha1.ReasonNoQueues, "its packets go to no queue: set spec.queues, or create a Cluster whose spec.rings names this ring"}
	}
	if bad := failing(states, func(state report.State) bool { return state.Ready }); len(bad) > 0 {
		return worst(bad, len(states))
	}
	if !s.hasQueues() {
		return outcome{true, v1alpha1.ReasonReady, fmt.Sprintf("feeds the Clusters over it on %s", counted(len(states)))}
	}
	return outcome{true, v1alpha1.ReasonReady, fmt.Sprintf("pods can request %s%s on %s", v1alpha1.ResourcePrefix, s.Name, counted(len(states)))}
}

func (s *subject) hasQueues() bool { return !s.Ring || s.OwnQueues }

// refused returns why no node should have the subject, if so.
func (s *subject) refused() (bool, outcome) {
	switch {
	case !s.verdict.Accepted():
		return true, outcome{false, s.verdict.Reason, "not accepted: " + s.verdict.Message}
	case len(s.verdict.Nodes) == 0 && s.Ring:
		return true, outcome{false, v1alpha1.ReasonNoNodes, "no Linux node's labels match spec.nodeSelector"}
	case len(s.verdict.Nodes) == 0:
		return true, outcome{false, v1alpha1.ReasonNoNodes, "none of the CaptureRings in spec.rings is on any node: see their spec.nodeSelector"}
	}
	return false, outcome{}
}

// deleting returns the condition that names the nodes that the deletion waits for.
func (r *Reconciler) deleting(s *subject) outcome {
	waits := r.holders(s)
	if len(waits) == 0 {
		return outcome{false, v1alpha1.ReasonDeleting, "no node has it any more"}
	}
	return outcome{false, v1alpha1.ReasonDeleting, shorten("waiting for " + strings.Join(waits, "; "))}
}

// suspended returns the condition that names the nodes that an uninstall waits for.
func (r *Reconciler) suspended(s *subject) outcome {
	message := fmt.Sprintf("ringcap is being uninstalled (since %s): ", s.state.Mark.Since)
	switch waits := r.holders(s); {
	case r.Planner.Mark.Settled(s.state.Mark):
		return outcome{false, v1alpha1.ReasonSuspended, message + "no node has it any more; when ringcap is installed again, it is captured again"}
	case len(waits) == 0:
		return outcome{false, v1alpha1.ReasonSuspending, message + "no node has it any more; the operator removes what it wrote for it and for others"}
	default:
		return outcome{false, v1alpha1.ReasonSuspending, shorten(message + "waiting for " + strings.Join(waits, "; "))}
	}
}

// holders returns the nodes that still have the subject, and why.
func (r *Reconciler) holders(s *subject) []string {
	now := r.Planner.Now()
	var waits []string
	for _, name := range slices.Sorted(maps.Keys(s.state.Captures)) {
		if holder, holds := report.HolderOf(s.state.Captures[name], s.Object, s.state.Since, now); holds {
			waits = append(waits, fmt.Sprintf("%s: %s", holder.Node, holder.Why))
		}
	}
	return waits
}

func failing(states []report.State, ok func(report.State) bool) []report.State {
	return slices.DeleteFunc(slices.Clone(states), ok)
}

// worst describes the node with the most important problem: an agent's error comes before an agent's silence, and that before
// work in progress.
func worst(bad []report.State, nodes int) outcome {
	rank := func(s report.State) int {
		switch s.Reason {
		case v1alpha1.ReasonPending:
			return 2
		case v1alpha1.ReasonNodeNotReporting:
			return 1
		}
		return 0
	}
	state := slices.MinFunc(bad, func(a, b report.State) int { return rank(a) - rank(b) })
	message := fmt.Sprintf("%d of %s not ready; %s", len(bad), counted(nodes), state.Node)
	if state.Message != "" {
		message += ": " + state.Message
	}
	return outcome{false, state.Reason, shorten(message)}
}

func counted(nodes int) string {
	if nodes == 1 {
		return "1 node"
	}
	return fmt.Sprintf("%d nodes", nodes)
}

// names joins a few names and counts the others.
func names(nodes []string) string {
	const maxNames = 5
	if len(nodes) <= maxNames {
		return strings.Join(nodes, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(nodes[:maxNames], ", "), len(nodes)-maxNames)
}

// shorten cuts a message to the API's limit, at a space: what is left of a node's name would not be redacted for users who may
// not know it.
func shorten(message string) string {
	const maxLength = 2048
	if len(message) <= maxLength {
		return message
	}
	return message[:max(strings.LastIndexByte(message[:maxLength+1], ' '), 0)] + "..."
}
