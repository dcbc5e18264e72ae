/* SPDX-License-Identifier: BSD-2-Clause */
/* The connection to the agent after opening: detects that it broke, and reconnects without ever waiting. */
#ifndef RINGCAP_LINK_H
#define RINGCAP_LINK_H

#include <ringcap/ringcap.h>

/* Called when the connection is readable or was hung up. Returns 0, or -ENODEV if the agent took the queue from us. */
int link_event(struct ringcap *h);

/* Called when the timer ticks. Returns as link_event does. */
int link_tick(struct ringcap *h);

#endif
