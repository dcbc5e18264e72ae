/* SPDX-License-Identifier: BSD-2-Clause */
/* The names that rcbpf knows; see rcbpf_names.c. */
#ifndef RCBPF_NAMES_H
#define RCBPF_NAMES_H

#include <stdbool.h>

/* True once libpcap has asked for a name that is not known here. */
extern bool rcbpf_names_refused;

#endif
