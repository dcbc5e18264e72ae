// SPDX-License-Identifier: Apache-2.0

// Package standalone runs the data path of one machine from manifests in a folder, without Kubernetes.
package standalone

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringcap/ringcap/node-agent/datapath"
	"github.com/ringcap/ringcap/node-agent/node"
	"github.com/ringcap/ringcap/node-agent/status"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// resync is the interval at which everything is checked, including the folder.
const resync = 30 * time.Second

// Options are those of the command line.
type Options struct {
	// Folder of the manifests. Hostname is compared with nodeSelector's kubernetes.io/hostname.
	Folder, Hostname string
	// Keep leaves the capture running at the end. Otherwise everything is removed.
	Keep bool
	// StatusFile gets a FileStatus as JSON, whenever it changes, for scripts; empty for none.
	StatusFile string
	Refresh    time.Duration
	Out        io.Writer
}

// Runner serves a folder of manifests.
type Runner struct {
	Options    Options
	Reconciler *datapath.Reconciler
	Identity   node.Identity
	// Module returns the state of the kernel module.
	Module func() status.Module
	// Publish gets each report, for the metrics.
	Publish func(datapath.Report)
	// Reconciled gets the duration and the error of each reconciliation.
	Reconciled func(took time.Duration, err error)
	// Remove removes everything that was made on this machine.
	Remove func(context.Context) error
	// Changed and Activity wake the loop.
	Changed, Activity datapath.Signal

	folder Folder
	// edited means that something in the folder changed, and nothing since. readTime is when it was read last.
	edited   atomic.Bool
	readTime time.Time

	mu        sync.Mutex
	manifests Manifests
	printed   string
	last      datapath.Report
}

// Run serves until ctx ends, then removes everything unless the options keep it.
func (r *Runner) Run(ctx context.Context) error {
	r.folder = Folder{Path: r.Options.Folder, Hostname: r.Options.Hostname}
	if err := watchFolder(ctx, r.Options.Folder, r.folderChanged); err != nil {
		return err
	}
	if err := node.WatchInterfaces(ctx, r.Changed.Raise); err != nil {
		return err
	}
	r.manifests.Spec = r.Reconciler.Accepted.Load()
	if err := r.read(); err != nil {
		return err
	}
	r.readTime = time.Now()
	loop := datapath.Loop{
		Reconciler: r.Reconciler, Desired: r.desired, Changed: r.Changed, Activity: r.Activity,
		Resync: resync, Refresh: r.Options.Refresh, Publish: r.publish, Reconciled: r.Reconciled,
	}
	loop.Run(ctx)
	return r.finish()
}

// read reads the folder. If a document is refused, its earlier version stays.
func (r *Runner) read() error {
	manifests, err := r.folder.Read()
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	manifests.keep(r.manifests)
	r.manifests = manifests
	return nil
}

func (r *Runner) folderChanged() {
	r.edited.Store(true)
	r.Changed.Raise()
}

// desired reads the folder again if it was edited, or if it was not read for long. It does not read it at other
// times, because an editor may have just emptied a file. While the folder cannot be read, the last spec stays.
func (r *Runner) desired() (v1.NodeCaptureSpec, int64, bool) {
	if r.edited.Swap(false) || time.Since(r.readTime) >= resync {
		if err := r.read(); err != nil {
			slog.Error("The manifests cannot be read; the last ones stay", "error", err)
		}
		r.readTime = time.Now()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.manifests.Spec, 1, true
}

func (r *Runner) publish(_ context.Context, report datapath.Report) {
	r.last = report
	built := r.build(report)
	if state := stateText(r.manifests, built); state != r.printed {
		r.printed = state
		fmt.Fprint(r.Options.Out, state)
	}
	if r.Options.StatusFile != "" {
		if err := node.WriteJSON(r.Options.StatusFile, fileStatus(r.manifests, built)); err != nil {
			slog.Error("The status file cannot be written", "error", err)
		}
	}
	if r.Publish != nil {
		r.Publish(report)
	}
}

func (r *Runner) build(report datapath.Report) v1.NodeCaptureStatus {
	in := status.Input{Report: report, Identity: r.Identity, Module: r.Module()}
	built := status.Build(in)
	built.Conditions = status.Conditions(nil, in)
	return built
}

// toFinish is enough for hundreds of rings on a busy machine, and within the 90 seconds that systemd gives a service.
const toFinish = 75 * time.Second

// finish prints the account and removes everything unless the options keep it.
func (r *Runner) finish() error {
	ctx, cancel := context.WithTimeout(context.Background(), toFinish)
	defer cancel()
	r.publish(ctx, r.Reconciler.Observe(ctx, r.last))
	fmt.Fprint(r.Options.Out, accountText(r.build(r.last)))
	if r.Options.Keep {
		fmt.Fprintln(r.Options.Out, "Capture goes on (--keep). `node-agent cleanup` removes it.")
		return r.Reconciler.Close()
	}
	return errors.Join(r.Reconciler.Close(), r.Remove(ctx))
}
