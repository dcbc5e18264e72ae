// SPDX-License-Identifier: GPL-2.0-only

#include "event.h"

#include <linux/pid.h>
#include <net/genetlink.h>

#include "attr.h"
#include "hold.h"

/* NULL = nothing can be sent. Changes only when the module is loaded or unloaded. */
static const struct genl_family *rc_event_family;

void rc_event_start(const struct genl_family *family)
{
	WRITE_ONCE(rc_event_family, family);
}

void rc_event_stop(void)
{
	WRITE_ONCE(rc_event_family, NULL);
}

/* Begins a message about the object @name, or returns NULL. */
static struct sk_buff *rc_event_begin(const struct genl_family *family, enum ringcap_event event, const char *name,
				      void **header)
{
	struct sk_buff *msg;

	if (!family)
		return NULL;
	msg = genlmsg_new(NLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (!msg)
		return NULL;
	*header = genlmsg_put(msg, 0, 0, family, 0, RINGCAP_CMD_EVENT);
	if (*header && !nla_put_u32(msg, RINGCAP_A_EVENT, event) && !nla_put_string(msg, RINGCAP_A_NAME, name))
		return msg;
	nlmsg_free(msg);
	return NULL;
}

static void rc_event_send(const struct genl_family *family, struct net *net, struct sk_buff *msg, void *header)
{
	genlmsg_end(msg, header);
	genlmsg_multicast_netns(family, net, msg, 0, 0, GFP_KERNEL);
}

void rc_event_queue(struct net *net, const char *cluster, u32 index, struct pid *pid, enum ringcap_event event)
{
	const struct genl_family *family = READ_ONCE(rc_event_family);
	struct sk_buff *msg;
	void *header;

	msg = rc_event_begin(family, event, cluster, &header);
	if (!msg)
		return;
	if (nla_put_u32(msg, RINGCAP_A_QUEUE, index) ||
	    (pid && nla_put_u32(msg, RINGCAP_A_ATTACHED_PID, pid_nr(pid))))
		nlmsg_free(msg);
	else
		rc_event_send(family, net, msg, header);
}

void rc_event_overflow(struct net *net, const char *cluster, u32 index, const __u64 *dropped)
{
	const struct genl_family *family = READ_ONCE(rc_event_family);
	struct sk_buff *msg;
	void *header;

	msg = rc_event_begin(family, RINGCAP_EVENT_OVERFLOW, cluster, &header);
	if (!msg)
		return;
	if (nla_put_u32(msg, RINGCAP_A_QUEUE, index) ||
	    nla_put(msg, RINGCAP_A_DROPPED, RINGCAP_DROP_REASONS * sizeof(*dropped), dropped))
		nlmsg_free(msg);
	else
		rc_event_send(family, net, msg, header);
}

static int rc_event_put_episode(struct sk_buff *msg, const struct rc_hold_episode *episode)
{
	return rc_attr_put_u64(msg, RINGCAP_A_PAST_PACKETS, episode->packets) ?:
	       rc_attr_put_u64(msg, RINGCAP_A_PAST_MS, episode->ms);
}

void rc_event_past(struct net *net, const char *cluster, u32 index, enum ringcap_event event,
		   const struct rc_hold_episode *episode)
{
	const struct genl_family *family = READ_ONCE(rc_event_family);
	struct sk_buff *msg;
	void *header;

	msg = rc_event_begin(family, event, cluster, &header);
	if (!msg)
		return;
	if (nla_put_u32(msg, RINGCAP_A_QUEUE, index) || nla_put_u32(msg, RINGCAP_A_PAST, episode->event) ||
	    (event == RINGCAP_EVENT_BACK && rc_event_put_episode(msg, episode)))
		nlmsg_free(msg);
	else
		rc_event_send(family, net, msg, header);
}

void rc_event_tap_gone(struct net *net, const char *ring, u32 ifindex)
{
	const struct genl_family *family = READ_ONCE(rc_event_family);
	struct sk_buff *msg;
	void *header;

	msg = rc_event_begin(family, RINGCAP_EVENT_TAP_GONE, ring, &header);
	if (!msg)
		return;
	if (nla_put_u32(msg, RINGCAP_A_TAP_IFINDEX, ifindex))
		nlmsg_free(msg);
	else
		rc_event_send(family, net, msg, header);
}
