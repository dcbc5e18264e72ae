/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The classifier: what a packet is, which flow it belongs to and which queue that flow goes to. Plain C without kernel
 * or libc dependencies, compiled unchanged into the module, the eBPF program, the unit tests and the fuzzer, so that a
 * packet gets the same answer in all of them. It is this header alone; includers add kmod/include/uapi to their path.
 *
 * It looks at no more than the first RC_PARSE_MAX bytes of a packet, counted on the wire; an engine must give it that
 * many, or the whole packet where it is shorter, or answers would depend on how an engine happens to hold a packet.
 */
#ifndef RC_CLASSIFY_H
#define RC_CLASSIFY_H

#include "flow.h"
#include "hash.h"
#include "inner.h"
#include "parse.h"

#endif /* RC_CLASSIFY_H */
