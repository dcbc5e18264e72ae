// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	"github.com/ringcap/ringcap/operator/api/sizing"
	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// judgeRing runs the checks of a ring in order; the first one that refuses it decides.
func (d *draft) judgeRing(ring *v1alpha1.CaptureRing) Verdict {
	d.drafts[ring.Name] = d.draftRing(ring)
	for _, check := range []func(*v1alpha1.CaptureRing) *Verdict{
		d.ringIsWanted,
		d.ringHasItsName,
		d.ringSelectsNodes,
		d.ringIsWithinTheLimit,
		d.ringFilterCompiles,
		d.ringFitsItsMemory,
		d.ringSharesItsInterfaces,
		d.ringFitsTheFleet,
	} {
		if refused := check(ring); refused != nil {
			if !refused.Keeps() {
				d.ledger.release(ringObject(ring))
			}
			return *refused
		}
	}
	d.accepted.rings = append(d.accepted.rings, sized{ring, sizeOf(ring)})
	d.noteTaps(ring)
	if ring.Spec.Queues != nil {
		d.outputs[ring.Name]++
	}
	return Verdict{Reason: v1alpha1.ReasonAccepted, Message: "the spec is valid" + remarks(ring)}
}

// remarks returns warnings: about selectors that may select more than was meant, and about what is written as in earlier
// releases.
func remarks(ring *v1alpha1.CaptureRing) string {
	text := ""
	for i, s := range ring.Spec.Interfaces {
		if s.Name == "*" && s.Driver == "" && s.PCIAddress == "" && s.ResourceName == "" && s.PodSelector == nil {
			text += fmt.Sprintf("; spec.interfaces[%d].name '*' is every interface of a node: lo, the cluster's network and all pods, too", i)
		}
	}
	if nodes := ring.Spec.NodeSelector; nodes != nil && nodes.Old {
		text += "; spec.nodeSelector has its labels as in earlier releases, without matchLabels, and goes on selecting the same nodes: write it as now, " +
			"for a later release may refuse it: " + nodes.Rewrite(ring.Name)
	}
	return text
}

func (d *draft) ringIsWanted(ring *v1alpha1.CaptureRing) *Verdict {
	if ring.DeletionTimestamp != nil {
		return refuse(v1alpha1.ReasonDeleting, "it is being deleted")
	}
	return d.notSuspended()
}

// notSuspended refuses everything while ringcap is being uninstalled.
func (d *draft) notSuspended() *Verdict {
	if d.in.Suspended {
		return refuse(v1alpha1.ReasonSuspended, "ringcap is being uninstalled")
	}
	return nil
}

func (d *draft) ringHasItsName(ring *v1alpha1.CaptureRing) *Verdict {
	return d.nameIsFree(kindRing, ring.Name)
}

func (d *draft) ringFitsItsMemory(ring *v1alpha1.CaptureRing) *Verdict {
	if ring.Spec.Queues == nil {
		return nil
	}
	slotBytes, settings := sizing.SlotBytes(ring.Spec.SnapLength), ring.Spec.QueueSettings
	if ring.Spec.Inline != nil {
		settings.Slots = min(settings.Slots, sizing.MaxInlineArea/(slotBytes+sizing.ModuleSlot))
	}
	// Only each node knows the number of PerRxQueue: it is at least one.
	return fitsMemory(ring.Spec.Engine, max(v1alpha1.QueueCount(ring.Spec.Queues), 1), slotBytes, settings)
}
