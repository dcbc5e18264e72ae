/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef RT_MODE_H
#define RT_MODE_H

#include "test.h"

#define RT_MODE_QUEUES 2	/* of a card, at most */

/*
 * Sends packets that are small, large, tagged and in several buffers from the interface "peer" to "nic", which has a ring of
 * transparent mode 1, then 2: that has each packet once and whole, the stack each or none, and the driver has counted each. Some come by each of so many receive queues of "nic".
 */
void rt_mode_try_all(const char *driver, u32 queues);

#endif /* RT_MODE_H */
