// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/ringcap/ringcap/operator/api/counters"
	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

// sets are two sets of queues; those of numbers that 3 divides have lost packets, and pods have some.
func sets() v1.NodeCaptureStatus {
	var s v1.NodeCaptureStatus
	for _, name := range []string{"a", "b"} {
		set := v1.NodeClusterStatus{Name: name}
		for i := range int32(8) {
			q := v1.QueueStatus{Queue: i, Delivered: int64(i), DeliveredBytes: 100 * int64(i), UnreadBytes: 7, Dropped: []v1.DropCount{{Reason: "full"}, {Reason: "unattended"}}}
			if i%3 == 0 {
				q.Dropped[0].Packets = int64(i + 1)
			}
			if i >= 4 {
				q.Attached, q.Consumer = true, fmt.Sprintf("n/%s%d", name, i/6)
			}
			set.Queues = append(set.Queues, q)
		}
		s.Clusters = append(s.Clusters, set)
	}
	return s
}

func numbers(set v1.NodeClusterStatus) (listed []int32) {
	for _, q := range set.Queues {
		listed = append(listed, q.Queue)
	}
	return listed
}

func TestBound(t *testing.T) {
	for name, test := range map[string]struct {
		limit   int
		a, b    []int32 // that are listed
		unnamed int32
	}{
		"all":                       {16, []int32{0, 1, 2, 3, 4, 5, 6, 7}, []int32{0, 1, 2, 3, 4, 5, 6, 7}, 0},
		"then what is read":         {10, []int32{0, 3, 4, 5, 6, 7}, []int32{0, 3, 4, 6}, 0},
		"then the worst":            {6, []int32{3, 4, 6}, []int32{3, 4, 6}, 0},
		"one of each consumer":      {4, []int32{4, 6}, []int32{4, 6}, 0},
		"not even of each consumer": {2, []int32{6}, []int32{6}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			whole, got := sets(), sets()
			bound(&got, test.limit)
			assert.Equal(t, test.a, numbers(got.Clusters[0]))
			assert.Equal(t, test.b, numbers(got.Clusters[1]))
			var unnamed int32
			for i := range got.Clusters {
				assert.Equal(t, whole.Clusters[i].Totals(), got.Clusters[i].Totals(), "sums stay what they are")
				if rest := got.Clusters[i].Unlisted; rest != nil {
					unnamed += rest.Unnamed
				}
			}
			assert.Equal(t, test.unnamed, unnamed)
			assert.Equal(t, test.limit == 16, got.Clusters[0].Unlisted == nil)
		})
	}
}

// The list of queues changes with their losses. That does not count as a change of state and causes no write at once.
func TestAnotherListIsNoOtherState(t *testing.T) {
	before, after := sets(), sets()
	after.Clusters[0].Queues[1].Dropped[0].Packets = 1000
	bound(&before, 6)
	bound(&after, 6)
	assert.NotEqual(t, numbers(before.Clusters[0]), numbers(after.Clusters[0]))
	assert.Equal(t, counters.Without(before), counters.Without(after))
	attached := sets()
	attached.Clusters[0].Queues[1].Attached = true
	bound(&attached, 6)
	assert.NotEqual(t, counters.Without(before), counters.Without(attached))
}
