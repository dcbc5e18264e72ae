// SPDX-License-Identifier: Apache-2.0

// Package access decides which process may have which queue: one that runs in the pod to which the kubelet allocated it,
// in a namespace that the ring or Cluster allows.
package access

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// UIDs looks pods up.
type UIDs interface {
	// PodUIDs returns the UIDs that a pod of this node is known by in the cgroup tree; none when there is no such pod. A
	// static pod has the kubelet's UID besides that of its mirror in the API.
	PodUIDs(context.Context, Pod) ([]string, error)
}

// Pods decides in a cluster. Its methods may be called by several goroutines.
type Pods struct {
	Allocations Allocations
	UIDs        UIDs
	// Cgroups of the node, in which the kubelet has its pods.
	Cgroups Cgroups
	// Namespaces are those that rings and Clusters allow.
	Namespaces *Namespaces
}

// Allow returns nil if a process may have a queue, and otherwise why not, for whoever runs that process.
func (p Pods) Allow(ctx context.Context, pid int, queue capture.QueueID) error {
	if pid <= 0 {
		return errors.New("the asking process is not visible to the agent (its pod needs hostPID: true)")
	}
	allocations, err := p.Allocations.Allocations(ctx)
	if err != nil {
		return err
	}
	owners := allocations[queue]
	if len(owners) == 0 {
		return fmt.Errorf("queue %d of %s is allocated to no pod", queue.Queue, queue.Cluster)
	}
	var problems []error
	for _, owner := range owners {
		is, err := p.runs(ctx, owner, pid)
		if is {
			return p.Namespaces.check(ctx, queue.Cluster, owner)
		}
		problems = append(problems, err)
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	return fmt.Errorf("queue %d of %s is allocated to pod %s, and process %d is none of that pod's: the kubelet has not put it there (it is in %s)",
		queue.Queue, queue.Cluster, owners[0], pid, cgroupOf("/proc", pid))
}

// runs reports whether a process is a pod's, and why that is not known. Of a static pod's UIDs the kubelet knows one.
func (p Pods) runs(ctx context.Context, pod Pod, pid int) (bool, error) {
	uids, err := p.UIDs.PodUIDs(ctx, pod)
	if err != nil {
		return false, fmt.Errorf("look up pod %s: %w", pod, err)
	}
	for _, uid := range uids {
		pids, problem := p.Cgroups.Processes(uid)
		if slices.Contains(pids, pid) {
			return true, nil
		}
		if problem == nil {
			return false, nil
		}
		err = errors.Join(err, fmt.Errorf("find the processes of pod %s: %w", pod, problem))
	}
	return false, err
}
