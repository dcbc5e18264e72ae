// SPDX-License-Identifier: Apache-2.0

// Package kmod is the capture engine that uses the ringcap kernel module. It is a client of the module's generic
// netlink family.
package kmod

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// Engine is a capture.Engine. All its state is in the module, so any number of Engines may exist, one after the other
// or at once.
type Engine struct {
	lanes int
	nodes nodeFolder
}

var _ capture.Engine = (*Engine)(nil)

// New makes an Engine with a number of lanes for each queue. It keeps the device nodes that it gives to containers
// below runDir.
func New(runDir string, lanes int) *Engine {
	return &Engine{lanes: lanes, nodes: nodeFolder(runDir)}
}

// Probe returns the module's identity. The error tells why the module cannot be asked.
func Probe() (Info, error) {
	c, err := dial()
	if err != nil {
		return Info{}, err
	}
	defer c.close()
	answers, err := c.get(cmdInfoGet, nil)
	if err != nil {
		return Info{}, err
	}
	if len(answers) == 0 {
		return Info{}, errors.New("the module reports no version")
	}
	return decodeInfo(answers[0])
}

// objects are all objects of the module in a namespace, including those of other programs.
type objects struct {
	rings    []ringObject
	clusters []clusterObject
}

// Apply implements capture.Engine. A change in the module after the observation makes an event, and the next call
// sees it. If the rules were observed, Apply makes single rules again that somebody removed.
func (e *Engine) Apply(_ context.Context, plan capture.Plan, seen capture.Observation) (map[string]error, error) {
	c, err := dial()
	if err != nil {
		return nil, err
	}
	defer c.close()
	have, known := seen.Own.(objects)
	if !known {
		if have, err = c.objects(); err != nil {
			return nil, err
		}
	}
	var there []string
	for _, cluster := range have.clusters {
		there = append(there, cluster.name)
	}
	s := diff(plan, have.rings, have.clusters, e.lanes)
	s.removeNodes = e.nodes.others(there)
	for _, ring := range plan.Rings {
		if known && !s.touches(ring.Name) && !ring.Rules.Empty() && !sameRules(seen.Rings[ring.Name].Rules, ring.Rules.Wildcard) {
			s.setRules = append(s.setRules, ring)
		}
	}
	return e.take(c, s), nil
}

// take carries out the steps. A failed step does not prevent the others.
func (e *Engine) take(c *client, s steps) map[string]error {
	failed := map[string]error{}
	note := func(name string, err error) {
		if err != nil {
			failed[name] = errors.Join(failed[name], err)
		}
	}
	for _, name := range s.foreign {
		note(name, fmt.Errorf("the module has a ring or cluster %q that somebody else made; remove it, or choose another name", name))
	}
	for _, name := range s.removeNodes {
		note(name, e.nodes.remove(name))
	}
	for _, name := range s.deleteRings {
		note(name, c.remove(cmdRingDel, name))
	}
	for _, name := range s.exchange {
		note(name, c.remove(cmdClusterDel, name))
	}
	for _, ring := range s.newRings {
		note(ring.Name, newRing(c, ring))
	}
	var missing []string
	for _, cluster := range s.setClusters {
		if err := e.setCluster(c, cluster); err != nil {
			note(cluster.Name, err)
			missing = append(missing, cluster.Name)
		}
	}
	unruled := map[string]bool{}
	for _, ring := range s.setRules {
		err := e.setRules(ring)
		unruled[ring.Name] = err != nil
		note(ring.Name, err)
	}
	for _, ring := range s.setRings {
		// With the wrong rules, the ring would pass packets that must not be seen. So it stays as it is.
		if !unruled[ring.Name] {
			note(ring.Name, setRing(c, ring, missing))
		}
	}
	for _, name := range s.deleteClusters {
		err := c.remove(cmdClusterDel, name)
		note(name, err)
		if err == nil {
			note(name, e.nodes.remove(name))
		}
	}
	return failed
}

func (e *Engine) setCluster(c *client, cluster capture.Cluster) error {
	attributes, err := encodeCluster(cluster, e.lanes, generationOf(cluster, e.lanes))
	if err != nil {
		return err
	}
	return c.do(cmdClusterSet, attributes)
}

// newRing makes a ring without taps. The ring gets its rules before its first packet.
func newRing(c *client, ring capture.Ring) error {
	attributes, err := marshal(ringSetRequest{Name: &ring.Name, Generation: new(generationTag), Quick: flag(false)})
	if err != nil {
		return err
	}
	return c.do(cmdRingSet, attributes)
}

// setRules replaces a ring's rules over a separate socket. The module discards an unfinished rule set when the socket
// is closed.
func (e *Engine) setRules(ring capture.Ring) error {
	c, err := dial()
	if err != nil {
		return err
	}
	defer c.close()
	return putRules(c, ring)
}

// setRing makes or changes a ring. A cluster that could not be changed keeps its old shape, and the ring feeds it. If
// a cluster is missing, because it could not be made, the module refuses the ring. Then setRing makes the ring
// without that cluster. The ring's generation then differs from the planned one, so the next reconciliation sets it
// again with all of its clusters.
func setRing(c *client, ring capture.Ring, missing []string) error {
	attributes, err := encodeRing(ring, ring.Outputs, generationOf(withoutRules(ring)))
	if err != nil {
		return err
	}
	err = c.do(cmdRingSet, attributes)
	outputs := slices.DeleteFunc(slices.Clone(ring.Outputs), func(name string) bool { return slices.Contains(missing, name) })
	if err == nil || len(outputs) == len(ring.Outputs) {
		return err
	}
	if attributes, err = encodeRing(ring, outputs, generationOf(withoutRules(ring), outputs)); err != nil {
		return err
	}
	return c.do(cmdRingSet, attributes)
}

// Observe implements capture.Engine. It reports only what this program made.
func (e *Engine) Observe(context.Context) (capture.Observation, error) {
	seen := capture.Observation{Rings: map[string]capture.RingState{}, Clusters: map[string]capture.ClusterState{}}
	c, err := dial()
	if err != nil {
		return seen, err
	}
	defer c.close()
	have, err := c.objects()
	if err != nil {
		return seen, err
	}
	seen.Own = have
	for _, ring := range have.rings {
		if !ours(ring.generation) {
			continue
		}
		state := capture.RingState{Taps: ring.taps, Stats: ring.stats, Plugins: ring.plugins, Inline: ring.inline}
		if ring.rulesGeneration != 0 {
			if state.Rules, state.Patterns, err = c.rules(ring.name); err != nil && !errors.Is(err, capture.ErrNotFound) {
				return seen, err
			}
		}
		seen.Rings[ring.name] = state
	}
	for _, cluster := range have.clusters {
		if !ours(cluster.generation) {
			continue
		}
		queues, err := c.queues(cluster.name)
		if err != nil {
			return seen, err
		}
		state := capture.ClusterState{
			Memory: cluster.memory, MemoryMost: cluster.memoryMost, Lanes: cluster.lanes, Duplicated: cluster.duplicated, Spread: cluster.spread,
		}
		cluster.noteBlocked(queues)
		for _, queue := range queues {
			state.Queues = append(state.Queues, queue.stats)
		}
		seen.Clusters[cluster.name] = state
	}
	return seen, nil
}

// Grant implements capture.Engine. It returns a device node with the queue's numbers that any user in the container
// may open.
func (e *Engine) Grant(id capture.QueueID) (capture.Grant, error) {
	c, err := dial()
	if err != nil {
		return capture.Grant{}, err
	}
	defer c.close()
	queues, err := c.queues(id.Cluster)
	if err != nil {
		return capture.Grant{}, err
	}
	i := slices.IndexFunc(queues, func(q queueObject) bool { return q.number == id.Queue })
	if i < 0 {
		return capture.Grant{}, fmt.Errorf("queue %d of %s: %w", id.Queue, id.Cluster, capture.ErrNotFound)
	}
	host, err := e.nodes.make(id, queues[i].devT)
	if err != nil {
		return capture.Grant{}, err
	}
	container := fmt.Sprintf("/dev/ringcap/%s/%d", id.Cluster, id.Queue)
	return capture.Grant{Devices: []capture.PathPair{{Host: host, Container: container}}}, nil
}

// TakeBack implements capture.Engine. Afterwards, the queue's device has another number, so the former grant opens
// nothing.
func (e *Engine) TakeBack(_ context.Context, id capture.QueueID, from capture.Holder) (int, error) {
	c, err := dial()
	if err != nil {
		return 0, err
	}
	defer c.close()
	was, err := c.holder(id)
	if err != nil {
		return 0, err
	}
	return was.PID, c.takeBack(id, from)
}

// holder returns the holder of a queue. It is zero for a queue without a holder, and for one that does not exist.
func (c *client) holder(id capture.QueueID) (capture.Holder, error) {
	queues, err := c.queues(id.Cluster)
	if err != nil {
		return capture.Holder{}, err
	}
	i := slices.IndexFunc(queues, func(q queueObject) bool { return q.number == id.Queue })
	if i < 0 {
		return capture.Holder{}, nil
	}
	return capture.Holder{PID: queues[i].stats.Holder, Attachment: queues[i].stats.Attachment}, nil
}

// takeBack revokes a queue. An older module, which may stay loaded for its consumers, can only empty a free queue. If
// the queue is held, the error then wraps capture.ErrInUse.
func (c *client) takeBack(id capture.QueueID, from capture.Holder) error {
	attributes, err := encodeQueue(id, from)
	if err != nil {
		return err
	}
	err = c.do(cmdQueueRevoke, attributes)
	if errors.Is(err, capture.ErrNoMemory) && from.Attachment != 0 {
		return c.isTaken(id, from, err)
	}
	if from != (capture.Holder{}) || !errors.Is(err, capture.ErrUnsupported) {
		return err
	}
	reset := c.do(cmdQueueReset, attributes)
	if errors.Is(reset, capture.ErrInUse) {
		return fmt.Errorf("%w; the loaded module is of an earlier version and cannot revoke queues (%w)", reset, err)
	}
	return reset
}

// isTaken returns nil if the holder has lost the queue although the request failed with err. The module takes a queue
// back even if it has no memory for another area. It makes that area when the kubelet gives the queue to a pod.
func (c *client) isTaken(id capture.QueueID, from capture.Holder, err error) error {
	now, e := c.holder(id)
	if e != nil || now.Attachment == from.Attachment {
		return errors.Join(err, e)
	}
	return nil
}

// Close implements capture.Engine. The engine holds no resources.
func (e *Engine) Close() error { return nil }

// named sends a command about an object.
func (c *client) named(command uint8, name string) error {
	attributes, err := encodeName(name)
	if err != nil {
		return err
	}
	return c.do(command, attributes)
}

// remove deletes an object. It succeeds if the object is already gone.
func (c *client) remove(command uint8, name string) error {
	if err := c.named(command, name); err != nil && !errors.Is(err, capture.ErrNotFound) {
		return err
	}
	return nil
}

// queues lists a cluster's queues by number.
func (c *client) queues(cluster string) ([]queueObject, error) {
	attributes, err := encodeName(cluster)
	if err != nil {
		return nil, err
	}
	queues, err := collect(c, cmdQueueGet, attributes, decodeQueue)
	slices.SortFunc(queues, func(x, y queueObject) int { return x.number - y.number })
	return queues, err
}
