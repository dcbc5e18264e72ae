// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
	"github.com/ringcap/ringcap/operator/report"
)

// rolledOut returns the condition on the progress of the ring's present version, and what it waits for.
func (r *Reconciler) rolledOut(s *subject) outcome {
	if s.meta.GetDeletionTimestamp() != nil {
		return r.deleting(s)
	}
	if refused, o := s.refused(); refused {
		return o
	}
	all, outdated := len(s.verdict.Nodes), len(s.verdict.Outdated)
	message := fmt.Sprintf("given to %d of %s", all-outdated, counted(all))
	switch silent := s.verdict.Silent; {
	case outdated == 0:
		return outcome{true, v1alpha1.ReasonRolledOut, "given to " + counted(all) + "; see the condition Programmed for where it works"}
	case outdated == len(silent) && len(s.verdict.Unavailable) == 0 && slices.ContainsFunc(s.verdict.Nodes, r.reports(s)):
		return outcome{true, v1alpha1.ReasonRolledOut, message + "; see the condition Programmed for where it works; the others keep what they had until their agents report again: " + names(silent)}
	}
	failed := r.failed(s)
	if len(failed) < s.verdict.MaxUnavailable {
		return outcome{false, v1alpha1.ReasonRollingOut, fmt.Sprintf("%s, at most %d at a time (spec.rollout.maxUnavailable)", message, s.verdict.MaxUnavailable)}
	}
	const named = 3
	more := ""
	if len(failed) > named {
		more = fmt.Sprintf("; and %d more", len(failed)-named)
		failed = failed[:named]
	}
	return outcome{false, v1alpha1.ReasonRolloutPaused, shorten(fmt.Sprintf("%s; paused, and the others keep what they had: it does not work on %d, the most that may "+
		"be unavailable: %s%s. Correct the ring, or what is wrong there, or raise spec.rollout.maxUnavailable",
		message, s.verdict.MaxUnavailable, strings.Join(failed, "; "), more))}
}

// reports returns whether a node's agent reports.
func (r *Reconciler) reports(s *subject) func(node string) bool {
	return func(node string) bool { return report.Fresh(s.state.Captures[node], r.Planner.Now()) }
}

// failed returns the nodes that have the present version in their spec and failed to apply it, with their messages.
func (r *Reconciler) failed(s *subject) []string {
	var failed []string
	for _, node := range s.verdict.Unavailable {
		state := report.On(node, s.state.Captures[node], s.Object, r.Planner.Now())
		answered := report.Stuck(s.state.Captures[node]) || report.Current(s.state.Captures[node], s.Object) && state.Reason != v1alpha1.ReasonPending
		if !state.Ready && (answered || state.Reason == v1alpha1.ReasonNodeNotReporting) {
			failed = append(failed, fmt.Sprintf("%s (%s): %s", node, state.Reason, state.Message))
		}
	}
	return failed
}
