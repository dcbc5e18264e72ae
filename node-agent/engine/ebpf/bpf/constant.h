/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Settings of a ring that its most frequent path needs. The loader replaces each instruction that names one by an
 * instruction that loads its value: see node-agent/engine/ebpf/constants.go. So they cost no access to memory, and the
 * verifier removes branches that they decide.
 */
#ifndef RC_CONSTANT_H
#define RC_CONSTANT_H

#include <linux/types.h>
#include <bpf/bpf_helpers.h>

#define CONSTANT_SECTION SEC(".rodata.constants") __attribute__((used))

/* Declares a constant, 0 unless the loader sets it. */
#define DECLARE_CONSTANT(name) const volatile __u64 name CONSTANT_SECTION = 0

/* Its value. */
#define CONSTANT(name) ({ __u64 _value; asm("%0 = " #name " ll" : "=r"(_value)); _value; })

DECLARE_CONSTANT(tc_next);		/* what a tc program returns for others to run as if there were no tap */
DECLARE_CONSTANT(has_steps);		/* one of has_rx_queues, has_filter and is_ruled */
DECLARE_CONSTANT(has_rx_queues);	/* CONFIG_RX_QUEUES */
DECLARE_CONSTANT(has_filter);		/* CONFIG_FILTER */
DECLARE_CONSTANT(is_plain);		/* CONFIG_PLAIN or CONFIG_RULED */
DECLARE_CONSTANT(is_ruled);		/* CONFIG_RULED */
DECLARE_CONSTANT(is_direct);		/* the ring is plain, and its queues are those of direct.h */
DECLARE_CONSTANT(cpu_mask);		/* config.cpu_mask */

/* This CPU's number, which the verifier sees to be within CONSTANT(cpu_mask). */
static __always_inline __u64 this_cpu(void)
{
	__u64 cpu = bpf_get_smp_processor_id();

	asm volatile("" : "+r"(cpu));
	cpu &= CONSTANT(cpu_mask);
	asm volatile("" : "+r"(cpu));
	return cpu;
}

#endif /* RC_CONSTANT_H */
