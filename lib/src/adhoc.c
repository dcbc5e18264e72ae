// SPDX-License-Identifier: BSD-2-Clause
#include "adhoc.h"

#include <errno.h>
#include <limits.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "find.h"
#include "internal.h"

enum { LANES_DEFAULT = 4, NAMES_TRIED = 64 };

/* ---------------------------------------------------------------- names */

/*
 * Makes a name such as "adhoc-eth4-4711-0", which contains the interface and the process. Interface names may contain
 * characters that are not valid in ring names; these are replaced.
 */
static void make_name(char *name, const char *interface)
{
	static atomic_uint number;
	char safe[IF_NAMESIZE];
	size_t i;

	for (i = 0; interface[i] && i < sizeof(safe) - 1; i++) {
		char c = interface[i];

		if (c >= 'A' && c <= 'Z')
			c = (char)(c - 'A' + 'a');
		safe[i] = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' ? c : '-';
	}
	safe[i] = '\0';
	snprintf(name, RINGCAP_NAME_MAX + 1, "adhoc-%s-%d-%u", safe, (int)getpid(), atomic_fetch_add(&number, 1));
}

/* ---------------------------------------------------------------- the module's objects */

static void put_optional(struct control *c, uint16_t type, uint32_t value)
{
	if (value)
		control_put_u32(c, type, value);
}

/* Returns the lane size with which a queue holds buffer_size bytes, given the module's default number of lanes. */
static uint32_t lane_size(uint32_t buffer_size)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	uint64_t lanes = cpus < 1 ? 1 : cpus > LANES_DEFAULT ? LANES_DEFAULT : (uint64_t)cpus;
	uint64_t size = RINGCAP_LANE_SIZE_MIN;

	while (size < RINGCAP_LANE_SIZE_MAX && size * lanes < buffer_size)
		size *= 2;
	return (uint32_t)size;
}

static int set_cluster(struct adhoc *a)
{
	const struct ringcap_capture *how = &a->how;
	struct control *c = &a->control;

	control_start(c, RINGCAP_CMD_CLUSTER_SET, 0);
	control_put_string(c, RINGCAP_A_NAME, a->cluster);
	control_put_u32(c, RINGCAP_A_OWNED, 1);
	put_optional(c, RINGCAP_A_QUEUES, how->queues);
	put_optional(c, RINGCAP_A_BALANCE, how->balance);
	put_optional(c, RINGCAP_A_WATERMARK, how->watermark);
	if (how->buffer_size)
		control_put_u32(c, RINGCAP_A_LANE_SIZE, lane_size(how->buffer_size));
	if (how->flags & RINGCAP_CAPTURE_IMMEDIATE)
		control_put_u32(c, RINGCAP_A_TIMEOUT_US, 0);
	else
		put_optional(c, RINGCAP_A_TIMEOUT_US, how->timeout_us);
	if (how->flags & RINGCAP_CAPTURE_INJECT)
		control_put_u32(c, RINGCAP_A_INJECT, a->ifindex);
	return control_call(c, NULL, NULL);
}

static bool all_rx_queues(const struct ringcap_capture *how)
{
	for (size_t i = 0; i < RINGCAP_RX_QUEUES_MAX / 64; i++)
		if (how->rx_queues[i])
			return false;
	return true;
}

static int set_ring(struct adhoc *a, const void *filter, uint32_t filter_len)
{
	const struct ringcap_capture *how = &a->how;
	struct control *c = &a->control;
	uint32_t nest;

	control_start(c, RINGCAP_CMD_RING_SET, 0);
	control_put_string(c, RINGCAP_A_NAME, a->name);
	control_put_u32(c, RINGCAP_A_OWNED, 1);
	nest = control_nest(c, RINGCAP_A_TAP);
	control_put_u32(c, RINGCAP_A_TAP_IFINDEX, a->ifindex);
	put_optional(c, RINGCAP_A_TAP_DIRECTION, how->direction);
	if (!all_rx_queues(how))
		control_put(c, RINGCAP_A_TAP_RX_QUEUES, how->rx_queues, sizeof(how->rx_queues));
	control_nest_end(c, nest);
	control_put_string(c, RINGCAP_A_OUTPUT, a->cluster);
	put_optional(c, RINGCAP_A_SNAPLEN, how->snaplen);
	put_optional(c, RINGCAP_A_PROMISC, !!(how->flags & RINGCAP_CAPTURE_PROMISC));
	put_optional(c, RINGCAP_A_QUICK, !!(how->flags & RINGCAP_CAPTURE_QUICK));
	put_optional(c, RINGCAP_A_HWTSTAMP, !!(how->flags & RINGCAP_CAPTURE_HWTSTAMP));
	put_optional(c, RINGCAP_A_SAMPLE, how->sample);
	if (filter_len)
		control_put(c, RINGCAP_A_FILTER, filter, 8 * (size_t)filter_len);
	return control_call(c, NULL, NULL);
}

static int refused(const struct adhoc *a, const char *interface, int err, const char *what, char *errbuf)
{
	if (err == -EPERM)
		return fail(errbuf, EPERM, "%s: %s: no permission: capturing from an interface needs CAP_NET_ADMIN: be root, or read "
			    "a queue that an administrator made", interface, what);
	return fail(errbuf, -err, "%s: %s: %s", interface, what, a->control.reason[0] ? a->control.reason : strerror(-err));
}

/* All network namespaces share the cluster names. So a cluster of another namespace may already have our name. */
static int make_cluster(struct adhoc *a, const char *interface, char *errbuf)
{
	int err = -EEXIST;

	for (int i = 0; i < NAMES_TRIED && (err == -EEXIST || err == -EBUSY); i++) {
		make_name(a->name, interface);
		memcpy(a->cluster, a->name, sizeof(a->cluster));
		err = set_cluster(a);
	}
	return err ? refused(a, interface, err, "making a queue", errbuf) : 0;
}

static int make_objects(struct adhoc *a, const char *interface, const struct ringcap_capture *how, char *errbuf)
{
	int err = 0;

	if (how->cluster) {
		if (strlen(how->cluster) > RINGCAP_NAME_MAX)
			return fail(errbuf, EINVAL, "'%.80s' is too long for a cluster's name", how->cluster);
		make_name(a->name, interface);
		strcpy(a->cluster, how->cluster);
	} else {
		err = make_cluster(a, interface, errbuf);
	}
	if (err || how->flags & RINGCAP_CAPTURE_NOTHING)
		return err;
	err = set_ring(a, how->filter, how->filter_len);
	return err ? refused(a, interface, err, "making a ring", errbuf) : 0;
}

/* ---------------------------------------------------------------- device nodes */

struct node_search {
	const char *name;
	char path[PATH_MAX];
	int err;
};

static void make_node(const struct control_answer *answer, void *arg)
{
	struct node_search *search = arg;
	uint32_t devt = control_u32(answer, RINGCAP_A_DEVT);
	struct found found = { .origin = ORIGIN_DEV, .queue = (int)control_u32(answer, RINGCAP_A_QUEUE) };

	if (search->err)
		return;
	memcpy(found.name, search->name, sizeof(found.name));
	if (find_path(&found, search->path, sizeof(search->path)))
		search->err = -ENAMETOOLONG;
	else if (mknod(search->path, S_IFCHR | 0600, makedev(devt >> 20, devt & 0xfffff)) && errno != EEXIST)
		search->err = -errno;
}

static void remove_node(const struct control_answer *answer, void *arg)
{
	struct node_search *search = arg;
	struct found found = { .origin = ORIGIN_DEV, .queue = (int)control_u32(answer, RINGCAP_A_QUEUE) };

	memcpy(found.name, search->name, sizeof(found.name));
	if (!find_path(&found, search->path, sizeof(search->path)))
		unlink(search->path);
}

static int for_each_queue(struct adhoc *a, control_answer_fn fn, struct node_search *search)
{
	control_start(&a->control, RINGCAP_CMD_QUEUE_GET, NLM_F_DUMP);
	control_put_string(&a->control, RINGCAP_A_NAME, a->cluster);
	return control_call(&a->control, fn, search);
}

/* In a devtmpfs, the module's device nodes appear at once. A container has its own /dev; there we create them. */
static int find_nodes(struct adhoc *a, char *errbuf)
{
	struct node_search search = { .name = a->cluster };
	char folder[PATH_MAX];
	int err;

	if (snprintf(folder, sizeof(folder), "%s/%s", find_base(ORIGIN_DEV), a->cluster) >= (int)sizeof(folder))
		return fail(errbuf, ENAMETOOLONG, "%s: the path of its queues is too long", find_base(ORIGIN_DEV));
	if (!access(folder, F_OK))
		return 0;
	a->made_nodes = true;
	if ((mkdir(find_base(ORIGIN_DEV), 0755) && errno != EEXIST) || mkdir(folder, 0700))
		err = -errno;
	else
		err = for_each_queue(a, make_node, &search) ?: search.err;
	if (!err)
		return 0;
	return fail(errbuf, -err, "the queue's device node is not in %s, and could not be made there: %s: mount a devtmpfs on /dev, or "
		    "use the host's", folder, strerror(-err));
}

static void remove_nodes(struct adhoc *a)
{
	struct node_search search = { .name = a->cluster };
	char folder[PATH_MAX];

	for_each_queue(a, remove_node, &search);
	if (snprintf(folder, sizeof(folder), "%s/%s", find_base(ORIGIN_DEV), a->cluster) < (int)sizeof(folder))
		rmdir(folder);
}

/* ---------------------------------------------------------------- opening */

static int start(struct adhoc *a, const char *interface, const struct ringcap_capture *how, char *errbuf)
{
	int err;

	a->ifindex = if_nametoindex(interface);
	if (!a->ifindex)
		return fail(errbuf, ENODEV, "%.80s: there is no such interface in this network namespace ('ip link' lists them)",
			    interface);
	a->how = *how;
	a->how.filter = NULL;
	a->how.cluster = NULL;
	err = control_open(&a->control, errbuf);
	if (err)
		return err;
	return make_objects(a, interface, how, errbuf) ?: find_nodes(a, errbuf);
}

struct adhoc *adhoc_open(const char *interface, const struct ringcap_capture *how, char *errbuf)
{
	struct adhoc *a = calloc(1, sizeof(*a));
	int err;

	if (!a) {
		errno = -fail(errbuf, ENOMEM, "out of memory");
		return NULL;
	}
	a->control.fd = -1;
	err = start(a, interface, how, errbuf);
	if (!err)
		return a;
	adhoc_close(a);
	errno = -err;
	return NULL;
}

void adhoc_close(struct adhoc *a)
{
	if (a->made_nodes)
		remove_nodes(a);
	control_close(&a->control);
	free(a);
}

/* ---------------------------------------------------------------- while it is open */

static void take_delivered(const struct control_answer *answer, void *arg)
{
	*(uint64_t *)arg += control_u64(answer, RINGCAP_A_DELIVERED);
}

RINGCAP_API int ringcap_set_filter(struct ringcap *h, const void *filter, unsigned int len, uint64_t *before)
{
	struct adhoc *a = h->adhoc;
	int err;

	if (!a)
		return -EOPNOTSUPP;
	if (len > RINGCAP_FILTER_MAX)
		return -E2BIG;
	err = set_ring(a, filter, len);
	if (err || !before)
		return err;
	/* The module has waited for packets that the old filter was still checking. */
	*before = 0;
	control_start(&a->control, RINGCAP_CMD_QUEUE_GET, NLM_F_DUMP);
	control_put_string(&a->control, RINGCAP_A_NAME, a->cluster);
	return control_call(&a->control, take_delivered, before);
}

static void take_ring(const struct control_answer *answer, void *arg)
{
	struct ringcap_ring_stats *stats = arg;

	stats->seen = control_u64(answer, RINGCAP_A_SEEN);
	stats->seen_bytes = control_u64(answer, RINGCAP_A_SEEN_BYTES);
	stats->filtered = control_u64(answer, RINGCAP_A_FILTERED);
	stats->sampled_out = control_u64(answer, RINGCAP_A_SAMPLED_OUT);
	stats->passed = control_u64(answer, RINGCAP_A_PASSED);
}

RINGCAP_API int ringcap_ring_stats(struct ringcap *h, struct ringcap_ring_stats *stats)
{
	memset(stats, 0, sizeof(*stats));
	if (!h->adhoc)
		return -EOPNOTSUPP;
	control_start(&h->adhoc->control, RINGCAP_CMD_RING_GET, 0);
	control_put_string(&h->adhoc->control, RINGCAP_A_NAME, h->adhoc->name);
	return control_call(&h->adhoc->control, take_ring, stats);
}

RINGCAP_API int ringcap_may_capture(char *errbuf)
{
	static const char nobody[] = "-";	/* no object has this name, so nothing is deleted */
	struct control *c = malloc(sizeof(*c));
	int err;

	if (!c)
		return fail(errbuf, ENOMEM, "out of memory");
	err = control_open(c, errbuf);
	if (!err) {
		control_start(c, RINGCAP_CMD_CLUSTER_SET, 0);
		control_put_string(c, RINGCAP_A_NAME, nobody);
		err = control_call(c, NULL, NULL);
		control_close(c);
		/* The kernel checks permission first, then it refuses the name. */
		err = err == -EPERM ? fail(errbuf, EPERM, "capturing from an interface needs CAP_NET_ADMIN") : 0;
	}
	free(c);
	return err;
}
