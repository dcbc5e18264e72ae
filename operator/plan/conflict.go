// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Rings over one interface of one node can exclude each other. Who came first stays, and the other is refused with the
// first one's name. Here interfaces are the same when they are selected by the same words; what different globs match
// only the node knows, and its agent judges there.

// place is what an interface is selected by.
type place struct{ name, driver, pciAddress, resourceName string }

// placesOf are the places that a ring taps.
func placesOf(ring *v1alpha1.CaptureRing) []place {
	var places []place
	for _, i := range ring.Spec.Interfaces {
		if i.PodSelector == nil {
			places = append(places, place{i.Name, i.Driver, i.PCIAddress, i.ResourceName})
		}
	}
	return places
}

// ringSharesItsInterfaces refuses a ring that an older one excludes.
func (d *draft) ringSharesItsInterfaces(ring *v1alpha1.CaptureRing) *Verdict {
	for _, p := range placesOf(ring) {
		for _, older := range d.tapped[p] {
			if !d.mayShareNode(older, ring) {
				continue
			}
			if older.Spec.QuickMode && ring.Spec.QuickMode && sameRxQueues(older, ring) {
				return refuse(v1alpha1.ReasonQuickModeConflict, "spec.interfaces: CaptureRing %q, which is older, has the same interface in quick mode too: "+
					"give this one another interface or other rxQueues, or set spec.quickMode to false", older.Name)
			}
			if a, b := older.Spec.Mode(), ring.Spec.Mode(); a != b && (a == v1alpha1.TransparentModeRingOnly || b == v1alpha1.TransparentModeRingOnly) {
				return refuse(v1alpha1.ReasonModeConflict, "spec.transparentMode %d: CaptureRing %q, which is older, has the same interface in mode %d, "+
					"and what a ring takes in mode 2 does not reach the stack: give both the same mode, or other interfaces", b, older.Name, a)
			}
		}
	}
	return nil
}

// noteTaps keeps in mind what an accepted ring taps.
func (d *draft) noteTaps(ring *v1alpha1.CaptureRing) {
	for _, p := range placesOf(ring) {
		d.tapped[p] = append(d.tapped[p], ring)
	}
}

// sameRxQueues says whether two quick rings, of one selector each, name the same RX queues. Lists that differ may still
// meet: the agent, which reads them, judges that.
func sameRxQueues(a, b *v1alpha1.CaptureRing) bool {
	mine, other := a.Spec.Interfaces[0].RxQueues, b.Spec.Interfaces[0].RxQueues
	return mine == "" || other == "" || mine == other
}

// clusterRingsTakeClusters: a quick ring delivers to its own queues only.
func (d *draft) clusterRingsTakeClusters(cluster *v1alpha1.Cluster) *Verdict {
	for _, name := range cluster.Spec.Rings {
		if d.rings[name].Spec.QuickMode {
			return refuse(v1alpha1.ReasonQuickModeConflict, "spec.rings: CaptureRing %q is in quick mode, which delivers to its own queues only: "+
				"name another, or set its spec.quickMode to false", name)
		}
	}
	return nil
}
