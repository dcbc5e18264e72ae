// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"text/tabwriter"

	"golang.org/x/sys/unix"

	"github.com/ringcap/ringcap/node-agent/engine/ebpf"
	"github.com/ringcap/ringcap/node-agent/loader"
	"github.com/ringcap/ringcap/node-agent/node"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// errNotReady: the question was answered, and the answer is that the module would not serve, though it is to.
var errNotReady = errors.New("the node would not get the engine that is asked for")

// runPreflight prints what load-module would do on this kernel or, as far as files tell, on another.
func runPreflight(args []string, out, errOut io.Writer) error {
	var from moduleFlags
	flags := flag.NewFlagSet("preflight", flag.ContinueOnError)
	from.register(flags)
	sys := flags.String("sys", "/sys", "`folder` where a sysfs with securityfs is mounted")
	headers := flags.String("headers", "/lib/modules", "`folder` with <kernel release>/build")
	kernel := flags.String("kernel", "", "`release` of the kernel that is asked about; default: this one")
	format := flags.String("o", "text", "`format`: text or json")
	if err := parse(flags, args, errOut); err != nil {
		return err
	}
	if *format != "text" && *format != "json" {
		return badFlag(errOut, "-o %q: must be text or json", *format)
	}
	identity, err := node.ReadIdentity()
	if err != nil {
		return err
	}
	running := identity.KernelRelease == cmp.Or(*kernel, identity.KernelRelease)
	if !running {
		identity = node.Identity{KernelRelease: *kernel}
	}
	l, err := from.loader(identity, loader.RunningKernel{Sys: *sys}, errOut)
	if err != nil {
		return err
	}
	report := l.Preflight(loader.Node{
		Headers: *headers, Running: running, EBPF: ebpf.Probe, MissingCapabilities: missingCapabilities(), BTF: *sys + "/kernel/btf/vmlinux",
	})
	if err := printPreflight(report, *format, out); err != nil {
		return err
	}
	if report.Engine == "" || (!report.Ready && report.Reason != v1.ReasonDisabled) {
		return errNotReady
	}
	return nil
}

func printPreflight(report loader.Preflight, format string, out io.Writer) error {
	if format == "json" {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(report)
	}
	engine := cmp.Or(string(report.Engine), "none")
	fmt.Fprintf(out, "Kernel %s would capture with: %s\nModule: %s: %s\n\n", report.Kernel, engine, report.Reason, report.Message)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, c := range report.Checks {
		fmt.Fprintf(table, "%s\t%s\t%s\n", c.Name, c.State, c.Message)
	}
	return table.Flush()
}

// needed lists the capabilities that the loader or the agent needs; docs/security.md explains them.
var needed = []struct {
	name   string
	number int
}{
	{"CAP_DAC_READ_SEARCH", unix.CAP_DAC_READ_SEARCH},
	{"CAP_NET_ADMIN", unix.CAP_NET_ADMIN},
	{"CAP_SYS_MODULE", unix.CAP_SYS_MODULE},
	{"CAP_SYS_PTRACE", unix.CAP_SYS_PTRACE},
	{"CAP_MKNOD", unix.CAP_MKNOD},
	{"CAP_PERFMON", unix.CAP_PERFMON},
	{"CAP_BPF", unix.CAP_BPF},
}

// missingCapabilities returns those that this process does not have. If the kernel cannot be asked, it returns all of
// them.
func missingCapabilities() []string {
	var sets [2]unix.CapUserData
	if err := unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &sets[0]); err != nil {
		sets = [2]unix.CapUserData{}
	}
	var missing []string
	for _, c := range needed {
		if sets[c.number/32].Effective&(1<<(c.number%32)) == 0 {
			missing = append(missing, c.name)
		}
	}
	return missing
}
