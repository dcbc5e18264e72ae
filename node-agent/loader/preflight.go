// SPDX-License-Identifier: Apache-2.0

package loader

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// State is the result of a Check.
type State string

// The states. Unknown means that it cannot be determined here.
const (
	Yes     State = "yes"
	No      State = "no"
	Unknown State = "unknown"
)

// Check is one condition that a node's engine depends on.
type Check struct {
	Name    string `json:"name"`
	State   State  `json:"state"`
	Message string `json:"message"`
}

// Preflight reports which engine a node would get, without changing anything.
type Preflight struct {
	Kernel string `json:"kernel"`
	// Running means that this kernel is the one that runs.
	Running bool `json:"running"`
	// Engine that rings with engine Auto would get; empty if none.
	Engine v1.Engine `json:"engine"`
	// Ready, Reason and Message are those of ModuleReady.
	Ready   bool    `json:"ready"`
	Reason  string  `json:"reason"`
	Message string  `json:"message"`
	Checks  []Check `json:"checks"`
}

// Node holds what a preflight needs besides the kernel's answers.
type Node struct {
	// Headers is the node's /lib/modules.
	Headers string
	// Running means that the loader's Identity is that of the running kernel.
	Running bool
	// EBPF returns why the eBPF engine cannot run; nil if it can.
	EBPF func() error
	// MissingCapabilities lists capabilities that the loader or the agent needs and that this process lacks.
	MissingCapabilities []string
	// BTF is the path of the kernel's type information.
	BTF string
}

// Preflight checks everything that Run would check, and loads nothing.
func (l Loader) Preflight(n Node) Preflight {
	p := Preflight{Kernel: l.Identity.KernelRelease, Running: n.Running}
	outcome := l.foresee(n.Running)
	p.Ready, p.Reason, p.Message = outcome.Ready, outcome.Reason, outcome.Message
	p.Checks = []Check{l.checkPrebuilt(), l.checkHeaders(n.Headers)}
	ebpf := error(nil)
	if n.Running {
		ebpf = n.EBPF()
		p.Checks = append(p.Checks, l.checkModules(), l.checkUnsigned(), checkBTF(n.BTF), checkEBPF(ebpf), checkCapabilities(n.MissingCapabilities))
	} else {
		p.Checks = append(p.Checks, Check{"kernel", Unknown, fmt.Sprintf("kernel %s does not run here: what it takes cannot be asked", p.Kernel)})
	}
	switch {
	case p.Ready:
		p.Engine = v1.EngineKernelModule
	case ebpf == nil:
		p.Engine = v1.EngineEBPF
	}
	return p
}

// foresee returns the outcome that Run would have, as far as that can be known.
func (l Loader) foresee(running bool) Outcome {
	if running || l.Mode == Disabled {
		if outcome, done := l.without(); done {
			return outcome
		}
	}
	path, missing := l.find()
	if path == "" {
		return missing
	}
	return l.foreseeFile(path, running)
}

// foreseeFile returns the expected outcome of loading a file.
func (l Loader) foreseeFile(path string, running bool) Outcome {
	file, err := ReadFile(path)
	switch {
	case err != nil || file.Release != l.Identity.KernelRelease:
		return l.outcome(v1.ReasonInvalidModuleFormat, "%s", l.misfit(path))
	case running && len(l.Kernel.Missing(file.Undefined)) > 0:
		return l.outcome(v1.ReasonSymbolMissing, "%s", l.lacks(path))
	case running && !file.Signed && l.Signer == nil && l.Kernel.SignaturesEnforced():
		return l.outcome(v1.ReasonKeyRejected, "%s", l.wantsKey(path))
	case running && !file.Signed && l.Signer == nil && l.lockedDown():
		return l.outcome(v1.ReasonLockdown, "%s", l.wantsSignature(path))
	}
	o := l.outcome(v1.ReasonLoaded, "%s would be loaded", path)
	if l.Signer != nil || file.Signed {
		o.Message += ", if the kernel trusts its signature's key, which only loading it shows"
	}
	o.Ready, o.Version = true, file.Version
	return o
}

func (l Loader) lockedDown() bool {
	mode := l.Kernel.Lockdown()
	return mode != "" && mode != "none"
}

func (l Loader) checkPrebuilt() Check {
	path := filepath.Join(l.ModulesDir, l.Identity.KernelRelease, moduleFile)
	file, err := ReadFile(path)
	switch {
	case os.IsNotExist(err):
		return Check{"prebuilt", No, fmt.Sprintf("%s is not there; modules are there for: %s", path, l.releases())}
	case err != nil:
		return Check{"prebuilt", No, err.Error()}
	}
	signed := "not signed"
	if file.Signed {
		signed = "signed"
	}
	return Check{"prebuilt", Yes, fmt.Sprintf("%s is version %s for kernel %s, %s", path, file.Version, file.Release, signed)}
}

func (l Loader) checkHeaders(modules string) Check {
	build := headers(modules, l.Identity.KernelRelease)
	if _, err := os.Stat(filepath.Join(build, "Makefile")); err != nil {
		return Check{"headers", No, headersMissing(build, l.Identity.KernelRelease)}
	}
	return Check{"headers", Yes, build}
}

func (l Loader) checkModules() Check {
	if !l.Kernel.SupportsModules() {
		return Check{"modules", No, "this kernel was built without loadable modules"}
	}
	return Check{"modules", Yes, "this kernel has loadable modules"}
}

// checkUnsigned reports whether the kernel accepts unsigned modules.
func (l Loader) checkUnsigned() Check {
	lockdown := l.Kernel.Lockdown()
	switch {
	case l.Kernel.SignaturesEnforced():
		return Check{"unsigned modules", No, "the kernel takes modules only that are signed with a key that it trusts (module.sig_enforce)"}
	case l.lockedDown():
		return Check{"unsigned modules", No, fmt.Sprintf("the kernel is locked down: %s", lockdown)}
	case lockdown == "":
		return Check{"unsigned modules", Unknown, "signatures are not enforced; whether the kernel is locked down cannot be read (securityfs)"}
	}
	return Check{"unsigned modules", Yes, "signatures are not enforced, and the kernel is not locked down"}
}

func checkBTF(path string) Check {
	if _, err := os.Stat(path); err != nil {
		return Check{"btf", No, fmt.Sprintf("%v: ringcap does not need it", err)}
	}
	return Check{"btf", Yes, path}
}

func checkEBPF(err error) Check {
	if err != nil {
		return Check{"ebpf", No, err.Error()}
	}
	return Check{"ebpf", Yes, "the kernel's verifier takes the eBPF engine's program"}
}

func checkCapabilities(missing []string) Check {
	if len(missing) > 0 {
		return Check{"capabilities", No, "this process lacks " + strings.Join(missing, ", ")}
	}
	return Check{"capabilities", Yes, "this process has all that loader and agent need"}
}
