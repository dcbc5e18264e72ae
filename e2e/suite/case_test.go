// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Case is a test on the lab. What it makes with its methods is removed when it ends.
type Case struct {
	testing.TB // the test, or an attempt within it
	*Lab
	ctx   context.Context // ends with the case, before its clean-up, or when the run is interrupted
	test  context.Context // ends with the case, before its clean-up
	dir   string          // its files
	began int             // the cluster's revision when it could go on
	mine  map[string]bool // what it made
}

// context is what a command of the case depends on. Its clean-up is not interrupted.
func (c *Case) context() context.Context {
	if c.test.Err() != nil {
		return context.Background()
	}
	return c.ctx
}

// attempt stands in for the test in something that may fail: an assertion that fails ends the attempt.
type attempt struct {
	testing.TB
	failed bool
	log    strings.Builder
}

func (a *attempt) Logf(format string, args ...any) { fmt.Fprintf(&a.log, format+"\n", args...) }

func (a *attempt) Errorf(format string, args ...any) {
	a.failed = true
	a.Logf(format, args...)
}

func (a *attempt) FailNow() {
	a.failed = true
	panic(a)
}

// try returns as an error what do has asserted and is not so. It is for the test's goroutine, as assertions are.
func (c *Case) try(do func()) (err error) {
	test, a := c.TB, &attempt{TB: c.TB}
	c.TB = a
	defer func() {
		c.TB = test
		if stop := recover(); stop != nil && stop != any(a) {
			panic(stop)
		}
		if a.failed {
			err = errors.New(a.log.String())
		} else if a.log.Len() > 0 {
			c.Logf("%s", &a.log)
		}
	}()
	do()
	return nil
}

// until waits until all that check asserts is so. It fails the case with what is not after so many seconds. Attempts become rarer the
// longer it waits, for the nodes run on this machine, too.
func (c *Case) until(seconds int, what string, check func()) {
	c.Helper()
	begin := time.Now()
	for {
		waited := time.Since(begin)
		err := c.try(check)
		if err == nil {
			return
		}
		require.NoError(c, context.Cause(c.context()), "%s: %v", what, err)
		require.Less(c, waited, time.Duration(seconds)*time.Second, "%s: not within %d s: %v", what, seconds, err)
		time.Sleep(min(max(waited/20, 100*time.Millisecond), time.Second))
	}
}

// says fails the case unless a text has a line like the pattern.
func (c *Case) says(text, pattern string) {
	require.Regexp(c, "(?m)"+pattern, text)
}

// number is what a program or the API server has written.
func (c *Case) number(text string) int {
	n, err := strconv.Atoi(text)
	require.NoError(c, err)
	return n
}

// background runs a function, which asserts nothing, beside the case. The case ends no sooner than the function; the channel has its error.
func (c *Case) background(run func() error) <-chan error {
	result, done := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(done)
		result <- run()
	}()
	c.Cleanup(func() { <-done })
	return result
}
