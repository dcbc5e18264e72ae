// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sync/errgroup"

	"github.com/ringcap/ringcap/node-agent/capture"
	"github.com/ringcap/ringcap/operator/api/sizing"
)

// cluster is a named set of queues at consecutive indexes of the node's tables. The exported fields are its pinned
// description.
type cluster struct {
	Name    string
	Queues  int
	Balance capture.Balance
	HashKey [16]byte
	// QueueBytes and Watermark are in bytes, for each of the Lanes of a queue.
	QueueBytes       uint32
	Lanes            int
	Watermark        uint32
	WatermarkTimeout time.Duration
	// Base is the index of queue 0.
	Base uint32
	// Settings of balancing besides its type.
	Inner                    bool
	Fragments                capture.Fragments
	WhenFull, WhenUnattended capture.QueuePolicy
	LongHeader               bool
	ShuntQuota               uint32
	// Made orders two clusters of one name. There are two while a cluster of another shape replaces the first.
	Made uint64

	folder string
	tables *tables
	// table holds the queues' data maps, by queue number.
	table  *ebpf.Map
	queues []*queue
	// unreadable: only the indexes of the cluster are known.
	unreadable bool
}

// planned returns the cluster in the form of the plan.
func (c *cluster) planned() capture.Cluster {
	return capture.Cluster{
		Name: c.Name, Queues: c.Queues, Balance: c.Balance, HashKey: c.HashKey, QueueBytes: c.QueueBytes, Lanes: c.Lanes,
		Watermark: c.Watermark, WatermarkTimeout: c.WatermarkTimeout, Inner: c.Inner, Fragments: c.Fragments,
		WhenFull: c.WhenFull, WhenUnattended: c.WhenUnattended, LongHeader: c.LongHeader, ShuntQuota: c.ShuntQuota,
	}
}

// shape returns the size of the queues' maps.
func (c *cluster) shape() queueShape { return newQueueShape(c.Lanes, c.QueueBytes, possibleCPUs()) }

// sameShape reports whether the existing queues have the shape of the planned cluster's.
func (c *cluster) sameShape(planned capture.Cluster) bool {
	return c.Queues == planned.Queues && c.QueueBytes == planned.QueueBytes && c.Lanes == planned.Lanes
}

// set takes over from the plan what can change without touching queues.
func (c *cluster) set(planned capture.Cluster) {
	c.Balance, c.HashKey = planned.Balance, planned.HashKey
	c.Watermark, c.WatermarkTimeout = planned.Watermark, planned.WatermarkTimeout
	c.Inner, c.Fragments = planned.Inner, planned.Fragments
	c.WhenFull, c.WhenUnattended = planned.WhenFull, planned.WhenUnattended
	c.LongHeader, c.ShuntQuota = planned.LongHeader, planned.ShuntQuota
}

func (c *cluster) describe() error {
	return writeDescription(filepath.Join(c.folder, "description"), c)
}

// newCluster makes the queues of a planned cluster, from index base on. It leaves nothing if it fails.
func newCluster(planned capture.Cluster, base uint32, made uint64, env *environment) (*cluster, error) {
	c := &cluster{
		Name: planned.Name, Queues: planned.Queues, QueueBytes: planned.QueueBytes, Lanes: planned.Lanes, Base: base, Made: made,
		folder: env.pins.cluster(planned.Name, base), tables: env.tables,
	}
	c.set(planned)
	if err := c.create(env); err != nil {
		return nil, errors.Join(err, c.remove())
	}
	return c, nil
}

func (c *cluster) create(env *environment) error {
	if err := os.Mkdir(c.folder, 0o700); err != nil {
		return fmt.Errorf("make %s in the bpffs: %w", c.folder, explainRights(err))
	}
	for number := range c.Queues {
		if err := c.createQueue(env, number); err != nil {
			return fmt.Errorf("queue %d of %d with %d lanes of %d bytes each: %w", number, c.Queues, c.Lanes, c.QueueBytes, err)
		}
	}
	if err := c.atOnce((*queue).occupy); err != nil {
		return err
	}
	return c.describe()
}

func (c *cluster) createQueue(env *environment, number int) error {
	q := env.newQueue(c, number)
	c.queues = append(c.queues, q)
	if err := env.hasRoom(sizing.WithTables(q.shape.dataSize())); err != nil {
		return err
	}
	m, err := q.create()
	if err != nil {
		return err
	}
	defer m.close()
	if c.table == nil {
		c.table, err = newDataTable(c.Queues, m[0], c.tablePin())
	}
	q.table = c.table
	return err
}

func (c *cluster) tablePin() string { return filepath.Join(c.folder, "queues") }

// hasRoom checks that the node has bytes of free memory. The plan checked this too, but other processes also use
// memory.
func (e *environment) hasRoom(bytes uint64) error {
	if e.memory == nil {
		return nil
	}
	m, err := e.memory()
	if err != nil {
		return fmt.Errorf("read how much memory the node has: %w", err)
	}
	if bytes > m.Room() {
		return fmt.Errorf("%w: %d bytes are needed, and the node has less at the moment besides what --memory-reserve keeps, %d, or the "+
			"memory limit of the agent's container leaves less", capture.ErrNoMemory, bytes, m.Reserve)
	}
	return nil
}

// atOnce calls do for all queues concurrently. A change of the node's tables waits for an RCU grace period, which
// takes 10 ms and more. Concurrent changes wait for the same grace period.
func (c *cluster) atOnce(do func(*queue) error) error {
	const limit = 64
	var all errgroup.Group
	all.SetLimit(limit)
	for _, q := range c.queues {
		all.Go(func() error { return do(q) })
	}
	return all.Wait()
}

// recoverCluster opens a cluster that another process made. The error wraps os.ErrNotExist if that process did not
// complete it.
func recoverCluster(folder string, env *environment) (*cluster, error) {
	c := &cluster{folder: folder, tables: env.tables}
	if err := readDescription(filepath.Join(folder, "description"), c); err != nil {
		return nil, err
	}
	if c.Queues < 1 || c.Queues > maxQueues || c.Base > maxNodeQueues-uint32(c.Queues) || env.pins.cluster(c.Name, c.Base) != folder {
		return nil, fmt.Errorf("%s: %w", folder, errNotDescription)
	}
	if err := c.shape().check(); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", folder, errNotDescription, err)
	}
	var err error
	if c.table, err = ebpf.LoadPinnedMap(c.tablePin(), nil); err != nil {
		return nil, fmt.Errorf("open %s: %w", c.tablePin(), err)
	}
	for number := range c.Queues {
		q := env.newQueue(c, number)
		c.queues = append(c.queues, q)
		if err := q.recover(); err != nil {
			c.close()
			return nil, fmt.Errorf("queue %d: %w", number, err)
		}
	}
	return c, nil
}

func (e *environment) newQueue(c *cluster, number int) *queue {
	q := &queue{
		id: capture.QueueID{Cluster: c.Name, Queue: number}, index: c.Base + uint32(number), shape: c.shape(),
		folder: c.folder, table: c.table, tables: e.tables, grace: e.grace, hasRoom: e.hasRoom,
	}
	q.shunts = shunts{index: q.index, tables: e.tables, pin: q.pin, hasRoom: e.hasRoom, quota: c.ShuntQuota}
	return q
}

func (c *cluster) inUse() bool {
	for _, q := range c.queues {
		if q.inUse() {
			return true
		}
	}
	return false
}

// remove removes the queues from the node's tables and unpins them. No program may feed them any more.
func (c *cluster) remove() error {
	var failed error
	if err := os.Remove(filepath.Join(c.folder, "description")); err != nil && !errors.Is(err, os.ErrNotExist) {
		failed = err
	}
	failed = errors.Join(failed, c.atOnce((*queue).vacate))
	c.close()
	return errors.Join(failed, removePins(c.folder))
}

func (c *cluster) close() {
	for _, q := range c.queues {
		q.close()
	}
	if c.table != nil {
		c.table.Close()
		c.table = nil
	}
}

// memory returns the number of bytes that the queues take.
func (c *cluster) memory() uint64 { return uint64(c.Queues) * c.shape().memory() }

// removePins removes a folder of pins with its contents.
func removePins(folder string) error {
	if err := os.RemoveAll(folder); err != nil {
		return fmt.Errorf("remove %s: %w", folder, err)
	}
	return nil
}
