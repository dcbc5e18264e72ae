/* SPDX-License-Identifier: GPL-2.0-only */
/* Threads that poll an interface in place of softirqs. */
#ifndef RT_POLLING_H
#define RT_POLLING_H

#include "test.h"

/* Lets threads poll an interface of this namespace as long as it exists. */
void rt_polling_by_threads(const char *interface);

/* Returns how often the threads that poll it have waited for work. */
u64 rt_polling_waits(const char *interface);

#endif /* RT_POLLING_H */
