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
#define OPERAND_SECTION SEC(".rodata.operands") __attribute__((used))

/* Declares a constant, 0 unless the loader sets it. */
#define DECLARE_CONSTANT(name) const volatile __u64 name CONSTANT_SECTION = 0

/* Its value. */
#define CONSTANT(name) ({ __u64 _value; asm("%0 = " #name " ll" : "=r"(_value)); _value; })

/*
 * Declares a constant that only the following macros use. Each of them loads it into r0, and the instruction behind that
 * is the only one that uses r0. If the value fits into that instruction (31 bits and a sign), the loader writes it there
 * and removes the load.
 */
#define DECLARE_OPERAND(name) const volatile __u64 name OPERAND_SECTION = 0

/* @variable @op the operand. @op is an assignment. */
#define OPERATE(variable, op, name) \
	asm volatile("r0 = " #name " ll; %0 " #op " r0" : "+r"(variable) : : "r0")

/* Declares a flag, an operand that is 0 or, if it is set, the largest number. */
#define DECLARE_FLAG(name) DECLARE_OPERAND(name)

/*
 * Whether the flag is set. @any is a number of 64 bits that the verifier knows to be below the largest. So it decides
 * the comparison, and nothing of that is left in the program. A test of the flag itself would leave the load of it. Not
 * for other comparisons: the compiler keeps more on the stack around such a jump.
 */
#define IS_SET(name, any) ({ \
	__label__ is_set; \
	int _set = 1; \
	asm goto("r0 = " #name " ll; if %0 < r0 goto %l[is_set]" : : "r"((__u64)(any)) : "r0" : is_set); \
	_set = 0; \
is_set: \
	_set; })

DECLARE_CONSTANT(tc_next);	/* what a tc program returns for others to run as if there were no tap */
DECLARE_FLAG(has_steps);	/* a filter, or has_rx_queues, or is_ruled */
DECLARE_FLAG(has_rx_queues);	/* CONFIG_RX_QUEUES */
DECLARE_FLAG(has_no_filter);	/* not CONFIG_FILTER: packets of rings with one do not jump */
DECLARE_FLAG(is_plain);		/* CONFIG_PLAIN or CONFIG_RULED */
DECLARE_FLAG(is_ruled);		/* CONFIG_RULED */
DECLARE_FLAG(has_shunts);	/* CONFIG_SHUNTS */
DECLARE_FLAG(is_direct);	/* the ring is plain, and its queues are those of direct.h */
DECLARE_OPERAND(cpu_mask);	/* config.cpu_mask */

/* bpf_get_smp_processor_id, of which the compiler does not know that it returns 32 bits: it would extend them. */
static __u64 (*const get_cpu)(void) = (void *)BPF_FUNC_get_smp_processor_id;

/* This CPU's number, which the verifier sees to be within the operand cpu_mask. */
static __always_inline __u64 this_cpu(void)
{
	__u64 cpu = get_cpu();

	OPERATE(cpu, &=, cpu_mask);
	return cpu;
}

#endif /* RC_CONSTANT_H */
