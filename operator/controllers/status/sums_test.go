// SPDX-License-Identifier: Apache-2.0

package status

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// Nodes that report all the time change sums all the time: a status is written once a minute for them, and at once for all else.
func TestSumsAreWrittenOnceAMinute(t *testing.T) {
	var s sums
	now, stored, writes := time.Unix(1_000_000, 0), v1alpha1.CaptureStatus{}, 0
	report := func(change func(*v1alpha1.CaptureStatus)) {
		now = now.Add(time.Second)
		s.begin(now)
		after := stored
		change(&after)
		if s.due("a", &stored, &after) {
			stored = after
			writes++
			s.wrote("a")
		}
		s.end()
	}
	more := func(c *v1alpha1.CaptureStatus) { c.Seen, c.Delivered, c.Dropped = c.Seen+1, c.Delivered+1, c.Dropped+1 }
	for range 600 {
		report(more)
	}
	assert.Equal(t, 10, writes)
	report(func(c *v1alpha1.CaptureStatus) { c.QueuesAttached = 1 })
	assert.Equal(t, 11, writes)
	for range 60 {
		report(func(*v1alpha1.CaptureStatus) {})
	}
	assert.Equal(t, 11, writes, "nothing changed")

	s.begin(now)
	s.end()
	assert.Empty(t, s.written, "it is gone")
}
