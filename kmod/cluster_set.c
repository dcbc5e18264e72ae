// SPDX-License-Identifier: GPL-2.0-only

#include "cluster_set.h"

#include <linux/netdevice.h>
#include <linux/netlink.h>
#include <linux/overflow.h>
#include <linux/random.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>

#include "balance.h"
#include "chardev.h"
#include "cluster.h"
#include "feed.h"
#include "fragment.h"
#include "hold.h"
#include "net.h"
#include "owner.h"
#include "spec.h"

static DEFINE_MUTEX(rc_cluster_names_lock);	/* taken last */
static LIST_HEAD(rc_clusters_registered);	/* of all namespaces; under rc_cluster_names_lock */

/* Packets are parsed and hashed if that chooses one of several queues, or if slots contain the results. */
static bool rc_cluster_needs_hash(const struct rc_cluster_spec *spec)
{
	return spec->metadata || (spec->shape.nr_queues > 1 && spec->balance != RINGCAP_BALANCE_ROUND_ROBIN &&
				  spec->balance != RINGCAP_BALANCE_RX_QUEUE);
}

static enum rc_cluster_path rc_cluster_path(const struct rc_cluster_spec *spec, const struct rc_cluster_config *config)
{
	if (config->usually_special || spec->metadata)
		return RC_PATH_SLOW;
	if (config->nr_queues == 1)
		return RC_PATH_ONE;
	if (spec->balance == RINGCAP_BALANCE_RX_QUEUE)
		return RC_PATH_RX_QUEUE;
	/* Round robin must not take two turns for one packet. */
	return spec->balance == RINGCAP_BALANCE_ROUND_ROBIN ? RC_PATH_SLOW : RC_PATH_HASH;
}

/* Keeps the table of fragments as long as it is needed. */
static int rc_cluster_prepare_fragments(const struct rc_cluster *cluster, const struct rc_cluster_spec *spec,
					struct rc_cluster_config *config)
{
	const struct rc_cluster_config *old = rc_cluster_config(cluster);

	if (spec->options.fragments != RINGCAP_FRAGMENTS_WITH_FLOW)
		return 0;
	config->fragments = old && old->fragments ? old->fragments : rc_fragments_create();
	return config->fragments ? 0 : -ENOMEM;
}

/* Prepares @config for @spec. Its queues exist. */
static void rc_cluster_prepare(const struct rc_cluster *cluster, const struct rc_cluster_spec *spec,
			       struct rc_grants *grants, struct rc_cluster_config *config)
{
	u32 i;

	config->balance = spec->balance;
	config->options = spec->options;
	config->hashed = rc_cluster_needs_hash(spec) ? RINGCAP_SLOT_HASHED : 0;
	config->hdr_len = spec->metadata ? sizeof(struct ringcap_slot) : RINGCAP_SLOT_SHORT;
	config->usually_special = rc_balance_is_special(spec->balance, &spec->options, config->nr_queues,
							config->hashed);
	config->usual_path = rc_cluster_path(spec, config);
	memcpy(config->key, spec->has_key ? spec->key : cluster->key, sizeof(config->key));
	for (i = 0; i < ARRAY_SIZE(config->key); i++)
		config->key[i] = rc_le64(config->key[i]);
	for (i = 0; i < config->nr_queues; i++) {
		rc_waiter_set(&config->queues[i]->waiter, spec->watermark, spec->timeout_us);
		if (config->queues[i]->hold)
			rc_hold_configure(config->queues[i]->hold, spec->open, spec->hung_ms);
		WRITE_ONCE(config->queues[i]->shunt_quota, spec->shunt_quota);
		if (!config->queues[i]->dead)
			rcu_assign_pointer(config->queues[i]->grants, grants);
	}
}

/* Makes @config visible to packets. Returns the previous configuration, to be freed after an RCU grace period. */
static struct rc_cluster_config *rc_cluster_commit(struct rc_cluster *cluster, const struct rc_cluster_spec *spec,
						   struct rc_cluster_config *config)
{
	if (spec->has_key)
		memcpy(cluster->key, spec->key, sizeof(cluster->key));
	cluster->shape = spec->shape;
	cluster->balance = spec->balance;
	cluster->watermark = spec->watermark;
	cluster->timeout_us = spec->timeout_us;
	cluster->metadata = spec->metadata;
	cluster->options = spec->options;
	cluster->open = spec->open;
	cluster->hung_ms = spec->hung_ms;
	cluster->shunt_quota = spec->shunt_quota;
	cluster->generation = spec->generation;
	mutex_lock(&rc_chardev_lock);
	config = rc_cluster_replace_config(cluster, config);
	mutex_unlock(&rc_chardev_lock);
	return config;
}

static void rc_cluster_put_queues(const struct rc_cluster_config *config)
{
	u32 i;

	for (i = 0; i < config->nr_queues && config->queues[i]; i++)
		rc_queue_put(config->queues[i]);
}

static struct rc_cluster_config *rc_cluster_create_queues(const struct rc_queue_shape *shape)
{
	struct rc_cluster_config *config = rc_cluster_config_alloc(shape->nr_queues);
	u32 i;

	if (!config)
		return NULL;
	for (i = 0; i < shape->nr_queues; i++) {
		config->queues[i] = rc_queue_create(shape, i, &rc_chardev_tell_of);
		if (!config->queues[i]) {
			rc_cluster_put_queues(config);
			kfree(config);
			return NULL;
		}
	}
	return config;
}

static void rc_cluster_destroy_chardevs(struct rc_chardev **chardevs, u32 from, u32 to)
{
	u32 i;

	for (i = from; i < to; i++)
		rc_chardev_destroy(chardevs[i]);
}

static int rc_cluster_create_chardevs(struct rc_cluster *cluster, struct rc_chardev **chardevs, u32 from, u32 to)
{
	u32 i;

	for (i = from; i < to; i++) {
		chardevs[i] = rc_chardev_create(cluster, i, cluster->mode);
		if (IS_ERR(chardevs[i])) {
			int err = PTR_ERR(chardevs[i]);

			rc_cluster_destroy_chardevs(chardevs, from, i);
			return err;
		}
	}
	return 0;
}

static bool rc_cluster_held(const struct rc_cluster *cluster)
{
	const struct rc_queue *queue;
	u32 i;

	lockdep_assert_held(&rc_chardev_lock);
	for (i = 0; i < cluster->shape.nr_queues; i++) {
		queue = cluster->chardevs[i]->queue;
		if (queue && !queue->dead && queue->holder != RC_QUEUE_FREE)
			return true;
	}
	return false;
}

/* Gives the devices the queues of @config, or none. Their previous queues are dead then. */
static void rc_cluster_hand_chardevs(struct rc_chardev **chardevs, u32 nr_chardevs,
				     const struct rc_cluster_config *config)
{
	u32 i;

	lockdep_assert_held(&rc_chardev_lock);
	for (i = 0; i < nr_chardevs; i++) {
		struct rc_chardev *chardev = chardevs[i];

		if (chardev->queue)
			rc_queue_kill(chardev->queue);
		chardev->queue = NULL;
		if (!config || chardev->index >= config->nr_queues)
			continue;
		chardev->queue = config->queues[chardev->index];
		chardev->queue->chardev = chardev;
	}
}

/* Registers the cluster's name, which its device nodes have. False if another namespace uses it. */
static bool rc_cluster_register(struct rc_cluster *cluster)
{
	const struct rc_cluster *other;
	bool taken = false;

	mutex_lock(&rc_cluster_names_lock);
	list_for_each_entry(other, &rc_clusters_registered, registered)
		taken |= !strcmp(other->name, cluster->name);
	if (!taken)
		list_add_tail(&cluster->registered, &rc_clusters_registered);
	mutex_unlock(&rc_cluster_names_lock);
	return !taken;
}

/* The cluster no longer has device nodes. */
static void rc_cluster_unregister(struct rc_cluster *cluster)
{
	mutex_lock(&rc_cluster_names_lock);
	list_del(&cluster->registered);
	mutex_unlock(&rc_cluster_names_lock);
}

static void rc_cluster_free(struct rc_cluster *cluster)
{
	kfree(cluster->chardevs);
	free_percpu(cluster->balance_account);
	free_percpu(cluster->turn);
	kfree(cluster);
}

static struct rc_cluster *rc_cluster_alloc(struct rc_net *rc_net, const struct rc_cluster_spec *spec)
{
	struct rc_cluster *cluster = kzalloc(sizeof(*cluster), GFP_KERNEL_ACCOUNT);

	if (!cluster)
		return NULL;
	cluster->turn = alloc_percpu_gfp(u32, GFP_KERNEL_ACCOUNT);
	cluster->balance_account = alloc_percpu_gfp(struct rc_balance_account, GFP_KERNEL_ACCOUNT);
	cluster->chardevs = kcalloc(spec->shape.nr_queues, sizeof(*cluster->chardevs), GFP_KERNEL_ACCOUNT);
	if (!cluster->turn || !cluster->balance_account || !cluster->chardevs) {
		rc_cluster_free(cluster);
		return NULL;
	}
	cluster->rc_net = rc_net;
	cluster->mode = spec->mode;
	memcpy(cluster->name, spec->name, sizeof(cluster->name));
	get_random_bytes(cluster->key, sizeof(cluster->key));
	return cluster;
}

static int rc_cluster_create(struct rc_net *rc_net, const struct rc_cluster_spec *spec, struct rc_grants *grants,
			     struct netlink_ext_ack *extack)
{
	struct rc_cluster *cluster = rc_cluster_alloc(rc_net, spec);
	struct rc_cluster_config *config;
	int err;

	if (!cluster)
		return -ENOMEM;
	if (!rc_cluster_register(cluster)) {
		NL_SET_ERR_MSG(extack,
			       "RINGCAP_A_NAME: another network namespace has a cluster of this name, and device nodes in /dev/ringcap are common to all: choose another name");
		err = -EEXIST;
		goto fail_name;
	}
	config = rc_cluster_create_queues(&spec->shape);
	if (!config) {
		NL_SET_ERR_MSG(extack,
			       "no memory for the cluster's queues (a sixteenth of the machine's is left alone): reduce RINGCAP_A_QUEUES, RINGCAP_A_LANES or RINGCAP_A_LANE_SIZE");
		err = -ENOMEM;
		goto fail;
	}
	err = rc_cluster_prepare_fragments(cluster, spec, config);
	if (err)
		goto fail_queues;
	err = rc_cluster_create_chardevs(cluster, cluster->chardevs, 0, config->nr_queues);
	if (err) {
		NL_SET_ERR_MSG(extack, "the device nodes in /dev/ringcap could not be made");
		goto fail_queues;
	}
	rc_cluster_prepare(cluster, spec, grants, config);
	rc_cluster_commit(cluster, spec, config);
	cluster->owner = spec->owner;
	rc_net->nr_owned += !!cluster->owner;
	cluster->grants = grants;
	list_add_tail(&cluster->list, &rc_net->clusters);
	rc_net->changes++;

	/* From here on, the nodes may be opened. */
	mutex_lock(&rc_chardev_lock);
	rc_cluster_hand_chardevs(cluster->chardevs, config->nr_queues, config);
	mutex_unlock(&rc_chardev_lock);
	return 0;

fail_queues:
	rc_cluster_put_queues(config);
	rc_cluster_config_free(config, NULL);
fail:
	rc_cluster_unregister(cluster);
fail_name:
	rc_cluster_free(cluster);
	return err;
}

/* Keeps the queues, but changes how they are balanced or woken. */
static int rc_cluster_retune(struct rc_cluster *cluster, const struct rc_cluster_spec *spec, struct rc_grants *grants)
{
	struct rc_cluster_config *old = rc_cluster_config(cluster);
	struct rc_cluster_config *config = rc_cluster_config_alloc(old->nr_queues);
	int err;

	if (!config)
		return -ENOMEM;
	memcpy(config->queues, old->queues, flex_array_size(config, queues, config->nr_queues));
	err = rc_cluster_prepare_fragments(cluster, spec, config);
	if (err) {
		kfree(config);
		return err;
	}
	rc_cluster_prepare(cluster, spec, grants, config);
	rc_cluster_commit(cluster, spec, config);
	synchronize_net();
	rc_cluster_config_free(old, config);
	return 0;
}

/* All that a new shape needs. It is allocated before anything is changed. */
struct rc_cluster_reshaping {
	struct rc_cluster_config *config;
	struct rc_chardev **chardevs;
};

static int rc_cluster_prepare_reshape(struct rc_cluster *cluster, const struct rc_queue_shape *shape,
				      struct rc_cluster_reshaping *new)
{
	u32 kept = min(cluster->shape.nr_queues, shape->nr_queues);
	int err = -ENOMEM;

	new->chardevs = kcalloc(shape->nr_queues, sizeof(*new->chardevs), GFP_KERNEL_ACCOUNT);
	new->config = rc_cluster_create_queues(shape);
	if (!new->chardevs || !new->config)
		goto fail;
	memcpy(new->chardevs, cluster->chardevs, kept * sizeof(*new->chardevs));
	err = rc_cluster_create_chardevs(cluster, new->chardevs, kept, shape->nr_queues);
	if (!err)
		return 0;
fail:
	if (new->config)
		rc_cluster_put_queues(new->config);
	kfree(new->config);
	kfree(new->chardevs);
	return err;
}

static void rc_cluster_abandon_reshape(const struct rc_cluster *cluster, struct rc_cluster_reshaping *new)
{
	rc_cluster_destroy_chardevs(new->chardevs, min(cluster->shape.nr_queues, new->config->nr_queues),
				    new->config->nr_queues);
	rc_cluster_put_queues(new->config);
	rc_cluster_config_free(new->config, rc_cluster_config(cluster));
	kfree(new->chardevs);
}

static int rc_cluster_reshape(struct rc_cluster *cluster, const struct rc_cluster_spec *spec, struct rc_grants *grants,
			      struct netlink_ext_ack *extack)
{
	u32 old_nr = cluster->shape.nr_queues, new_nr = spec->shape.nr_queues;
	struct rc_cluster_reshaping new;
	struct rc_cluster_config *old;
	struct rc_chardev **old_chardevs;
	bool held;
	int err;

	err = rc_feed_check_queues(cluster, new_nr, extack);
	if (err)
		return err;
	err = rc_cluster_prepare_reshape(cluster, &spec->shape, &new);
	if (err) {
		NL_SET_ERR_MSG(extack, "no memory for the cluster's new queues; the old ones are still there");
		return err;
	}
	err = rc_cluster_prepare_fragments(cluster, spec, new.config);
	if (err) {
		rc_cluster_abandon_reshape(cluster, &new);
		return err;
	}
	rc_cluster_prepare(cluster, spec, grants, new.config);

	mutex_lock(&rc_chardev_lock);
	held = rc_cluster_held(cluster);
	if (!held) {
		rc_cluster_hand_chardevs(cluster->chardevs, old_nr, new.config);
		if (new_nr > old_nr)
			rc_cluster_hand_chardevs(new.chardevs + old_nr, new_nr - old_nr, new.config);
	}
	mutex_unlock(&rc_chardev_lock);
	if (held) {
		rc_cluster_abandon_reshape(cluster, &new);
		NL_SET_ERR_MSG(extack,
			       "a consumer is attached: RINGCAP_A_QUEUES, RINGCAP_A_LANES and RINGCAP_A_LANE_SIZE, and in line how packets are balanced, can be changed once all of them have closed their queues");
		return -EBUSY;
	}

	cluster->rc_net->changes++;
	old_chardevs = cluster->chardevs;
	cluster->chardevs = new.chardevs;
	old = rc_cluster_commit(cluster, spec, new.config);
	synchronize_net();
	rc_cluster_put_queues(old);
	rc_cluster_config_free(old, new.config);
	rc_cluster_destroy_chardevs(old_chardevs, min(old_nr, new_nr), old_nr);
	kfree(old_chardevs);
	return 0;
}

/* Whether flows would move to other queues while packets of theirs wait: such a change makes new queues. */
static bool rc_cluster_moves_held(const struct rc_cluster *cluster, const struct rc_cluster_spec *spec)
{
	return spec->shape.in_line &&
	       (spec->balance != cluster->balance || spec->options.inner != cluster->options.inner ||
		spec->options.fragments != cluster->options.fragments ||
		(spec->has_key && memcmp(spec->key, cluster->key, sizeof(spec->key))));
}

static int rc_cluster_change(struct rc_cluster *cluster, const struct rc_cluster_spec *spec, struct rc_grants *grants,
			     struct netlink_ext_ack *extack)
{
	struct rc_grants *old = cluster->grants;
	int err;

	err = rc_owner_check_replace(cluster->owner, spec->owner, extack);
	if (err)
		return err;
	if (spec->has_mode && spec->mode != cluster->mode) {
		NL_SET_ERR_MSG(extack,
			       "RINGCAP_A_MODE: the device nodes' permissions are set when a cluster is made: delete it first");
		return -EOPNOTSUPP;
	}
	if (spec->shape.in_line != cluster->shape.in_line) {
		NL_SET_ERR_MSG(extack,
			       "RINGCAP_A_INLINE: whether a cluster is in line is decided when it is made: delete it first");
		return -EOPNOTSUPP;
	}
	if (!memcmp(&spec->shape, &cluster->shape, sizeof(spec->shape)) && !rc_cluster_moves_held(cluster, spec))
		err = rc_cluster_retune(cluster, spec, grants);
	else
		err = rc_cluster_reshape(cluster, spec, grants, extack);
	if (err)
		return err;
	/* Both functions above have waited for the last users of the old grants. */
	cluster->grants = grants;
	rc_grants_destroy(old);
	return 0;
}

int rc_cluster_set(struct rc_net *rc_net, const struct rc_cluster_spec *spec, struct netlink_ext_ack *extack)
{
	struct rc_cluster *cluster = rc_cluster_find(rc_net, spec->name);
	struct rc_grants *grants;
	int err;

	lockdep_assert_held(&rc_net->control);
	grants = rc_grants_create(rc_net->net, spec->inject, spec->nr_inject, extack);
	if (IS_ERR(grants))
		return PTR_ERR(grants);
	if (cluster)
		err = rc_cluster_change(cluster, spec, grants, extack);
	else
		err = rc_cluster_create(rc_net, spec, grants, extack);
	if (err)
		rc_grants_destroy(grants);
	return err;
}

void rc_cluster_destroy(struct rc_cluster *cluster)
{
	struct rc_cluster_config *config = rc_cluster_config(cluster);

	mutex_lock(&rc_chardev_lock);
	rc_cluster_hand_chardevs(cluster->chardevs, config->nr_queues, NULL);
	mutex_unlock(&rc_chardev_lock);
	if (cluster->grants) {
		/* An attached consumer may still be sending. */
		synchronize_net();
		rc_grants_destroy(cluster->grants);
	}

	cluster->rc_net->changes++;
	cluster->rc_net->nr_owned -= !!cluster->owner;
	list_del(&cluster->list);
	rc_cluster_destroy_chardevs(cluster->chardevs, 0, config->nr_queues);
	rc_cluster_unregister(cluster);
	rc_cluster_put_queues(config);
	rc_cluster_config_free(config, NULL);
	rc_cluster_free(cluster);
}

int rc_cluster_delete(struct rc_cluster *cluster, struct netlink_ext_ack *extack)
{
	bool held;
	int err;

	if (cluster->nr_rings) {
		NL_SET_ERR_MSG(extack, "a ring feeds this cluster: delete the ring, or take the cluster from its outputs, first");
		return -EBUSY;
	}
	err = rc_feed_check_queues(cluster, 0, extack);
	if (err)
		return err;
	mutex_lock(&rc_chardev_lock);
	held = rc_cluster_held(cluster);
	if (!held)
		rc_cluster_hand_chardevs(cluster->chardevs, cluster->shape.nr_queues, NULL);
	mutex_unlock(&rc_chardev_lock);
	if (held) {
		NL_SET_ERR_MSG(extack, "a consumer is attached to this cluster: RINGCAP_CMD_QUEUE_GET reports its process");
		return -EBUSY;
	}
	rc_cluster_destroy(cluster);
	return 0;
}
