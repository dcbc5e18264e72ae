// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/ringcap/ringcap/node-agent/capture"
	"github.com/ringcap/ringcap/node-agent/containers"
	"github.com/ringcap/ringcap/node-agent/datapath"
	"github.com/ringcap/ringcap/node-agent/driver"
	"github.com/ringcap/ringcap/node-agent/engine/ebpf"
	"github.com/ringcap/ringcap/node-agent/engine/kmod"
	"github.com/ringcap/ringcap/node-agent/loader"
	"github.com/ringcap/ringcap/node-agent/nic"
	"github.com/ringcap/ringcap/node-agent/node"
	"github.com/ringcap/ringcap/operator/api/sizing"
)

// runCleanup removes rings, queues, pins, sockets and records, and restores interfaces. It leaves what a consumer
// holds, and names it. The kernel module stays loaded unless its removal is asked for.
func runCleanup(ctx context.Context, args []string, out, errOut io.Writer) error {
	var paths nodePaths
	flags := flag.NewFlagSet("cleanup", flag.ContinueOnError)
	paths.register(flags)
	unload := flags.Bool("unload", false, "unload the module and capture-aware drivers too, where a load-module loaded them in this boot")
	pluginDir := flags.String("plugin-dir", "", "`folder` with the libpcap for containers and what was accepted and tried last (<kubelet-dir>/plugins/ringcap.io), to be removed; empty without Kubernetes")
	if err := parse(flags, args, errOut); err != nil {
		return err
	}
	if err := paths.check(errOut); err != nil {
		return err
	}
	setLog(slog.LevelInfo, errOut)
	identity, err := node.ReadIdentity()
	if err != nil {
		return err
	}
	// This is read before it is removed.
	last, known, err := loader.Read(paths.runDir, identity)
	if err != nil {
		return err
	}
	if err := removeAll(ctx, paths, identity); err != nil {
		return fmt.Errorf("not everything could be removed: %w", err)
	}
	if *unload && known && last.Ours {
		if err := unloadModules(last, paths); err != nil {
			return err
		}
	}
	if *pluginDir != "" {
		if err := removePluginDir(*pluginDir); err != nil {
			return err
		}
	}
	fmt.Fprintln(out, "Everything that ringcap made on this node is removed.")
	return nil
}

// unloadModules unloads what load-module loaded. If that fails, the record of the load stays for the next try.
func unloadModules(last loader.Outcome, paths nodePaths) error {
	kernel := loader.RunningKernel{Sys: paths.sys, RunDir: paths.runDir}
	if kernel.SourceVersion() != last.SourceVersion {
		return nil // unloaded since, or loaded by somebody else
	}
	err := kernel.UnloadDrivers()
	if err == nil {
		err = kernel.Unload()
	}
	if err != nil {
		return errors.Join(fmt.Errorf("the module stays loaded: it is in use by %w", err), last.Write(paths.runDir))
	}
	return nil
}

func removePluginDir(folder string) error {
	err := errors.Join((containers.Library{To: folder}).Withdraw(), removeRecords(filepath.Join(folder, acceptedName)),
		removeRecords(filepath.Join(folder, trialsName)))
	if err != nil {
		return err
	}
	// Other files in there are not ours.
	_ = os.Remove(folder)
	return nil
}

// removeAll continues to the end even if a step fails.
func removeAll(ctx context.Context, paths nodePaths, identity node.Identity) error {
	problems := []error{cleanEBPF(ctx, paths), cleanModule(ctx, paths)}
	_, err := driver.New(paths.driverFile(), identity.BootID, paths.sys, paths.netSysctl).Apply(nil)
	problems = append(problems, err)
	outcomes, err := nic.New(paths.nicFile(), identity.BootID, paths.sys).Apply(nil)
	problems = append(problems, err)
	for _, outcome := range outcomes {
		problems = append(problems, outcome.Err)
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	// It removes only ringcap's files from the folder. The folder stays if it is not empty afterwards, or if it is a
	// mount point as in the agent's pod.
	nodes, outcome := filepath.Join(paths.runDir, kmod.NodesDir), filepath.Join(paths.runDir, loader.OutcomeFile)
	unfinished := []string{node.Unfinished(outcome), node.Unfinished(paths.poolFile()), node.Unfinished(paths.nicFile()), node.Unfinished(paths.driverFile())}
	for _, path := range append(unfinished, nodes, outcome, paths.poolFile()) {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	if err := errors.Join(removeRecords(paths.acceptedFile()), containers.NewNames(paths.runDir).RemoveAll()); err != nil {
		return err
	}
	if err := os.Remove(paths.runDir); err != nil {
		slog.Debug("The run folder stays", "why", err)
	}
	return nil
}

// removeRecords removes the record of what was accepted or tried. It also removes a copy that was set aside, and an
// unfinished file of an agent that was killed.
func removeRecords(path string) error {
	return errors.Join(os.RemoveAll(path), os.RemoveAll(datapath.Aside(path)), os.RemoveAll(node.Unfinished(path)))
}

func cleanEBPF(ctx context.Context, paths nodePaths) error {
	if _, err := os.Stat(paths.pinDir()); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	engine, err := ebpf.New(ebpf.Options{PinDir: paths.pinDir(), RunDir: paths.runDir})
	if err != nil {
		return err
	}
	return errors.Join(clean(ctx, engine), engine.Close(), os.RemoveAll(paths.pinDir()))
}

func cleanModule(ctx context.Context, paths nodePaths) error {
	if _, err := kmod.Probe(); err != nil {
		return nil
	}
	return clean(ctx, kmod.New(paths.runDir, sizing.MaxLanes))
}

func clean(ctx context.Context, engine capture.Engine) error {
	failed, err := engine.Apply(ctx, capture.Plan{}, capture.Observation{})
	for name, problem := range failed {
		err = errors.Join(err, fmt.Errorf("%s: %w", name, problem))
	}
	return err
}
