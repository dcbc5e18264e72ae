/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests for shunted flows to the agent of the eBPF engine; see struct ringcap_shunt_message in linux/ringcap.h. */
#ifndef RINGCAP_SHUNT_SOCKET_H
#define RINGCAP_SHUNT_SOCKET_H

#include <linux/ringcap.h>

/**
 * struct shunt_socket - the consumer's end of the socket
 * @fd: -1 = none
 * @known: the agent knows of shunted flows. Without @fd, it is being restarted
 * @late: an answer did not come in time, and has not come since
 * @number: of the last request
 */
struct shunt_socket {
	int fd;
	int known;
	int late;
	__u32 number;
};

void shunt_socket_init(struct shunt_socket *s);

/* Uses fd from now on, which belongs to the socket then; -1 = the agent does not know of shunted flows. */
void shunt_socket_set(struct shunt_socket *s, int fd);

/* The agent has hung up. */
void shunt_socket_close(struct shunt_socket *s);

/*
 * Does what the ioctl does, for at most RINGCAP_SHUNT_BATCH elements. Waits for the agent, at most
 * half a second, and not at all while an answer is late.
 * -ENOTSUP: the agent is older than shunted flows. -EAGAIN: it does not answer.
 */
int shunt_socket_ask(struct shunt_socket *s, unsigned int verb, struct ringcap_shunts *argument);

#endif
