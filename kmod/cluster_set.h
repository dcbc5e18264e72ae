/* SPDX-License-Identifier: GPL-2.0-only */
/* CLUSTER_SET and CLUSTER_DEL: makes, changes and deletes clusters. */
#ifndef RC_CLUSTER_SET_H
#define RC_CLUSTER_SET_H

struct netlink_ext_ack;
struct rc_cluster;
struct rc_cluster_spec;
struct rc_net;

/* Makes or changes the cluster as @spec describes it. On failure it changes nothing and reports why. */
int rc_cluster_set(struct rc_net *rc_net, const struct rc_cluster_spec *spec, struct netlink_ext_ack *extack);
int rc_cluster_delete(struct rc_cluster *cluster, struct netlink_ext_ack *extack);

/* Deletes the cluster with its namespace, even if consumers are attached. No ring feeds it. */
void rc_cluster_destroy(struct rc_cluster *cluster);

#endif /* RC_CLUSTER_SET_H */
