// SPDX-License-Identifier: Apache-2.0

package sizing

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/api/resource"

	v1 "github.com/ringcap/ringcap/operator/api/v1alpha1"
)

func TestArea(t *testing.T) {
	for _, test := range []struct {
		slots, slotBytes int32
		engine           v1.Engine
		want             uint64
	}{
		{4096, 1536, v1.EngineAuto, 8 << 20},
		{4096, 1536, v1.EngineEBPF, 8 << 20},
		{4096, 2000, v1.EngineKernelModule, 8 << 20}, // 2048 bytes a slot, exactly
		{4096, 2000, v1.EngineEBPF, 16 << 20},
		{16, 60, v1.EngineEBPF, MinArea},
		{4194304, 65535, v1.EngineEBPF, 512 << 30},
	} {
		assert.Equal(t, test.want, Area(test.slots, test.slotBytes, SlotOverhead(test.engine)), "%+v", test)
	}
}

// TestTheDefaultsFitSixteenQueues: as a sensor on a node of 40 Gbit/s has them, with frames of up to 2 KiB and all lanes.
func TestTheDefaultsFitSixteenQueues(t *testing.T) {
	limit := resource.MustParse(v1.DefaultMemoryLimit)
	bytes := limit.Value()
	for _, snapLength := range []int32{0, 2048} {
		area := Area(v1.DefaultSlots, SlotBytes(snapLength), ModuleSlot)
		assert.Equal(t, MaxLanes, Lanes(16, area, MaxLanes, &bytes), "snapLength %d", snapLength)
	}
}

func TestLanesAreAsManyAsTheLimitHolds(t *testing.T) {
	limit := func(n int64) *int64 { return &n }
	assert.Equal(t, 4, Lanes(4, 8<<20, 4, nil))
	assert.Equal(t, 4, Lanes(4, 8<<20, 4, limit(128<<20)))
	assert.Equal(t, 3, Lanes(4, 8<<20, 4, limit(128<<20-1)))
	assert.Equal(t, 1, Lanes(4, 8<<20, 1, limit(128<<20)))
	assert.Equal(t, 0, Lanes(4, 8<<20, 4, limit(32<<20-1)))
	assert.Equal(t, 0, Lanes(4, 8<<20, 4, limit(-1)))
}
