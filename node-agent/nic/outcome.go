// SPDX-License-Identifier: Apache-2.0

package nic

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ringcap/ringcap/node-agent/plan"
)

// Problem is a kind of reason why a setting does not have its desired value.
type Problem string

// The problems; the empty one is none.
const (
	ProblemNotSupported Problem = "NotSupported"
	ProblemOutOfRange   Problem = "OutOfRange"
	ProblemFailed       Problem = "Failed"
)

// SettingState is a desired setting and its actual state.
type SettingState struct {
	Setting plan.Setting
	plan.Desired
	// Actual is the interface's own text of the value. If several things serve a setting, each has its name.
	Actual  string
	Problem Problem
	// Message describes the problem; empty if there is none.
	Message string
}

// Outcome is the result for one interface.
type Outcome struct {
	// Settings that rings desire, in the order in which they are set.
	Settings []SettingState
	// Err concerns the interface as a whole: it could not be read, brought up or restored.
	Err error
}

// keptError means that the driver took a value but did not apply it.
type keptError struct{ actual string }

func (e keptError) Error() string { return fmt.Sprintf("its driver keeps it %s", shorten(e.actual)) }

func (e keptError) Unwrap() error { return errNotSupported }

// note adds the result for a tunable. Tunables of one setting follow each other; their first problem is the
// setting's.
func (o *Outcome) note(t tunable, desired plan.Desired, actual string, err error) {
	if n := len(o.Settings); n == 0 || o.Settings[n-1].Setting != t.setting {
		o.Settings = append(o.Settings, SettingState{Setting: t.setting, Desired: desired})
	}
	state := &o.Settings[len(o.Settings)-1]
	text := shorten(actual)
	if t.name != string(t.setting) {
		text = t.name + "=" + text
	}
	state.Actual = strings.TrimSpace(state.Actual + " " + text)
	if err != nil && state.Problem == "" {
		state.Problem, state.Message = problemOf(err), fmt.Sprintf("%s: %v", t.name, err)
	}
}

func problemOf(err error) Problem {
	switch {
	case errors.Is(err, errNotSupported):
		return ProblemNotSupported
	case errors.Is(err, errOutOfRange):
		return ProblemOutOfRange
	default:
		return ProblemFailed
	}
}

// shorten shortens long tables, to keep them readable.
func shorten(text string) string {
	const limit = 120
	if len(text) > limit {
		return text[:limit] + "..."
	}
	return text
}
