// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include "control.h"

#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

char rt_reason[256];
bool rt_interrupted;
static int rt_fd = -1, rt_events_fd = -1;
static u16 rt_family;
static u32 rt_group, rt_seq;

static int rt_netlink_socket(void)
{
	struct sockaddr_nl address = { .nl_family = AF_NETLINK };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC), one = 1;

	RT_CHECK(fd >= 0 && !bind(fd, (struct sockaddr *)&address, sizeof(address)), "generic netlink: %m");
	setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &one, sizeof(one));
	setsockopt(fd, SOL_NETLINK, NETLINK_CAP_ACK, &one, sizeof(one));
	return fd;
}

/* ---- messages ---- */

static void rt_message_start(struct rt_message *message, u16 family, u8 cmd, u16 flags)
{
	struct nlmsghdr *header = (struct nlmsghdr *)message->bytes;
	struct genlmsghdr *genl = NLMSG_DATA(header);

	memset(message->bytes, 0, NLMSG_LENGTH(GENL_HDRLEN));
	header->nlmsg_type = family;
	header->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | flags;
	genl->cmd = cmd;
	genl->version = 1;
	message->len = NLMSG_LENGTH(GENL_HDRLEN);
}

void rt_message_init(struct rt_message *message, u8 cmd, u16 flags)
{
	rt_message_start(message, rt_family, cmd, flags);
}

void rt_message_put(struct rt_message *message, u16 type, const void *value, u32 len)
{
	struct nlattr *attr = (struct nlattr *)(message->bytes + message->len);

	RT_CHECK(message->len + NLA_HDRLEN + NLA_ALIGN(len) <= RT_MESSAGE_MAX, "message too long for this test");
	attr->nla_type = type;
	attr->nla_len = (u16)(NLA_HDRLEN + len);
	memset((u8 *)attr + NLA_HDRLEN, 0, NLA_ALIGN(len));
	if (len)
		memcpy((u8 *)attr + NLA_HDRLEN, value, len);
	message->len += NLA_HDRLEN + NLA_ALIGN(len);
}

void rt_message_put_u32(struct rt_message *message, u16 type, u32 value)
{
	rt_message_put(message, type, &value, sizeof(value));
}

void rt_message_put_u64(struct rt_message *message, u16 type, u64 value)
{
	rt_message_put(message, type, &value, sizeof(value));
}

void rt_message_put_name(struct rt_message *message, u16 type, const char *name)
{
	rt_message_put(message, type, name, (u32)strlen(name) + 1);
}

u32 rt_message_nest(struct rt_message *message, u16 type)
{
	u32 at = message->len;

	rt_message_put(message, type | NLA_F_NESTED, NULL, 0);
	return at;
}

void rt_message_nest_end(struct rt_message *message, u32 nest)
{
	((struct nlattr *)(message->bytes + nest))->nla_len = (u16)(message->len - nest);
}

/* ---- answers ---- */

/* @times may be NULL. */
static void rt_parse(const u8 *at, const u8 *end, const void **attrs, u16 *lens, u16 *times, u32 max)
{
	while (at + NLA_HDRLEN <= end) {
		const struct nlattr *attr = (const struct nlattr *)at;
		u32 type = attr->nla_type & NLA_TYPE_MASK;

		if (attr->nla_len < NLA_HDRLEN || at + attr->nla_len > end)
			return;
		if (type <= max) {
			attrs[type] = at + NLA_HDRLEN;
			lens[type] = (u16)(attr->nla_len - NLA_HDRLEN);
			if (times)
				times[type]++;
		}
		at += NLA_ALIGN(attr->nla_len);
	}
}

static int rt_take_ack(const struct nlmsghdr *header)
{
	const struct nlmsgerr *error = NLMSG_DATA(header);
	const void *attrs[NLMSGERR_ATTR_MAX + 1] = {};
	u16 lens[NLMSGERR_ATTR_MAX + 1] = {};
	const u8 *tail;

	if (header->nlmsg_type == NLMSG_DONE) {
		/* In a dump: an errno, then the extended acknowledgement. */
		tail = (const u8 *)NLMSG_DATA(header) + sizeof(int);
	} else {
		tail = (const u8 *)(error + 1);
		if (!(header->nlmsg_flags & NLM_F_CAPPED))
			tail += error->msg.nlmsg_len - NLMSG_HDRLEN;
	}
	if (header->nlmsg_flags & NLM_F_ACK_TLVS)
		rt_parse(tail, (const u8 *)header + header->nlmsg_len, attrs, lens, NULL, NLMSGERR_ATTR_MAX);
	if (attrs[NLMSGERR_ATTR_MSG])
		snprintf(rt_reason, sizeof(rt_reason), "%.*s", lens[NLMSGERR_ATTR_MSG],
			 (const char *)attrs[NLMSGERR_ATTR_MSG]);
	return error->error;
}

static void rt_take_answer(const struct nlmsghdr *header, rt_answer_fn fn, void *arg)
{
	const struct genlmsghdr *genl = NLMSG_DATA(header);
	struct rt_answer answer = { .cmd = genl->cmd };

	rt_parse((const u8 *)genl + GENL_HDRLEN, (const u8 *)header + header->nlmsg_len, answer.attr, answer.len,
		 answer.times, RINGCAP_A_MAX);
	if (fn)
		fn(&answer, arg);
}

/* Reads until the acknowledgement or the end of the dump. */
static int rt_receive(u32 seq, rt_answer_fn fn, void *arg)
{
	static u8 buffer[RT_MESSAGE_MAX] __attribute__((aligned(8)));
	const struct nlmsghdr *header;
	struct pollfd ready = { .fd = rt_fd, .events = POLLIN };
	ssize_t len;

	for (;;) {
		RT_CHECK(poll(&ready, 1, 30000) == 1, "no answer to a request within 30 s");
		len = recv(rt_fd, buffer, sizeof(buffer), 0);
		if (len < 0 && errno == ENOBUFS)
			return RT_NO_ANSWER;
		RT_CHECK(len > 0, "%m");
		for (header = (void *)buffer; NLMSG_OK(header, len); header = NLMSG_NEXT(header, len)) {
			if (header->nlmsg_seq != seq)
				continue;
			rt_interrupted |= header->nlmsg_flags & NLM_F_DUMP_INTR && header->nlmsg_type != NLMSG_ERROR;
			if (header->nlmsg_type == NLMSG_ERROR || header->nlmsg_type == NLMSG_DONE)
				return rt_take_ack(header);
			rt_take_answer(header, fn, arg);
		}
	}
}

int rt_call(struct rt_message *message, rt_answer_fn fn, void *arg)
{
	struct nlmsghdr *header = (struct nlmsghdr *)message->bytes;

	header->nlmsg_len = message->len;
	header->nlmsg_seq = ++rt_seq;
	rt_reason[0] = 0;
	rt_interrupted = false;
	if (send(rt_fd, message->bytes, message->len, 0) != (ssize_t)message->len)
		return -errno;
	return rt_receive(rt_seq, fn, arg);
}

u32 rt_answer_u32(const struct rt_answer *answer, int type)
{
	u32 value = 0;

	if (answer->attr[type])
		memcpy(&value, answer->attr[type], sizeof(value));
	return value;
}

u64 rt_answer_u64(const struct rt_answer *answer, int type)
{
	u64 value = 0;

	if (answer->attr[type])
		memcpy(&value, answer->attr[type], sizeof(value));
	return value;
}

/* ---- the family ---- */

/* The controller numbers its attributes below RINGCAP_A_MAX too. */
static void rt_take_family(const struct rt_answer *answer, void *arg)
{
	const void *group[CTRL_ATTR_MCAST_GRP_MAX + 1] = {}, *groups[2] = {};
	u16 lens[CTRL_ATTR_MCAST_GRP_MAX + 1] = {}, groups_lens[2] = {};
	const u8 *nest = answer->attr[CTRL_ATTR_MCAST_GROUPS];

	(void)arg;
	memcpy(&rt_family, answer->attr[CTRL_ATTR_FAMILY_ID], sizeof(rt_family));
	if (!nest)
		return;
	rt_parse(nest, nest + answer->len[CTRL_ATTR_MCAST_GROUPS], groups, groups_lens, NULL, 1);
	if (groups[1])
		rt_parse(groups[1], (const u8 *)groups[1] + groups_lens[1], group, lens, NULL, CTRL_ATTR_MCAST_GRP_MAX);
	if (group[CTRL_ATTR_MCAST_GRP_ID])
		memcpy(&rt_group, group[CTRL_ATTR_MCAST_GRP_ID], sizeof(rt_group));
}

void rt_control_open(void)
{
	static struct rt_message message;

	if (rt_fd >= 0)
		close(rt_fd);
	rt_fd = rt_netlink_socket();
	rt_message_start(&message, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 0);
	rt_message_put_name(&message, CTRL_ATTR_FAMILY_NAME, RINGCAP_GENL_NAME);
	RT_CHECK(!rt_call(&message, rt_take_family, NULL), "the kernel has no netlink family 'ringcap'");
}

int rt_control_fd(void)
{
	return rt_fd;
}

u16 rt_control_family(void)
{
	return rt_family;
}

/* ---- events ---- */

void rt_events_open(void)
{
	RT_CHECK(rt_group, "the family has no multicast group");
	rt_events_fd = rt_netlink_socket();
	RT_CHECK(!setsockopt(rt_events_fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &rt_group, sizeof(rt_group)), "%m");
}

struct rt_event {
	enum ringcap_event event;
	const char *name;
	bool found;
};

static void rt_take_event(const struct rt_answer *answer, void *arg)
{
	struct rt_event *wanted = arg;

	wanted->found |= answer->cmd == RINGCAP_CMD_EVENT &&
			 rt_answer_u32(answer, RINGCAP_A_EVENT) == wanted->event &&
			 answer->attr[RINGCAP_A_NAME] && !strcmp(answer->attr[RINGCAP_A_NAME], wanted->name);
}

bool rt_events_wait(enum ringcap_event event, const char *name, int milliseconds)
{
	static u8 buffer[RT_MESSAGE_MAX] __attribute__((aligned(8)));
	struct pollfd ready = { .fd = rt_events_fd, .events = POLLIN };
	struct rt_event wanted = { .event = event, .name = name };
	const struct nlmsghdr *header = (void *)buffer;
	ssize_t len;

	while (!wanted.found && poll(&ready, 1, milliseconds) == 1) {
		len = recv(rt_events_fd, buffer, sizeof(buffer), 0);
		if (len > 0 && NLMSG_OK(header, len))
			rt_take_answer(header, rt_take_event, &wanted);
	}
	return wanted.found;
}

/* ---- objects ---- */

static void rt_message_put_optional(struct rt_message *message, u16 type, u32 value)
{
	if (value)
		rt_message_put_u32(message, type, value);
}

int rt_cluster_set(const struct rt_cluster *cluster)
{
	static struct rt_message message;
	u32 i;

	rt_message_init(&message, RINGCAP_CMD_CLUSTER_SET, 0);
	rt_message_put_name(&message, RINGCAP_A_NAME, cluster->name);
	rt_message_put_optional(&message, RINGCAP_A_QUEUES, cluster->queues);
	rt_message_put_optional(&message, RINGCAP_A_LANES, cluster->lanes);
	rt_message_put_optional(&message, RINGCAP_A_LANE_SIZE, cluster->lane_size);
	rt_message_put_optional(&message, RINGCAP_A_BALANCE, cluster->balance);
	rt_message_put_optional(&message, RINGCAP_A_WATERMARK, cluster->watermark);
	if (cluster->timeout_us || cluster->at_once)
		rt_message_put_u32(&message, RINGCAP_A_TIMEOUT_US, cluster->timeout_us);
	rt_message_put_optional(&message, RINGCAP_A_OWNED, cluster->owned);
	rt_message_put_optional(&message, RINGCAP_A_METADATA, cluster->metadata);
	rt_message_put_optional(&message, RINGCAP_A_SHUNT_QUOTA, cluster->shunt_quota);
	rt_message_put_optional(&message, RINGCAP_A_INNER, cluster->inner);
	rt_message_put_optional(&message, RINGCAP_A_FRAGMENTS, cluster->fragments);
	rt_message_put_optional(&message, RINGCAP_A_WHEN_FULL, cluster->when_full);
	rt_message_put_optional(&message, RINGCAP_A_WHEN_UNATTENDED, cluster->when_unattended);
	if (cluster->key)
		rt_message_put(&message, RINGCAP_A_KEY, cluster->key, RINGCAP_KEY_LEN);
	for (i = 0; i < RINGCAP_INJECT_MAX && cluster->inject[i]; i++)
		rt_message_put_u32(&message, RINGCAP_A_INJECT, cluster->inject[i]);
	return rt_call(&message, NULL, NULL);
}

static void rt_message_put_tap(struct rt_message *message, const struct rt_tap *tap, const struct rt_ring *ring)
{
	u32 nest = rt_message_nest(message, RINGCAP_A_TAP);

	rt_message_put_u32(message, RINGCAP_A_TAP_IFINDEX, tap->ifindex);
	rt_message_put_optional(message, RINGCAP_A_TAP_DIRECTION, tap->direction);
	rt_message_put_optional(message, RINGCAP_A_TAP_FOLLOWS, ring->follows);
	if (ring->rx_queues)
		rt_message_put_u64(message, RINGCAP_A_TAP_RX_QUEUES, ring->rx_queues);
	rt_message_nest_end(message, nest);
}

int rt_ring_set(const struct rt_ring *ring)
{
	static struct rt_message message;
	u32 i;

	rt_message_init(&message, RINGCAP_CMD_RING_SET, 0);
	rt_message_put_name(&message, RINGCAP_A_NAME, ring->name);
	for (i = 0; i < 8 && ring->taps[i].ifindex; i++)
		rt_message_put_tap(&message, &ring->taps[i], ring);
	for (i = 0; i < RINGCAP_OUTPUTS_MAX && ring->outputs[i]; i++)
		rt_message_put_name(&message, RINGCAP_A_OUTPUT, ring->outputs[i]);
	rt_message_put_optional(&message, RINGCAP_A_SNAPLEN, ring->snaplen);
	rt_message_put_optional(&message, RINGCAP_A_DEFRAG, ring->defrag);
	rt_message_put_optional(&message, RINGCAP_A_OWNED, ring->owned);
	rt_message_put_optional(&message, RINGCAP_A_PROMISC, ring->promiscuous);
	rt_message_put_optional(&message, RINGCAP_A_TRANSPARENT, ring->transparent);
	rt_message_put_optional(&message, RINGCAP_A_QUICK, ring->quick);
	if (ring->filter)
		rt_message_put(&message, RINGCAP_A_FILTER, ring->filter,
			       ring->filter_len * (u32)sizeof(struct sock_filter));
	if (ring->more)
		ring->more(&message, ring->arg);
	return rt_call(&message, NULL, NULL);
}

int rt_delete(u8 cmd, const char *name)
{
	static struct rt_message message;

	rt_message_init(&message, cmd, 0);
	rt_message_put_name(&message, RINGCAP_A_NAME, name);
	return rt_call(&message, NULL, NULL);
}

int rt_queue_reset(const char *name, u32 queue)
{
	static struct rt_message message;

	rt_message_init(&message, RINGCAP_CMD_QUEUE_RESET, 0);
	rt_message_put_name(&message, RINGCAP_A_NAME, name);
	rt_message_put_u32(&message, RINGCAP_A_QUEUE, queue);
	return rt_call(&message, NULL, NULL);
}

static struct rt_message *rt_queue_message(u8 cmd, const char *name, u32 queue)
{
	static struct rt_message message;

	rt_message_init(&message, cmd, 0);
	rt_message_put_name(&message, RINGCAP_A_NAME, name);
	rt_message_put_u32(&message, RINGCAP_A_QUEUE, queue);
	return &message;
}

int rt_queue_revoke(const char *name, u32 queue, u32 pid)
{
	struct rt_message *message = rt_queue_message(RINGCAP_CMD_QUEUE_REVOKE, name, queue);

	rt_message_put_optional(message, RINGCAP_A_ATTACHED_PID, pid);
	return rt_call(message, NULL, NULL);
}

int rt_queue_revoke_attachment(const char *name, u32 queue, u64 attachment)
{
	struct rt_message *message = rt_queue_message(RINGCAP_CMD_QUEUE_REVOKE, name, queue);

	rt_message_put_u64(message, RINGCAP_A_ATTACHMENT, attachment);
	return rt_call(message, NULL, NULL);
}

/* ---- counters ---- */

static void rt_take_tap(const u8 *bytes, u32 len, struct rt_ring_counts *counts)
{
	const struct nlattr *attr;
	u32 at;

	counts->follows = 0;
	for (at = 0; at + NLA_HDRLEN <= len; at += NLA_ALIGN(attr->nla_len)) {
		attr = (const struct nlattr *)(bytes + at);
		if (attr->nla_type == RINGCAP_A_TAP_IFINDEX)
			memcpy(&counts->ifindex, bytes + at + NLA_HDRLEN, sizeof(u32));
		if (attr->nla_type == RINGCAP_A_TAP_FOLLOWS)
			memcpy(&counts->follows, bytes + at + NLA_HDRLEN, sizeof(u32));
	}
}

static void rt_take_ring(const struct rt_answer *answer, void *arg)
{
	struct rt_ring_counts *counts = arg;

	counts->seen = rt_answer_u64(answer, RINGCAP_A_SEEN);
	counts->seen_bytes = rt_answer_u64(answer, RINGCAP_A_SEEN_BYTES);
	counts->filtered = rt_answer_u64(answer, RINGCAP_A_FILTERED);
	counts->sampled_out = rt_answer_u64(answer, RINGCAP_A_SAMPLED_OUT);
	counts->passed = rt_answer_u64(answer, RINGCAP_A_PASSED);
	counts->absorbed = rt_answer_u64(answer, RINGCAP_A_ABSORBED);
	counts->directed = rt_answer_u64(answer, RINGCAP_A_DIRECTED);
	counts->reflected = rt_answer_u64(answer, RINGCAP_A_REFLECTED);
	counts->reflect_failed = rt_answer_u64(answer, RINGCAP_A_REFLECT_FAILED);
	counts->taps = answer->times[RINGCAP_A_TAP];
	if (counts->taps)
		rt_take_tap(answer->attr[RINGCAP_A_TAP], answer->len[RINGCAP_A_TAP], counts);
}

void rt_ring_counts(const char *name, struct rt_ring_counts *counts)
{
	static struct rt_message message;
	int err;

	rt_message_init(&message, RINGCAP_CMD_RING_GET, 0);
	rt_message_put_name(&message, RINGCAP_A_NAME, name);
	err = rt_call(&message, rt_take_ring, counts);
	RT_CHECK(!err, "ring %s: %s (%s)", name, strerror(-err), rt_reason);
}

struct rt_attr_query {
	int type;
	u32 value;
};

static void rt_take_attr(const struct rt_answer *answer, void *arg)
{
	struct rt_attr_query *query = arg;

	query->value = rt_answer_u32(answer, query->type);
}

u32 rt_get_attr(u8 cmd, const char *name, int type)
{
	struct rt_attr_query query = { .type = type };
	static struct rt_message message;

	rt_message_init(&message, cmd, 0);
	rt_message_put_name(&message, RINGCAP_A_NAME, name);
	RT_EQUAL(rt_call(&message, rt_take_attr, &query), 0);
	return query.value;
}

u64 rt_ring_seen(const char *name)
{
	struct rt_ring_counts counts;

	rt_ring_counts(name, &counts);
	return counts.seen;
}

static void rt_take_balance(const struct rt_answer *answer, void *arg)
{
	u64 *counts = arg;

	counts[0] = rt_answer_u64(answer, RINGCAP_A_DUPLICATED);
	counts[1] = rt_answer_u64(answer, RINGCAP_A_SPREAD);
}

void rt_cluster_balance(const char *name, u64 *duplicated, u64 *spread)
{
	static struct rt_message message;
	u64 counts[2] = {};
	int err;

	rt_message_init(&message, RINGCAP_CMD_CLUSTER_GET, 0);
	rt_message_put_name(&message, RINGCAP_A_NAME, name);
	err = rt_call(&message, rt_take_balance, counts);
	RT_CHECK(!err, "cluster %s: %s (%s)", name, strerror(-err), rt_reason);
	*duplicated = counts[0];
	*spread = counts[1];
}

struct rt_queue_query {
	u32 queue;
	bool all;
	u32 found;
	struct rt_queue_counts counts;
};

static void rt_take_queue(const struct rt_answer *answer, void *arg)
{
	struct rt_queue_query *query = arg;
	struct rt_queue_counts *counts = &query->counts;
	u64 fullest = rt_answer_u64(answer, RINGCAP_A_FULLEST_LANE), dropped[RINGCAP_DROP_REASONS] = {};
	u32 i;

	if (!query->all && rt_answer_u32(answer, RINGCAP_A_QUEUE) != query->queue)
		return;
	query->found++;
	RT_EQUAL(answer->len[RINGCAP_A_DROPPED], sizeof(dropped));
	memcpy(dropped, answer->attr[RINGCAP_A_DROPPED], sizeof(dropped));
	counts->delivered += rt_answer_u64(answer, RINGCAP_A_DELIVERED);
	counts->delivered_bytes += rt_answer_u64(answer, RINGCAP_A_DELIVERED_BYTES);
	counts->truncated += rt_answer_u64(answer, RINGCAP_A_TRUNCATED);
	counts->truncated_bytes += rt_answer_u64(answer, RINGCAP_A_TRUNCATED_BYTES);
	for (i = 0; i < RINGCAP_DROP_REASONS; i++)
		counts->dropped[i] += dropped[i];
	counts->unread += rt_answer_u64(answer, RINGCAP_A_UNREAD_BYTES);
	if (fullest > counts->fullest_lane)
		counts->fullest_lane = fullest;
	counts->tx_sent += rt_answer_u64(answer, RINGCAP_A_TX_SENT);
	counts->tx_failed += rt_answer_u64(answer, RINGCAP_A_TX_FAILED);
	counts->lanes += rt_answer_u32(answer, RINGCAP_A_LANES_TAKEN);
	counts->shared += rt_answer_u64(answer, RINGCAP_A_SHARED);
	counts->shunts += rt_answer_u32(answer, RINGCAP_A_SHUNTS);
	counts->shunts_lost += rt_answer_u64(answer, RINGCAP_A_SHUNTS_LOST);
	counts->shunted += rt_answer_u64(answer, RINGCAP_A_SHUNTED);
	counts->shunted_bytes += rt_answer_u64(answer, RINGCAP_A_SHUNTED_BYTES);
	counts->memory += rt_answer_u64(answer, RINGCAP_A_MEMORY);
	counts->attached += rt_answer_u32(answer, RINGCAP_A_ATTACHED);
	counts->pid = rt_answer_u32(answer, RINGCAP_A_ATTACHED_PID);
	counts->attachment = rt_answer_u64(answer, RINGCAP_A_ATTACHMENT);
	counts->devt = rt_answer_u32(answer, RINGCAP_A_DEVT);
}

static void rt_queue_query(const char *name, struct rt_queue_query *query)
{
	static struct rt_message message;
	int err;

	rt_message_init(&message, RINGCAP_CMD_QUEUE_GET, NLM_F_DUMP);
	rt_message_put_name(&message, RINGCAP_A_NAME, name);
	err = rt_call(&message, rt_take_queue, query);
	RT_CHECK(!err && query->found, "queues of %s: %s (%s)", name, strerror(-err), rt_reason);
}

void rt_queue_counts(const char *name, u32 queue, struct rt_queue_counts *counts)
{
	struct rt_queue_query query = { .queue = queue };

	rt_queue_query(name, &query);
	RT_EQUAL(query.found, 1);
	*counts = query.counts;
}

void rt_cluster_counts(const char *name, struct rt_queue_counts *sum)
{
	struct rt_queue_query query = { .all = true };

	rt_queue_query(name, &query);
	*sum = query.counts;
}

static void rt_take_digest(const struct rt_answer *answer, void *arg)
{
	u64 *digest = arg;
	u32 type, i;

	for (type = 0; type <= RINGCAP_A_MAX; type++)
		for (i = 0; answer->attr[type] && i < answer->len[type]; i++)
			*digest = (*digest ^ type ^ ((const u8 *)answer->attr[type])[i]) * 0x100000001b3ULL;
}

u64 rt_control_digest(void)
{
	static struct rt_message message;
	static const u8 dumps[] = { RINGCAP_CMD_CLUSTER_GET, RINGCAP_CMD_RING_GET };
	u64 digest = 0xcbf29ce484222325ULL;
	size_t i;

	for (i = 0; i < sizeof(dumps); i++) {
		rt_message_init(&message, dumps[i], NLM_F_DUMP);
		RT_EQUAL(rt_call(&message, rt_take_digest, &digest), 0);
	}
	return digest;
}
