/* SPDX-License-Identifier: GPL-2.0-only */
/* What an interface had counted when it went: no file of the kernel's tells that any more, but its last message does. */
#ifndef RT_WATCH_H
#define RT_WATCH_H

#include "test.h"

/* A socket that hears which interfaces go from this network namespace; open it before. */
int rt_watch_open(void);

/* The packets that @interface had received when it went, for good or to another namespace. Closes the socket. */
u64 rt_watch_received(int watch, const char *interface);

#endif /* RT_WATCH_H */
