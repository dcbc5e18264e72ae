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

/* Declares a constant, with the value that it has unless the loader sets it. */
#define DECLARE_CONSTANT(name, value) const volatile __u64 name CONSTANT_SECTION = (value)

/* Its value. */
#define CONSTANT(name) ({ __u64 _value; asm("%0 = " #name " ll" : "=r"(_value)); _value; })

DECLARE_CONSTANT(has_rx_queues, 0);	/* CONFIG_RX_QUEUES */
DECLARE_CONSTANT(has_filter, 0);		/* CONFIG_FILTER */
DECLARE_CONSTANT(is_plain, 0);		/* CONFIG_PLAIN or CONFIG_RULED */
DECLARE_CONSTANT(is_ruled, 0);		/* CONFIG_RULED */
DECLARE_CONSTANT(cpu_mask, 0);		/* config.cpu_mask */

#endif /* RC_CONSTANT_H */
