// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"github.com/ringcap/ringcap/operator/api/sizing"
	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// judgeCluster runs the checks of a Cluster in order; the first one that refuses it decides. All rings must have been judged
// before.
func (d *draft) judgeCluster(cluster *v1alpha1.Cluster) Verdict {
	verdict := Verdict{Reason: v1alpha1.ReasonAccepted, Message: "the spec is valid"}
	for _, check := range []func(*v1alpha1.Cluster) *Verdict{
		d.clusterIsWanted,
		d.clusterHasItsName,
		d.clusterIsWithinTheLimit,
		d.clusterRingsHaveRoom,
		d.clusterRingsAreThere,
		d.clusterRingsAreAccepted,
		d.clusterFilterCompiles,
		d.clusterFitsItsMemory,
		d.clusterFitsTheFleet,
	} {
		if refused := check(cluster); refused != nil {
			verdict = *refused
			if !verdict.Keeps() {
				d.ledger.release(clusterObject(cluster))
			}
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
	return d.notSuspended()
}

func (d *draft) clusterHasItsName(cluster *v1alpha1.Cluster) *Verdict {
	return d.nameIsFree(kindCluster, cluster.Name)
}

func (d *draft) clusterIsWithinTheLimit(*v1alpha1.Cluster) *Verdict {
	if d.accepted.clusters < v1alpha1.MaxRings {
		return nil
	}
	return refuse(v1alpha1.ReasonLimitExceeded, "there are %d older Clusters already, the maximum: delete one", v1alpha1.MaxRings)
}

func (d *draft) clusterRingsHaveRoom(cluster *v1alpha1.Cluster) *Verdict {
	for _, name := range cluster.Spec.Rings {
		if d.outputs[name] >= v1alpha1.MaxOutputs {
			return refuse(v1alpha1.ReasonLimitExceeded, "spec.rings: CaptureRing %q feeds %d sets of queues already, the maximum of a ring: "+
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
	var slotBytes int32
	engine := v1alpha1.EngineAuto
	for _, name := range cluster.Spec.Rings {
		ring := d.rings[name].Spec
		slotBytes = max(slotBytes, sizing.SlotBytes(ring.SnapLength))
		if ring.Engine != v1alpha1.EngineAuto {
			engine = ring.Engine
		}
	}
	return fitsMemory(engine, cluster.Spec.Queues, slotBytes, cluster.Spec.QueueSettings)
}

// isOnNodes reports whether any node has this Cluster.
func (d *draft) isOnNodes(cluster *v1alpha1.Cluster) bool {
	for _, node := range d.in.Nodes {
		if currentCluster(d.in.Current[node.Name], cluster) != nil {
			return true
		}
	}
	return false
}

// fitsMemory refuses a spec for which no node can have the memory. With engine Auto it assumes the engine that needs the least.
// Whether a node has enough memory only the node knows, and its agent refuses the spec if it does not.
func fitsMemory(engine v1alpha1.Engine, queues, slotBytes int32, s v1alpha1.QueueSettings) *Verdict {
	area := sizing.Area(s.Slots, slotBytes, sizing.SlotOverhead(engine))
	if s.MemoryLimit != nil {
		given := s.MemoryLimit.DeepCopy() // what prints one writes into it, and this one is the cache's
		limit := given.Value()
		if sizing.Lanes(queues, area, 1, &limit) == 0 {
			return refuse(v1alpha1.ReasonMemoryLimitExceeded, "spec.memoryLimit %s: %d queues of %d slots of %d bytes need at least %d MiB on each node: "+
				"raise it, or lower queues, slots or snapLength", &given, queues, s.Slots, slotBytes, (uint64(queues)*area+1<<20-1)>>20)
		}
	}
	if area > sizing.MaxArea {
		return refuse(v1alpha1.ReasonUnsupported, "spec.slots: %d slots of %d bytes need %d MiB a queue, and at most %d can be made: lower slots or snapLength",
			s.Slots, slotBytes, area>>20, sizing.MaxArea>>20)
	}
	return nil
}
