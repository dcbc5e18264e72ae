// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/ringcap/ringcap/node-agent/memory"
)

// nodePaths holds the folders of a node that ringcap uses.
type nodePaths struct {
	runDir string
	bpffs  string
	sys    string
	// netSysctl is /proc/sys/net, which is read-only in containers.
	netSysctl string
}

func (p *nodePaths) register(flags *flag.FlagSet) {
	flags.StringVar(&p.runDir, "run-dir", "/run/ringcap", "`folder` of the sockets for consumers and of the node's state; must not outlive a boot")
	flags.StringVar(&p.bpffs, "bpffs", "/sys/fs/bpf", "`folder` where a bpffs is mounted, in which the eBPF engine keeps what outlives this process")
	flags.StringVar(&p.sys, "sys", "/sys", "`folder` where a sysfs of the node's network namespace is mounted, writable for threaded polling and other drivers")
	flags.StringVar(&p.netSysctl, "net-sysctl", "/proc/sys/net", "`folder` of the node's network sysctls, writable for other drivers: a new one's interface gets those of the former")
}

func (p *nodePaths) check(errOut io.Writer) error {
	for name, path := range map[string]string{"--run-dir": p.runDir, "--bpffs": p.bpffs, "--sys": p.sys, "--net-sysctl": p.netSysctl} {
		if !filepath.IsAbs(path) {
			return badFlag(errOut, "%s %q: must be an absolute path", name, path)
		}
	}
	return nil
}

// pinDir returns the eBPF engine's own folder.
func (p *nodePaths) pinDir() string { return filepath.Join(p.bpffs, "ringcap") }

func (p *nodePaths) driverFile() string { return filepath.Join(p.runDir, "drivers.json") }

// acceptedName is the name of the file with the last accepted specs.
const acceptedName = "accepted.json"

// acceptedFile returns the file of a machine without Kubernetes, on which an agent removes its objects when it ends.
// In a cluster the file is in the kubelet's folder for this plugin, which survives a boot.
func (p *nodePaths) acceptedFile() string { return filepath.Join(p.runDir, acceptedName) }

// poolFile returns the file with the virtual functions of pools.
func (p *nodePaths) poolFile() string { return filepath.Join(p.runDir, "pools.json") }

// trialsName is the name of the file with the trials of settings that can cut the node off.
const trialsName = "trials.json"

func (p *nodePaths) nicFile() string { return filepath.Join(p.runDir, "nic.json") }

// agentFlags are the flags of the agent, in a cluster and standalone.
type agentFlags struct {
	nodePaths
	nodeName       string
	kubeconfig     string
	kubeletDir     string
	metricsAddress string
	rcbpf          string
	libpcap        string
	cdiDir         string
	logLevel       slog.Level
	memoryReserve  memory.Reserve
	cutOffAfter    time.Duration

	standalone string
	hostname   string
	keep       bool
	statusJSON string
	uids       string
}

func parseAgentFlags(args []string, environment func(string) string, hostname string, errOut io.Writer) (agentFlags, error) {
	var f agentFlags
	flags := flag.NewFlagSet("agent", flag.ContinueOnError)
	f.nodePaths.register(flags)
	flags.StringVar(&f.nodeName, "node-name", environment("NODE_NAME"), "`name` of this node (default: the environment's NODE_NAME)")
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "`file` with the API server's address; default: that of the pod")
	flags.StringVar(&f.kubeletDir, "kubelet-dir", "/var/lib/kubelet", "the kubelet's `folder`")
	flags.StringVar(&f.metricsAddress, "metrics-address", ":9466", "`address` of /metrics, /healthz and /readyz; empty serves none (standalone only)")
	flags.StringVar(&f.rcbpf, "rcbpf", "", "the filter compiler's `path`; default: rcbpf beside this program, else in PATH")
	flags.StringVar(&f.cdiDir, "cdi-dir", "/var/run/cdi", "`folder` in which container runtimes look for descriptions of devices (CDI)")
	flags.StringVar(&f.libpcap, "libpcap", "/usr/lib/ringcap", "`folder` of the libpcap builds for containers, glibc/libpcap.so.0.8 and musl/libpcap.so.1 (spec.consumers.injectLibpcap)")
	flags.TextVar(&f.logLevel, "log-level", slog.LevelInfo, "least `level` that is logged: debug, info, warn, error")
	flags.TextVar(&f.memoryReserve, "memory-reserve", memory.DefaultReserve, "`share` of the node's memory that queues leave, as 20% (and at least 256Mi) or 4Gi")
	flags.DurationVar(&f.cutOffAfter, "cut-off-after", 30*time.Second, "how `long` the API server may be out of reach right after something was applied that can cut the node off, before that is undone; 10s to 10m")
	flags.StringVar(&f.standalone, "standalone", "", "serve the manifests in this `folder`, without Kubernetes")
	flags.StringVar(&f.hostname, "hostname", hostname, "standalone: the `name` that nodeSelector's kubernetes.io/hostname is compared with; other labels are taken as true")
	flags.BoolVar(&f.keep, "keep", false, "standalone: leave the capture running at the end")
	flags.StringVar(&f.statusJSON, "status-json", "", "standalone: `file` to write the status to whenever it is read, as JSON")
	flags.StringVar(&f.uids, "uids", "", "standalone: `users` (numbers, with commas) that may consume queues of the eBPF engine besides root")
	if err := parse(flags, args, errOut); err != nil {
		return f, err
	}
	return f, f.check(errOut)
}

func (f *agentFlags) check(errOut io.Writer) error {
	if err := f.nodePaths.check(errOut); err != nil {
		return err
	}
	if _, err := f.users(); err != nil {
		return badFlag(errOut, "%v", err)
	}
	switch {
	case f.standalone == "" && f.nodeName == "":
		return badFlag(errOut, "NODE_NAME is not set: give the node's name, or a folder of manifests with --standalone")
	case f.cutOffAfter < 10*time.Second || f.cutOffAfter > 10*time.Minute:
		return badFlag(errOut, "--cut-off-after %s: must be between 10s and 10m", f.cutOffAfter)
	case f.standalone == "" && f.metricsAddress == "":
		return badFlag(errOut, "--metrics-address is empty: the kubelet's probes need it")
	case f.standalone == "" && (f.keep || f.statusJSON != "" || f.uids != ""):
		return badFlag(errOut, "--keep, --status-json and --uids are for --standalone")
	}
	return nil
}

// pluginDir returns the kubelet's folder for ringcap.
func (f *agentFlags) pluginDir() string { return filepath.Join(f.kubeletDir, "plugins", "ringcap.io") }

// users returns the users of --uids.
func (f *agentFlags) users() ([]uint32, error) {
	var users []uint32
	for _, text := range strings.Split(f.uids, ",") {
		if text == "" {
			continue
		}
		uid, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("--uids %q: %q is not a user's number", f.uids, text)
		}
		users = append(users, uint32(uid))
	}
	return users, nil
}
