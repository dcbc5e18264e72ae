/* SPDX-License-Identifier: Apache-2.0 */
/* The classic BPF program of "tcp port 80" on Ethernet, IPv4 and IPv6, as a filter compiler would write it. */
#ifndef RB_FILTER_H
#define RB_FILTER_H

#include <linux/filter.h>

#define TCP_PORT_80_LEN 20

static struct sock_filter tcp_port_80[TCP_PORT_80_LEN] __attribute__((unused)) = {
	BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 12),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x86dd, 0, 6),
	BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 20),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 6, 0, 15),
	BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 54),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 80, 12, 0),
	BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 56),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 80, 10, 11),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x800, 0, 10),
	BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 23),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 6, 0, 8),
	BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 20),
	BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x1fff, 6, 0),
	BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 14),
	BPF_STMT(BPF_LD | BPF_H | BPF_IND, 14),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 80, 2, 0),
	BPF_STMT(BPF_LD | BPF_H | BPF_IND, 16),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 80, 0, 1),
	BPF_STMT(BPF_RET | BPF_K, 262144),
	BPF_STMT(BPF_RET | BPF_K, 0),
};

#endif /* RB_FILTER_H */
