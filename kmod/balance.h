/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Balancing that asks for more than one hash of the packet's own flow: inner headers, fragments with their flow, both
 * ends, and what becomes of packets for queues that can't take them. Clusters that want none of it never come here.
 *
 * A queue that cannot take a packet has a stand-in for it by rendezvous (D. Thaler, C. Ravishankar, "A name-based
 * mapping scheme for rendezvous", 1996): each other queue has a weight for the packet's flow, mixed from both, and the
 * greatest weight among the attended ones wins. So flows whose queue is attended never move; those of an unattended one
 * spread over all others, move only when their stand-in leaves or one of a greater weight comes, and go home when they
 * can.
 */
#ifndef RC_BALANCE_H
#define RC_BALANCE_H

#include <linux/types.h>

struct genl_info;
struct rc_balance_account;
struct rc_balance_options;
struct rc_cluster;
struct rc_cluster_config;
struct rc_packet;
struct sk_buff;

/* A cluster of so many queues, hashing or not, has to come here with this balance type and these options. */
bool rc_balance_is_special(u32 balance, const struct rc_balance_options *options, u32 nr_queues, bool hashed);

/* In the place of rc_cluster_deliver. */
void rc_balance_deliver(struct rc_cluster *cluster, const struct rc_cluster_config *config, struct rc_packet *pkt);

void rc_balance_account_sum(const struct rc_cluster *cluster, struct rc_balance_account *sum);

int rc_balance_request(const struct genl_info *info, struct rc_balance_options *options);
int rc_balance_put(struct sk_buff *msg, const struct rc_cluster *cluster);

#endif /* RC_BALANCE_H */
