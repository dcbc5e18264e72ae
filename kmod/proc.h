/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * /proc/net/ringcap, for people: "Name: value" lines. The removal of an entry waits for its readers. So readers take
 * no lock under which entries are removed.
 */
#ifndef RC_PROC_H
#define RC_PROC_H

#include <linux/types.h>

struct proc_dir_entry;
struct rc_net;
struct rc_chardev;
struct rc_ring;

int rc_proc_add_net(struct rc_net *rc_net);
void rc_proc_remove_net(struct rc_net *rc_net);

/* NULL when there is no memory. */
struct proc_dir_entry *rc_proc_add_ring(struct rc_ring *ring);
struct proc_dir_entry *rc_proc_add_queue(struct rc_chardev *chardev);

void rc_proc_remove(struct proc_dir_entry *entry);

#endif /* RC_PROC_H */
