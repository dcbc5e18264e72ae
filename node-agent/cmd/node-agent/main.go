// SPDX-License-Identifier: Apache-2.0

// Command node-agent runs the data path of one node: in a cluster, from its NodeCapture; with --standalone, from
// manifests in a folder. `node-agent help` lists its commands.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"

	"github.com/go-logr/logr"
	"golang.org/x/sys/unix"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// version is set by the linker.
var version = "unknown"

const usage = `node-agent captures packets on one node, for consumers that need no privilege.

  node-agent [agent] [flags]                 serve the node's NodeCapture (in a cluster; NODE_NAME must be set)
  node-agent [agent] --standalone DIR        serve the manifests in DIR, without Kubernetes
  node-agent load-module [flags]             load the kernel module, or note why not; always exits 0 then
  node-agent build-module [flags]            compile the kernel module from the node's headers, for load-module
  node-agent preflight [flags]               print which engine this node would get and why, and load nothing
  node-agent cleanup [flags]                 remove everything that ringcap made on this node
  node-agent version

node-agent COMMAND --help lists a command's flags.
`

// errUsage means that the command line is wrong, and the user was told so.
var errUsage = errors.New("usage")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		os.Exit(2)
	case errors.Is(err, errNotReady):
		os.Exit(3)
	case err != nil:
		fmt.Fprintln(os.Stderr, "node-agent:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out, errOut io.Writer) error {
	command := "agent"
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		command, args = args[0], args[1:]
	}
	switch command {
	case "agent":
		return runAgent(ctx, args, out, errOut)
	case "load-module":
		return runLoadModule(args, out, errOut)
	case "build-module":
		return runBuildModule(ctx, args, out, errOut)
	case "preflight":
		return runPreflight(args, out, errOut)
	case "cleanup":
		return runCleanup(ctx, args, out, errOut)
	case "version":
		fmt.Fprintln(out, version)
		return nil
	case "help":
		fmt.Fprint(out, usage)
		return nil
	default:
		fmt.Fprintf(errOut, "node-agent: no command %q\n\n%s", command, usage)
		return errUsage
	}
}

// parse parses a command's flags and takes no other arguments.
func parse(flags *flag.FlagSet, args []string, errOut io.Writer) error {
	flags.SetOutput(errOut)
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return errUsage
	}
	if flags.NArg() > 0 {
		fmt.Fprintf(errOut, "node-agent %s: unexpected argument %q\n", flags.Name(), flags.Arg(0))
		return errUsage
	}
	return nil
}

// badFlag tells the user what is wrong with a flag's value.
func badFlag(errOut io.Writer, format string, args ...any) error {
	fmt.Fprintf(errOut, "node-agent: "+format+"\n", args...)
	return errUsage
}

// setLog sets this process's log, including that of the Kubernetes libraries.
func setLog(level slog.Level, errOut io.Writer) {
	handler := slog.NewTextHandler(errOut, &slog.HandlerOptions{Level: level})
	slog.SetDefault(slog.New(handler))
	ctrllog.SetLogger(logr.FromSlogHandler(handler))
}
