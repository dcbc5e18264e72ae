// SPDX-License-Identifier: Apache-2.0

// Package filtercheck remembers which filters compile, so that a plan does not run a compiler for each ring each time.
package filtercheck

import (
	"errors"
	"sync"

	"github.com/ringcap/ringcap/operator/plan"
)

// most is the number of expressions that are remembered; all are forgotten when there are more.
const most = 1024

// Checker runs a compiler and remembers what it said. It may be used by several goroutines.
type Checker struct {
	compile func(expression string) error
	mu      sync.Mutex
	known   map[string]error
}

// New returns a checker over a compiler, whose error is either about the expression or wraps plan.ErrFilterUnknown.
func New(compile func(expression string) error) *Checker {
	return &Checker{compile: compile, known: map[string]error{}}
}

// Check says why the expression does not compile. What could not be found out is asked again the next time.
func (c *Checker) Check(expression string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err, ok := c.known[expression]; ok {
		return err
	}
	err := c.compile(expression)
	if errors.Is(err, plan.ErrFilterUnknown) {
		return err
	}
	if len(c.known) >= most {
		clear(c.known)
	}
	c.known[expression] = err
	return err
}
