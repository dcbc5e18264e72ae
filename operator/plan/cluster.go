// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// judgeCluster runs the checks of a Cluster in order; the first that refuses decides. All rings were judged before.
func (d *draft) judgeCluster(cluster *v1alpha1.Cluster) Verdict {
	verdict := Verdict{Reason: v1alpha1.ReasonAccepted, Message: "the spec is valid"}
	for _, check := range []func(*v1alpha1.Cluster) *Verdict{
		d.clusterIsWanted,
		d.clusterHasItsName,
		d.clusterIsWithinTheLimit,
		d.clusterRingsHaveRoom,
		d.clusterRingsAreThere,
		d.clusterRingsAreAccepted,
		d.clusterRingsTakeClusters,
		d.clusterFilterCompiles,
		d.clusterFitsItsMemory,
	} {
		if refused := check(cluster); refused != nil {
			verdict = *refused
			break
		}
	}
	if verdict.Accepted() || verdict.Keeps() && d.isOnNodes(cluster) {
		d.accepted.clusters++
		for _, ring := range cluster.Spec.Rings {
			d.outputs[ring]++
		}
	}
	return verdict
}

func (d *draft) clusterIsWanted(cluster *v1alpha1.Cluster) *Verdict {
	if cluster.DeletionTimestamp != nil {
		return refuse(v1alpha1.ReasonDeleting, "it is being deleted")
	}
	return nil
}

func (d *draft) clusterHasItsName(cluster *v1alpha1.Cluster) *Verdict {
	return d.nameIsFree(kindCluster, cluster.Name)
}

func (d *draft) clusterIsWithinTheLimit(*v1alpha1.Cluster) *Verdict {
	if d.accepted.clusters < v1alpha1.MaxRings {
		return nil
	}
	return refuse(v1alpha1.ReasonLimitExceeded, "there are %d older Clusters already, the most there can be: delete one", v1alpha1.MaxRings)
}

func (d *draft) clusterRingsHaveRoom(cluster *v1alpha1.Cluster) *Verdict {
	for _, name := range cluster.Spec.Rings {
		if d.outputs[name] >= v1alpha1.MaxOutputs {
			return refuse(v1alpha1.ReasonLimitExceeded, "spec.rings: CaptureRing %q feeds %d sets of queues already, the most that a ring can: "+
				"make another CaptureRing over the same interfaces", name, v1alpha1.MaxOutputs)
		}
	}
	return nil
}

func (d *draft) clusterRingsAreThere(cluster *v1alpha1.Cluster) *Verdict {
	for _, name := range cluster.Spec.Rings {
		ring, ok := d.rings[name]
		if !ok {
			return refuse(v1alpha1.ReasonRingNotFound, "spec.rings: there is no CaptureRing %q: create it, or name one that is there", name)
		}
		if ring.DeletionTimestamp != nil {
			return refuse(v1alpha1.ReasonRingNotFound, "spec.rings: CaptureRing %q is being deleted: name another", name)
		}
	}
	return nil
}

func (d *draft) clusterRingsAreAccepted(cluster *v1alpha1.Cluster) *Verdict {
	for _, name := range cluster.Spec.Rings {
		if verdict := d.plan.Rings[name]; !verdict.Accepted() {
			return refuse(v1alpha1.ReasonRingNotAccepted, "spec.rings: CaptureRing %q is not accepted (%s): %s", name, verdict.Reason, verdict.Message)
		}
	}
	return nil
}

func (d *draft) clusterFitsItsMemory(cluster *v1alpha1.Cluster) *Verdict {
	var snapLength int32
	for _, name := range cluster.Spec.Rings {
		snapLength = max(snapLength, d.rings[name].Spec.SnapLength)
	}
	return fitsMemory(cluster.Spec.Queues, snapLength, cluster.Spec.QueueSettings)
}

// isOnNodes says whether any node was told of this very Cluster.
func (d *draft) isOnNodes(cluster *v1alpha1.Cluster) bool {
	for _, node := range d.in.Nodes {
		if currentCluster(d.in.Current[node.Name], cluster) != nil {
			return true
		}
	}
	return false
}

// fitsMemory refuses what cannot fit on any node. It is a lower bound: how much an engine takes beyond the packets
// themselves only the nodes know, and they refuse in their turn.
func fitsMemory(queues, snapLength int32, s v1alpha1.QueueSettings) *Verdict {
	if s.MemoryLimit == nil {
		return nil
	}
	needed := int64(queues) * int64(s.Slots) * int64(snapLength)
	if needed <= s.MemoryLimit.Value() {
		return nil
	}
	return refuse(v1alpha1.ReasonMemoryLimitExceeded, "spec.memoryLimit %s: %d queues of %d slots of %d bytes need at least %d MiB on each node: "+
		"raise it, or lower queues, slots or snapLength", s.MemoryLimit, queues, s.Slots, snapLength, (needed+1<<20-1)>>20)
}
