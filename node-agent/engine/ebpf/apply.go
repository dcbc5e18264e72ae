// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"context"
	"errors"
	"fmt"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// failures holds the errors of what could not be made as planned, by the name of the ring or cluster.
type failures map[string]error

func (f failures) add(name string, err error) {
	if err != nil {
		f[name] = errors.Join(f[name], err)
	}
}

// Apply makes the node's data path as planned; see capture.Engine. The engine knows its own objects, and repairs
// them. It makes queues first, then the rings that feed them. Then it removes what is no longer planned, in the
// reverse order. So no packet is passed to a missing queue.
func (e *Engine) Apply(ctx context.Context, plan capture.Plan, _ capture.Observation) (map[string]error, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	failed, err := e.apply(plan)
	if err == nil {
		var retired bool
		if retired, err = e.retireLayouts(); retired && err == nil && len(failed) > 0 {
			failed, err = e.apply(plan) // for resources of the other layout: an interface's XDP, memory
		}
	}
	if err != nil {
		return failed, fmt.Errorf("eBPF engine: %w", err)
	}
	return failed, ctx.Err()
}

// apply does one round of Apply.
func (e *Engine) apply(plan capture.Plan) (failures, error) {
	if err := e.env.tables.setClock(); err != nil {
		return nil, err
	}
	failed := failures{}
	if err := e.repair(failed); err != nil {
		return nil, err
	}
	plannedClusters := map[string]bool{}
	for _, planned := range plan.Clusters {
		if plannedClusters[planned.Name] {
			failed.add(planned.Name, fmt.Errorf("cluster %s is planned twice", planned.Name))
			continue
		}
		plannedClusters[planned.Name] = true
		failed.add(planned.Name, e.ensureCluster(planned))
	}
	plannedRings := map[string]bool{}
	for _, planned := range plan.Rings {
		if plannedRings[planned.Name] {
			failed.add(planned.Name, fmt.Errorf("ring %s is planned twice", planned.Name))
			continue
		}
		plannedRings[planned.Name] = true
		failed.add(planned.Name, e.ensureRing(planned))
	}
	e.removeRings(plannedRings, failed)
	e.retireClusters(plannedClusters, failed)
	e.removeRetired(failed)
	e.updateParams()
	return failed, nil
}

func (e *Engine) ensureCluster(planned capture.Cluster) error {
	if planned.Lanes == 0 {
		planned.Lanes = e.env.lanes
	}
	if err := validateCluster(planned); err != nil {
		return fmt.Errorf("cluster %s: %w", planned.Name, err)
	}
	current := e.clusters[planned.Name]
	if current != nil && current.planned() == planned {
		return nil
	}
	if current != nil && current.sameShape(planned) {
		current.set(planned)
		return current.describe()
	}
	if current != nil && current.inUse() {
		return fmt.Errorf("cluster %s: change from %d queues of %d lanes of %d bytes to %d of %d of %d: %w: stop its consumers first",
			planned.Name, current.Queues, current.Lanes, current.QueueBytes, planned.Queues, planned.Lanes, planned.QueueBytes, capture.ErrInUse)
	}
	if err := e.makeCluster(planned, current); err != nil {
		return fmt.Errorf("cluster %s: %w", planned.Name, err)
	}
	return nil
}

// makeCluster makes a new cluster, which replaces current if there is one.
func (e *Engine) makeCluster(planned capture.Cluster, current *cluster) error {
	base, err := e.freeIndexes(planned.Queues)
	if err != nil {
		return err
	}
	var made uint64
	if current != nil {
		made = current.Made + 1
	}
	c, err := newCluster(planned, base, made, &e.env)
	if err != nil {
		return err
	}
	if err := e.handover.serve(c); err != nil {
		return errors.Join(err, c.remove())
	}
	e.clusters[planned.Name] = c
	if current != nil {
		e.retired = append(e.retired, current)
		e.handover.stop(current, c)
	}
	return nil
}

// freeIndexes finds n consecutive indexes that no cluster uses.
func (e *Engine) freeIndexes(n int) (uint32, error) {
	taken := e.occupied()
	run := 0
	for index := range uint32(maxNodeQueues) {
		if taken(index) {
			run = 0
			continue
		}
		if run++; run == n {
			return index + 1 - uint32(n), nil
		}
	}
	return 0, fmt.Errorf("%d queues more than the %d that this engine has on a node: %w", n, maxNodeQueues,
		capture.ErrUnsupported)
}

func (e *Engine) ensureRing(planned capture.Ring) error {
	program, err := e.plannedProgram(planned)
	if err != nil {
		return fmt.Errorf("ring %s: %w", planned.Name, err)
	}
	points, unusable := usablePoints(tapPoints(planned))
	r := e.rings[planned.Name]
	if r == nil {
		if r, err = newRing(planned.Name, &e.env); err != nil {
			return fmt.Errorf("ring %s: %w", planned.Name, err)
		}
		e.rings[planned.Name] = r
	}
	r.Outputs, r.SnapLen = planned.Outputs, planned.SnapLen
	err = r.ensure(program, points, &e.env)
	if err == nil {
		err = r.maps.activate()
	}
	if err := errors.Join(err, unusable); err != nil {
		return fmt.Errorf("ring %s: %w", planned.Name, err)
	}
	return nil
}

func (e *Engine) plannedProgram(planned capture.Ring) (ringProgram, error) {
	if err := validateRing(planned); err != nil {
		return ringProgram{}, err
	}
	return newRingProgram(planned, e.clusters)
}

func (e *Engine) removeRings(planned map[string]bool, failed failures) {
	for name, r := range e.rings {
		if planned[name] {
			continue
		}
		if err := r.remove(); err != nil {
			failed.add(name, fmt.Errorf("remove ring %s: %w", name, err))
			continue
		}
		delete(e.rings, name)
	}
}

// retireClusters retires the clusters that are no longer planned. It does not take a queue away from a consumer.
func (e *Engine) retireClusters(planned map[string]bool, failed failures) {
	for name, c := range e.clusters {
		if planned[name] {
			continue
		}
		if c.inUse() {
			failed.add(name, fmt.Errorf("remove cluster %s: %w: stop its consumers first", name, capture.ErrInUse))
			continue
		}
		e.handover.stop(c, nil)
		delete(e.clusters, name)
		e.retired = append(e.retired, c)
	}
}

// removeRetired removes the retired clusters that no ring's program feeds.
func (e *Engine) removeRetired(failed failures) {
	var kept []*cluster
	for _, c := range e.retired {
		if e.fed(c) {
			kept = append(kept, c)
			continue
		}
		if err := c.remove(); err != nil {
			failed.add(c.Name, fmt.Errorf("remove cluster %s: %w", c.Name, err))
		}
	}
	e.retired = kept
}

// fed reports whether a program that was made for the cluster may still run.
func (e *Engine) fed(c *cluster) bool {
	for _, r := range e.rings {
		if r.feeds(c) {
			return true
		}
	}
	return false
}

// updateParams updates the parameters that the queues pass to their consumers.
func (e *Engine) updateParams() {
	for _, c := range e.clusters {
		p := queueParams{queues: c.Queues, watermark: c.Watermark, timeout: c.WatermarkTimeout}
		for _, r := range e.rings {
			for _, output := range r.Outputs {
				if output == c.Name {
					p.snapLen = max(p.snapLen, r.SnapLen)
				}
			}
		}
		if p.snapLen == 0 {
			p.snapLen = maxSnapLen
		}
		for _, q := range c.queues {
			q.setParams(p)
			q.shunts.setQuota(c.ShuntQuota)
		}
	}
}
