// SPDX-License-Identifier: Apache-2.0

// Package deviceplugin offers queues to the kubelet as extended resources, one device for each queue:
// ringcap.io/<ring or cluster>. It offers a resource once its queues exist, and withdraws it when they are removed.
package deviceplugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/ringcap/ringcap/node-agent/capture"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Resource is offered under one name.
type Resource struct {
	// Healthy has an entry for each queue.
	Healthy []bool
	// Engine that has the queues.
	Engine v1.Engine
	// NUMANodes are the NUMA nodes near the queues; empty if they are not known.
	NUMANodes []int
	// Mounts are given to containers in addition to their queues.
	Mounts []capture.PathPair
	// Queues returns the engine that serves the queues now, nil if there is none. Any goroutine may call it.
	Queues func() Queues
}

// Manager keeps the offered resources registered. Its methods may be called by several goroutines.
type Manager struct {
	folder   string
	retry    time.Duration
	mayStart MayStart
	// cdi is for Run's goroutine.
	cdi cdiSpecs

	mu sync.Mutex
	// wasSet means that Set was called.
	wasSet  bool
	wanted  map[string]Resource
	plugins map[string]*plugin
	// registered holds the names of registered plugins, for goroutines other than Run's.
	registered map[string]bool
	// failure is why something is not registered; nil if everything is.
	failure error
	wake    chan struct{}
}

// MayStart returns nil if the container to which the kubelet gave a queue may start. It is called whenever the
// container starts. Any goroutine may call it.
type MayStart func(context.Context, capture.QueueID) error

// NewManager makes a Manager for the kubelet with this plugin folder (/var/lib/kubelet/device-plugins), and for container
// runtimes that read descriptions of devices (CDI) in the folder cdi (/var/run/cdi).
func NewManager(folder, cdi string, mayStart MayStart) *Manager {
	return &Manager{folder: folder, cdi: cdiSpecs{folder: cdi, written: map[string]cdiFile{}}, mayStart: mayStart, retry: 2 * time.Second, plugins: map[string]*plugin{}, wake: make(chan struct{}, 1)}
}

// Set sets the resources that Run offers. It returns at once.
func (m *Manager) Set(wanted map[string]Resource) {
	m.mu.Lock()
	m.wanted, m.wasSet = wanted, true
	m.mu.Unlock()
	m.raise()
}

// Err returns why not everything is registered; nil if everything is.
func (m *Manager) Err() error {
	for name, registered := range m.Registered() {
		if !registered {
			return cmp.Or(m.problem(), fmt.Errorf("%s%s is not registered with the kubelet yet", v1.ResourcePrefix, name))
		}
	}
	return m.problem()
}

func (m *Manager) problem() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.failure
}

// Registered reports for each name to be offered whether the kubelet has registered it.
func (m *Manager) Registered() map[string]bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	registered := map[string]bool{}
	for name := range m.wanted {
		registered[name] = m.registered[name]
	}
	return registered
}

func (m *Manager) raise() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// Run offers resources until ctx ends. After that, the kubelet knows the registered ones as unhealthy, until another
// Manager registers them again. Containers that have their queues keep them.
func (m *Manager) Run(ctx context.Context) {
	restarted := make(chan struct{}, 1)
	go m.watch(ctx, restarted)
	retry := time.NewTicker(m.retry)
	defer retry.Stop()
	for {
		select {
		case <-ctx.Done():
			m.stopAll()
			return
		case <-restarted:
			m.stopAll()
			m.apply(ctx)
		case <-m.wake:
			m.apply(ctx)
		case <-retry.C:
			if m.problem() != nil {
				m.apply(ctx)
			}
		}
	}
}

// apply starts, updates and retires plugins.
func (m *Manager) apply(ctx context.Context) {
	m.mu.Lock()
	wanted, wasSet := maps.Clone(m.wanted), m.wasSet
	m.mu.Unlock()
	if !wasSet {
		return
	}
	for name, p := range m.plugins {
		if _, ok := wanted[name]; !ok {
			slog.Info("Withdraw a resource from the kubelet", "resource", name)
			p.retire()
			delete(m.plugins, name)
		}
	}
	failures := []error{m.cdi.keep(wanted)}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		failures = append(failures, m.applyOne(ctx, name, wanted[name]))
	}
	m.noteRegistered()
	m.note(errors.Join(failures...))
}

// applyOne also describes the resource to container runtimes, because Allocate names that description.
func (m *Manager) applyOne(ctx context.Context, name string, resource Resource) error {
	err := m.cdi.set(name, resource)
	if p, ok := m.plugins[name]; ok {
		p.set(resource)
		return err
	}
	if err != nil {
		return err
	}
	return m.startOne(ctx, name, resource)
}

// noteRegistered updates registered. It is for Run's goroutine.
func (m *Manager) noteRegistered() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.registered = map[string]bool{}
	for name := range m.plugins {
		m.registered[name] = true
	}
}

func (m *Manager) startOne(ctx context.Context, name string, resource Resource) error {
	p := newPlugin(name, m.folder, func() error { return m.cdi.again(name) }, func() Resource { return m.resource(name) }, m.mayStart)
	p.set(resource)
	if err := p.start(ctx); err != nil {
		return err
	}
	slog.Info("Offer a resource to the kubelet", "resource", name, "queues", len(resource.Healthy))
	m.plugins[name] = p
	return nil
}

// resource returns what to offer now; nothing for a name that is not offered.
func (m *Manager) resource(name string) Resource {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.wanted[name]
}

// note stores the failure, and logs it if it differs from the previous one.
func (m *Manager) note(failure error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if failure != nil && (m.failure == nil || m.failure.Error() != failure.Error()) {
		slog.Warn("Queues cannot be offered to the kubelet", "error", failure)
	}
	m.failure = failure
}

func (m *Manager) stopAll() {
	for name, p := range m.plugins {
		p.abandon()
		delete(m.plugins, name)
	}
	m.noteRegistered()
}

// watch reports restarts of the kubelet. When it starts, the kubelet removes all sockets of its folder and makes its
// own again.
func (m *Manager) watch(ctx context.Context, restarted chan<- struct{}) {
	for ctx.Err() == nil {
		if err := m.watchFolder(ctx, restarted); err != nil {
			m.note(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(m.retry):
		}
	}
}

func (m *Manager) watchFolder(ctx context.Context, restarted chan<- struct{}) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch the kubelet's plugin folder: %w", err)
	}
	defer watcher.Close()
	if err := watcher.Add(m.folder); err != nil {
		return fmt.Errorf("watch the kubelet's plugin folder %s: %w", m.folder, err)
	}
	kubelet := filepath.Join(m.folder, filepath.Base(api.KubeletSocket))
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-watcher.Errors:
			return fmt.Errorf("watch the kubelet's plugin folder: %w", err)
		case event := <-watcher.Events:
			if event.Has(fsnotify.Create) && event.Name == kubelet {
				slog.Info("The kubelet restarted; register again")
				select {
				case restarted <- struct{}{}:
				default:
				}
			}
			if event.Name == m.folder && event.Has(fsnotify.Remove) {
				return fmt.Errorf("the kubelet's plugin folder %s is gone: %w", m.folder, os.ErrNotExist)
			}
		}
	}
}
