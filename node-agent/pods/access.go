// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// UIDs looks up the UIDs of pods.
type UIDs interface {
	// PodUIDs returns the UIDs by which the cgroup tree knows a pod of this node; none if there is no such pod. A
	// static pod has the kubelet's UID in addition to that of its mirror in the API.
	PodUIDs(context.Context, Pod) ([]string, error)
}

// Access decides which process in a cluster may have which queue. The process must run in the pod to which the
// kubelet allocated the queue. The ring or Cluster must allow its namespace. Its methods may be called by several
// goroutines.
type Access struct {
	Allocations Allocations
	UIDs        UIDs
	// Proc is the proc file system that shows the processes of all pods. Cgroups holds their cgroups.
	Proc    string
	Cgroups Cgroups
	// Namespaces that rings and Clusters allow.
	Namespaces *Namespaces
}

// Allow returns nil if a process may have a queue. Otherwise it returns the reason, in words for the user of that
// process.
func (a Access) Allow(ctx context.Context, pid int, queue capture.QueueID) error {
	if pid <= 0 {
		return errors.New("the asking process is not visible to the agent (its pod needs hostPID: true)")
	}
	uid, err := a.Cgroups.PodOf(a.Proc, pid)
	if err != nil {
		return fmt.Errorf("process %d: %w", pid, err)
	}
	allocations, err := a.Allocations.Allocations(ctx)
	if err != nil {
		return err
	}
	owners := allocations[queue]
	if len(owners) == 0 {
		return fmt.Errorf("queue %d of %s is allocated to no pod", queue.Queue, queue.Cluster)
	}
	var problems []error
	for _, owner := range owners {
		uids, err := a.UIDs.PodUIDs(ctx, owner)
		if err != nil {
			problems = append(problems, fmt.Errorf("look up pod %s: %w", owner, err))
		}
		if slices.Contains(uids, uid) {
			return a.Namespaces.check(ctx, queue.Cluster, owner)
		}
	}
	if len(problems) > 0 {
		return errors.Join(problems...)
	}
	return fmt.Errorf("queue %d of %s is allocated to pod %s, and this is another pod (UID %s)", queue.Queue, queue.Cluster, owners[0], uid)
}
