/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * inbound, outbound and ifindex in filters that a program runs itself. They load values that only the kernel's sockets
 * have, from offsets outside the packet. In our copy of the program, such a load becomes a constant, which
 * metadata_tell sets. The field jt, which loads do not use, selects the constant.
 */
#ifndef METADATA_H
#define METADATA_H

#include <linux/filter.h>
#include <linux/if_packet.h>
#include <stdint.h>

#include <pcap/pcap.h>
#include <ringcap/ringcap.h>

/* *told: the metadata last given to the filter. */
static inline void metadata_mark(struct bpf_program *program, uint64_t *told)
{
	*told = UINT64_MAX;
	for (u_int i = 0; i < program->bf_len; i++) {
		struct bpf_insn *insn = &program->bf_insns[i];
		bpf_u_int32 what = insn->k - (bpf_u_int32)SKF_AD_OFF;

		if (BPF_CLASS(insn->code) != BPF_LD || BPF_MODE(insn->code) != BPF_ABS ||
		    (what != SKF_AD_PKTTYPE && what != SKF_AD_IFINDEX))
			continue;
		insn->code = BPF_LD | BPF_IMM;
		insn->jt = (u_char)what;
	}
}

/* Gives the filter a packet's direction and interface, if they differ from the last packet's. */
static inline void metadata_tell(const struct bpf_program *program, uint64_t *told, const struct ringcap_slot *slot)
{
	uint32_t type = slot->flags & RINGCAP_SLOT_OUTGOING ? PACKET_OUTGOING : PACKET_HOST;
	uint64_t metadata = (uint64_t)type << 32 | slot->ifindex;

	if (metadata == *told)
		return;
	*told = metadata;
	for (u_int i = 0; i < program->bf_len; i++) {
		struct bpf_insn *insn = &program->bf_insns[i];

		if (insn->code == (BPF_LD | BPF_IMM) && insn->jt)
			insn->k = insn->jt == SKF_AD_PKTTYPE ? type : slot->ifindex;
	}
}

#endif
