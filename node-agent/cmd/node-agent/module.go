// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/ringcap/ringcap/node-agent/capture"
	"github.com/ringcap/ringcap/node-agent/engine/kmod"
	"github.com/ringcap/ringcap/node-agent/loader"
	"github.com/ringcap/ringcap/node-agent/node"
	"github.com/ringcap/ringcap/node-agent/pods"
)

// moduleFlags are the flags that limit what may be loaded.
type moduleFlags struct {
	mode, modulesDir, builtDir, signingKey string
}

func (f *moduleFlags) register(flags *flag.FlagSet) {
	flags.StringVar(&f.mode, "mode", string(loader.Load), "`what` to do: Load, Preloaded (use a loaded one) or Disabled (use none)")
	flags.StringVar(&f.modulesDir, "modules-dir", "/modules", "`folder` with <kernel release>/ringcap.ko, and drivers/ of capture-aware drivers beside it")
	flags.StringVar(&f.builtDir, "built-dir", "", "`folder` where build-module put the module; empty for none")
	flags.StringVar(&f.signingKey, "signing-key", "", "`folder` with tls.key and tls.crt, by which modules are signed before they are loaded; empty for none")
}

// loader returns the loader that the flags ask for.
func (f *moduleFlags) loader(identity node.Identity, kernel loader.RunningKernel, errOut io.Writer) (loader.Loader, error) {
	mode, err := loader.ParseMode(f.mode)
	if err != nil {
		return loader.Loader{}, badFlag(errOut, "%v", err)
	}
	l := loader.Loader{
		Mode: mode, ModulesDir: f.modulesDir, BuiltDir: f.builtDir, Identity: identity, Kernel: kernel,
	}
	if f.signingKey != "" {
		// Without a signer, the kernel may still load the module. If not, its error tells why.
		if l.Signer, err = loader.ReadSigner(f.signingKey); err != nil {
			fmt.Fprintf(errOut, "Modules are not signed: %v\n", err)
		}
	}
	return l, nil
}

// runLoadModule runs as the init container. The agent starts after it even if the module could not be loaded.
func runLoadModule(args []string, out, errOut io.Writer) error {
	var paths nodePaths
	var from moduleFlags
	flags := flag.NewFlagSet("load-module", flag.ContinueOnError)
	paths.register(flags)
	from.register(flags)
	upgrade := flags.String("upgrade", string(loader.Never), "`when` a module that was loaded by a load-module before makes place for another one: Never, WhenFree or Evict")
	kubelet := flags.String("kubelet-dir", "", "the kubelet's `folder`, by which pods with queues are known; empty without Kubernetes")
	if err := parse(flags, args, errOut); err != nil {
		return err
	}
	if err := paths.check(errOut); err != nil {
		return err
	}
	identity, err := node.ReadIdentity()
	if err != nil {
		return err
	}
	l, err := from.loader(identity, loader.RunningKernel{Sys: paths.sys, RunDir: paths.runDir}, errOut)
	if err != nil {
		return err
	}
	if l.Upgrade, err = loader.ParseUpgrade(*upgrade); err != nil {
		return badFlag(errOut, "%v", err)
	}
	if last, known, err := loader.Read(paths.runDir, identity); known && err == nil {
		l.Last = last
	}
	l.Holders = func() ([]string, error) { return holders(*kubelet) }
	outcome := l.Run()
	fmt.Fprintf(out, "%s: %s\n", outcome.Reason, outcome.Message)
	if outcome.Ready {
		loadDrivers(l, paths.sys, out)
	}
	return outcome.Write(paths.runDir)
}

// holders returns what holds the module. It includes pods that have queues by the kubelet's answer, even while they
// do not read.
func holders(kubeletDir string) ([]string, error) {
	owners := map[capture.QueueID][]string{}
	if kubeletDir != "" {
		given, err := pods.NewKubelet(filepath.Join(kubeletDir, "pod-resources/kubelet.sock")).Allocations(context.Background())
		if err != nil {
			return nil, err
		}
		for queue, holders := range given {
			for _, pod := range holders {
				owners[queue] = append(owners[queue], pod.String())
			}
		}
	}
	return kmod.Holders(owners)
}

// loadDrivers prints the result. It does not fail: the status of a ring that needs a missing driver reports that.
func loadDrivers(l loader.Loader, sys string, out io.Writer) {
	loaded, err := l.LoadDrivers(loader.StockDrivers(sys))
	if len(loaded) > 0 {
		fmt.Fprintf(out, "Capture-aware drivers are loaded: %s\n", strings.Join(loaded, ", "))
	}
	if err != nil {
		fmt.Fprintf(out, "Capture-aware drivers that could not be loaded: %v\n", err)
	}
}
