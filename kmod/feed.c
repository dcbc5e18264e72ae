// SPDX-License-Identifier: GPL-2.0-only

#include "feed.h"

#include <linux/netlink.h>

#include "cluster.h"
#include "compat/compat.h"
#include "net.h"
#include "ring.h"
#include "rules.h"

/* Whether the current rule set of @ring has a target in @cluster. */
static bool rc_feed_by_rules(const struct rc_ring *ring, const struct rc_cluster *cluster)
{
	const struct rc_rules *rules = rc_rules_in_force(ring);
	u32 i;

	for (i = 0; rules && i < rules->nr_targets; i++)
		if (rules->targets[i].cluster == cluster)
			return true;
	return false;
}

static const struct rc_rules *rc_feed_find_rules(const struct list_head *sets, const struct rc_cluster *cluster,
						 u32 from)
{
	const struct rc_rules *rules;
	u32 i;

	list_for_each_entry(rules, sets, list)
		for (i = 0; i < rules->nr_targets; i++)
			if (rules->targets[i].cluster == cluster && rules->targets[i].queue >= from)
				return rules;
	return NULL;
}

int rc_feed_check_queues(const struct rc_cluster *cluster, u32 from, struct netlink_ext_ack *extack)
{
	char reason[80];	/* a longer name is cut off */
	const struct rc_rules *rules;

	lockdep_assert_held(&cluster->rc_net->control);
	if (!cluster->nr_targets)
		return 0;
	rules = rc_feed_find_rules(&cluster->rc_net->rules_live, cluster, from) ?:
		rc_feed_find_rules(&cluster->rc_net->rules_built, cluster, from);
	if (!rules)
		return 0;
	snprintf(reason, sizeof(reason), "%s name it: change those of ring %.31s",
		 rules->portid ? "rules being built" : "rules", rules->ring->name);
	rc_compat_set_err_msg(extack, reason);
	return -EBUSY;
}

void rc_feed_update(const struct rc_net *rc_net)
{
	struct rc_cluster *cluster;
	struct rc_ring *ring;
	u32 i;

	list_for_each_entry(cluster, &rc_net->clusters, list) {
		u32 nr_rings = 0, snaplen = 0;

		list_for_each_entry(ring, &rc_net->rings, list) {
			const struct rc_ring_config *config = rc_ring_config(ring);

			for (i = 0; i < config->nr_outputs; i++) {
				if (config->outputs[i] != cluster)
					continue;
				nr_rings++;
				snaplen = max(snaplen, config->snaplen);
			}
			if (rc_feed_by_rules(ring, cluster))
				snaplen = max(snaplen, config->snaplen);
		}
		cluster->nr_rings = nr_rings;
		WRITE_ONCE(cluster->snaplen, snaplen);
	}
}
