/* SPDX-License-Identifier: Apache-2.0 */
/* The eBPF engine's ring "bench" on an interface, made by an agent that stands still while packets are counted. */
#ifndef RB_AGENT_H
#define RB_AGENT_H

#include "shape.h"

/* Starts an agent and waits until the ring with so many queues is there. */
void agent_start(const struct ring_shape *shape, unsigned int queues);

/* Stands still: its own instructions would be counted with the packets'. */
void agent_freeze(void);

/* Ends it, and with it the ring. */
void agent_end(void);

#endif /* RB_AGENT_H */
