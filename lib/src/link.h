/* SPDX-License-Identifier: BSD-2-Clause */
/* The connection to the agent after opening: noticing that it broke, and making it again without ever waiting. */
#ifndef RINGCAP_LINK_H
#define RINGCAP_LINK_H

#include <ringcap/ringcap.h>

/* The connection is readable or was hung up. 0, or -ENODEV when the agent has taken the queue from us. */
int link_event(struct ringcap *h);

/* The timer ticked. As link_event. */
int link_tick(struct ringcap *h);

#endif
