/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The module's generic netlink interface: it builds requests attribute by attribute and reads the kernel's answers.
 * linux/ringcap.h describes the messages. Only one thread at a time may use a struct control.
 */
#ifndef RINGCAP_CONTROL_H
#define RINGCAP_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/ringcap.h>

/* A request has room for a ring with the longest filter. */
enum { CONTROL_REQUEST_MAX = 48 << 10, CONTROL_REASON_MAX = 200 };

/* When the socket is closed, the module removes what the socket created with RINGCAP_A_OWNED. */
struct control {
	int fd;
	uint16_t family;
	uint32_t seq;
	char reason[CONTROL_REASON_MAX];	/* the kernel's reason for refusing the last request; may be empty */
	uint32_t len;				/* bytes of the request */
	bool too_long;				/* an attribute did not fit */
	uint8_t request[CONTROL_REQUEST_MAX] __attribute__((aligned(8)));
};

/* An answer's attributes by type; of repeated ones, the last. They are valid until the answer function returns. */
struct control_answer {
	const void *attr[RINGCAP_A_MAX + 1];
	uint16_t len[RINGCAP_A_MAX + 1];
};

typedef void (*control_answer_fn)(const struct control_answer *answer, void *arg);

/* Returns 0 or -errno, and puts the reason and the remedy into errbuf (see fail). -ENOENT: the module is not loaded. */
int control_open(struct control *c, char *errbuf);
void control_close(struct control *c);

void control_start(struct control *c, uint8_t cmd, uint16_t flags);
void control_put(struct control *c, uint16_t type, const void *value, size_t len);
void control_put_u32(struct control *c, uint16_t type, uint32_t value);
void control_put_string(struct control *c, uint16_t type, const char *value);

/* Attributes that are put between these two calls go into the nest. */
uint32_t control_nest(struct control *c, uint16_t type);
void control_nest_end(struct control *c, uint32_t nest);

/*
 * Sends the request and waits for the result. Calls answer, unless it is NULL, for each message. Returns 0 or -errno,
 * with the kernel's reason in c->reason.
 */
int control_call(struct control *c, control_answer_fn answer, void *arg);

/* Returns 0 if the attribute is absent. */
uint32_t control_u32(const struct control_answer *answer, int type);
uint64_t control_u64(const struct control_answer *answer, int type);

#endif
