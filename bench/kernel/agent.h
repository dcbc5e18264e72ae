/* SPDX-License-Identifier: Apache-2.0 */
/* The eBPF engine's ring "bench" on an interface. An agent creates it, and is stopped while packets are counted. */
#ifndef RB_AGENT_H
#define RB_AGENT_H

#include "shape.h"

/* Starts an agent, and waits until the ring has that many queues. */
void agent_start(const struct ring_shape *shape, unsigned int queues);

/* Stops the agent, because its instructions would be counted with those for packets. */
void agent_freeze(void);

/* Ends the agent and its ring. */
void agent_end(void);

#endif /* RB_AGENT_H */
