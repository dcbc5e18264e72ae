// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/ringcap/ringcap/node-agent/capture"
	"github.com/ringcap/ringcap/node-agent/containers"
	"github.com/ringcap/ringcap/node-agent/datapath"
	"github.com/ringcap/ringcap/node-agent/driver"
	"github.com/ringcap/ringcap/node-agent/engine/ebpf"
	"github.com/ringcap/ringcap/node-agent/engine/kmod"
	"github.com/ringcap/ringcap/node-agent/loader"
	"github.com/ringcap/ringcap/node-agent/memory"
	"github.com/ringcap/ringcap/node-agent/nic"
	"github.com/ringcap/ringcap/node-agent/node"
	"github.com/ringcap/ringcap/node-agent/plan"
	"github.com/ringcap/ringcap/node-agent/status"
	"github.com/ringcap/ringcap/operator/api/sizing"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// parts are the components of an agent.
type parts struct {
	reconciler        *datapath.Reconciler
	module            moduleState
	names             *containers.Names
	changed, activity datapath.Signal
}

func newParts(ctx context.Context, f agentFlags, identity node.Identity, who consumers) parts {
	p := parts{changed: datapath.NewSignal(), activity: datapath.NewSignal()}
	p.module = moduleState{runDir: f.runDir, sys: f.sys, identity: identity}
	p.names = containers.NewNames(f.runDir)
	p.reconciler = &datapath.Reconciler{
		Providers:  []*datapath.Provider{p.moduleProvider(ctx, f.nodePaths), ebpfProvider(f, who, ebpf.CheckOverlap)},
		Drivers:    driver.New(f.driverFile(), identity.BootID, f.sys, f.netSysctl),
		NICs:       nic.New(f.nicFile(), identity.BootID, f.sys),
		Compile:    compiler(ctx, f.rcbpf),
		Interfaces: node.Interfaces,
		Memory:     memory.Node{Reserve: f.memoryReserve}.Read,
		Names:      p.names,
		Traffic:    func() (map[string]string, error) { return node.Traffic(nil) },
	}
	return p
}

// consumers tells which processes may have queues: those that the authorizer permits, else those of the users.
type consumers struct {
	authorizer ebpf.Authorizer
	users      []uint32
}

func ebpfProvider(f agentFlags, who consumers, safe func() error) *datapath.Provider {
	unsafe := errors.New("not tried yet")
	tried := func() error {
		if unsafe == nil || errors.Is(unsafe, ebpf.ErrOverlap) {
			return unsafe
		}
		before := unsafe.Error()
		unsafe = safe()
		if unsafe != nil && !errors.Is(unsafe, ebpf.ErrOverlap) && unsafe.Error() != before {
			slog.Warn("Whether this kernel has the fix of CVE-2024-41009 could not be checked", "error", unsafe)
		}
		return unsafe
	}
	return &datapath.Provider{
		Kind: v1.EngineEBPF,
		// Other reasons show when it is opened.
		Probe: func(context.Context) plan.EngineFact {
			// For another error, the engine in use is kept, and the next call tries again.
			if err := tried(); errors.Is(err, ebpf.ErrOverlap) {
				return plan.EngineFact{Why: err.Error()}
			}
			return plan.EngineFact{
				Available: true, Why: "eBPF programs at tc", Lanes: ebpf.DefaultLanes(), LaneTail: sizing.EBPFTail, MaxQueue: ebpf.MaxQueue,
				SlotOverhead: sizing.EBPFSlot,
			}
		},
		// This removes the capture that an agent without this check left.
		Present: func() bool {
			_, err := os.Stat(f.pinDir())
			return err == nil
		},
		Open: func(context.Context) (capture.Engine, error) {
			return ebpf.New(ebpf.Options{
				PinDir: f.pinDir(), RunDir: f.runDir, Logger: slog.Default(), Authorizer: who.authorizer, Users: who.users,
				Memory: memory.Node{Reserve: f.memoryReserve}.Read,
			})
		},
	}
}

func (p parts) moduleProvider(ctx context.Context, paths nodePaths) *datapath.Provider {
	lanes := moduleLanes()
	var once sync.Once
	return &datapath.Provider{
		Kind: v1.EngineKernelModule,
		Probe: func(context.Context) plan.EngineFact {
			o := p.module.outcome()
			return plan.EngineFact{Available: o.Ready, Why: o.Message, Lanes: lanes, SlotOverhead: sizing.ModuleSlot}
		},
		Present: func() bool {
			_, err := kmod.Probe()
			return err == nil
		},
		Open: func(context.Context) (capture.Engine, error) {
			once.Do(func() { go watchModule(ctx, p.activity, p.changed) })
			return kmod.New(paths.runDir, lanes), nil
		},
	}
}

// moduleLanes returns one lane for each CPU that may produce. With several CPUs it adds a shared lane. The number is
// within bounds.
func moduleLanes() int {
	cpus, err := node.PossibleCPUs()
	if err != nil {
		slog.Warn("The number of CPUs cannot be read; queues get the most lanes", "error", err)
		return sizing.MaxLanes
	}
	if cpus == 1 {
		return 1
	}
	return min(cpus+1, sizing.MaxLanes)
}

// watchModule follows the module's events, even if the module is reloaded.
func watchModule(ctx context.Context, activity, changed datapath.Signal) {
	const again = 5 * time.Second
	for ctx.Err() == nil {
		if err := kmod.Watch(ctx, activity.Raise, changed.Raise); err != nil {
			slog.Debug("The module's events cannot be followed", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(again):
		}
	}
}

// moduleState returns the present state of the module.
type moduleState struct {
	runDir   string
	sys      string
	identity node.Identity
}

func (m moduleState) outcome() loader.Outcome {
	last, known, err := loader.Read(m.runDir, m.identity)
	if err != nil {
		slog.Warn("The outcome of the module loader cannot be read", "error", err)
	}
	l := loader.Loader{Identity: m.identity, Kernel: loader.RunningKernel{Sys: m.sys}}
	return l.State(last, known)
}

func (m moduleState) status() status.Module {
	o := m.outcome()
	return status.Module{Ready: o.Ready, Reason: o.Reason, Message: o.Message, Version: o.Version, Available: o.Available}
}
