// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/cilium/ebpf"

	"github.com/ringcap/ringcap/node-agent/capture"
	"github.com/ringcap/ringcap/operator/api/sizing"
)

// Defaults of Options.
const (
	DefaultPinDir         = "/sys/fs/bpf/ringcap"
	DefaultRunDir         = "/run/ringcap"
	DefaultReconnectGrace = 10 * time.Second
)

// Options set where the engine keeps its objects, and which consumers get queues. The zero value of a field means its
// default.
type Options struct {
	// PinDir is a folder in a bpffs. The engine owns everything in it. If the parent folder is not in a bpffs, the
	// engine mounts one there.
	PinDir string
	// RunDir is the folder with the sockets for consumers: <RunDir>/<cluster>/<queue>/handover.
	RunDir string
	// Authorizer decides which process gets which queue. Without one, root, this process's user and Users get all
	// queues.
	Authorizer Authorizer
	Users      []uint32
	// ReconnectGrace is how long a consumer that was attached to an earlier engine has to come back. While its
	// process is alive, it has six times as long.
	ReconnectGrace time.Duration
	// Lanes is the number of lanes of a queue if the plan does not set it, by default DefaultLanes.
	Lanes int
	// Memory returns the node's memory. The engine checks it before it makes a queue. If it is nil, the engine does
	// not check.
	Memory func() (capture.Memory, error)
	// Logger logs what is not the error of a call: consumers that come, go and are refused.
	Logger *slog.Logger

	// withoutTCX makes the engine attach as on kernels before 6.6, for tests.
	withoutTCX bool
	// versions are the protocol versions that the engine offers to consumers, for tests.
	versions versions
}

// DefaultLanes returns the number of lanes of a queue: one for each CPU that may produce, within bounds.
func DefaultLanes() int { return min(possibleCPUs(), sizing.EBPFLanes) }

func (o *Options) setDefaults() {
	if o.PinDir == "" {
		o.PinDir = DefaultPinDir
	}
	if o.RunDir == "" {
		o.RunDir = DefaultRunDir
	}
	if o.ReconnectGrace == 0 {
		o.ReconnectGrace = DefaultReconnectGrace
	}
	if o.Lanes == 0 {
		o.Lanes = DefaultLanes()
	}
	if o.versions == (versions{}) {
		o.versions = supportedVersions
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

// environment is the part of the engine that clusters and rings use.
type environment struct {
	pins         pins
	tables       *tables
	countersSpec *ebpf.MapSpec
	attacher     attachers
	grace        time.Duration
	memory       func() (capture.Memory, error)
	lanes        int
	// rings are the engine's rings. Its lock is held.
	rings map[string]*ring
}

// tcNext returns what a tc program returns so that the others run as if it were not there.
func (e *environment) tcNext() uint64 {
	if _, ok := e.attacher.tc.(clsact); ok {
		return 0
	}
	return math.MaxUint64 // TC_ACT_UNSPEC, -1
}

// Engine implements capture.Engine. Interfaces are those of the calling thread's network namespace.
type Engine struct {
	env      environment
	handover *handoverServer
	log      *slog.Logger

	mu       sync.Mutex
	rings    map[string]*ring
	clusters map[string]*cluster
	// retired holds clusters that one of another shape replaced, until no program feeds them any more.
	retired []*cluster
}

var _ capture.Engine = (*Engine)(nil)

// New opens the engine and adopts the objects of an earlier one. Their captures continued in the meantime.
func New(options Options) (*Engine, error) {
	options.setDefaults()
	e := &Engine{log: options.Logger, rings: map[string]*ring{}, clusters: map[string]*cluster{}}
	var err error
	if e.env, err = newEnvironment(options); err != nil {
		return nil, fmt.Errorf("eBPF engine: %w", err)
	}
	e.env.rings = e.rings
	e.handover = newHandoverServer(options)
	if err := errors.Join(e.recover(), e.env.tables.setClock()); err != nil {
		return nil, fmt.Errorf("eBPF engine: %w", errors.Join(err, e.Close()))
	}
	return e, nil
}

func newEnvironment(options Options) (environment, error) {
	env := environment{grace: options.ReconnectGrace, memory: options.Memory, lanes: options.Lanes}
	var err error
	if env.pins, err = openPins(options.PinDir, options.Logger); err != nil {
		return env, err
	}
	spec, err := loadSpec()
	if err != nil {
		return env, err
	}
	env.countersSpec = spec.Maps[ringCountersMap]
	if env.attacher.tc, err = newAttacher(env.pins); err != nil {
		return env, err
	}
	if options.withoutTCX {
		env.attacher.tc = clsact{pins: env.pins}
	}
	env.tables, err = openTables(env.pins.tables(), spec)
	return env, err
}

// recover adopts the pinned objects.
func (e *Engine) recover() error {
	if err := e.recoverClusters(); err != nil {
		return err
	}
	if err := e.env.tables.vacateAllBut(e.occupied()); err != nil {
		return err
	}
	if err := e.recoverRings(); err != nil {
		return err
	}
	if err := errors.Join(e.env.pins.inheritQdiscs(), e.env.pins.removeIdleQdiscs()); err != nil {
		return err
	}
	e.updateParams()
	for _, c := range e.clusters {
		if err := e.handover.serve(c); err != nil {
			return err
		}
	}
	for _, c := range e.retired {
		e.handover.stop(c, e.clusters[c.Name]) // the process that retired it may not have done this
	}
	return nil
}

func (e *Engine) recoverClusters() error {
	folders, err := os.ReadDir(e.env.pins.clusters())
	if err != nil {
		return fmt.Errorf("list clusters: %w", err)
	}
	for _, entry := range folders {
		folder := filepath.Join(e.env.pins.clusters(), entry.Name())
		c, err := recoverCluster(folder, &e.env)
		if errors.Is(err, os.ErrNotExist) {
			err = removePins(folder)
		} else if err == nil {
			e.keepNewer(c)
		} else if errors.Is(err, errNotDescription) {
			err = e.quarantineCluster(folder, err)
		}
		if err != nil {
			return fmt.Errorf("recover the cluster in %s: %w", folder, err)
		}
	}
	return nil
}

// keepNewer makes c the cluster of its name unless there is a newer one.
func (e *Engine) keepNewer(c *cluster) {
	older := e.clusters[c.Name]
	if older != nil && older.Made > c.Made {
		c, older = older, c
	}
	e.clusters[c.Name] = c
	if older != nil {
		e.retired = append(e.retired, older)
	}
}

func (e *Engine) recoverRings() error {
	folders, err := os.ReadDir(e.env.pins.rings())
	if err != nil {
		return fmt.Errorf("list rings: %w", err)
	}
	for _, entry := range folders {
		folder := filepath.Join(e.env.pins.rings(), entry.Name())
		r, err := recoverRing(folder, &e.env)
		if errors.Is(err, os.ErrNotExist) {
			err = removePins(folder)
		} else if err == nil {
			e.rings[r.Name] = r
		} else if errors.Is(err, errNotDescription) {
			err = e.quarantineRing(folder, err)
		}
		if err != nil {
			return fmt.Errorf("recover the ring in %s: %w", folder, err)
		}
	}
	return nil
}

// occupied returns a function that reports whether an index belongs to a cluster.
func (e *Engine) occupied() func(index uint32) bool {
	var taken [maxNodeQueues]bool
	mark := func(c *cluster) {
		for i := range c.Queues {
			taken[c.Base+uint32(i)] = true
		}
	}
	for _, c := range e.clusters {
		mark(c)
	}
	for _, c := range e.retired {
		mark(c)
	}
	return func(index uint32) bool { return taken[index] }
}

// Grant returns the folder with the queue's socket.
func (e *Engine) Grant(id capture.QueueID) (capture.Grant, error) {
	q, err := e.queue(id)
	if err != nil {
		return capture.Grant{}, err
	}
	return capture.Grant{Mounts: []capture.PathPair{{
		Host:      e.handover.folder(q.id),
		Container: filepath.Join(DefaultRunDir, id.Cluster, fmt.Sprint(id.Queue)),
	}}}, nil
}

// TakeBack gives the queue new, empty memory. Programs write to it from then on. The engine closes the connection of
// the former holder, and tells it the reason when it comes back.
func (e *Engine) TakeBack(_ context.Context, id capture.QueueID, holder capture.Holder) (from int, err error) {
	q, err := e.queue(id)
	if err != nil {
		return 0, err
	}
	from, err = q.takeBack(holder)
	e.handover.hangUp(q)
	if errors.Is(err, errNoArea) && holder != (capture.Holder{}) {
		// Its holder has lost it. The new memory is made when somebody gets the queue.
		e.log.Warn("a queue was taken back", "cluster", id.Cluster, "queue", id.Queue, "error", err)
		return from, nil
	}
	if err != nil {
		return from, fmt.Errorf("take queue %d of %s back: %w", id.Queue, id.Cluster, err)
	}
	return from, nil
}

func (e *Engine) queue(id capture.QueueID) (*queue, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	c, ok := e.clusters[id.Cluster]
	if !ok || id.Queue < 0 || id.Queue >= len(c.queues) {
		return nil, fmt.Errorf("queue %d of %s: %w", id.Queue, id.Cluster, capture.ErrNotFound)
	}
	return c.queues[id.Queue], nil
}

// Close stops the handover of queues. The data path and attached consumers continue; another engine adopts them.
func (e *Engine) Close() error {
	err := e.handover.close()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range e.rings {
		r.close()
	}
	for _, c := range e.clusters {
		c.close()
	}
	for _, c := range e.retired {
		c.close()
	}
	e.rings, e.clusters, e.retired = nil, nil, nil
	e.env.tables.close()
	return err
}
