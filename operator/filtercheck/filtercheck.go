// SPDX-License-Identifier: Apache-2.0

// Package filtercheck remembers which filters compile, so that a plan does not run a compiler for each ring each time.
package filtercheck

import (
	"errors"
	"sync"
	"time"

	"github.com/ringcap/ringcap/operator/plan"
)

// most is the number of expressions that are remembered; all are forgotten when there are more.
const most = 1024

const (
	// long is from when on the compiler takes long for an expression. Plans wait for it, all other rings' too: of one that it does not
	// finish,
	long = time.Second
	// it is asked again after so many times the time that it took.
	pause = 30
)

// Checker runs a compiler and remembers what it said. It may be used by several goroutines.
type Checker struct {
	compile func(expression string) error
	mu      sync.Mutex
	known   map[string]answer
}

// answer is what the compiler said, or for some time that it said nothing.
type answer struct {
	err error
	// until is when it is asked again, zero for never.
	until time.Time
}

// New returns a checker over a compiler, whose error is either about the expression or wraps plan.ErrFilterUnknown.
func New(compile func(expression string) error) *Checker {
	return &Checker{compile: compile, known: map[string]answer{}}
}

// Check says why the expression does not compile. What could not be found out is asked again the next time, or later if that took long.
func (c *Checker) Check(expression string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	begun := time.Now()
	if said, ok := c.known[expression]; ok && (said.until.IsZero() || begun.Before(said.until)) {
		return said.err
	}
	said := answer{err: c.compile(expression)}
	if errors.Is(said.err, plan.ErrFilterUnknown) {
		took := time.Since(begun)
		if took < long {
			return said.err
		}
		said.until = time.Now().Add(pause * took)
	}
	if len(c.known) >= most {
		clear(c.known)
	}
	c.known[expression] = said
	return said.err
}
