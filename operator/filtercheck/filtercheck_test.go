// SPDX-License-Identifier: Apache-2.0

package filtercheck_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringcap/ringcap/operator/filtercheck"
	"github.com/ringcap/ringcap/operator/plan"
)

// TestRemembers: an expression is compiled once, unless the compiler could not be run.
func TestRemembers(t *testing.T) {
	runs := map[string]int{}
	bad, broken := errors.New("syntax error"), fmt.Errorf("%w: no memory", plan.ErrFilterUnknown)
	checker := filtercheck.New(func(expression string) error {
		runs[expression]++
		return map[string]error{"bad": bad, "broken": broken}[expression]
	})
	for range 3 {
		require.NoError(t, checker.Check("good"))
		require.Equal(t, bad, checker.Check("bad"))
		require.Equal(t, broken, checker.Check("broken"))
	}
	require.Equal(t, map[string]int{"good": 1, "bad": 1, "broken": 3}, runs)
}

// TestSlow: an expression that the compiler does not finish holds plans up seldom.
func TestSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		checker := filtercheck.New(func(string) error {
			runs++
			time.Sleep(10 * time.Second)
			return fmt.Errorf("%w: it did not finish", plan.ErrFilterUnknown)
		})
		for begun := time.Now(); time.Since(begun) < 12*time.Minute; time.Sleep(15 * time.Second) {
			require.ErrorIs(t, checker.Check("slow"), plan.ErrFilterUnknown)
		}
		require.Equal(t, 3, runs)
	})
}

// TestForgets: the memory is bounded.
func TestForgets(t *testing.T) {
	runs := 0
	checker := filtercheck.New(func(string) error { runs++; return nil })
	for i := range 5000 {
		require.NoError(t, checker.Check(fmt.Sprint(i)))
	}
	require.NoError(t, checker.Check("0"))
	require.Equal(t, 5001, runs)
}

// TestWithoutACompiler: that is not the expression's fault.
func TestWithoutACompiler(t *testing.T) {
	require.ErrorIs(t, filtercheck.Compiler("/nonexistent/rcbpf")("udp"), plan.ErrFilterUnknown)
}
