// SPDX-License-Identifier: Apache-2.0

// Package filtercheck caches which filters compile, so that a plan does not run a compiler for each ring each time.
package filtercheck

import (
	"errors"
	"sync"
	"time"

	"github.com/ringcap/ringcap/operator/plan"
)

// maxCached is the maximum number of cached expressions; all are removed when it is reached.
const maxCached = 1024

const (
	// long is the duration of a compilation from which on it counts as slow. All plans wait for it. If it has no result,
	long = time.Second
	// the expression is tried again after the duration times pause.
	pause = 30
)

// Checker runs a compiler and caches its results. It is safe for concurrent use.
type Checker struct {
	compile func(expression string) error
	mu      sync.Mutex
	known   map[string]answer
}

// answer is the compiler's result, or that it had none in time.
type answer struct {
	err error
	// until is when to ask again, zero for never.
	until time.Time
}

// New returns a checker over a compiler. The compiler's error is either about the expression or wraps plan.ErrFilterUnknown.
func New(compile func(expression string) error) *Checker {
	return &Checker{compile: compile, known: map[string]answer{}}
}

// Check returns why the expression does not compile. An error of the compiler itself is not cached, unless it took long: then
// for some time.
func (c *Checker) Check(expression string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	begun := time.Now()
	if result, ok := c.known[expression]; ok && (result.until.IsZero() || begun.Before(result.until)) {
		return result.err
	}
	result := answer{err: c.compile(expression)}
	if errors.Is(result.err, plan.ErrFilterUnknown) {
		took := time.Since(begun)
		if took < long {
			return result.err
		}
		result.until = time.Now().Add(pause * took)
	}
	if len(c.known) >= maxCached {
		clear(c.known)
	}
	c.known[expression] = result
	return result.err
}
