// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"io"

	"github.com/ringcap/ringcap/node-agent/loader"
	"github.com/ringcap/ringcap/node-agent/node"
)

// runLoadModule is the init container: whatever comes of the module, the agent starts after it.
func runLoadModule(args []string, out, errOut io.Writer) error {
	var where places
	flags := flag.NewFlagSet("load-module", flag.ContinueOnError)
	where.register(flags)
	modeText := flags.String("mode", string(loader.Load), "`what` to do: Load, Preloaded (use a loaded one) or Disabled (use none)")
	modules := flags.String("modules-dir", "/modules", "`folder` with <kernel release>/ringcap.ko")
	if err := parse(flags, args, errOut); err != nil {
		return err
	}
	if err := where.check(errOut); err != nil {
		return err
	}
	mode, err := loader.ParseMode(*modeText)
	if err != nil {
		return badFlag(errOut, "%v", err)
	}
	identity, err := node.ReadIdentity()
	if err != nil {
		return err
	}
	outcome := loader.Loader{Mode: mode, ModulesDir: *modules, Identity: identity, Kernel: loader.RunningKernel{}}.Run()
	fmt.Fprintf(out, "%s: %s\n", outcome.Reason, outcome.Message)
	return outcome.Write(where.runDir)
}
