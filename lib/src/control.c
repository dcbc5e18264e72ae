// SPDX-License-Identifier: BSD-2-Clause
#include "control.h"

#include <errno.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "abi.h"
#include "internal.h"

/* Buffer size in bytes. Messages from the kernel are smaller than this. */
enum { ANSWER_MAX = 32 << 10 };

/* ---------------------------------------------------------------- requests */

static void start(struct control *c, uint16_t family, uint8_t cmd, uint16_t flags)
{
	struct nlmsghdr *header = (struct nlmsghdr *)c->request;
	struct genlmsghdr *genl = NLMSG_DATA(header);

	memset(c->request, 0, NLMSG_LENGTH(GENL_HDRLEN));
	header->nlmsg_type = family;
	header->nlmsg_flags = (uint16_t)(NLM_F_REQUEST | NLM_F_ACK | flags);
	genl->cmd = cmd;
	genl->version = RINGCAP_GENL_VERSION;
	c->len = NLMSG_LENGTH(GENL_HDRLEN);
	c->too_long = false;
}

void control_start(struct control *c, uint8_t cmd, uint16_t flags)
{
	start(c, c->family, cmd, flags);
}

void control_put(struct control *c, uint16_t type, const void *value, size_t len)
{
	struct nlattr *attr = (struct nlattr *)(c->request + c->len);
	size_t whole = NLA_HDRLEN + NLA_ALIGN(len);

	if (len > UINT16_MAX - NLA_HDRLEN || whole > sizeof(c->request) - c->len) {
		c->too_long = true;
		return;
	}
	memset(attr, 0, whole);
	attr->nla_type = type;
	attr->nla_len = (uint16_t)(NLA_HDRLEN + len);
	if (len)
		memcpy((uint8_t *)attr + NLA_HDRLEN, value, len);
	c->len += (uint32_t)whole;
}

void control_put_u32(struct control *c, uint16_t type, uint32_t value)
{
	control_put(c, type, &value, sizeof(value));
}

void control_put_string(struct control *c, uint16_t type, const char *value)
{
	control_put(c, type, value, strlen(value) + 1);
}

uint32_t control_nest(struct control *c, uint16_t type)
{
	uint32_t nest = c->len;

	control_put(c, type | NLA_F_NESTED, NULL, 0);
	return nest;
}

void control_nest_end(struct control *c, uint32_t nest)
{
	if (!c->too_long)
		((struct nlattr *)(c->request + nest))->nla_len = (uint16_t)(c->len - nest);
}

/* ---------------------------------------------------------------- answers */

static void parse(const uint8_t *at, const uint8_t *end, const void **attrs, uint16_t *lens, unsigned int max)
{
	while (end - at >= NLA_HDRLEN) {
		const struct nlattr *attr = (const struct nlattr *)at;
		unsigned int type = attr->nla_type & NLA_TYPE_MASK;

		if (attr->nla_len < NLA_HDRLEN || attr->nla_len > end - at)
			return;
		if (type <= max) {
			attrs[type] = at + NLA_HDRLEN;
			lens[type] = (uint16_t)(attr->nla_len - NLA_HDRLEN);
		}
		if (NLA_ALIGN(attr->nla_len) > end - at)
			return;
		at += NLA_ALIGN(attr->nla_len);
	}
}

/*
 * Takes the result of a request and its reason. In an acknowledgement, the request's header follows the errno; at the
 * end of a dump it does not.
 */
static int take_result(struct control *c, const struct nlmsghdr *header)
{
	const void *attrs[NLMSGERR_ATTR_MAX + 1] = { 0 };
	uint16_t lens[NLMSGERR_ATTR_MAX + 1] = { 0 };
	const uint8_t *end = (const uint8_t *)header + header->nlmsg_len;
	const int *error = NLMSG_DATA(header);
	size_t tail = header->nlmsg_type == NLMSG_DONE ? sizeof(int) : sizeof(struct nlmsgerr);

	if (header->nlmsg_len < NLMSG_LENGTH(tail))
		return -EPROTO;
	if (header->nlmsg_flags & NLM_F_ACK_TLVS)
		parse((const uint8_t *)error + tail, end, attrs, lens, NLMSGERR_ATTR_MAX);
	if (attrs[NLMSGERR_ATTR_MSG])
		snprintf(c->reason, sizeof(c->reason), "%.*s", (int)lens[NLMSGERR_ATTR_MSG],
			 (const char *)attrs[NLMSGERR_ATTR_MSG]);
	return *error;
}

static void take_answer(const struct nlmsghdr *header, control_answer_fn fn, void *arg)
{
	struct control_answer answer = { 0 };

	if (!fn || header->nlmsg_len < NLMSG_LENGTH(GENL_HDRLEN))
		return;
	parse((const uint8_t *)NLMSG_DATA(header) + GENL_HDRLEN, (const uint8_t *)header + header->nlmsg_len, answer.attr,
	      answer.len, RINGCAP_A_MAX);
	fn(&answer, arg);
}

static int receive(struct control *c, control_answer_fn fn, void *arg)
{
	uint8_t buffer[ANSWER_MAX] __attribute__((aligned(8)));

	for (;;) {
		ssize_t n = recv(c->fd, buffer, sizeof(buffer), 0);
		const struct nlmsghdr *header = (const struct nlmsghdr *)buffer;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EPROTO;
		for (size_t left = (size_t)n; NLMSG_OK(header, left); header = NLMSG_NEXT(header, left)) {
			if (header->nlmsg_seq != c->seq)
				continue;
			if (header->nlmsg_type == NLMSG_ERROR || header->nlmsg_type == NLMSG_DONE)
				return take_result(c, header);
			take_answer(header, fn, arg);
		}
	}
}

int control_call(struct control *c, control_answer_fn answer, void *arg)
{
	struct nlmsghdr *header = (struct nlmsghdr *)c->request;

	c->reason[0] = '\0';
	if (c->too_long)
		return -EMSGSIZE;
	header->nlmsg_len = c->len;
	header->nlmsg_seq = ++c->seq;
	if (send(c->fd, c->request, c->len, 0) < 0)
		return -errno;
	return receive(c, answer, arg);
}

uint32_t control_u32(const struct control_answer *answer, int type)
{
	uint32_t value = 0;

	if (answer->attr[type] && answer->len[type] == sizeof(value))
		memcpy(&value, answer->attr[type], sizeof(value));
	return value;
}

uint64_t control_u64(const struct control_answer *answer, int type)
{
	uint64_t value = 0;

	if (answer->attr[type] && answer->len[type] == sizeof(value))
		memcpy(&value, answer->attr[type], sizeof(value));
	return value;
}

/* ---------------------------------------------------------------- opening */

/*
 * By default, a process's first netlink socket uses the pid as its port. A socket that is closed and opened again gets
 * the same port. The kernel could then assign new objects to the old socket. So we choose a random port.
 */
static int bind_at_random(int fd)
{
	struct sockaddr_nl address = { .nl_family = AF_NETLINK };
	int tries;

	for (tries = 0; tries < 16; tries++) {
		if (getrandom(&address.nl_pid, sizeof(address.nl_pid), 0) != sizeof(address.nl_pid))
			return -errno;
		if (address.nl_pid && !bind(fd, (struct sockaddr *)&address, sizeof(address)))
			return 0;
		if (errno != EADDRINUSE)
			return -errno;
	}
	return -EADDRINUSE;
}

/* The numbers of the controller's attributes are also below RINGCAP_A_MAX. */
static void take_family(const struct control_answer *answer, void *arg)
{
	if (answer->attr[CTRL_ATTR_FAMILY_ID] && answer->len[CTRL_ATTR_FAMILY_ID] == sizeof(uint16_t))
		memcpy(arg, answer->attr[CTRL_ATTR_FAMILY_ID], sizeof(uint16_t));
}

static int find_family(struct control *c, char *errbuf)
{
	int err;

	start(c, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 0);
	control_put_string(c, CTRL_ATTR_FAMILY_NAME, RINGCAP_GENL_NAME);
	err = control_call(c, take_family, &c->family);
	if (err == -ENOENT)
		return fail(errbuf, ENOENT, "the ringcap module is not loaded: 'modprobe ringcap' or 'insmod ringcap.ko' loads it");
	if (err || !c->family)
		return fail(errbuf, err ? -err : EPROTO, "asking the kernel for ringcap: %s", strerror(err ? -err : EPROTO));
	return 0;
}

static void take_version(const struct control_answer *answer, void *arg)
{
	struct abi *theirs = arg;

	theirs->oldest = control_u32(answer, RINGCAP_A_ABI_MIN);
	theirs->newest = control_u32(answer, RINGCAP_A_ABI);
}

static int check_version(struct control *c, char *errbuf)
{
	struct abi theirs = { 0 };
	int err;

	control_start(c, RINGCAP_CMD_INFO_GET, 0);
	err = control_call(c, take_version, &theirs);
	if (err)
		return fail(errbuf, -err, "asking the ringcap module for its version: %s", strerror(-err));
	if (!abi_common(abi_ours, theirs))
		return fail(errbuf, EPROTO, "the ringcap module speaks versions %u to %u of the interface, this libringcap %u to %u: "
			    "update %s", theirs.oldest, theirs.newest, abi_ours.oldest, abi_ours.newest,
			    abi_older(abi_ours, theirs, "the module"));
	return 0;
}

int control_open(struct control *c, char *errbuf)
{
	int one = 1, err;

	memset(c, 0, sizeof(*c));
	c->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
	if (c->fd < 0)
		return fail(errbuf, errno, "a generic netlink socket: %s", strerror(errno));
	setsockopt(c->fd, SOL_NETLINK, NETLINK_EXT_ACK, &one, sizeof(one));
	setsockopt(c->fd, SOL_NETLINK, NETLINK_CAP_ACK, &one, sizeof(one));
	err = bind_at_random(c->fd);
	if (err)
		fail(errbuf, -err, "a generic netlink socket: %s", strerror(-err));
	else
		err = find_family(c, errbuf);
	if (!err)
		err = check_version(c, errbuf);
	if (err)
		control_close(c);
	return err;
}

void control_close(struct control *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
}
