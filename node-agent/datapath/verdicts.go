// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ringcap/ringcap/node-agent/capture"
	"github.com/ringcap/ringcap/node-agent/plan"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// addLeftovers gives a verdict to what an engine still has and nobody asks for any more: it could not be removed.
func addLeftovers(report *Report, failed map[v1.Engine]map[string]error) {
	for engine, observation := range report.Observations {
		for name := range observation.Rings {
			addLeftover(report.Plan.Rings, name, engine, failed[engine][name])
		}
		for name := range observation.Clusters {
			addLeftover(report.Plan.Clusters, name, engine, failed[engine][name])
		}
	}
}

func addLeftover(verdicts map[string]plan.Verdict, name string, engine v1.Engine, problem error) {
	if _, asked := verdicts[name]; asked || problem == nil {
		return
	}
	verdicts[name] = plan.Verdict{Leftover: true, Engine: engine, Reason: reasonOf(problem), Message: problem.Error()}
}

// noteUnfed finds the sets of queues whose rings were planned but not made: no pod shall be sent to them.
func noteUnfed(report *Report) {
	for kind, observation := range report.Observations {
		fed := map[string]bool{}
		for _, ring := range report.Plan.Plans[kind].Rings {
			if _, made := observation.Rings[ring.Name]; !made {
				continue
			}
			for _, cluster := range ring.Outputs {
				fed[cluster] = true
			}
		}
		for name, verdict := range report.Plan.Clusters {
			if verdict.Engine != kind || !verdict.Fed || fed[name] {
				continue
			}
			verdict.Fed = false
			if verdict.Reason == "" {
				verdict.Reason, verdict.Message = v1.ReasonEngineError, "none of its rings could be made: see their own status"
			}
			report.Plan.Clusters[name] = verdict
		}
	}
}

// Blocked says whether something could not be changed or removed for its consumers' sake, and these are gone by now, or
// could not be made for want of memory, and other queues gave some back.
func (r Report) Blocked() bool {
	for name, verdict := range r.Plan.Clusters {
		if verdict.Reason == v1.ReasonNodeMemoryInsufficient && r.queueMemory() < r.plannedWith {
			return true
		}
		if verdict.Reason != v1.ReasonQueueInUse {
			continue
		}
		if state, there := r.Queues(name); !there || !slices.ContainsFunc(state.Queues, func(q capture.QueueStats) bool { return q.Attached }) {
			return true
		}
	}
	return false
}

// refuse puts what an engine could not do into the verdicts. Where a change is withheld, what is wrong with that stays the first
// thing to be said.
func refuse(verdicts map[string]plan.Verdict, kind v1.Engine, failed map[string]error, all error) {
	for name, verdict := range verdicts {
		problem := failed[name]
		if problem == nil {
			problem = all
		}
		if verdict.Engine != kind || !verdict.Planned || problem == nil {
			continue
		}
		verdict.Planned = false
		if verdict.AsBefore {
			verdict.Message += fmt.Sprintf("; of what was accepted before it: %v", problem)
		} else {
			verdict.Reason, verdict.Message = reasonOf(problem), problem.Error()
		}
		verdicts[name] = verdict
	}
}

func reasonOf(err error) string {
	switch {
	case errors.Is(err, capture.ErrInUse):
		return v1.ReasonQueueInUse
	case errors.Is(err, capture.ErrNoMemory):
		return v1.ReasonNodeMemoryInsufficient
	case errors.Is(err, capture.ErrUnsupported):
		return v1.ReasonUnsupported
	default:
		return v1.ReasonEngineError
	}
}
