// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// maxNodeBytes is the maximum size of all rings in one NodeCapture. An object of more than 1.5 MiB cannot be stored, and
// Clusters and the status need room too.
const maxNodeBytes = 1 << 20

// sized is an accepted ring with its size in a NodeCapture.
type sized struct {
	ring  *v1alpha1.CaptureRing
	bytes int
}

func sizeOf(ring *v1alpha1.CaptureRing) int {
	// A spec was decoded from JSON: encoding it cannot fail.
	text, _ := json.Marshal(ring.Spec)
	return len(text)
}

// ringIsWithinTheLimit refuses a ring that does not fit on a node beside the older rings that can be there too.
func (d *draft) ringIsWithinTheLimit(ring *v1alpha1.CaptureRing) *Verdict {
	count, bytes := 0, sizeOf(ring)
	for _, older := range d.accepted.rings {
		if d.mayShareNode(older.ring, ring) {
			count++
			bytes += older.bytes
		}
	}
	switch {
	case count >= v1alpha1.MaxRings:
		return refuse(v1alpha1.ReasonLimitExceeded, "there are %d older CaptureRings already for the nodes that it may be on, the maximum: "+
			"delete one, or select other nodes by spec.nodeSelector", count)
	case bytes > maxNodeBytes:
		return refuse(v1alpha1.ReasonLimitExceeded, "together with %d older CaptureRings for the nodes that it may be on, it takes %d KiB of a NodeCapture's %d: "+
			"write fewer rules and patterns, or select other nodes by spec.nodeSelector", count, bytes>>10, maxNodeBytes>>10)
	}
	return nil
}
