// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"slices"

	"github.com/ringcap/ringcap/operator/api/sizing"
	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// packetsWhole returns the condition whether packets of the ring are cut although the spec does not ask for it. Its message has
// no counters, which change all the time: they are in the status.
func (s *subject) packetsWhole(snapLength int32) outcome {
	if snapLength != 0 {
		return outcome{true, v1alpha1.ReasonSnapLengthGiven, fmt.Sprintf("packets are captured up to spec.snapLength, %d bytes; leave that out "+
			"to have them whole", snapLength)}
	}
	if nodes := s.truncating(); len(nodes) > 0 {
		return outcome{false, v1alpha1.ReasonPacketsTruncated, fmt.Sprintf("on %s packets have been cut within the last ten minutes, and "+
			"spec.snapLength is not given: either they are longer than %d bytes, the most that can be captured (segments that the node merged, see "+
			"spec.nic.offloads), or a consumer has read since before spec.snapLength was left out: restart that one; or set spec.snapLength if it "+
			"is all right", names(nodes), sizing.MaxSnapLength)}
	}
	return outcome{true, v1alpha1.ReasonWhole, fmt.Sprintf("packets are captured whole, up to %d bytes", sizing.MaxSnapLength)}
}

// truncating returns the nodes, of those that should have the ring, that report cut packets.
func (s *subject) truncating() []string {
	return slices.DeleteFunc(slices.Clone(s.verdict.Nodes), func(node string) bool {
		capture := s.state.Captures[node]
		return capture == nil || !slices.ContainsFunc(capture.Status.Rings, func(r v1alpha1.NodeRingStatus) bool {
			return r.Name == s.Name && r.Truncating
		})
	})
}
