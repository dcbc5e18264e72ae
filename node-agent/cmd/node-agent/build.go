// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"path/filepath"

	"github.com/ringcap/ringcap/node-agent/loader"
	"github.com/ringcap/ringcap/node-agent/node"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// runBuildModule runs as an init container between two of load-module. It makes for the second what the first one
// lacked.
func runBuildModule(ctx context.Context, args []string, out, errOut io.Writer) error {
	flags := flag.NewFlagSet("build-module", flag.ContinueOnError)
	runDir := flags.String("run-dir", "/run/ringcap", "`folder` where load-module notes what came of the module")
	source := flags.String("source", "/ringcap/kmod", "`folder` of the module's source")
	headers := flags.String("headers", "/lib/modules", "`folder` with <kernel release>/build")
	result := flags.String("out", "", "`folder` for <kernel release>/ringcap.ko, that is load-module's --built-dir")
	kernel := flags.String("kernel", "", "`release` of the kernel to build for; default: this one")
	if err := parse(flags, args, errOut); err != nil {
		return err
	}
	if !filepath.IsAbs(*result) {
		return badFlag(errOut, "--out %q: must be an absolute path", *result)
	}
	identity, err := node.ReadIdentity()
	if err != nil {
		return err
	}
	if *kernel != "" {
		identity = node.Identity{KernelRelease: *kernel}
	}
	last, known, err := loader.Read(*runDir, identity)
	if err != nil {
		return err
	}
	if known && last.Reason != v1.ReasonNoPrebuiltModule {
		fmt.Fprintf(out, "Nothing is to be built. %s: %s\n", last.Reason, last.Message)
		return nil
	}
	outcome, err := loader.Builder{Source: *source, Headers: *headers, Out: *result, Log: out, Identity: identity}.Run(ctx)
	fmt.Fprintf(out, "%s: %s\n", outcome.Reason, outcome.Message)
	return err
}
