// SPDX-License-Identifier: Apache-2.0

package sizing

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
		{4096, 2000, v1.EngineEBPF, 8 << 20},
		{16, 60, v1.EngineEBPF, MinArea},
		{4194304, 65535, v1.EngineEBPF, 512 << 30},
	} {
		assert.Equal(t, test.want, Area(test.slots, test.slotBytes, SlotOverhead(test.engine)), "%+v", test)
	}
}

// TestTheDefaultsFitSixteenQueues: as a sensor on a node of 40 Gbit/s has them, with frames of up to 2 KiB and four lanes each.
func TestTheDefaultsFitSixteenQueues(t *testing.T) {
	limit := resource.MustParse(v1.DefaultMemoryLimit)
	bytes := limit.Value()
	for _, snapLength := range []int32{0, 2048} {
		area := Area(v1.DefaultSlots, SlotBytes(snapLength), ModuleSlot)
		assert.GreaterOrEqual(t, Lanes(16, area, MaxLanes, &bytes), EnoughLanes, "snapLength %d", snapLength)
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

// TestTheTableOfThePage: docs/migrating.md has the lanes of queues on a node with many CPUs, and the memory that they take.
func TestTheTableOfThePage(t *testing.T) {
	const mostOfEBPF = 512<<20 - 64<<10 // bytes of a queue: MaxQueue of node-agent/engine/ebpf
	page, err := os.ReadFile("../../../docs/migrating.md")
	require.NoError(t, err)
	rows := regexp.MustCompile(`(?m)^\| (\d+) Gbit/s \| (\d+) \| (\d+) \| (\w+) \| (\d+) MiB \| (\d+) lanes, (\d+) MiB \| (\d+) lanes, (\d+) MiB \| (\d+) ms \|$`).
		FindAllStringSubmatch(string(page), -1)
	require.Len(t, rows, 7)
	for _, row := range rows {
		number := func(column int) uint64 {
			n, err := strconv.ParseUint(row[column], 10, 31)
			require.NoError(t, err)
			return n
		}
		queues, slots := number(2), int32(number(3))
		limit := resource.MustParse(strings.Replace(row[4], "default", v1.DefaultMemoryLimit, 1))
		bytes := limit.Value()
		area := Area(slots, SlotBytes(0), ModuleSlot)
		assert.Equal(t, area>>20, number(5), row[0])

		module := uint64(Lanes(int32(queues), area, MaxLanes, &bytes))
		assert.GreaterOrEqual(t, module, uint64(EnoughLanes), row[0])
		assert.Equal(t, []uint64{module, queues * module * area >> 20}, []uint64{number(6), number(7)}, row[0])

		lane := area + EBPFTail
		ebpf := min(uint64(Lanes(int32(queues), lane, EBPFLanes, &bytes)), mostOfEBPF/lane)
		assert.Equal(t, []uint64{ebpf, (queues*ebpf*lane + 1<<20 - 1) >> 20}, []uint64{number(8), number(9)}, row[0])

		perSecond := number(1) * 1e9 / 8 / 800 / queues * (32 + 800)
		assert.Equal(t, area*1000/perSecond, number(10), row[0])
	}
}
