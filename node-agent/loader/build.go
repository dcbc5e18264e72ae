// SPDX-License-Identifier: Apache-2.0

package loader

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/ringcap/ringcap/node-agent/node"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// moduleFile is the module's file name in a folder of modules for several kernels: RELEASE/ringcap.ko.
const moduleFile = "ringcap.ko"

// Builder compiles the module for this node's kernel. It needs a compiler, make and no privilege. A Loader loads the
// result.
type Builder struct {
	// Source is the folder with the module's Kbuild.
	Source string
	// Headers is the node's /lib/modules.
	Headers string
	// Out gets RELEASE/ringcap.ko, or an outcome that explains why there is none.
	Out string
	// Log gets the output of make.
	Log      io.Writer
	Identity node.Identity
}

// headers returns the path of a kernel's headers below /lib/modules.
func headers(modules, release string) string { return filepath.Join(modules, release, "build") }

// Run compiles the module, unless that was already done. It writes the result to Out for the loader.
func (b Builder) Run(ctx context.Context) (Outcome, error) {
	outcome := b.build(ctx)
	return outcome, outcome.Write(b.Out)
}

func (b Builder) build(ctx context.Context) Outcome {
	release := b.Identity.KernelRelease
	made := filepath.Join(b.Out, release, moduleFile)
	if _, err := os.Stat(made); err == nil {
		return b.outcome(v1.ReasonLoaded, "%s was built before", made)
	}
	build := headers(b.Headers, release)
	if _, err := os.Stat(filepath.Join(build, "Makefile")); err != nil {
		return b.outcome(v1.ReasonHeadersMissing, "%s", headersMissing(build, release))
	}
	work := filepath.Join(b.Out, "work")
	if err := b.prepare(work); err != nil {
		return b.outcome(v1.ReasonBuildFailed, "prepare the build: %v", err)
	}
	// A module's BTF requires the kernel's own image and another program, and nothing here uses it.
	make := exec.CommandContext(ctx, "make", "-C", build, "M="+work, fmt.Sprintf("-j%d", runtime.NumCPU()),
		"CC=gcc", "HOSTCC=gcc", "CONFIG_DEBUG_INFO_BTF_MODULES=", "modules")
	said, err := make.CombinedOutput()
	b.Log.Write(said)
	if err != nil {
		return b.outcome(v1.ReasonBuildFailed, "the module does not compile with %s (%v): %s. The headers have to be complete, and the compiler that of "+
			"the node's distribution: see the log of the container build-module", build, err, firstErrors(string(said)))
	}
	if err := os.Rename(filepath.Join(work, moduleFile), made); err != nil {
		return b.outcome(v1.ReasonBuildFailed, "keep what was built: %v", err)
	}
	if err := os.RemoveAll(work); err != nil {
		return b.outcome(v1.ReasonBuildFailed, "clean up behind the build: %v", err)
	}
	return b.outcome(v1.ReasonLoaded, "%s was built with %s", made, build)
}

// prepare makes a copy of the sources, because make writes among them.
func (b Builder) prepare(work string) error {
	if err := os.RemoveAll(work); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(b.Out, b.Identity.KernelRelease), 0o755); err != nil {
		return err
	}
	return os.CopyFS(work, os.DirFS(b.Source))
}

func (b Builder) outcome(reason, format string, args ...any) Outcome {
	return Outcome{Identity: b.Identity, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

func headersMissing(build, release string) string {
	return fmt.Sprintf("the node has no headers of kernel %s (%s): install linux-headers-%s (Debian, Ubuntu) or kernel-devel-%s (Fedora, RHEL) on it",
		release, build, release, release)
}

// firstErrors returns the useful part of a compiler's output.
func firstErrors(said string) string {
	const limit = 3
	var found, last []string
	for line := range strings.Lines(said) {
		line = strings.TrimSpace(line)
		if strings.Contains(line, "error") || strings.Contains(line, "***") {
			found = append(found, line)
		}
		if line != "" {
			last = append(last, line)
		}
	}
	if len(found) == 0 {
		found = last[max(0, len(last)-limit):]
	}
	return strings.Join(found[:min(len(found), limit)], " / ")
}
