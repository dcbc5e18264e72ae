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

/* A message to listeners that is being written. */
struct rc_event_message {
	const struct genl_family *family;
	struct sk_buff *msg;
	void *header;
};

/* Begins a message about the object @name. False if it cannot be sent. */
static bool rc_event_begin(struct rc_event_message *message, enum ringcap_event event, const char *name)
{
	message->family = READ_ONCE(rc_event_family);
	if (!message->family)
		return false;
	message->msg = genlmsg_new(NLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (!message->msg)
		return false;
	message->header = genlmsg_put(message->msg, 0, 0, message->family, 0, RINGCAP_CMD_EVENT);
	if (message->header && !nla_put_u32(message->msg, RINGCAP_A_EVENT, event) &&
	    !nla_put_string(message->msg, RINGCAP_A_NAME, name))
		return true;
	nlmsg_free(message->msg);
	return false;
}

/* Sends the message, unless there was an error when it was written. */
static void rc_event_end(struct rc_event_message *message, struct net *net, int err)
{
	if (err) {
		nlmsg_free(message->msg);
		return;
	}
	genlmsg_end(message->msg, message->header);
	genlmsg_multicast_netns(message->family, net, message->msg, 0, 0, GFP_KERNEL);
}

static int rc_event_put_queue(struct sk_buff *msg, u32 index, struct pid *pid)
{
	return nla_put_u32(msg, RINGCAP_A_QUEUE, index) ?:
	       (pid ? nla_put_u32(msg, RINGCAP_A_ATTACHED_PID, pid_nr(pid)) : 0);
}

void rc_event_queue(struct net *net, const char *cluster, u32 index, struct pid *pid, enum ringcap_event event)
{
	struct rc_event_message message;

	if (rc_event_begin(&message, event, cluster))
		rc_event_end(&message, net, rc_event_put_queue(message.msg, index, pid));
}

static int rc_event_put_dropped(struct sk_buff *msg, u32 index, const __u64 *dropped)
{
	return nla_put_u32(msg, RINGCAP_A_QUEUE, index) ?:
	       nla_put(msg, RINGCAP_A_DROPPED, RINGCAP_DROP_REASONS * sizeof(*dropped), dropped);
}

void rc_event_overflow(struct net *net, const char *cluster, u32 index, const __u64 *dropped)
{
	struct rc_event_message message;

	if (rc_event_begin(&message, RINGCAP_EVENT_OVERFLOW, cluster))
		rc_event_end(&message, net, rc_event_put_dropped(message.msg, index, dropped));
}

/* How much it was is known only at the end. */
static int rc_event_put_episode(struct sk_buff *msg, u32 index, enum ringcap_event event,
				const struct rc_hold_episode *episode)
{
	int err = nla_put_u32(msg, RINGCAP_A_QUEUE, index) ?: nla_put_u32(msg, RINGCAP_A_PAST, episode->event);

	if (err || event != RINGCAP_EVENT_BACK)
		return err;
	return rc_attr_put_u64(msg, RINGCAP_A_PAST_PACKETS, episode->packets) ?:
	       rc_attr_put_u64(msg, RINGCAP_A_PAST_MS, episode->ms);
}

void rc_event_past(struct net *net, const char *cluster, u32 index, enum ringcap_event event,
		   const struct rc_hold_episode *episode)
{
	struct rc_event_message message;

	if (rc_event_begin(&message, event, cluster))
		rc_event_end(&message, net, rc_event_put_episode(message.msg, index, event, episode));
}

void rc_event_tap_gone(struct net *net, const char *ring, u32 ifindex)
{
	struct rc_event_message message;

	if (rc_event_begin(&message, RINGCAP_EVENT_TAP_GONE, ring))
		rc_event_end(&message, net, nla_put_u32(message.msg, RINGCAP_A_TAP_IFINDEX, ifindex));
}
