// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"golang.org/x/net/bpf"

	"github.com/ringcap/ringcap/filter"
)

// compiler returns a function that makes kernel-side programs of filter expressions. It uses rcbpf at a path, or
// where it is usually found.
func compiler(ctx context.Context, rcbpf string) func(string, uint32) ([]bpf.RawInstruction, error) {
	c := filter.Compiler{Path: rcbpf}
	return func(expression string, snapLen uint32) ([]bpf.RawInstruction, error) {
		program, err := c.Compile(ctx, expression, int(snapLen))
		if err != nil {
			return nil, err
		}
		return filter.Kernel(program)
	}
}
