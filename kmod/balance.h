/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Balancing that needs more than one hash of the packet's own flow: inner headers, fragments with their flow, both
 * ends, and stand-ins for queues that cannot take a packet. Clusters without these options never use this file.
 *
 * If a queue cannot take a packet, rendezvous hashing finds a stand-in (D. Thaler, C. Ravishankar, "A name-based
 * mapping scheme for rendezvous", 1996). Each other queue has a weight, mixed from the packet's flow and the queue. Of
 * the attended queues, the one with the greatest weight wins.
 *
 * So a flow with an attended queue never moves. The flows of an unattended queue spread over all others. Such a flow
 * moves only when its stand-in leaves or a queue with a greater weight comes. It returns to its own queue when it can.
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

/* Whether a cluster of @nr_queues, @hashed or not, needs this file for its balance type and options. */
bool rc_balance_is_special(u32 balance, const struct rc_balance_options *options, u32 nr_queues, bool hashed);

/* Replaces rc_cluster_deliver for such clusters, and for those that have shunted flows. */
void rc_balance_deliver(struct rc_cluster *cluster, const struct rc_cluster_config *config, struct rc_packet *pkt);

/* Describes @pkt for the cluster. Returns the queue that it belongs to. Not for RINGCAP_BALANCE_BOTH_ENDS. */
u32 rc_balance_home(struct rc_cluster *cluster, const struct rc_cluster_config *config, struct rc_packet *pkt);

void rc_balance_account_sum(const struct rc_cluster *cluster, struct rc_balance_account *sum);

int rc_balance_request(const struct genl_info *info, struct rc_balance_options *options);
int rc_balance_put(struct sk_buff *msg, const struct rc_cluster *cluster);

#endif /* RC_BALANCE_H */
