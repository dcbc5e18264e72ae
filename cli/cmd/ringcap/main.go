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
	// Who reads standard output may go before us: that is an error of a write, after which there is something to remove.
	signal.Ignore(syscall.SIGPIPE)
	// What libraries say of connections that we end is not for people.
	ctrllog.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second interrupt ends it at once.
	context.AfterFunc(ctx, stop)
	code := command.Run(ctx, os.Args, version, command.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
	stop()
	os.Exit(code)
}
