// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"slices"

	"golang.org/x/net/bpf"
)

// programCache keeps the programs of the last plan. Compiling starts a process, and most plans have the same filters.
type programCache struct {
	last, next map[programKey][]bpf.RawInstruction
}

type programKey struct {
	expression string
	snapLen    uint32
}

type compileFunc = func(string, uint32) ([]bpf.RawInstruction, error)

func (c *programCache) through(compile compileFunc) compileFunc {
	c.next = map[programKey][]bpf.RawInstruction{}
	return func(expression string, snapLen uint32) ([]bpf.RawInstruction, error) {
		key := programKey{expression, snapLen}
		program, ok := c.next[key]
		if !ok {
			program, ok = c.last[key]
		}
		if !ok {
			var err error
			if program, err = compile(expression, snapLen); err != nil {
				return nil, err
			}
		}
		c.next[key] = program
		return slices.Clone(program), nil
	}
}

// forget drops the programs that the last plan did not use.
func (c *programCache) forget() { c.last, c.next = c.next, nil }
