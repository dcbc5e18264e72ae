// SPDX-License-Identifier: GPL-2.0-only
/* Invalid requests are rejected with a reason and change nothing. */
#define _GNU_SOURCE
#include "fixture.h"

#include <linux/netlink.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "link.h"

/* ---- the well-formed ---- */

static void rt_take_info(const struct rt_answer *answer, void *arg)
{
	*(bool *)arg = answer->attr[RINGCAP_A_VERSION] && rt_answer_u32(answer, RINGCAP_A_ABI) == RINGCAP_ABI &&
		       rt_answer_u32(answer, RINGCAP_A_ABI_MIN) == RINGCAP_ABI_MIN;
}

RT_CASE(control_info)
{
	static struct rt_message message;
	bool good = false;

	rt_control_open();
	rt_message_init(&message, RINGCAP_CMD_INFO_GET, 0);
	RT_EQUAL(rt_call(&message, rt_take_info, &good), 0);
	RT_CHECK(good, "not our version of the contract");
}

static void rt_take_cluster(const struct rt_answer *answer, void *arg)
{
	const struct rt_cluster *cluster = arg;

	RT_CHECK(!strcmp(answer->attr[RINGCAP_A_NAME], cluster->name), "%s", (const char *)answer->attr[RINGCAP_A_NAME]);
	RT_EQUAL(rt_answer_u64(answer, RINGCAP_A_GENERATION), 77);
	RT_EQUAL(rt_answer_u32(answer, RINGCAP_A_QUEUES), cluster->queues);
	RT_EQUAL(rt_answer_u32(answer, RINGCAP_A_LANES), cluster->lanes);
	RT_EQUAL(rt_answer_u32(answer, RINGCAP_A_LANE_SIZE), cluster->lane_size);
	RT_EQUAL(rt_answer_u32(answer, RINGCAP_A_BALANCE), cluster->balance);
	RT_EQUAL(rt_answer_u32(answer, RINGCAP_A_WATERMARK), cluster->watermark);
	RT_EQUAL(rt_answer_u32(answer, RINGCAP_A_TIMEOUT_US), cluster->timeout_us);
	RT_EQUAL(rt_answer_u32(answer, RINGCAP_A_METADATA), cluster->metadata);
	RT_EQUAL(rt_answer_u32(answer, RINGCAP_A_INNER), cluster->inner);
	RT_EQUAL(rt_answer_u32(answer, RINGCAP_A_FRAGMENTS), cluster->fragments);
	RT_EQUAL(rt_answer_u32(answer, RINGCAP_A_WHEN_FULL), cluster->when_full);
	RT_EQUAL(rt_answer_u32(answer, RINGCAP_A_WHEN_UNATTENDED), cluster->when_unattended);
	RT_CHECK(rt_answer_u64(answer, RINGCAP_A_MEMORY) >= (u64)cluster->queues * cluster->lanes * cluster->lane_size,
		 "%llu bytes", (unsigned long long)rt_answer_u64(answer, RINGCAP_A_MEMORY));
}

/* A GET returns the values that were set. */
RT_CASE(control_round_trip)
{
	struct rt_cluster cluster = { .name = "round-trip.1", .queues = 3, .lanes = 1, .lane_size = 262144,
				      .balance = RINGCAP_BALANCE_TWO_TUPLE, .watermark = 5000, .timeout_us = 1234,
				      .metadata = 1, .inner = 1, .fragments = RINGCAP_FRAGMENTS_WITH_FLOW,
				      .when_full = RINGCAP_POLICY_SPREAD, .when_unattended = RINGCAP_POLICY_SPREAD };
	static struct rt_message message;

	rt_control_open();
	rt_message_init(&message, RINGCAP_CMD_CLUSTER_SET, 0);
	rt_message_put_name(&message, RINGCAP_A_NAME, cluster.name);
	rt_message_put_u64(&message, RINGCAP_A_GENERATION, 77);
	rt_message_put_u32(&message, RINGCAP_A_QUEUES, cluster.queues);
	rt_message_put_u32(&message, RINGCAP_A_LANES, cluster.lanes);
	rt_message_put_u32(&message, RINGCAP_A_LANE_SIZE, cluster.lane_size);
	rt_message_put_u32(&message, RINGCAP_A_BALANCE, cluster.balance);
	rt_message_put_u32(&message, RINGCAP_A_WATERMARK, cluster.watermark);
	rt_message_put_u32(&message, RINGCAP_A_TIMEOUT_US, cluster.timeout_us);
	rt_message_put_u32(&message, RINGCAP_A_METADATA, cluster.metadata);
	rt_message_put_u32(&message, RINGCAP_A_INNER, cluster.inner);
	rt_message_put_u32(&message, RINGCAP_A_FRAGMENTS, cluster.fragments);
	rt_message_put_u32(&message, RINGCAP_A_WHEN_FULL, cluster.when_full);
	rt_message_put_u32(&message, RINGCAP_A_WHEN_UNATTENDED, cluster.when_unattended);
	RT_EQUAL(rt_call(&message, NULL, NULL), 0);
	rt_message_init(&message, RINGCAP_CMD_CLUSTER_GET, 0);
	rt_message_put_name(&message, RINGCAP_A_NAME, cluster.name);
	RT_EQUAL(rt_call(&message, rt_take_cluster, &cluster), 0);
	RT_EQUAL(rt_delete(RINGCAP_CMD_CLUSTER_DEL, cluster.name), 0);
	RT_EQUAL(rt_delete(RINGCAP_CMD_CLUSTER_DEL, cluster.name), -ENOENT);
}

RT_CASE(control_events)
{
	struct rt_fixture fixture;
	struct rt_queue queue;

	rt_fixture_open(&fixture, &(struct rt_cluster){});
	rt_events_open();
	rt_queue_open(&queue, fixture.cluster, 0);
	RT_CHECK(rt_events_wait(RINGCAP_EVENT_ATTACHED, fixture.cluster, RT_PATIENCE_MS), "no event of the consumer's coming");
	rt_queue_close(&queue);
	RT_CHECK(rt_events_wait(RINGCAP_EVENT_DETACHED, fixture.cluster, RT_PATIENCE_MS), "no event of the consumer's going");
	rt_link_delete("va");
	RT_CHECK(rt_events_wait(RINGCAP_EVENT_TAP_GONE, fixture.ring, RT_PATIENCE_MS), "no event of the interface's going");
}

/* A queue that drops sends an event, at once and at most once a second. */
RT_CASE(control_overflow_event)
{
	struct rt_traffic traffic = { .flows = 5, .min_len = 1500, .max_len = 1500 };
	struct rt_queue_counts counts;
	struct rt_fixture fixture;
	struct rt_queue queue;
	u64 start, seconds;
	u32 events = 0;

	rt_fixture_open(&fixture, &(struct rt_cluster){ .lanes = 1, .lane_size = RINGCAP_LANE_SIZE_MIN });
	rt_events_open();
	rt_queue_open(&queue, fixture.cluster, 0);
	rt_send(fixture.sender, &traffic, 0, 50);
	RT_CHECK(!rt_events_wait(RINGCAP_EVENT_OVERFLOW, fixture.cluster, 200), "nothing was dropped, but there is an event");
	start = rt_now();
	while (rt_now() - start < 1500000000ULL || (!events && rt_now() - start < RT_PATIENCE_NS)) {
		rt_send(fixture.sender, &traffic, 50, 50);
		events += rt_events_wait(RINGCAP_EVENT_OVERFLOW, fixture.cluster, 1);
	}
	/* However long it took. */
	seconds = (rt_now() - start) / 1000000000 + 1;
	RT_CHECK(events >= 1 && events <= seconds + 1, "%u events in %llu s", events, (unsigned long long)seconds);
	rt_queue_counts(fixture.cluster, 0, &counts);
	RT_CHECK(counts.dropped[RINGCAP_DROP_FULL] > 0, "nothing was dropped");
	rt_queue_close(&queue);
}

/* ---- the largest ---- */

struct rt_largest {
	u32 answers, taps, rx_queues_len, vlans_len;
};

static void rt_take_largest(const struct rt_answer *answer, void *arg)
{
	struct rt_largest *largest = arg;

	largest->answers++;
	largest->taps += answer->times[RINGCAP_A_TAP];
	/* Of the last tap, after its index, direction and mode. */
	largest->rx_queues_len = answer->len[RINGCAP_A_TAP] - 3 * 8 - 4;
	largest->vlans_len = answer->len[RINGCAP_A_VLANS];
}

static void rt_check_largest(u16 flags, u32 rx_queues_len)
{
	static struct rt_message message;
	struct rt_largest largest = {};
	int err;

	rt_message_init(&message, RINGCAP_CMD_RING_GET, flags);
	rt_message_put_name(&message, RINGCAP_A_NAME, "largest");
	err = rt_call(&message, rt_take_largest, &largest);
	RT_CHECK(!err, "%s (%s)", strerror(-err), rt_reason);
	RT_EQUAL(largest.answers, 1);
	RT_EQUAL(largest.taps, RINGCAP_TAPS_MAX);
	RT_EQUAL(largest.rx_queues_len, rx_queues_len);
	RT_EQUAL(largest.vlans_len, 4095 * sizeof(u16));
}

/*
 * A ring may have a maximum of taps, VLANs and receive queues. With all of them the answer has 18 kB. Without RT_FULL
 * there are fewer receive queues: a kernel takes a minute to make so many.
 */
RT_CASE(control_largest_ring)
{
	const u32 nr_rx_queues = rt_rounds(RINGCAP_RX_QUEUES_MAX, 16), rx_queues_len = (nr_rx_queues + 63) / 64 * 8;
	static struct rt_message message;
	u64 rx_queues[RINGCAP_RX_QUEUES_MAX / 64] = {};
	u16 vlans[4095];
	char name[16];
	u32 i, nest;
	int err;

	rt_control_open();
	RT_EQUAL(rt_link_add_veth("va", "vb"), 0);
	for (i = 0; i < nr_rx_queues; i++)
		rx_queues[i / 64] |= 1ULL << i % 64;
	for (i = 0; i < 4095; i++)
		vlans[i] = (u16)i;
	rt_message_init(&message, RINGCAP_CMD_RING_SET, 0);
	rt_message_put_name(&message, RINGCAP_A_NAME, "largest");
	for (i = 1; i <= RINGCAP_TAPS_MAX; i++) {
		snprintf(name, sizeof(name), "v%u", i);
		RT_EQUAL(rt_link_add_vlan("va", name, (u16)i, nr_rx_queues), 0);
		nest = rt_message_nest(&message, RINGCAP_A_TAP);
		rt_message_put_u32(&message, RINGCAP_A_TAP_IFINDEX, rt_ifindex(name));
		rt_message_put_u32(&message, RINGCAP_A_TAP_DIRECTION, RINGCAP_DIRECTION_RX);
		rt_message_put(&message, RINGCAP_A_TAP_RX_QUEUES, rx_queues, rx_queues_len);
		rt_message_nest_end(&message, nest);
	}
	rt_message_put(&message, RINGCAP_A_VLANS, vlans, sizeof(vlans));
	err = rt_call(&message, NULL, NULL);
	RT_CHECK(!err, "%s (%s)", strerror(-err), rt_reason);
	rt_check_largest(0, rx_queues_len);
	rt_check_largest(NLM_F_DUMP, rx_queues_len);
}

/* ---- the refused ---- */

/* Sends @message, which must be rejected with @err and a reason, and must have changed nothing. */
static void rt_refused(struct rt_message *message, int err, const char *what)
{
	u64 before = rt_control_digest();
	int got = rt_call(message, NULL, NULL);
	char reason[sizeof(rt_reason)];

	memcpy(reason, rt_reason, sizeof(reason));
	RT_CHECK(got == err, "%s: %s (%s), not %s", what, strerror(-got), reason, strerror(-err));
	RT_CHECK(reason[0], "%s: refused without a reason", what);
	RT_CHECK(rt_control_digest() == before, "%s: refused, but something changed", what);
}

static struct rt_message *rt_cluster_message(const char *name)
{
	static struct rt_message message;

	rt_message_init(&message, RINGCAP_CMD_CLUSTER_SET, 0);
	rt_message_put_name(&message, RINGCAP_A_NAME, name);
	return &message;
}

static void rt_refused_number(const char *name, u16 type, u32 value, const char *what)
{
	struct rt_message *message = rt_cluster_message(name);

	rt_message_put_u32(message, type, value);
	rt_refused(message, -EINVAL, what);
}

/* Each for a cluster that does not exist, and for one that does. */
RT_CASE(refused_clusters)
{
	struct rt_fixture fixture;
	const char *names[2] = { "new" };
	u32 i;

	rt_fixture_open(&fixture, &(struct rt_cluster){ .queues = 2 });
	names[1] = fixture.cluster;
	for (i = 0; i < 2; i++) {
		rt_refused_number(names[i], RINGCAP_A_QUEUES, 0, "0 queues");
		rt_refused_number(names[i], RINGCAP_A_QUEUES, 100000, "100000 queues");
		rt_refused_number(names[i], RINGCAP_A_QUEUES, RINGCAP_QUEUES_MAX + 1, "257 queues");
		rt_refused_number(names[i], RINGCAP_A_LANES, RINGCAP_LANES_MAX + 1, "65 lanes");
		rt_refused_number(names[i], RINGCAP_A_LANE_SIZE, 200000, "a lane of 200000 bytes");
		rt_refused_number(names[i], RINGCAP_A_LANE_SIZE, 65536, "a lane of 65536 bytes");
		rt_refused_number(names[i], RINGCAP_A_LANE_SIZE, 1U << 31, "a lane of 2 GiB");
		rt_refused_number(names[i], RINGCAP_A_LANE_SIZE, 0, "a lane of nothing");
		rt_refused_number(names[i], RINGCAP_A_BALANCE, 99, "balance 99");
		rt_refused_number(names[i], RINGCAP_A_METADATA, 2, "metadata 2");
		rt_refused_number(names[i], RINGCAP_A_INNER, 2, "inner 2");
		rt_refused_number(names[i], RINGCAP_A_FRAGMENTS, 257, "fragments 257");
		rt_refused_number(names[i], RINGCAP_A_WHEN_FULL, 256, "policy 256");
		rt_refused_number(names[i], RINGCAP_A_WHEN_UNATTENDED, 2, "policy 2");
		rt_refused_number(names[i], RINGCAP_A_MODE, 04777, "a set-uid device node");
		rt_refused_number(names[i], RINGCAP_A_WATERMARK, 0xffffffff, "a watermark above the lane");
	}
}

RT_CASE(refused_names)
{
	static const char *const names[] = { "", "Upper", "-a", "a-", ".", "..", "a/b", "../x", "a b", "a!b", "\xc3\xa4",
		"a123456789b123456789c123456789d123456789e123456789f123456789g1234" };
	size_t i;

	rt_control_open();
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		rt_refused(rt_cluster_message(names[i]), -EINVAL, names[i]);
}

static struct rt_message *rt_ring_message(const char *name, u32 ifindex, const char *output)
{
	static struct rt_message message;
	u32 nest;

	rt_message_init(&message, RINGCAP_CMD_RING_SET, 0);
	rt_message_put_name(&message, RINGCAP_A_NAME, name);
	if (ifindex) {
		nest = rt_message_nest(&message, RINGCAP_A_TAP);
		rt_message_put_u32(&message, RINGCAP_A_TAP_IFINDEX, ifindex);
		rt_message_nest_end(&message, nest);
	}
	if (output)
		rt_message_put_name(&message, RINGCAP_A_OUTPUT, output);
	return &message;
}

static void rt_try_bad_filters(const char *name, const struct rt_fixture *fixture)
{
	static const struct sock_filter no_return[] = { BPF_STMT(BPF_LD | BPF_IMM, 1) };
	static const struct sock_filter wild_jump[] = { BPF_JUMP(BPF_JMP | BPF_JA, 100, 0, 0), BPF_STMT(BPF_RET | BPF_K, 1) };
	static const struct sock_filter unknown[] = { { 0xffff, 0, 0, 0 }, BPF_STMT(BPF_RET | BPF_K, 1) };
	static const struct { const void *bytes; u32 len; int err; const char *what; } bad[] = {
		{ no_return, sizeof(no_return), -EINVAL, "a filter that does not return" },
		{ wild_jump, sizeof(wild_jump), -EINVAL, "a filter that jumps out of itself" },
		{ unknown, sizeof(unknown), -EINVAL, "an unknown instruction" },
		{ unknown, 7, -EINVAL, "less than an instruction" },
		{ unknown, 12, -EINVAL, "one and a half instructions" },
		{ "", 0, -EINVAL, "no instruction at all" },
	};
	struct rt_message *message;
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		message = rt_ring_message(name, fixture->ifindex, fixture->cluster);
		rt_message_put(message, RINGCAP_A_FILTER, bad[i].bytes, bad[i].len);
		rt_refused(message, bad[i].err, bad[i].what);
	}
}

RT_CASE(refused_rings)
{
	struct rt_fixture fixture;
	struct rt_message *message;
	const char *names[2] = { "new" };
	u32 i;

	rt_fixture_open(&fixture, &(struct rt_cluster){});
	names[1] = fixture.ring;
	for (i = 0; i < 2; i++) {
		rt_refused(rt_ring_message(names[i], 4711, fixture.cluster), -ENODEV, "an interface that is not there");
		rt_refused(rt_ring_message(names[i], fixture.ifindex, "nobody"), -ENOENT, "a cluster that is not there");
		message = rt_ring_message(names[i], fixture.ifindex, fixture.cluster);
		rt_message_put_u32(message, RINGCAP_A_SNAPLEN, 0);
		rt_refused(message, -EINVAL, "a snap length of 0");
		message = rt_ring_message(names[i], fixture.ifindex, fixture.cluster);
		rt_message_put_u32(message, RINGCAP_A_SNAPLEN, RINGCAP_SNAPLEN_MAX + 1);
		rt_refused(message, -EINVAL, "a snap length of 65536");
		message = rt_ring_message(names[i], fixture.ifindex, fixture.cluster);
		rt_message_put_name(message, RINGCAP_A_OUTPUT, fixture.cluster);
		rt_refused(message, -EINVAL, "a cluster twice");
		rt_try_bad_filters(names[i], &fixture);
	}
	RT_EQUAL(rt_delete(RINGCAP_CMD_RING_DEL, "nobody"), -ENOENT);
	RT_CHECK(rt_reason[0], "no reason given");
}

RT_CASE(refused_tunnel_device)
{
	struct rt_fixture fixture;

	rt_fixture_open(&fixture, &(struct rt_cluster){});
	rt_ip("tuntap add dev tun0 mode tun");
	rt_refused(rt_ring_message("new", rt_ifindex("tun0"), fixture.cluster), -EOPNOTSUPP, "a device without Ethernet");
}

RT_CASE(refused_busy_cluster)
{
	struct rt_fixture fixture;
	static struct rt_message message;

	rt_fixture_open(&fixture, &(struct rt_cluster){});
	rt_message_init(&message, RINGCAP_CMD_CLUSTER_DEL, 0);
	rt_message_put_name(&message, RINGCAP_A_NAME, fixture.cluster);
	rt_refused(&message, -EBUSY, "deleting a cluster that a ring feeds");
	rt_message_init(&message, RINGCAP_CMD_QUEUE_RESET, 0);
	rt_message_put_name(&message, RINGCAP_A_NAME, fixture.cluster);
	rt_message_put_u32(&message, RINGCAP_A_QUEUE, 1);
	rt_refused(&message, -ENOENT, "resetting a queue that is not there");
	rt_message_init(&message, RINGCAP_CMD_QUEUE_REVOKE, 0);
	rt_message_put_name(&message, RINGCAP_A_NAME, fixture.cluster);
	rt_refused(&message, -EINVAL, "taking no queue back");
	rt_message_put_u32(&message, RINGCAP_A_QUEUE, 0);
	rt_message_put_u32(&message, RINGCAP_A_ATTACHED_PID, getpid());
	rt_refused(&message, -ESRCH, "taking a queue back from a process that does not have it");
	RT_EQUAL(rt_delete(RINGCAP_CMD_RING_DEL, fixture.ring), 0);
	RT_EQUAL(rt_delete(RINGCAP_CMD_CLUSTER_DEL, fixture.cluster), 0);
}

/* ---- rights ---- */

/* Without CAP_NET_ADMIN a process may read some objects, but not flows and signatures, and may change nothing. */
RT_CASE(refused_without_capability)
{
	struct rt_fixture fixture;
	static const u8 changes[] = { RINGCAP_CMD_CLUSTER_SET, RINGCAP_CMD_CLUSTER_DEL, RINGCAP_CMD_RING_SET,
				      RINGCAP_CMD_RING_DEL, RINGCAP_CMD_QUEUE_RESET, RINGCAP_CMD_QUEUE_REVOKE, RINGCAP_CMD_RULES_BEGIN,
				      RINGCAP_CMD_RULES_ADD, RINGCAP_CMD_RULES_COMMIT, RINGCAP_CMD_RULES_ABORT,
				      RINGCAP_CMD_RULE_NEW, RINGCAP_CMD_RULE_DEL };
	static struct rt_message message;
	struct rt_ring_counts counts;
	size_t i;

	rt_fixture_open(&fixture, &(struct rt_cluster){});
	RT_CHECK(!setresuid(65534, 65534, 65534), "%m");
	rt_control_open();
	for (i = 0; i < sizeof(changes); i++)
		RT_EQUAL(rt_delete(changes[i], fixture.ring), -EPERM);
	rt_message_init(&message, RINGCAP_CMD_RULES_GET, NLM_F_DUMP);
	rt_message_put_name(&message, RINGCAP_A_NAME, fixture.ring);
	RT_EQUAL(rt_call(&message, NULL, NULL), -EPERM);
	rt_ring_counts(fixture.ring, &counts);
	RT_EQUAL(rt_queue_try_open(fixture.cluster, 0), -EACCES);
}

/* Objects of one network namespace are not visible in another. */
RT_CASE(control_namespaces)
{
	struct rt_fixture fixture;
	u64 nothing;

	rt_control_open();
	nothing = rt_control_digest();
	rt_fixture_open(&fixture, &(struct rt_cluster){});
	RT_CHECK(rt_control_digest() != nothing, "the dump does not show what is there");
	RT_CHECK(!unshare(CLONE_NEWNET), "%m");
	rt_control_open();
	RT_CHECK(rt_control_digest() == nothing, "another namespace's objects are shown");
	RT_EQUAL(rt_delete(RINGCAP_CMD_RING_DEL, fixture.ring), -ENOENT);
}

/* ---- nonsense ---- */

static void rt_put_nonsense(struct rt_message *message, u64 *seed, const char *name)
{
	static u8 bytes[4096];
	u32 i, len, attributes = rt_random(seed) % 8, nest;

	for (i = 0; i < attributes; i++) {
		u16 type = (u16)(rt_random(seed) % (RINGCAP_A_MAX + 3));

		switch (rt_random(seed) % 5) {
		case 0:
			rt_message_put_u32(message, type, rt_random(seed) % 100);
			break;
		case 1:
			rt_message_put_name(message, rt_random(seed) % 2 ? RINGCAP_A_NAME : RINGCAP_A_OUTPUT, name);
			break;
		case 2:
			nest = rt_message_nest(message, RINGCAP_A_TAP);
			rt_message_put_u32(message, RINGCAP_A_TAP_IFINDEX, rt_random(seed) % 5);
			rt_message_put_u32(message, RINGCAP_A_TAP_DIRECTION, rt_random(seed) % 5);
			rt_message_nest_end(message, nest);
			break;
		case 3:
			len = rt_random(seed) % 64;
			for (u32 j = 0; j < len; j++)
				bytes[j] = (u8)rt_random(seed);
			rt_message_put(message, type, bytes, len);
			break;
		default:
			rt_message_put_u32(message, RINGCAP_A_LANE_SIZE, RINGCAP_LANE_SIZE_MIN);
			rt_message_put_u32(message, RINGCAP_A_QUEUES, 1 + rt_random(seed) % 3);
		}
	}
}

/* Flips bits and truncates the message, and changes lengths of attributes. */
static void rt_damage(struct rt_message *message, u64 *seed)
{
	u32 header = 20, flips = rt_random(seed) % 3 ? 0 : 1 + rt_random(seed) % 3, i;

	for (i = 0; message->len > header && i < flips; i++)
		message->bytes[header + rt_random(seed) % (message->len - header)] ^= (u8)(1U << rt_random(seed) % 8);
	if (rt_random(seed) % 4 == 0)
		message->len = header + rt_random(seed) % (message->len - header + 1);
}

/* Thousands of messages, from nearly right to garbage: the module answers each one and keeps working. */
RT_CASE(fuzzed_messages)
{
	struct rt_traffic traffic = { .flows = 5 };
	static struct rt_message message;
	struct rt_receiver receiver;
	struct rt_fixture fixture;
	struct rt_queue queue;
	const u32 count = rt_scaled(4000);
	u32 i, accepted = 0;
	u64 seed = 20260101;

	rt_fixture_open(&fixture, &(struct rt_cluster){});
	rt_queue_open(&queue, fixture.cluster, 0);
	for (i = 0; i < count; i++) {
		rt_message_init(&message, (u8)(rt_random(&seed) % (RINGCAP_CMD_MAX + 2)), 0);
		rt_put_nonsense(&message, &seed, rt_random(&seed) % 3 ? "fuzz" : "fuzz-2");
		rt_damage(&message, &seed);
		accepted += !rt_call(&message, NULL, NULL);
	}
	RT_CHECK(accepted > count / 100 && accepted < count / 2, "%u of %u accepted: not the nonsense that was meant",
		 accepted, count);
	RT_EQUAL(rt_fixture_change(&fixture, &(struct rt_ring){}), 0);
	rt_receiver_init(&receiver, &traffic, fixture.ifindex, 100);
	rt_exchange(fixture.sender, &traffic, 0, 100, &queue, 1, &receiver);
	rt_fixture_check(&fixture, 100, 0, 100, 0, 0);
	rt_queue_close(&queue);
}
