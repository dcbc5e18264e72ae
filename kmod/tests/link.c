// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include "link.h"

#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <linux/if.h>
#include <sys/socket.h>
#include <unistd.h>

struct rt_link_request {
	struct nlmsghdr header;
	struct ifinfomsg info;
	u8 attributes[512];
};

static void rt_link_init(struct rt_link_request *request, u16 type, u16 flags)
{
	memset(request, 0, sizeof(*request));
	request->header.nlmsg_len = NLMSG_LENGTH(sizeof(request->info));
	request->header.nlmsg_type = type;
	request->header.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | flags;
}

/* Appends @len bytes, aligned, and returns where they are. */
static void *rt_link_append(struct rt_link_request *request, const void *bytes, u32 len)
{
	u8 *at = (u8 *)request + request->header.nlmsg_len;

	RT_CHECK(request->header.nlmsg_len + NLMSG_ALIGN(len) <= sizeof(*request), "request too long");
	if (bytes)
		memcpy(at, bytes, len);
	request->header.nlmsg_len += NLMSG_ALIGN(len);
	return at;
}

static struct rtattr *rt_link_begin(struct rt_link_request *request, u16 type)
{
	struct rtattr *attr = rt_link_append(request, NULL, sizeof(*attr));

	attr->rta_type = type;
	return attr;
}

static void rt_link_end(struct rt_link_request *request, struct rtattr *attr)
{
	attr->rta_len = (u16)((u8 *)request + request->header.nlmsg_len - (u8 *)attr);
}

static void rt_link_put(struct rt_link_request *request, u16 type, const void *bytes, u32 len)
{
	struct rtattr *attr = rt_link_begin(request, type);

	rt_link_append(request, bytes, len);
	attr->rta_len = (u16)RTA_LENGTH(len);
}

static void rt_link_put_name(struct rt_link_request *request, u16 type, const char *name)
{
	rt_link_put(request, type, name, (u32)strlen(name) + 1);
}

/* A socket for each call: the process may have changed its network namespace. */
static int rt_link_call(struct rt_link_request *request)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	struct {
		struct nlmsghdr header;
		struct nlmsgerr error;
		u8 rest[1024];
	} answer;

	RT_CHECK(fd >= 0, "%m");
	RT_CHECK(send(fd, request, request->header.nlmsg_len, 0) == (ssize_t)request->header.nlmsg_len, "%m");
	RT_CHECK(recv(fd, &answer, sizeof(answer), 0) >= (ssize_t)NLMSG_LENGTH(sizeof(answer.error)), "%m");
	close(fd);
	return answer.error.error;
}

static bool rt_link_says_up(const struct nlmsghdr *header)
{
	const struct rtattr *attr = (const void *)((const u8 *)header + NLMSG_SPACE(sizeof(struct ifinfomsg)));
	int rest = (int)(header->nlmsg_len - NLMSG_SPACE(sizeof(struct ifinfomsg)));

	bool carrier = false, up = false;

	RT_CHECK(header->nlmsg_type == RTM_NEWLINK, "no answer");
	for (; RTA_OK(attr, rest); attr = RTA_NEXT(attr, rest)) {
		if (attr->rta_type == IFLA_CARRIER)
			carrier = *(const u8 *)RTA_DATA(attr);
		else if (attr->rta_type == IFLA_OPERSTATE)
			up = *(const u8 *)RTA_DATA(attr) == IF_OPER_UP;
	}
	return carrier && up;
}

bool rt_link_is_ready(const char *name)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	static u8 answer[16384] __attribute__((aligned(NLMSG_ALIGNTO)));
	struct rt_link_request request;

	rt_link_init(&request, RTM_GETLINK, 0);
	request.header.nlmsg_flags = NLM_F_REQUEST;
	rt_link_put_name(&request, IFLA_IFNAME, name);
	RT_CHECK(send(fd, &request, request.header.nlmsg_len, 0) == (ssize_t)request.header.nlmsg_len, "%m");
	RT_CHECK(recv(fd, answer, sizeof(answer), 0) > 0, "%m");
	close(fd);
	if (!rt_link_says_up((const struct nlmsghdr *)answer))
		return false;
	/* A worker of the kernel sets the state before it lets packets through, under the lock that any change waits for. */
	rt_link_init(&request, RTM_NEWLINK, 0);
	rt_link_put_name(&request, IFLA_IFNAME, name);
	return !rt_link_call(&request);
}

int rt_link_add_veth(const char *a, const char *b)
{
	static const struct ifinfomsg peer_info;
	struct rtattr *link, *data, *peer;
	struct rt_link_request request;
	int err;

	rt_link_init(&request, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
	/* The other cannot be up before there is this one. */
	request.info.ifi_flags = IFF_UP;
	request.info.ifi_change = IFF_UP;
	rt_link_put_name(&request, IFLA_IFNAME, a);
	link = rt_link_begin(&request, IFLA_LINKINFO);
	rt_link_put_name(&request, IFLA_INFO_KIND, "veth");
	data = rt_link_begin(&request, IFLA_INFO_DATA);
	peer = rt_link_begin(&request, VETH_INFO_PEER);
	rt_link_append(&request, &peer_info, sizeof(peer_info));
	rt_link_put_name(&request, IFLA_IFNAME, b);
	rt_link_end(&request, peer);
	rt_link_end(&request, data);
	rt_link_end(&request, link);
	err = rt_link_call(&request);
	return err ? err : rt_link_set_up(b, true);
}

int rt_link_add_vlan(const char *parent, const char *name, u16 id, u32 rx_queues)
{
	u32 parent_index = if_nametoindex(parent);
	struct rt_link_request request;
	struct rtattr *link, *data;

	rt_link_init(&request, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
	rt_link_put_name(&request, IFLA_IFNAME, name);
	rt_link_put(&request, IFLA_LINK, &parent_index, sizeof(parent_index));
	rt_link_put(&request, IFLA_NUM_RX_QUEUES, &rx_queues, sizeof(rx_queues));
	link = rt_link_begin(&request, IFLA_LINKINFO);
	rt_link_put_name(&request, IFLA_INFO_KIND, "vlan");
	data = rt_link_begin(&request, IFLA_INFO_DATA);
	rt_link_put(&request, IFLA_VLAN_ID, &id, sizeof(id));
	rt_link_end(&request, data);
	rt_link_end(&request, link);
	return rt_link_call(&request);
}

static int rt_link_add_aware_end(const char *name)
{
	struct rt_link_request request;
	struct rtattr *link;

	rt_link_init(&request, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
	rt_link_put_name(&request, IFLA_IFNAME, name);
	link = rt_link_begin(&request, IFLA_LINKINFO);
	rt_link_put_name(&request, IFLA_INFO_KIND, "aware");
	rt_link_end(&request, link);
	return rt_link_call(&request);
}

int rt_link_add_aware(const char *a, const char *b)
{
	int err = rt_link_add_aware_end(a);

	err = err ? err : rt_link_add_aware_end(b);
	err = err ? err : rt_link_set_up(a, true);
	return err ? err : rt_link_set_up(b, true);
}

int rt_link_remove(const char *name)
{
	struct rt_link_request request;

	rt_link_init(&request, RTM_DELLINK, 0);
	rt_link_put_name(&request, IFLA_IFNAME, name);
	return rt_link_call(&request);
}

int rt_link_set_up(const char *name, bool up)
{
	struct rt_link_request request;

	rt_link_init(&request, RTM_NEWLINK, 0);
	request.info.ifi_flags = up ? IFF_UP : 0;
	request.info.ifi_change = IFF_UP;
	rt_link_put_name(&request, IFLA_IFNAME, name);
	return rt_link_call(&request);
}

int rt_link_rename(const char *from, const char *to)
{
	struct rt_link_request request;
	int err = rt_link_set_up(from, false);

	if (err)
		return err;
	rt_link_init(&request, RTM_NEWLINK, 0);
	request.info.ifi_index = (int)if_nametoindex(from);
	rt_link_put_name(&request, IFLA_IFNAME, to);
	err = rt_link_call(&request);
	return err ? err : rt_link_set_up(to, true);
}

int rt_link_move(const char *name, int namespace_fd)
{
	struct rt_link_request request;

	rt_link_init(&request, RTM_NEWLINK, 0);
	rt_link_put_name(&request, IFLA_IFNAME, name);
	rt_link_put(&request, IFLA_NET_NS_FD, &namespace_fd, sizeof(namespace_fd));
	return rt_link_call(&request);
}
