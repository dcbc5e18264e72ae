/* SPDX-License-Identifier: BSD-2-Clause */
/* The eBPF engine's hand-over protocol, the consumer's side; see linux/ringcap.h. */
#ifndef RINGCAP_HANDOVER_H
#define RINGCAP_HANDOVER_H

#include <stddef.h>

#include <linux/ringcap.h>

/* Descriptors that come with an answer. A consumer that comes back gets the last one alone, as the first. */
enum { HANDOVER_DATA, HANDOVER_CONSUMER, HANDOVER_DOORBELL, HANDOVER_SHUNTS, HANDOVER_FDS };

/* Connects to the agent without waiting. Returns a close-on-exec, non-blocking socket, or -errno. */
int handover_connect(const char *path);

/* Asks for the queue; map_id as in struct ringcap_handover_request. Returns 0 or -errno. */
int handover_ask(int fd, __u32 map_id);

/*
 * Reads the answer without waiting. Returns 0, or -errno: -EAGAIN when there is no answer yet, -ECONNRESET when the
 * agent hung up, -EPROTO when the answer is invalid. Each of fds is -1 or a descriptor that belongs to the caller.
 */
int handover_read(int fd, struct ringcap_handover_reply *reply, int fds[HANDOVER_FDS]);

/* Checks the n bytes of an answer, and makes its texts safe to print. Returns 0 or -EPROTO. */
int handover_check(struct ringcap_handover_reply *reply, size_t n);

#endif
