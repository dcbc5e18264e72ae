// SPDX-License-Identifier: Apache-2.0

package plan

import "fmt"

// problem is the reason why an object cannot be planned as its spec asks.
type problem struct{ reason, message string }

func problemf(reason, format string, args ...any) *problem {
	return &problem{reason: reason, message: fmt.Sprintf(format, args...)}
}

// check checks one thing and may record what it found in the draft. nil means no problem.
type check[D any] func(*D) *problem

// firstProblem runs the checks in order. A later check may rely on what an earlier one established.
func firstProblem[D any](checks []check[D], draft *D) *problem {
	for _, c := range checks {
		if p := c(draft); p != nil {
			return p
		}
	}
	return nil
}
