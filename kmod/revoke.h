/* SPDX-License-Identifier: GPL-2.0-only */
/* Taking queues back, and emptying them: QUEUE_REVOKE, QUEUE_RESET. */
#ifndef RC_REVOKE_H
#define RC_REVOKE_H

#include <linux/types.h>

struct netlink_ext_ack;
struct rc_cluster;

/* Empties a queue that no consumer is attached to; see QUEUE_RESET. Under rc_net.control. */
int rc_cluster_reset_queue(struct rc_cluster *cluster, u32 index, struct netlink_ext_ack *extack);

/*
 * Identifies the consumer that a queue is taken back from: process @pid, in the caller's pid namespace, and attachment
 * @attachment; 0 = any.
 */
struct rc_holder {
	pid_t pid;
	u64 attachment;
};

/* Takes a queue back from its consumer, if that is @holder; see QUEUE_REVOKE. */
int rc_cluster_revoke_queue(struct rc_cluster *cluster, u32 index, const struct rc_holder *holder,
			    struct netlink_ext_ack *extack);

#endif /* RC_REVOKE_H */
