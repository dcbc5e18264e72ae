// SPDX-License-Identifier: Apache-2.0

// Command report is that of bench/kernel: ringcap in mode 0 beside the kernel's own ways of capturing.
package main

import (
	"github.com/ringcap/ringcap/bench/report"
)

const baseline = "baseline"

var benchmark = report.Benchmark{
	Title:    "mode 0 on a veth's receive side, net of \"" + baseline + "\"",
	Baseline: func(what, _ string) (string, bool) { return "", what == baseline },
	Judge:    judge,
	Markdown: markdown,
}

func main() { report.Main(benchmark) }
