/* SPDX-License-Identifier: BSD-2-Clause */
/* Filter expressions for rings that tools create. */
#ifndef FILTER_H
#define FILTER_H

#include <stdbool.h>

#include <pcap/pcap.h>

/* Compiles a pcap-filter(7) expression for Ethernet. On failure, prints the reason on standard error, as tool. */
bool filter_compile(const char *tool, const char *expression, struct bpf_program *program);

#endif
