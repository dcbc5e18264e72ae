// SPDX-License-Identifier: Apache-2.0

package status

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ringcap/ringcap/operator/api/counters"
	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// sums holds when each object's status was last written, or first seen. Nodes report all the time while packets flow, and most
// reports only change the sums of counters. The zero value is ready; it is not safe for concurrent use.
type sums struct {
	now time.Time
	// written holds the times by object, seen those of this reconciliation.
	written, seen map[types.UID]time.Time
}

func (s *sums) begin(now time.Time) { s.now, s.seen = now, map[types.UID]time.Time{} }

// due decides whether to write a status: at once if more than sums changed, else once a minute.
func (s *sums) due(object types.UID, before, after *v1alpha1.CaptureStatus) bool {
	last, known := s.written[object]
	if !known {
		last = s.now
	}
	s.seen[object] = last
	if equality.Semantic.DeepEqual(before, after) {
		return false
	}
	state := after.DeepCopy()
	old := before.DeepCopy()
	was := counters.SumsOf(old)
	for i, sum := range counters.SumsOf(state) {
		*sum = *was[i]
	}
	return !equality.Semantic.DeepEqual(old, state) || counters.Beat(string(object), s.now, counters.Every) != counters.Beat(string(object), last, counters.Every)
}

func (s *sums) wrote(object types.UID) { s.seen[object] = s.now }

// end removes the objects that are gone.
func (s *sums) end() { s.written = s.seen }
