/* SPDX-License-Identifier: GPL-2.0-only */
/* An interface's counters at the time it went. No kernel file has them any more, but the kernel's last message does. */
#ifndef RT_WATCH_H
#define RT_WATCH_H

#include "test.h"

/* Opens a socket that is notified of interfaces that leave this network namespace. Open it before they leave. */
int rt_watch_open(void);

/* Returns the packets that @interface had received when it was removed or moved. Closes the socket. */
u64 rt_watch_received(int watch, const char *interface);

#endif /* RT_WATCH_H */
