/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The classifier: it determines what a packet is, which flow it belongs to and which queue that flow goes to. It is
 * plain C without kernel or libc dependencies. The module, the eBPF program, the unit tests and the fuzzer compile it
 * unchanged, so a packet gets the same answer in all of them. Include only this header, and add kmod/include/uapi to
 * the include path.
 *
 * It reads no more than the first RC_PARSE_MAX bytes of a packet, counted on the wire. An engine must give it that many
 * bytes, or the whole packet if it is shorter. Otherwise answers would depend on how an engine happens to hold a
 * packet.
 */
#ifndef RC_CLASSIFY_H
#define RC_CLASSIFY_H

#include "flow.h"
#include "hash.h"
#include "inner.h"
#include "parse.h"

#endif /* RC_CLASSIFY_H */
