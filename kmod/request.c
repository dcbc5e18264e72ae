// SPDX-License-Identifier: GPL-2.0-only

#include "request.h"

#include <linux/filter.h>
#include <linux/log2.h>
#include <linux/ringcap.h>
#include <net/genetlink.h>

#include "attr.h"
#include "balance.h"
#include "hold.h"
#include "params.h"
#include "spec.h"

#define RC_LANES_DEFAULT	16U
#define RC_TIMEOUT_US_DEFAULT	10000U
#define RC_TIMEOUT_US_MAX	1000000U
#define RC_SNAPLEN_DEFAULT	RINGCAP_SNAPLEN_MAX

static const struct nla_policy rc_request_tap_policy[RINGCAP_A_MAX + 1] = {
	[RINGCAP_A_TAP_IFINDEX] = { .type = NLA_U32 },
	[RINGCAP_A_TAP_DIRECTION] = { .type = NLA_U32 },
	[RINGCAP_A_TAP_RX_QUEUES] = { .type = NLA_BINARY, .len = RINGCAP_RX_QUEUES_MAX / 8 },
	[RINGCAP_A_TAP_FOLLOWS] = NLA_POLICY_MAX(NLA_U32, 1),
	[RINGCAP_A_TAP_PEER] = { .type = NLA_U32 },
};

const struct nla_policy rc_request_policy[RINGCAP_A_MAX + 1] = {
	[RINGCAP_A_NAME] = { .type = NLA_NUL_STRING, .len = RINGCAP_NAME_MAX },
	[RINGCAP_A_GENERATION] = { .type = NLA_U64 },
	[RINGCAP_A_ATTACHMENT] = { .type = NLA_U64 },
	[RINGCAP_A_QUEUES] = { .type = NLA_U32 },
	[RINGCAP_A_LANES] = { .type = NLA_U32 },
	[RINGCAP_A_LANE_SIZE] = { .type = NLA_U32 },
	[RINGCAP_A_BALANCE] = { .type = NLA_U32 },
	[RINGCAP_A_KEY] = NLA_POLICY_EXACT_LEN(RINGCAP_KEY_LEN),
	[RINGCAP_A_WATERMARK] = { .type = NLA_U32 },
	[RINGCAP_A_TIMEOUT_US] = { .type = NLA_U32 },
	[RINGCAP_A_MODE] = { .type = NLA_U32 },
	[RINGCAP_A_METADATA] = { .type = NLA_U32 },
	[RINGCAP_A_QUICK] = { .type = NLA_U32 },
	[RINGCAP_A_INNER] = { .type = NLA_U32 },
	[RINGCAP_A_FRAGMENTS] = { .type = NLA_U32 },
	[RINGCAP_A_WHEN_FULL] = { .type = NLA_U32 },
	[RINGCAP_A_WHEN_UNATTENDED] = { .type = NLA_U32 },
	[RINGCAP_A_OWNED] = { .type = NLA_U32 },
	[RINGCAP_A_INJECT] = { .type = NLA_U32 },
	[RINGCAP_A_INLINE] = { .type = NLA_U32 },
	[RINGCAP_A_HUNG_MS] = { .type = NLA_U32 },
	[RINGCAP_A_SHUNT_QUOTA] = { .type = NLA_U32 },
	[RINGCAP_A_ADDRESSED] = { .type = NLA_U32 },
	[RINGCAP_A_TAP_IFINDEX] = { .type = NLA_U32 },
	[RINGCAP_A_TAP] = NLA_POLICY_NESTED(rc_request_tap_policy),
	[RINGCAP_A_OUTPUT] = { .type = NLA_NUL_STRING, .len = RINGCAP_NAME_MAX },
	[RINGCAP_A_SNAPLEN] = { .type = NLA_U32 },
	[RINGCAP_A_FILTER] = { .type = NLA_BINARY, .len = RINGCAP_FILTER_MAX * sizeof(struct sock_filter) },
	[RINGCAP_A_PROMISC] = { .type = NLA_U32 },
	[RINGCAP_A_TRANSPARENT] = { .type = NLA_U32 },
	[RINGCAP_A_HWTSTAMP] = { .type = NLA_U32 },
	[RINGCAP_A_TRANSPARENT_FALLBACK] = { .type = NLA_U32 },
	[RINGCAP_A_DEFRAG] = { .type = NLA_U32 },
	[RINGCAP_A_ATTACHED_PID] = { .type = NLA_U32 },
	[RINGCAP_A_QUEUE] = { .type = NLA_U32 },
	[RINGCAP_A_VLANS] = { .type = NLA_BINARY, .len = 4096 * sizeof(u16) },
	[RINGCAP_A_SAMPLE] = { .type = NLA_U32 },
	[RINGCAP_A_SAMPLE_BY] = { .type = NLA_U32 },
	[RINGCAP_A_PLUGIN] = { .type = NLA_NESTED },
	[RINGCAP_A_DEFAULT_ACTION] = { .type = NLA_U32 },
	[RINGCAP_A_TARGET] = { .type = NLA_NESTED },
	[RINGCAP_A_PATTERN_ACTION] = { .type = NLA_U32 },
	[RINGCAP_A_PATTERN] = { .type = NLA_NESTED },
	[RINGCAP_A_EXACT] = { .type = NLA_BINARY },
	[RINGCAP_A_RULE] = { .type = NLA_BINARY },
};

static bool rc_request_name_char(char c, bool at_end)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (!at_end && (c == '-' || c == '.'));
}

int rc_request_name(const struct nlattr *attr, char *name, struct netlink_ext_ack *extack)
{
	size_t i, len;

	if (!attr)
		return rc_attr_refuse(extack, NULL, -EINVAL, "RINGCAP_A_NAME is missing");
	memset(name, 0, RINGCAP_NAME_MAX + 1);
	nla_strscpy(name, attr, RINGCAP_NAME_MAX + 1);
	len = strlen(name);
	for (i = 0; i < len; i++)
		if (!rc_request_name_char(name[i], i == 0 || i == len - 1))
			break;
	if (!len || i < len)
		return rc_attr_refuse(extack, attr, -EINVAL,
				      "RINGCAP_A_NAME: a name is 1 to 63 of a-z, 0-9, '-' and '.', and begins and ends with a letter or digit");
	return 0;
}

static u64 rc_request_generation(const struct genl_info *info)
{
	return info->attrs[RINGCAP_A_GENERATION] ? nla_get_u64(info->attrs[RINGCAP_A_GENERATION]) : 0;
}

/* The port of the requesting socket if the object is to be deleted together with the socket; else 0. */
static int rc_request_owner(const struct genl_info *info, u32 *owner)
{
	u32 owned = rc_attr_u32(info, RINGCAP_A_OWNED, 0);

	if (owned > 1)
		return rc_attr_refuse(info->extack, info->attrs[RINGCAP_A_OWNED], -EINVAL, "RINGCAP_A_OWNED: 0 or 1");
	*owner = owned ? info->snd_portid : 0;
	return 0;
}

static int rc_request_shape(const struct genl_info *info, struct rc_queue_shape *shape)
{
	shape->nr_queues = rc_attr_u32(info, RINGCAP_A_QUEUES, 1);
	if (!shape->nr_queues || shape->nr_queues > RINGCAP_QUEUES_MAX)
		return rc_attr_refuse(info->extack, info->attrs[RINGCAP_A_QUEUES], -EINVAL,
				      "RINGCAP_A_QUEUES: a cluster has 1 to 256 queues");

	shape->nr_lanes = rc_attr_u32(info, RINGCAP_A_LANES, 0);
	if (shape->nr_lanes > RINGCAP_LANES_MAX)
		return rc_attr_refuse(info->extack, info->attrs[RINGCAP_A_LANES], -EINVAL,
				      "RINGCAP_A_LANES: a queue has 1 to 64 lanes; 0 is one for each possible CPU and one that is shared, at most 16");
	/* No more lanes than can be written to. */
	shape->nr_lanes = min(shape->nr_lanes ?: RC_LANES_DEFAULT, rc_producers_lanes());

	shape->lane_size = rc_attr_u32(info, RINGCAP_A_LANE_SIZE, rc_params_lane_size());
	if (!is_power_of_2(shape->lane_size) || shape->lane_size < RINGCAP_LANE_SIZE_MIN ||
	    shape->lane_size > RINGCAP_LANE_SIZE_MAX)
		return rc_attr_refuse(info->extack, info->attrs[RINGCAP_A_LANE_SIZE], -EINVAL,
				      "RINGCAP_A_LANE_SIZE: a lane's size is a power of two from 131072 to 1073741824 bytes");
	return 0;
}

static int rc_request_wakeup(const struct genl_info *info, struct rc_cluster_spec *spec)
{
	spec->watermark = rc_attr_u32(info, RINGCAP_A_WATERMARK, 0) ?: spec->shape.lane_size / 4;
	/* With a higher watermark a lane could be full while the consumer still sleeps. */
	if (spec->watermark > spec->shape.lane_size / 2)
		return rc_attr_refuse(info->extack, info->attrs[RINGCAP_A_WATERMARK], -EINVAL,
				      "RINGCAP_A_WATERMARK: a watermark is 1 byte to half of RINGCAP_A_LANE_SIZE; 0 is a quarter of it");
	spec->timeout_us = rc_attr_u32(info, RINGCAP_A_TIMEOUT_US, RC_TIMEOUT_US_DEFAULT);
	if (spec->timeout_us > RC_TIMEOUT_US_MAX)
		return rc_attr_refuse(info->extack, info->attrs[RINGCAP_A_TIMEOUT_US], -EINVAL,
				      "RINGCAP_A_TIMEOUT_US: a consumer waits 0 to 1000000 microseconds for less than the watermark");
	return 0;
}

/* A repeated attribute: info->attrs has only the last one. */
static int rc_request_inject(const struct genl_info *info, struct rc_cluster_spec *spec)
{
	const struct nlattr *attr;
	int rest;
	u32 i;

	nlmsg_for_each_attr(attr, info->nlhdr, GENL_HDRLEN, rest) {
		if (nla_type(attr) != RINGCAP_A_INJECT)
			continue;
		if (spec->nr_inject == RINGCAP_INJECT_MAX)
			return rc_attr_refuse(info->extack, attr, -EINVAL,
					      "RINGCAP_A_INJECT: consumers may send out of at most 16 interfaces");
		for (i = 0; i < spec->nr_inject; i++)
			if (spec->inject[i].ifindex == nla_get_u32(attr))
				return rc_attr_refuse(info->extack, attr, -EINVAL,
						      "RINGCAP_A_INJECT: this interface is named twice");
		spec->inject[spec->nr_inject++] = (struct rc_grant_spec){ nla_get_u32(attr), attr };
	}
	return 0;
}

/* Order needs one lane, and all packets of a flow in one queue. */
static int rc_request_held(const struct genl_info *info, struct rc_cluster_spec *spec)
{
	if (rc_attr_u32(info, RINGCAP_A_LANES, 1) > 1)
		return rc_attr_refuse(info->extack, info->attrs[RINGCAP_A_LANES], -EINVAL,
				      "RINGCAP_A_LANES: a queue of an in-line cluster has one lane");
	spec->shape.nr_lanes = 1;
	if (spec->shape.lane_size > RC_HOLD_LANE_MAX)
		return rc_attr_refuse(info->extack, info->attrs[RINGCAP_A_LANE_SIZE], -EINVAL,
				      "RINGCAP_A_LANE_SIZE: in an in-line cluster, a lane has at most 4194304 bytes");
	if (spec->balance == RINGCAP_BALANCE_ROUND_ROBIN || spec->balance == RINGCAP_BALANCE_BOTH_ENDS)
		return rc_attr_refuse(info->extack, info->attrs[RINGCAP_A_BALANCE], -EINVAL,
				      "RINGCAP_A_BALANCE: in an in-line cluster, each packet has one queue, and a flow stays in its queue");
	if (spec->options.when_full != RINGCAP_POLICY_DROP || spec->options.when_unattended != RINGCAP_POLICY_DROP)
		return rc_attr_refuse(info->extack, NULL, -EINVAL,
				      "RINGCAP_A_WHEN_FULL, RINGCAP_A_WHEN_UNATTENDED: in an in-line cluster, RINGCAP_A_INLINE says what happens then");
	spec->metadata = true;
	return 0;
}

static int rc_request_inline(const struct genl_info *info, struct rc_cluster_spec *spec)
{
	u32 open = rc_attr_u32(info, RINGCAP_A_INLINE, 0);

	if (!info->attrs[RINGCAP_A_INLINE])
		return !info->attrs[RINGCAP_A_HUNG_MS] ? 0 :
		       rc_attr_refuse(info->extack, info->attrs[RINGCAP_A_HUNG_MS], -EINVAL,
				      "RINGCAP_A_HUNG_MS: this goes with RINGCAP_A_INLINE");
	if (open & ~(RINGCAP_OPEN_UNATTENDED | RINGCAP_OPEN_FULL | RINGCAP_OPEN_HUNG))
		return rc_attr_refuse(info->extack, info->attrs[RINGCAP_A_INLINE], -EINVAL,
				      "RINGCAP_A_INLINE: the events that let packets pass are among 1 (unattended), 2 (full) and 4 (hung)");
	spec->open = open;
	spec->hung_ms = rc_attr_u32(info, RINGCAP_A_HUNG_MS, RC_HOLD_MS_DEFAULT);
	if (!spec->hung_ms || spec->hung_ms > RC_HOLD_MS_MAX)
		return rc_attr_refuse(info->extack, info->attrs[RINGCAP_A_HUNG_MS], -EINVAL,
				      "RINGCAP_A_HUNG_MS: a packet waits 1 to 60000 milliseconds for a verdict");
	spec->shape.in_line = 1;
	return rc_request_held(info, spec);
}

int rc_request_cluster(const struct genl_info *info, struct rc_cluster_spec *spec)
{
	u32 mode;
	int err;

	err = rc_request_name(info->attrs[RINGCAP_A_NAME], spec->name, info->extack) ?:
	      rc_request_owner(info, &spec->owner) ?: rc_request_shape(info, &spec->shape) ?:
	      rc_request_wakeup(info, spec) ?: rc_attr_flag(info, RINGCAP_A_METADATA, &spec->metadata) ?:
	      rc_balance_request(info, &spec->options) ?: rc_request_inject(info, spec);
	if (err)
		return err;
	spec->balance = rc_attr_u32(info, RINGCAP_A_BALANCE, RINGCAP_BALANCE_FLOW);
	if (spec->balance >= __RINGCAP_BALANCE_MAX)
		return rc_attr_refuse(info->extack, info->attrs[RINGCAP_A_BALANCE], -EINVAL,
				      "RINGCAP_A_BALANCE: unknown balance type");
	err = rc_request_inline(info, spec);
	if (err)
		return err;
	spec->shunt_quota = rc_attr_u32(info, RINGCAP_A_SHUNT_QUOTA, 0);
	if (spec->shunt_quota > RINGCAP_SHUNTS_MAX)
		return rc_attr_refuse(info->extack, info->attrs[RINGCAP_A_SHUNT_QUOTA], -EINVAL,
				      "RINGCAP_A_SHUNT_QUOTA: a consumer may shunt at most 1048576 flows");
	spec->has_mode = info->attrs[RINGCAP_A_MODE];
	mode = rc_attr_u32(info, RINGCAP_A_MODE, 0600);
	if (!mode || (mode & ~0666U))
		return rc_attr_refuse(info->extack, info->attrs[RINGCAP_A_MODE], -EINVAL,
				      "RINGCAP_A_MODE: a device node's permissions are among 0666");
	spec->mode = mode;
	spec->has_key = info->attrs[RINGCAP_A_KEY];
	if (spec->has_key)
		memcpy(spec->key, nla_data(info->attrs[RINGCAP_A_KEY]), RINGCAP_KEY_LEN);
	spec->generation = rc_request_generation(info);
	return 0;
}

/*
 * Like perfmon_capable, for both the sender of the request and the opener of the socket. Otherwise one process could
 * have another send it.
 */
static bool rc_request_may_watch(const struct sk_buff *skb)
{
	return netlink_capable(skb, CAP_PERFMON) || netlink_capable(skb, CAP_SYS_ADMIN);
}

static int rc_request_tap(const struct sk_buff *skb, const struct genl_info *info, const struct nlattr *attr,
			  struct rc_ring_spec *spec)
{
	struct rc_tap_spec *tap = &spec->taps[spec->nr_taps];
	struct nlattr *in[RINGCAP_A_MAX + 1];
	u32 i;
	int err;

	if (spec->nr_taps == RINGCAP_TAPS_MAX)
		return rc_attr_refuse(info->extack, attr, -EINVAL, "RINGCAP_A_TAP: a ring has at most 64 taps");
	err = nla_parse_nested(in, RINGCAP_A_MAX, attr, rc_request_tap_policy, info->extack);
	if (err)
		return err;
	if (!in[RINGCAP_A_TAP_IFINDEX])
		return rc_attr_refuse(info->extack, attr, -EINVAL,
				      "RINGCAP_A_TAP: RINGCAP_A_TAP_IFINDEX is missing");
	tap->attr = attr;
	tap->ifindex = nla_get_u32(in[RINGCAP_A_TAP_IFINDEX]);
	tap->peer = in[RINGCAP_A_TAP_PEER] ? nla_get_u32(in[RINGCAP_A_TAP_PEER]) : 0;
	tap->direction = rc_param(enable_tx_capture) && !tap->peer ? RINGCAP_DIRECTION_BOTH : RINGCAP_DIRECTION_RX;
	if (in[RINGCAP_A_TAP_DIRECTION])
		tap->direction = nla_get_u32(in[RINGCAP_A_TAP_DIRECTION]);
	if (!tap->direction || tap->direction & ~RINGCAP_DIRECTION_BOTH)
		return rc_attr_refuse(info->extack, attr, -EINVAL,
				      "RINGCAP_A_TAP_DIRECTION: a direction is 1 (receive), 2 (transmit) or 3 (both)");
	tap->rx_queues = in[RINGCAP_A_TAP_RX_QUEUES];
	if (tap->rx_queues && nla_len(tap->rx_queues) % sizeof(u64))
		return rc_attr_refuse(info->extack, tap->rx_queues, -EINVAL,
				      "RINGCAP_A_TAP_RX_QUEUES: a set of receive queues is 1 to 16 whole 64-bit words");
	if (tap->rx_queues && !(tap->direction & RINGCAP_DIRECTION_RX))
		return rc_attr_refuse(info->extack, tap->rx_queues, -EINVAL,
				      "RINGCAP_A_TAP_RX_QUEUES: a tap that takes only sent packets has no receive queues");
	tap->follows = in[RINGCAP_A_TAP_FOLLOWS] && nla_get_u32(in[RINGCAP_A_TAP_FOLLOWS]);
	/* Otherwise a container's administrator could watch an interface after the host took it back. */
	if (tap->follows && !rc_request_may_watch(skb))
		return rc_attr_refuse(info->extack, attr, -EPERM,
				      "RINGCAP_A_TAP_FOLLOWS: sender and opener of the socket need CAP_PERFMON, for it shows what is in other namespaces");
	for (i = 0; i < spec->nr_taps; i++)
		if (spec->taps[i].ifindex == tap->ifindex)
			return rc_attr_refuse(info->extack, attr, -EINVAL,
					      "RINGCAP_A_TAP_IFINDEX: this interface is named twice; use direction 3 for both directions");
	spec->nr_taps++;
	return 0;
}

static int rc_request_output(const struct genl_info *info, const struct nlattr *attr, struct rc_ring_spec *spec)
{
	if (spec->nr_outputs == RINGCAP_OUTPUTS_MAX)
		return rc_attr_refuse(info->extack, attr, -EINVAL,
				      "RINGCAP_A_OUTPUT: a ring feeds at most 8 clusters");
	spec->outputs[spec->nr_outputs++] = attr;
	return 0;
}

static int rc_request_plugin(const struct genl_info *info, const struct nlattr *attr, struct rc_ring_spec *spec)
{
	if (spec->nr_plugins == RINGCAP_PLUGINS_MAX)
		return rc_attr_refuse(info->extack, attr, -EINVAL,
				      "RINGCAP_A_PLUGIN: a ring has at most 8 plugins");
	spec->plugins[spec->nr_plugins++] = attr;
	return 0;
}

/* Taps, outputs and plugins are repeated attributes: info->attrs has only the last one of each. */
static int rc_request_lists(const struct sk_buff *skb, const struct genl_info *info, struct rc_ring_spec *spec)
{
	const struct nlattr *attr;
	int rest, err = 0;

	nlmsg_for_each_attr(attr, info->nlhdr, GENL_HDRLEN, rest) {
		if (nla_type(attr) == RINGCAP_A_TAP)
			err = rc_request_tap(skb, info, attr, spec);
		else if (nla_type(attr) == RINGCAP_A_OUTPUT)
			err = rc_request_output(info, attr, spec);
		else if (nla_type(attr) == RINGCAP_A_PLUGIN)
			err = rc_request_plugin(info, attr, spec);
		if (err)
			return err;
	}
	return 0;
}

static const struct rc_tap_spec *rc_request_find_tap(const struct rc_ring_spec *spec, u32 ifindex)
{
	u32 i;

	for (i = 0; i < spec->nr_taps; i++)
		if (spec->taps[i].ifindex == ifindex)
			return &spec->taps[i];
	return NULL;
}

static int rc_request_pair(const struct genl_info *info, const struct rc_ring_spec *spec, const struct rc_tap_spec *tap)
{
	const struct rc_tap_spec *peer = rc_request_find_tap(spec, tap->peer);

	if (!tap->peer)
		return rc_attr_refuse(info->extack, tap->attr, -EINVAL,
				      "RINGCAP_A_TAP_PEER: either all taps of a ring have a peer, or none has");
	if (tap->peer == tap->ifindex)
		return rc_attr_refuse(info->extack, tap->attr, -EINVAL,
				      "RINGCAP_A_TAP_PEER: an interface cannot be its own peer");
	if (!peer || peer->peer != tap->ifindex)
		return rc_attr_refuse(info->extack, tap->attr, -EINVAL,
				      "RINGCAP_A_TAP_PEER: the interface that is named must be in a tap of this ring whose peer is this interface");
	if (tap->direction != RINGCAP_DIRECTION_RX || tap->rx_queues || tap->follows)
		return rc_attr_refuse(info->extack, tap->attr, -EINVAL,
				      "RINGCAP_A_TAP_PEER: such a tap takes everything that is received: it has no other RINGCAP_A_TAP_DIRECTION, no RINGCAP_A_TAP_RX_QUEUES, and does not follow");
	return 0;
}

/* What a ring cannot do with packets that it must send on. */
static int rc_request_pairs(const struct genl_info *info, struct rc_ring_spec *spec)
{
	int err = 0;
	u32 i;

	for (i = 0; i < spec->nr_taps; i++)
		spec->has_pairs |= spec->taps[i].peer;
	if (!spec->has_pairs)
		return !spec->addressed ? 0 :
		       rc_attr_refuse(info->extack, info->attrs[RINGCAP_A_ADDRESSED], -EINVAL,
				      "RINGCAP_A_ADDRESSED: this goes with RINGCAP_A_TAP_PEER");
	for (i = 0; i < spec->nr_taps && !err; i++)
		err = rc_request_pair(info, spec, &spec->taps[i]);
	if (err)
		return err;
	if (spec->defrag)
		return rc_attr_refuse(info->extack, info->attrs[RINGCAP_A_DEFRAG], -EINVAL,
				      "RINGCAP_A_DEFRAG: a ring whose taps have peers sends fragments on as they are (the module's enable_ip_defrag is the default)");
	if (spec->snaplen < RC_HOLD_SNAPLEN_MIN)
		return rc_attr_refuse(info->extack, info->attrs[RINGCAP_A_SNAPLEN], -EINVAL,
				      "RINGCAP_A_SNAPLEN: a ring whose taps have peers captures at least 64 bytes");
	return 0;
}

int rc_request_ring(const struct sk_buff *skb, const struct genl_info *info, struct rc_ring_spec *spec)
{
	const struct nlattr *filter = info->attrs[RINGCAP_A_FILTER];
	int err;

	err = rc_request_name(info->attrs[RINGCAP_A_NAME], spec->name, info->extack) ?:
	      rc_request_owner(info, &spec->owner) ?: rc_request_lists(skb, info, spec) ?:
	      rc_attr_flag(info, RINGCAP_A_PROMISC, &spec->promiscuous) ?:
	      rc_attr_flag(info, RINGCAP_A_HWTSTAMP, &spec->hwtstamp) ?:
	      rc_attr_flag(info, RINGCAP_A_TRANSPARENT_FALLBACK, &spec->transparent_fallback) ?:
	      rc_attr_flag_or(info, RINGCAP_A_DEFRAG, rc_param(enable_ip_defrag), &spec->defrag) ?:
	      rc_attr_flag(info, RINGCAP_A_ADDRESSED, &spec->addressed) ?:
	      rc_attr_flag_or(info, RINGCAP_A_QUICK, rc_param(quick_mode), &spec->quick);
	if (err)
		return err;
	spec->snaplen = rc_attr_u32(info, RINGCAP_A_SNAPLEN, RC_SNAPLEN_DEFAULT);
	if (!spec->snaplen || spec->snaplen > RINGCAP_SNAPLEN_MAX)
		return rc_attr_refuse(info->extack, info->attrs[RINGCAP_A_SNAPLEN], -EINVAL,
				      "RINGCAP_A_SNAPLEN: a snap length is 1 to 65535 bytes");
	if (filter && (!nla_len(filter) || nla_len(filter) % sizeof(struct sock_filter)))
		return rc_attr_refuse(info->extack, filter, -EINVAL,
				      "RINGCAP_A_FILTER: a filter is one or more whole struct sock_filter; leave it out to let everything pass");
	spec->transparent = rc_attr_u32(info, RINGCAP_A_TRANSPARENT, rc_param(transparent_mode));
	if (spec->transparent > 2)
		return rc_attr_refuse(info->extack, info->attrs[RINGCAP_A_TRANSPARENT], -EINVAL,
				      "RINGCAP_A_TRANSPARENT: a transparent mode is 0, 1 or 2");
	spec->filter = filter;
	spec->vlans = info->attrs[RINGCAP_A_VLANS];
	spec->sample = info->attrs[RINGCAP_A_SAMPLE];
	spec->sample_by = info->attrs[RINGCAP_A_SAMPLE_BY];
	spec->generation = rc_request_generation(info);
	return rc_request_pairs(info, spec);
}
