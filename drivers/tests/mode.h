/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef RT_MODE_H
#define RT_MODE_H

#include "test.h"

#define RT_MODE_QUEUES 2	/* of a card, at most */

/*
 * Sends small, large and tagged packets, and packets in several buffers, from the interface "peer" to "nic". "nic" has
 * a ring of transparent mode 1, then 2. Checks that the ring gets each packet once and whole, and the stack each or
 * none. Checks that the driver has counted each packet, and that some came by each of so many receive queues of "nic".
 */
void rt_mode_try_all(const char *driver, u32 queues);

#endif /* RT_MODE_H */
