// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// quiet is how long the folder must not change before it is read, because editors empty a file before they write
	// it.
	quiet = 200 * time.Millisecond
	// again is the interval of tries for a folder that cannot be watched.
	again = time.Second
)

// watchFolder calls changed when something in a folder changed, until ctx ends. It continues after the folder was
// replaced. The error is for a folder that cannot be watched now.
func watchFolder(ctx context.Context, folder string, changed func()) error {
	watcher, err := newWatcher(folder)
	if err != nil {
		return err
	}
	go func() {
		for ctx.Err() == nil {
			follow(ctx, watcher, folder, changed)
			if err := watcher.Close(); err != nil {
				slog.Debug("The watch of the manifests could not be closed", "error", err)
			}
			if watcher = newWatcherAgain(ctx, folder); watcher != nil {
				changed()
			}
		}
	}()
	return nil
}

func newWatcher(folder string) (*fsnotify.Watcher, error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch the manifests: %w", err)
	}
	if err := watcher.Add(folder); err != nil {
		return nil, errors.Join(fmt.Errorf("watch the manifests in %s: %w", folder, err), watcher.Close())
	}
	return watcher, nil
}

// newWatcherAgain tries until it succeeds. It returns nil if ctx has ended.
func newWatcherAgain(ctx context.Context, folder string) *fsnotify.Watcher {
	for warned := false; ; warned = true {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(again):
		}
		watcher, err := newWatcher(folder)
		if err == nil {
			return watcher
		}
		if !warned {
			slog.Warn("Changes of the manifests are not seen at once, until the folder can be watched again", "error", err)
		}
	}
}

// follow reports changes until the folder itself is gone, the watch fails, or ctx ends.
func follow(ctx context.Context, watcher *fsnotify.Watcher, folder string, changed func()) {
	timer := time.NewTimer(quiet)
	timer.Stop()
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case event := <-watcher.Events:
			timer.Reset(quiet)
			if filepath.Clean(event.Name) == filepath.Clean(folder) && event.Has(fsnotify.Remove|fsnotify.Rename) {
				changed()
				return
			}
		case <-timer.C:
			changed()
		case err := <-watcher.Errors:
			slog.Warn("The watch of the manifests failed; it is restarted", "error", err)
			return
		}
	}
}
