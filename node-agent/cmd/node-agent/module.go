// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/ringcap/ringcap/node-agent/loader"
	"github.com/ringcap/ringcap/node-agent/node"
)

// runLoadModule is the init container: whatever comes of the module, the agent starts after it.
func runLoadModule(args []string, out, errOut io.Writer) error {
	var where places
	flags := flag.NewFlagSet("load-module", flag.ContinueOnError)
	where.register(flags)
	modeText := flags.String("mode", string(loader.Load), "`what` to do: Load, Preloaded (use a loaded one) or Disabled (use none)")
	modules := flags.String("modules-dir", "/modules", "`folder` with <kernel release>/ringcap.ko, and drivers/ of capture-aware drivers beside it")
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
	l := loader.Loader{Mode: mode, ModulesDir: *modules, Identity: identity, Kernel: loader.RunningKernel{Sys: where.sys}}
	outcome := l.Run()
	fmt.Fprintf(out, "%s: %s\n", outcome.Reason, outcome.Message)
	if outcome.Ready {
		loadDrivers(l, where.sys, out)
	}
	return outcome.Write(where.runDir)
}

// loadDrivers says what came of it: a driver that is missing is the rings' to tell, which ask for it.
func loadDrivers(l loader.Loader, sys string, out io.Writer) {
	loaded, err := l.LoadDrivers(loader.StockDrivers(sys))
	if len(loaded) > 0 {
		fmt.Fprintf(out, "Capture-aware drivers are loaded: %s\n", strings.Join(loaded, ", "))
	}
	if err != nil {
		fmt.Fprintf(out, "Capture-aware drivers that could not be loaded: %v\n", err)
	}
}
