// SPDX-License-Identifier: Apache-2.0

// Command ringcap is for people who capture packets with ringcap. Installed as kubectl-ringcap it is `kubectl ringcap`.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ringcap/ringcap/cli/command"
)

// version is set by the linker.
var version = "unknown"

func main() {
	// The reader of standard output may end before us. The write then has to fail, and not end this process, which must clean up.
	signal.Ignore(syscall.SIGPIPE)
	// Libraries log connections that we end; users have no use for that.
	ctrllog.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second interrupt ends it at once.
	context.AfterFunc(ctx, stop)
	code := command.Run(ctx, os.Args, version, command.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
	stop()
	os.Exit(code)
}
