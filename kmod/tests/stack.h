/* SPDX-License-Identifier: GPL-2.0-only */
/* What the kernel's own stack gets of the packets on an interface. */
#ifndef RT_STACK_H
#define RT_STACK_H

#include "test.h"

/* A socket that counts the packets that are received on @interface, NULL = on all; it is never read. */
int rt_stack_open(const char *interface);

/* Packets since the last call. */
u64 rt_stack_count(int stack);

#endif /* RT_STACK_H */
