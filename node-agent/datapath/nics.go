// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/ringcap/ringcap/node-agent/nic"
	"github.com/ringcap/ringcap/node-agent/plan"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// NICs sets the captured interfaces and restores the others.
type NICs interface {
	Apply(wanted map[string]plan.NICSettings) (map[string]nic.Outcome, error)
}

// applyNICs sets the interfaces before the taps are made: what a ring sees first is already as asked. A ring goes on
// capturing where its interface could not be set as it wishes, and says so.
func (r *Reconciler) applyNICs(report *Report) error {
	var err error
	report.NICs, err = r.NICs.Apply(report.Plan.NICs)
	tapped := map[string]bool{}
	for name, verdict := range report.Plan.Rings {
		for _, i := range verdict.Interfaces {
			tapped[i] = true
			if verdict.Away[i] {
				// It is set again when it is back; what it was before stays noted.
				continue
			}
			if reason, message := nicProblem(i, report.NICs[i], verdict); reason != "" && verdict.Ready() {
				verdict.Reason, verdict.Message = reason, message
			}
		}
		report.Plan.Rings[name] = verdict
	}
	for _, name := range slices.Sorted(maps.Keys(report.NICs)) {
		if problem := report.NICs[name].Err; problem != nil && !tapped[name] {
			err = errors.Join(err, fmt.Errorf("restore interface %s: %w", name, problem))
		}
	}
	return err
}

// nicProblem is what a ring is told of an interface of its own; the reason is empty when all is well.
func nicProblem(iface string, outcome nic.Outcome, verdict plan.Verdict) (reason, message string) {
	if outcome.Err != nil {
		return v1.ReasonEngineError, outcome.Err.Error()
	}
	for _, state := range outcome.Settings {
		if wish, mine := verdict.NIC[state.Setting]; mine && wish.Value == state.Value && state.Problem != "" {
			return v1.ReasonNICSettingRefused, fmt.Sprintf("spec.nic.%s cannot be had on %s, and is captured without: %s; choose another value, or leave it out",
				state.Setting, iface, state.Message)
		}
	}
	return "", ""
}
