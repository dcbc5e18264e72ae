// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Rings over one interface of one node can exclude each other. The oldest is accepted; the others are refused with its name.
// Here two interfaces are the same if their selectors are equal: only the agent knows what different globs match on its node.

// interfaceKey identifies an interface by its selector.
type interfaceKey struct{ name, driver, pciAddress, resourceName string }

// interfaceKeysOf returns the keys of the interfaces that a ring captures.
func interfaceKeysOf(ring *v1alpha1.CaptureRing) []interfaceKey {
	var keys []interfaceKey
	for _, i := range ring.Spec.Interfaces {
		if i.PodSelector == nil {
			keys = append(keys, interfaceKey{i.Name, i.Driver, i.PCIAddress, i.ResourceName})
		}
	}
	if ring.Spec.Inline != nil {
		for _, pair := range ring.Spec.Inline.Pairs {
			for _, name := range pair.Interfaces {
				keys = append(keys, interfaceKey{name: name})
			}
		}
	}
	return keys
}

// ringSharesItsInterfaces refuses a ring that an older ring excludes.
func (d *draft) ringSharesItsInterfaces(ring *v1alpha1.CaptureRing) *Verdict {
	for _, p := range interfaceKeysOf(ring) {
		for _, older := range d.tapped[p] {
			if !d.mayShareNode(older, ring) {
				continue
			}
			if a, b := older.Spec.Mode(), ring.Spec.Mode(); a != b && (a == v1alpha1.TransparentModeRingOnly || b == v1alpha1.TransparentModeRingOnly) {
				return refuse(v1alpha1.ReasonModeConflict, "spec.transparentMode %d: CaptureRing %q, which is older, has the same interface in mode %d, "+
					"and what a ring takes in mode 2 does not reach the stack: give both the same mode, or other interfaces", b, older.Name, a)
			}
			if older.Spec.Inline != nil && ring.Spec.Inline != nil {
				return refuse(v1alpha1.ReasonModeConflict, "spec.inline: CaptureRing %q, which is older, has %s in a pair, and an interface is in one: "+
					"take it out of one of the two", older.Name, p.name)
			}
		}
	}
	return nil
}

// noteTaps records the interfaces of an accepted ring.
func (d *draft) noteTaps(ring *v1alpha1.CaptureRing) {
	for _, p := range interfaceKeysOf(ring) {
		d.tapped[p] = append(d.tapped[p], ring)
	}
}
