// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// setConstants sets variables of the section of bpf/constant.h, and writes the values of all of them into the programs:
// an instruction that loads a variable's address then loads its value.
func setConstants(spec *ebpf.CollectionSpec, constants map[string]uint64) error {
	for name, value := range constants {
		if err := spec.Variables[name].Set(value); err != nil {
			return fmt.Errorf("set the eBPF program's constant %s: %w", name, err)
		}
	}
	values := map[uint32]uint64{} // by place in the section
	for name, variable := range spec.Variables {
		if variable.SectionName != constantsMap {
			continue
		}
		var value uint64
		if err := variable.Get(&value); err != nil {
			return fmt.Errorf("read the eBPF program's constant %s: %w", name, err)
		}
		values[variable.Offset] = value
		delete(spec.Variables, name)
	}
	for _, program := range spec.Programs {
		for i := range program.Instructions {
			if load := &program.Instructions[i]; load.Reference() == constantsMap {
				load.Src = asm.R0
				load.Constant = int64(values[uint32(uint64(load.Constant)>>32)])
				*load = load.WithReference("")
			}
		}
	}
	delete(spec.Maps, constantsMap)
	return nil
}

// constants returns the values of the constants in bpf/constant.h and bpf/direct.h, and of the flags in bpf/learnt.h.
func (p ringProgram) constants(direct openQueues) map[string]uint64 {
	c, o := p.config, p.config.Outputs[0]
	constants := map[string]uint64{
		"has_steps":     uint64(c.Flags & (configRxQueues | configFilter | configRuled)),
		"has_rx_queues": uint64(c.Flags & configRxQueues), "has_filter": uint64(c.Flags & configFilter),
		"is_plain": uint64(c.Flags & (configPlain | configRuled)), "is_ruled": uint64(c.Flags & configRuled),
		"is_direct": uint64(direct[0].id), "cpu_mask": uint64(c.CPUMask),
		"has_learnt": uint64(c.Flags & configLearn), "has_idle": uint64(c.Flags & configIdle),
		"direct_hashed": uint64(o.Hashed), "direct_key_0": o.Key[0], "direct_key_1": o.Key[1],
		"direct_queues": uint64(o.Queues), "direct_lanes": uint64(o.Lanes), "direct_own_lanes": uint64(o.Lanes) - 1,
		"direct_owners":    uint64(o.HeadSize) - uint64(queueOwners(possibleCPUs())),
		"direct_head_size": uint64(o.HeadSize), "direct_lane_size": uint64(o.LaneSize),
		"direct_lane_mask": uint64(o.LaneSize) - slotAlignment, "direct_stride": uint64(o.LaneSize) + laneTail,
		"direct_snaplen": uint64(c.SnapLen), "direct_base": uint64(o.Base), "direct_watermark": uint64(o.Watermark),
		"direct_timeout": o.TimeoutNs,
	}
	switch capture.Balance(o.Balance) {
	case capture.BalanceFlow, capture.BalanceFiveTuple: // without a tag the same
		constants["direct_by_flow"] = 1
	}
	if o.TimeoutNs == 0 {
		constants["direct_watermark"] = 0
	}
	if o.Lanes >= c.CPUs {
		constants["direct_lane_each"] = 1
	}
	for number, q := range direct {
		constants[fmt.Sprintf("direct_id_%d", number)] = uint64(q.id)
	}
	return constants
}
