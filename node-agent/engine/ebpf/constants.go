// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"fmt"
	"math"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/ringcap/ringcap/node-agent/capture"
)

// setConstants sets variables of the sections of bpf/constant.h, and writes the values of all of them into the programs:
// an instruction that loads a variable's address then loads its value, or the next instruction has the value.
func setConstants(spec *ebpf.CollectionSpec, constants map[string]uint64) error {
	for name, value := range constants {
		if err := spec.Variables[name].Set(value); err != nil {
			return fmt.Errorf("set the eBPF program's constant %s: %w", name, err)
		}
	}
	values := map[string]map[uint32]uint64{constantsMap: {}, operandsMap: {}} // by section and place in it
	for name, variable := range spec.Variables {
		section, ok := values[variable.SectionName]
		if !ok {
			continue
		}
		var value uint64
		if err := variable.Get(&value); err != nil {
			return fmt.Errorf("read the eBPF program's constant %s: %w", name, err)
		}
		section[variable.Offset] = value
		delete(spec.Variables, name)
	}
	for _, program := range spec.Programs {
		writeConstants(program.Instructions, values[constantsMap])
		program.Instructions = writeOperands(program.Instructions, values[operandsMap])
	}
	for section := range values {
		delete(spec.Maps, section)
	}
	return nil
}

// writeConstants replaces loads of constants' addresses by loads of their values, which are by place in the section.
func writeConstants(program asm.Instructions, values map[uint32]uint64) {
	for i := range program {
		if program[i].Reference() == constantsMap {
			program[i] = loadOf(program[i], values)
		}
	}
}

// loadOf returns what loads the value at the address that the instruction loads.
func loadOf(load asm.Instruction, values map[uint32]uint64) asm.Instruction {
	load.Src = asm.R0
	load.Constant = int64(values[uint32(uint64(load.Constant)>>32)])
	return load.WithReference("")
}

// writeOperands does the same for operands. If the next instruction can have the value, it gets it, and does not need
// the load. A load has the size of two instructions, so no jump gets another length: the kernel removes those that take
// its place.
func writeOperands(program asm.Instructions, values map[uint32]uint64) asm.Instructions {
	written := make(asm.Instructions, 0, len(program))
	for i := range program {
		if program[i].Reference() != operandsMap {
			written = append(written, program[i])
			continue
		}
		load, use := loadOf(program[i], values), &program[i+1]
		if int64(int32(load.Constant)) != load.Constant {
			written = append(written, load)
			continue
		}
		use.OpCode, use.Src, use.Constant = use.OpCode.SetSource(asm.ImmSource), asm.R0, load.Constant
		nop := asm.Instruction{OpCode: asm.Ja.Op(asm.ImmSource)}
		written = append(written, nop.WithMetadata(load.Metadata), nop)
	}
	return written
}

// constants returns the values of the constants in bpf/constant.h and bpf/direct.h, and of the flags in bpf/learnt.h.
func (p ringProgram) constants(direct openQueues) map[string]uint64 {
	c, o := p.config, p.config.Outputs[0]
	constants := map[string]uint64{
		"has_steps":     flagValue(c.Flags&(configRxQueues|configFilter|configRuled) != 0),
		"has_rx_queues": flagValue(c.Flags&configRxQueues != 0), "has_no_filter": flagValue(c.Flags&configFilter == 0),
		"is_plain": flagValue(c.Flags&(configPlain|configRuled) != 0), "is_ruled": flagValue(c.Flags&configRuled != 0),
		"has_shunts": flagValue(c.Flags&configShunts != 0),
		"is_direct":  flagValue(direct[0].id != 0), "cpu_mask": uint64(c.CPUMask),
		"has_learnt": uint64(c.Flags & configLearn), "has_idle": uint64(c.Flags & configIdle),
		"direct_hashed": flagValue(o.Hashed != 0), "direct_key_0": o.Key[0], "direct_key_1": o.Key[1],
		"direct_queues": uint64(o.Queues), "direct_lanes": uint64(o.Lanes), "direct_own_lanes": uint64(o.Lanes) - 1,
		"direct_owners":    uint64(o.HeadSize) - uint64(queueOwners(possibleCPUs())),
		"direct_head_size": uint64(o.HeadSize), "direct_lane_size": uint64(o.LaneSize),
		"direct_lane_mask": uint64(o.LaneSize) - slotAlignment, "direct_stride": uint64(o.LaneSize) + laneTail,
		"direct_snaplen": uint64(c.SnapLen), "direct_base": uint64(o.Base), "direct_watermark": uint64(o.Watermark),
		"direct_timeout": o.TimeoutNs, "direct_lane_each": flagValue(o.Lanes >= c.CPUs),
	}
	switch capture.Balance(o.Balance) {
	case capture.BalanceFlow, capture.BalanceFiveTuple: // without a tag the same
		constants["direct_by_flow"] = 1
	}
	if o.TimeoutNs == 0 {
		constants["direct_watermark"] = 0
	}
	for number, q := range direct {
		constants[fmt.Sprintf("direct_id_%d", number)] = uint64(q.id)
	}
	return constants
}

// flagValue returns the value of a flag of bpf/constant.h.
func flagValue(set bool) uint64 {
	if set {
		return math.MaxUint64
	}
	return 0
}
