// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Parts of an operation code, see linux/bpf_common.h. Typed, so that they combine with bpf.RawInstruction.Op.
const (
	ld   uint16 = unix.BPF_LD
	ldx  uint16 = unix.BPF_LDX
	st   uint16 = unix.BPF_ST
	stx  uint16 = unix.BPF_STX
	alu  uint16 = unix.BPF_ALU
	jmp  uint16 = unix.BPF_JMP
	ret  uint16 = unix.BPF_RET
	misc uint16 = unix.BPF_MISC

	sizeW uint16 = unix.BPF_W
	sizeH uint16 = unix.BPF_H
	sizeB uint16 = unix.BPF_B

	modeImm uint16 = unix.BPF_IMM
	modeAbs uint16 = unix.BPF_ABS
	modeInd uint16 = unix.BPF_IND
	modeMem uint16 = unix.BPF_MEM
	modeLen uint16 = unix.BPF_LEN
	modeMsh uint16 = unix.BPF_MSH

	opAdd uint16 = unix.BPF_ADD
	opSub uint16 = unix.BPF_SUB
	opMul uint16 = unix.BPF_MUL
	opDiv uint16 = unix.BPF_DIV
	opOr  uint16 = unix.BPF_OR
	opAnd uint16 = unix.BPF_AND
	opLsh uint16 = unix.BPF_LSH
	opRsh uint16 = unix.BPF_RSH
	opNeg uint16 = unix.BPF_NEG
	opMod uint16 = unix.BPF_MOD
	opXor uint16 = unix.BPF_XOR

	opJa   uint16 = unix.BPF_JA
	opJeq  uint16 = unix.BPF_JEQ
	opJgt  uint16 = unix.BPF_JGT
	opJge  uint16 = unix.BPF_JGE
	opJset uint16 = unix.BPF_JSET

	srcK uint16 = unix.BPF_K
	srcX uint16 = unix.BPF_X

	retK = ret | srcK
	retA = ret | unix.BPF_A
	tax  = misc | unix.BPF_TAX
	txa  = misc | unix.BPF_TXA

	memWords = 16 // words of scratch memory, BPF_MEMWORDS
)

// Ancillary data: absolute loads from these offsets, see linux/filter.h.
const (
	adOff            uint32 = 0xfffff000
	adProtocol              = adOff + 0
	adPktType               = adOff + 4
	adIfindex               = adOff + 8
	adVLANTag               = adOff + 44 // the whole tag control information
	adVLANTagPresent        = adOff + 48
	adVLANTPID              = adOff + 60
)

// negative is the first offset that the kernel does not treat as an offset in the packet.
const negative uint32 = 1 << 31

func class(op uint16) uint16     { return op & 0x07 }
func size(op uint16) uint16      { return op & 0x18 }
func mode(op uint16) uint16      { return op & 0xe0 }
func operation(op uint16) uint16 { return op & 0xf0 }

func bytesOf(op uint16) uint32 {
	switch size(op) {
	case sizeB:
		return 1
	case sizeH:
		return 2
	default:
		return 4
	}
}

func sizeFor(bytes uint32) uint16 {
	switch bytes {
	case 1:
		return sizeB
	case 2:
		return sizeH
	default:
		return sizeW
	}
}

func isConditional(ins bpf.RawInstruction) bool {
	return class(ins.Op) == jmp && operation(ins.Op) != opJa
}
