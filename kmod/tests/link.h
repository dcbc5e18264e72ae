/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Interfaces by rtnetlink, ten times faster than by running a program for each one. All functions return 0 or -errno.
 */
#ifndef RT_LINK_H
#define RT_LINK_H

#include "test.h"

/* A pair of connected interfaces in the current network namespace, up. */
int rt_link_add_veth(const char *a, const char *b);

/* VLAN @id of the interface @parent, with so many receive queues; down. */
int rt_link_add_vlan(const char *parent, const char *name, u16 id, u32 rx_queues);
/* The same of the capture-aware test driver (driver/ringcap_test_driver.c). */
int rt_link_add_aware(const char *a, const char *b);
int rt_link_remove(const char *name);
int rt_link_set_up(const char *name, bool up);

/*
 * Whether it has a carrier and the kernel has processed this. IFF_RUNNING is set before that. It also stays set for a
 * moment after the carrier is lost.
 */
bool rt_link_is_ready(const char *name);

/* Down, renamed, and up again: not every kernel renames what is up. */
int rt_link_rename(const char *from, const char *to);

/* Into the network namespace that @namespace_fd is of. */
int rt_link_move(const char *name, int namespace_fd);

#endif /* RT_LINK_H */
