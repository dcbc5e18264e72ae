// SPDX-License-Identifier: Apache-2.0

// Package loader loads the kernel module, or reports why it is not loaded. It never makes a node fail, because the
// eBPF engine can still serve.
package loader

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/node-agent/engine/kmod"
	"github.com/ringcap/ringcap/node-agent/node"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Mode selects what the loader may do.
type Mode string

// The modes.
const (
	// Load loads the module of this kernel from the image, unless one is loaded.
	Load Mode = "Load"
	// Preloaded uses a module that somebody else loaded, and loads none.
	Preloaded Mode = "Preloaded"
	// Disabled uses no module, even if one is loaded.
	Disabled Mode = "Disabled"
)

// ParseMode checks a mode.
func ParseMode(text string) (Mode, error) {
	if m := Mode(text); slices.Contains([]Mode{Load, Preloaded, Disabled}, m) {
		return m, nil
	}
	return "", fmt.Errorf("--mode %q: must be Load, Preloaded or Disabled", text)
}

// Kernel is the loader's interface to the kernel.
type Kernel interface {
	// Probe returns the identity of a loaded module.
	Probe() (kmod.Info, error)
	// Load loads a module from a file. The error is the kernel's errno. words are its log lines about the module, if
	// they can be read.
	Load(path string) (words string, err error)
	// LoadContent loads a module from memory.
	LoadContent(module []byte) (words string, err error)
	// SupportsModules reports whether this kernel supports modules at all.
	SupportsModules() bool
	// SignaturesEnforced reports whether the kernel accepts only modules that are signed with a key that it trusts.
	SignaturesEnforced() bool
	// Lockdown returns the kernel's lockdown mode: none, integrity, confidentiality; empty if it cannot be read.
	Lockdown() string
	// SourceVersion returns that of the loaded module's File; empty if it has none.
	SourceVersion() string
	// Unload removes what this program made in the module, and the module. The error names what holds the module.
	Unload() error
	// Missing returns the symbols that the kernel does not have.
	Missing(symbols []string) []string
}

// Loader decides what to load, and loads it.
type Loader struct {
	Mode Mode
	// ModulesDir is the folder with the image's modules.
	ModulesDir string
	// BuiltDir is a Builder's Out; empty if there is none.
	BuiltDir string
	// Signer signs the modules that are loaded; nil to sign none.
	Signer *Signer
	// Upgrade is the policy for a module that is already loaded. Last is the loader's previous outcome in this boot.
	// Holders lists who holds the module.
	Upgrade  Upgrade
	Last     Outcome
	Holders  func() ([]string, error)
	Identity node.Identity
	Kernel   Kernel
}

// Run loads the module, or returns why it cannot.
func (l Loader) Run() Outcome {
	if outcome, done := l.without(); done {
		if outcome.Version != "" {
			return l.upgrade(outcome)
		}
		return outcome
	}
	path, missing := l.find()
	if path == "" {
		return missing
	}
	return l.loadPath(path)
}

func (l Loader) loadPath(path string) Outcome {
	if words, err := l.load(path); err != nil && !errors.Is(err, unix.EEXIST) {
		return l.explain(path, words, err)
	}
	info, err := l.Kernel.Probe()
	if err != nil {
		return l.outcome(v1.ReasonLoadFailed, "the module was loaded and does not answer: %v", err)
	}
	o := l.loaded(info, "was loaded from "+path)
	o.Ours, o.SourceVersion = true, l.Kernel.SourceVersion()
	return o
}

// without returns the outcome if no module must be loaded. It returns false if one must be.
func (l Loader) without() (Outcome, bool) {
	if l.Mode == Disabled {
		return l.outcome(v1.ReasonDisabled, "the kernel module is disabled (module.mode: Disabled)"), true
	}
	if info, err := l.Kernel.Probe(); err == nil {
		return l.loaded(info, "was loaded before"), true
	}
	if !l.Kernel.SupportsModules() {
		return l.outcome(v1.ReasonModulesUnsupported, "kernel %s was built without support for modules", l.Identity.KernelRelease), true
	}
	if l.Mode == Preloaded {
		return l.outcome(v1.ReasonLoadFailed, "module.mode is Preloaded, and no ringcap module is loaded: load it on the node, or set module.mode to Load"), true
	}
	return Outcome{}, false
}

// find returns the file of the module for this kernel: the image's, or else the one that was built. If there is none,
// it returns the reason.
func (l Loader) find() (string, Outcome) {
	release := l.Identity.KernelRelease
	for _, folder := range []string{l.ModulesDir, l.BuiltDir} {
		path := filepath.Join(folder, release, moduleFile)
		if _, err := os.Stat(path); folder != "" && err == nil {
			return path, Outcome{}
		}
	}
	if l.BuiltDir != "" {
		if built, known, err := Read(l.BuiltDir, l.Identity); err == nil && known {
			return "", built
		}
	}
	return "", l.outcome(v1.ReasonNoPrebuiltModule, "the image has no module for kernel %s; it has them for: %s. Put one into it (kmod/build), "+
		"or have it built on the node (agent.module.build)", release, l.releases())
}

// load loads a module's file, signed if there is a key.
func (l Loader) load(path string) (words string, err error) {
	if l.Signer == nil {
		return l.Kernel.Load(path)
	}
	module, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	signed, err := l.Signer.Sign(module)
	if err != nil {
		return "", err
	}
	return l.Kernel.LoadContent(signed)
}

// State returns the present state of the module, without loading anything. The agent reports this: the loader's
// outcome, unless the module was loaded or unloaded since.
func (l Loader) State(last Outcome, known bool) Outcome {
	if l.Mode == Disabled || (known && last.Reason == v1.ReasonDisabled) {
		return l.outcome(v1.ReasonDisabled, "the kernel module is disabled (module.mode: Disabled)")
	}
	info, err := l.Kernel.Probe()
	switch {
	case err == nil:
		now := l.loaded(info, "is loaded")
		if known && last.Version == now.Version {
			now.Ours, now.SourceVersion, now.Available = last.Ours, last.SourceVersion, last.Available
			if last.Reason == v1.ReasonInUse {
				now.Reason, now.Message = last.Reason, last.Message
			}
		}
		return now
	case known && (!last.Ready || !errors.Is(err, os.ErrNotExist)):
		// The module could not be asked. This does not mean that it is gone: its rings and consumers stay.
		return last
	case known:
		return l.outcome(v1.ReasonLoadFailed, "the module was loaded and is gone: %v; restart the agent's pod to load it again", err)
	case !l.Kernel.SupportsModules():
		return l.outcome(v1.ReasonModulesUnsupported, "kernel %s was built without support for modules", l.Identity.KernelRelease)
	default:
		return l.outcome(v1.ReasonNoPrebuiltModule, "no ringcap module is loaded in kernel %s", l.Identity.KernelRelease)
	}
}

func (l Loader) loaded(info kmod.Info, how string) Outcome {
	if !info.Compatible() {
		o := l.outcome(v1.ReasonIncompatible, "module %s %s and %s", info.Version, how, info.Incompatibility())
		o.Version = info.Version
		return o
	}
	o := l.outcome(v1.ReasonLoaded, "module %s %s", info.Version, how)
	o.Ready, o.Version = true, info.Version
	return o
}

func (l Loader) outcome(reason, format string, args ...any) Outcome {
	return Outcome{Identity: l.Identity, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// releases lists the kernels for which the image has modules.
func (l Loader) releases() string {
	paths, _ := filepath.Glob(filepath.Join(l.ModulesDir, "*", "ringcap.ko"))
	var found []string
	for _, path := range paths {
		found = append(found, filepath.Base(filepath.Dir(path)))
	}
	if len(found) == 0 {
		return "none"
	}
	return strings.Join(found, ", ")
}
