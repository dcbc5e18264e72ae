// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include "inline.h"

#include <linux/netlink.h>
#include <sys/ioctl.h>

#include "link.h"

#define RT_VERDICTS 256

static void rt_put_line_cluster(struct rt_message *message, const struct rt_line *line)
{
	rt_message_init(message, RINGCAP_CMD_CLUSTER_SET, 0);
	rt_message_put_name(message, RINGCAP_A_NAME, line->cluster);
	rt_message_put_u32(message, RINGCAP_A_INLINE, line->open);
	rt_message_put_u32(message, RINGCAP_A_LANE_SIZE, line->lane_size ? line->lane_size : RT_LANE_SIZE);
	rt_message_put_u32(message, RINGCAP_A_QUEUES, line->queues ? line->queues : 1);
	rt_message_put_u32(message, RINGCAP_A_TIMEOUT_US, line->at_once ? 0 : 1000);
	rt_message_put_u32(message, RINGCAP_A_SHUNT_QUOTA, line->shunt_quota);
	if (line->hung_ms)
		rt_message_put_u32(message, RINGCAP_A_HUNG_MS, line->hung_ms);
}

int rt_line_set_cluster(const struct rt_line *line)
{
	static struct rt_message message;

	rt_put_line_cluster(&message, line);
	return rt_call(&message, NULL, NULL);
}

static void rt_put_line_tap(struct rt_message *message, u32 ifindex, u32 peer)
{
	u32 nest = rt_message_nest(message, RINGCAP_A_TAP);

	rt_message_put_u32(message, RINGCAP_A_TAP_IFINDEX, ifindex);
	rt_message_put_u32(message, RINGCAP_A_TAP_PEER, peer);
	rt_message_nest_end(message, nest);
}

int rt_line_set_ring(const struct rt_line *line)
{
	static struct rt_message message;

	rt_message_init(&message, RINGCAP_CMD_RING_SET, 0);
	rt_message_put_name(&message, RINGCAP_A_NAME, line->ring);
	rt_message_put_name(&message, RINGCAP_A_OUTPUT, line->cluster);
	rt_put_line_tap(&message, line->a1, line->b1);
	rt_put_line_tap(&message, line->b1, line->a1);
	if (line->snaplen)
		rt_message_put_u32(&message, RINGCAP_A_SNAPLEN, line->snaplen);
	if (line->filter)
		rt_message_put(&message, RINGCAP_A_FILTER, line->filter,
			       line->filter_len * (u32)sizeof(struct sock_filter));
	return rt_call(&message, NULL, NULL);
}

static void rt_line_open_end(struct rt_end *end, const char *interface)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/class/net/%s/queues/rx-0/rps_cpus", interface);
	RT_CHECK(rt_write_file(path, "1"), "steering: %m");
	rt_end_open(end, interface, 4 * RT_LANE_SIZE);
}

/* @queues: transmit queues of @a, 0 = any number. */
static void rt_line_create(const char *a, const char *b, u32 queues)
{
	if (!queues) {
		rt_veth_create(a, b);
		return;
	}
	rt_ip("link add %s numtxqueues %u type veth peer name %s", a, queues, b);
	rt_ip("link set %s up", b);
	rt_ip("link set %s up", a);
	RT_EVENTUALLY(rt_link_is_ready(a) && rt_link_is_ready(b), 30000);
}

void rt_line_open(struct rt_line *line)
{
	rt_control_open();
	RT_CHECK(rt_mount_sysfs(), "sysfs of this namespace: %m");
	rt_line_create("a0", "a1", line->sender_queues);
	rt_line_create("b1", "b0", line->tx_queues);
	line->a1 = rt_ifindex("a1");
	line->b1 = rt_ifindex("b1");
	snprintf(line->cluster, sizeof(line->cluster), "line-%d", getpid());
	snprintf(line->ring, sizeof(line->ring), "pair-%d", getpid());
	RT_CHECK(!rt_line_set_cluster(line), "%s", rt_reason);
	RT_CHECK(!rt_line_set_ring(line), "%s", rt_reason);
	rt_line_open_end(&line->a, "a0");
	rt_line_open_end(&line->b, "b0");
}

void rt_line_close(struct rt_line *line)
{
	rt_queue_close(&line->a.queue);
	rt_queue_close(&line->b.queue);
}

/* ---- accounts ---- */

static void rt_take_stats(const struct rt_answer *answer, void *arg)
{
	u64 stats[RINGCAP_INLINE_STATS] = {}, *sum = arg;
	u32 i;

	RT_EQUAL(answer->len[RINGCAP_A_INLINE_STATS], sizeof(stats));
	memcpy(stats, answer->attr[RINGCAP_A_INLINE_STATS], sizeof(stats));
	for (i = 0; i < RINGCAP_INLINE_STATS; i++)
		sum[i] += stats[i];
}

static void rt_get_stats(u8 cmd, u16 flags, const char *name, u64 *stats)
{
	static struct rt_message message;

	memset(stats, 0, RINGCAP_INLINE_STATS * sizeof(*stats));
	rt_message_init(&message, cmd, flags);
	rt_message_put_name(&message, RINGCAP_A_NAME, name);
	RT_EQUAL(rt_call(&message, rt_take_stats, stats), 0);
}

void rt_line_stats(const struct rt_line *line, u64 *ring, u64 *cluster)
{
	if (ring)
		rt_get_stats(RINGCAP_CMD_RING_GET, 0, line->ring, ring);
	if (cluster)
		rt_get_stats(RINGCAP_CMD_QUEUE_GET, NLM_F_DUMP, line->cluster, cluster);
}

u64 rt_line_lost(const u64 *stats)
{
	return stats[RINGCAP_INLINE_TOO_LONG] + stats[RINGCAP_INLINE_REFUSED] + stats[RINGCAP_INLINE_NOMEM] +
	       stats[RINGCAP_INLINE_DOWN];
}

static u64 rt_line_sum(const u64 *stats)
{
	u64 sum = rt_line_lost(stats);
	u32 i;

	for (i = RINGCAP_INLINE_HELD; i <= RINGCAP_INLINE_BLOCK_HUNG; i++)
		sum += stats[i];
	return sum + stats[RINGCAP_INLINE_SHUNT_PASSED] + stats[RINGCAP_INLINE_SHUNT_BLOCKED];
}

void rt_line_check(const struct rt_line *line, u64 sent, u64 *stats)
{
	u64 ring[RINGCAP_INLINE_STATS];
	struct rt_ring_counts counts;
	struct rt_queue_counts queues;
	u32 i;

	rt_ring_wait(line->ring, sent);
	rt_line_stats(line, ring, stats);
	rt_ring_counts(line->ring, &counts);
	rt_cluster_counts(line->cluster, &queues);
	for (i = 0; i < RINGCAP_INLINE_STATS; i++)
		if (stats[i])
			printf("# stat %u: %llu\n", i, (unsigned long long)stats[i]);
	RT_EQUAL(counts.seen, ring[RINGCAP_INLINE_BRIDGED] + rt_line_lost(ring) + counts.passed);
	RT_EQUAL(counts.passed, rt_line_sum(stats));
	RT_EQUAL(counts.passed, queues.delivered + queues.shunted + queues.dropped[0] + queues.dropped[1] + queues.dropped[2] +
				queues.dropped[3]);
}

/* ---- consumers ---- */

int rt_verdicts(int fd, const struct ringcap_verdict *verdicts, u32 nr, u32 *missed)
{
	struct ringcap_verdicts argument = { .verdicts = (u64)(uintptr_t)verdicts, .nr = nr };
	int taken = ioctl(fd, RINGCAP_IOC_VERDICT, &argument);

	if (missed)
		*missed = argument.missed;
	return taken < 0 ? -errno : taken;
}

struct rt_judging {
	struct rt_queue *queue;
	rt_judge_fn judge;
	void *arg;
	struct ringcap_verdict verdicts[RT_VERDICTS];
	u32 nr;
};

static void rt_judge_one(const struct ringcap_slot *slot, const u8 *packet, void *arg)
{
	struct rt_judging *judging = arg;
	struct ringcap_verdict *verdict = &judging->verdicts[judging->nr];

	RT_EQUAL(slot->hdr_len, sizeof(*slot));
	*verdict = (struct ringcap_verdict){ .position = judging->queue->position[0], .verdict = RINGCAP_VERDICT_PASS };
	if (judging->judge)
		verdict->verdict = judging->judge(slot, packet, verdict, judging->arg);
	judging->nr += !!verdict->verdict;
}

/* A signal may end the ioctl early, and a queue that is taken back takes no verdicts. */
static void rt_verdicts_all(int fd, const struct ringcap_verdict *verdicts, u32 nr)
{
	u32 done = 0;
	int taken;

	while (done < nr) {
		taken = rt_verdicts(fd, verdicts + done, nr - done, NULL);
		if (taken == -ENODEV)
			return;
		RT_CHECK(taken > 0, "verdict %u of %u: %s", done, nr, strerror(-taken));
		done += (u32)taken;
	}
}

u32 rt_line_judge(struct rt_queue *queue, rt_judge_fn judge, void *arg)
{
	static __thread struct rt_judging judging;
	u32 count = 0, read;

	do {
		judging.queue = queue;
		judging.judge = judge;
		judging.arg = arg;
		judging.nr = 0;
		read = rt_queue_peek(queue, rt_judge_one, &judging, RT_VERDICTS);
		rt_verdicts_all(queue->fd, judging.verdicts, judging.nr);
		__atomic_store_n(&queue->consumer[0].released, queue->position[0], __ATOMIC_RELEASE);
		count += read;
	} while (read == RT_VERDICTS);
	return count;
}
