// SPDX-License-Identifier: GPL-2.0-only
/* Flows that consumers have shunted: what no longer comes, to whom, what is counted, and when flows end. */
#define _GNU_SOURCE
#include "faults.h"
#include "fixture.h"

#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "frame.h"
#include "inline.h"

#define RT_FLOWS 8

/* ---- asking ---- */

/* Returns what the ioctl returns, or -errno. @argument: as it comes back, may be NULL. */
static int rt_shunt_ioctl(int fd, unsigned long cmd, const void *flows, u32 nr, struct ringcap_shunts *argument)
{
	struct ringcap_shunts own = { .flows = (u64)(uintptr_t)flows, .nr = nr };
	int done = ioctl(fd, cmd, &own);

	if (argument)
		*argument = own;
	return done < 0 ? -errno : done;
}

static int rt_shunt(int fd, const struct ringcap_exact *flows, u32 nr)
{
	return rt_shunt_ioctl(fd, RINGCAP_IOC_SHUNT, flows, nr, NULL);
}

static int rt_unshunt(int fd, const struct ringcap_exact *flows, u32 nr)
{
	return rt_shunt_ioctl(fd, RINGCAP_IOC_UNSHUNT, flows, nr, NULL);
}

static void rt_put_address(u8 *to, u32 address)
{
	to[0] = (u8)(address >> 24);
	to[1] = (u8)(address >> 16);
	to[2] = (u8)(address >> 8);
	to[3] = (u8)address;
}

static struct ringcap_exact rt_flow_between(const struct rt_ends *ends, u8 proto)
{
	struct ringcap_exact flow = { .sport = ends->sport, .dport = ends->dport, .l3_proto = 0x0800, .l4_proto = proto,
				      .action = RINGCAP_ACTION_DROP };

	rt_put_address(flow.saddr, ends->saddr);
	rt_put_address(flow.daddr, ends->daddr);
	return flow;
}

/* Flow @n of traffic.h, untagged. */
static struct ringcap_exact rt_flow(u32 n)
{
	const struct rt_ends ends = { 0x0a000001 + n / 7, 0x0a010001 + n % 7, (u16)(RT_CLIENT_PORT + n),
				      (u16)(RT_SERVER_PORT + n % 2) };

	return rt_flow_between(&ends, 17);
}

static void rt_shunt_one(int fd, const struct ringcap_exact *flow)
{
	RT_EQUAL(rt_shunt(fd, flow, 1), 1);
}

static struct ringcap_rule_counts rt_shunt_counts(int fd, const struct ringcap_exact *flow)
{
	struct ringcap_exact_state state = { .rule = *flow };

	RT_EQUAL(rt_shunt_ioctl(fd, RINGCAP_IOC_SHUNT_READ, &state, 1, NULL), 1);
	return state.counts;
}

static bool rt_is_shunted(int fd, const struct ringcap_exact *flow)
{
	return rt_shunt_counts(fd, flow).flags & RINGCAP_COUNTS_SHUNTED;
}

/* Whether there is a record; fills in @state. */
static bool rt_take_ended(int fd, struct ringcap_exact_state *state)
{
	int taken = rt_shunt_ioctl(fd, RINGCAP_IOC_SHUNT_ENDED, state, 1, NULL);

	RT_CHECK(taken >= 0, "%s", strerror(-taken));
	return taken;
}

static u64 rt_records_lost(int fd)
{
	struct ringcap_exact_state state;
	struct ringcap_shunts argument;

	/* The number comes with the answer that there are no records. */
	while (rt_shunt_ioctl(fd, RINGCAP_IOC_SHUNT_ENDED, &state, 1, &argument) > 0)
		;
	return argument.lost;
}

/* ---- reading ---- */

/* How many packets of each flow a consumer got. */
struct rt_tally {
	u64 total;
	u64 of[RT_FLOWS];
};

static void rt_count_flow(const struct ringcap_slot *slot, const u8 *packet, void *arg)
{
	struct rt_tally *tally = arg;
	u32 number = rt_packet_number(packet, slot->caplen);

	RT_CHECK(number != UINT32_MAX, "an unknown packet of %u bytes", slot->caplen);
	tally->total++;
	tally->of[number % RT_FLOWS]++;
}

/* A consumer with the right to shunt @quota flows. */
struct rt_shunting {
	struct rt_fixture fixture;
	struct rt_queue queue;
	struct rt_tally tally;
	u64 sent;
};

static void rt_shunting_open(struct rt_shunting *shunting, u32 quota)
{
	memset(shunting, 0, sizeof(*shunting));
	rt_fixture_open(&shunting->fixture, &(struct rt_cluster){ .shunt_quota = quota });
	rt_queue_open(&shunting->queue, shunting->fixture.cluster, 0);
}

/* Sends @count packets of all flows, and reads what comes of them. */
static void rt_shunting_send(struct rt_shunting *shunting, u32 count, bool reverse)
{
	const struct rt_traffic traffic = { .flows = RT_FLOWS, .max_len = 1000, .reverse = reverse };
	u32 from, n;

	for (from = 0; from < count; from += n) {
		n = count - from < 200 ? count - from : 200;
		rt_send(shunting->fixture.sender, &traffic, from, n);
		shunting->sent += n;
		rt_ring_wait(shunting->fixture.ring, shunting->sent);
		rt_queue_read(&shunting->queue, rt_count_flow, &shunting->tally);
	}
}

/* passed = delivered + shunted + dropped, and this many of them. */
static void rt_shunting_check(const struct rt_shunting *shunting, u64 shunted)
{
	struct rt_queue_counts counts;
	struct rt_ring_counts ring;

	rt_ring_wait(shunting->fixture.ring, shunting->sent);
	rt_ring_counts(shunting->fixture.ring, &ring);
	rt_cluster_counts(shunting->fixture.cluster, &counts);
	RT_EQUAL(ring.passed, shunting->sent);
	RT_EQUAL(counts.shunted, shunted);
	RT_EQUAL(ring.passed, counts.delivered + counts.shunted + counts.dropped[0] + counts.dropped[1] +
			      counts.dropped[2] + counts.dropped[3]);
}

/* ---- what no longer comes ---- */

RT_CASE(shunt_both_ways)
{
	const struct rt_traffic traffic = { .flows = RT_FLOWS, .max_len = 1000 };
	const struct ringcap_exact flows[] = { rt_flow(1), rt_flow(6) };
	struct ringcap_shunts argument;
	struct rt_shunting shunting;
	struct rt_queue_counts counts;
	u64 bytes = 0;
	u32 i;

	rt_shunting_open(&shunting, 10);
	rt_shunting_send(&shunting, 80, false);
	RT_EQUAL(shunting.tally.total, 80);
	RT_EQUAL(rt_shunt(shunting.queue.fd, flows, 2), 2);
	shunting.tally = (struct rt_tally){};
	rt_shunting_send(&shunting, 400, false);
	rt_shunting_send(&shunting, 400, true);
	for (i = 0; i < RT_FLOWS; i++)
		RT_EQUAL(shunting.tally.of[i], i == 1 || i == 6 ? 0 : 100);
	rt_shunting_check(&shunting, 200);
	for (i = 1; i < 400; i += RT_FLOWS)
		bytes += rt_traffic_bytes(&traffic, i, 1);
	RT_EQUAL(rt_shunt_counts(shunting.queue.fd, &flows[0]).packets, 100);
	RT_EQUAL(rt_shunt_counts(shunting.queue.fd, &flows[0]).bytes, 2 * bytes);
	RT_CHECK(!rt_is_shunted(shunting.queue.fd, &(struct ringcap_exact){ .l3_proto = 0x0800 }));
	rt_queue_counts(shunting.fixture.cluster, 0, &counts);
	RT_EQUAL(counts.shunts, 2);
	RT_EQUAL(counts.shunted_bytes, 2 * bytes + rt_shunt_counts(shunting.queue.fd, &flows[1]).bytes);
	RT_EQUAL(rt_shunt_ioctl(shunting.queue.fd, RINGCAP_IOC_SHUNT_READ, NULL, 0, &argument), 0);
	RT_EQUAL(argument.shunted, 200);
	RT_EQUAL(argument.shunted_bytes, counts.shunted_bytes);
	rt_queue_close(&shunting.queue);
}

/* Sends a frame, and says whether it was shunted. */
static bool rt_frame_is_shunted(struct rt_shunting *shunting, const struct rt_frame *frame)
{
	u64 before = shunting->tally.total;

	rt_frame_send(shunting->fixture.sender, frame);
	rt_ring_wait(shunting->fixture.ring, ++shunting->sent);
	rt_queue_read(&shunting->queue, rt_count_flow, &shunting->tally);
	return shunting->tally.total == before;
}

static void rt_frame_push_tag(struct rt_frame *frame, u16 tci, u16 type)
{
	const u8 tag[] = { (u8)(tci >> 8), (u8)tci, (u8)(type >> 8), (u8)type };

	rt_frame_push(frame, tag, sizeof(tag));
}

static void rt_frame_tcp_ipv6(struct rt_frame *frame, const struct rt_ends *ends, u16 tci)
{
	rt_frame_begin(frame, 1, 40);
	rt_frame_push_tcp(frame, ends);
	rt_frame_push_ipv6(frame, ends, 6);
	if (tci)
		rt_frame_push_tag(frame, tci, 0x86dd);
	rt_frame_push_ethernet(frame, tci ? 0x8100 : 0x86dd);
}

/* The flow of an untagged or tagged frame, from its bytes. */
static struct ringcap_exact rt_flow_of_ipv6(const struct rt_frame *frame, u16 vlan_id)
{
	const u8 *ip = frame->data + (vlan_id ? 18 : 14), *l4 = ip + 40;
	struct ringcap_exact flow = { .l3_proto = 0x86dd, .l4_proto = ip[6], .vlan_id = vlan_id,
				      .action = RINGCAP_ACTION_DROP };

	memcpy(flow.saddr, ip + 8, 16);
	memcpy(flow.daddr, ip + 24, 16);
	flow.sport = (u16)(l4[0] << 8 | l4[1]);
	flow.dport = (u16)(l4[2] << 8 | l4[3]);
	return flow;
}

RT_CASE(shunt_ipv6)
{
	const struct rt_ends ends = { 0x01020304, 0x05060708, 1234, 443 }, back = rt_ends_reverse(&ends);
	static struct rt_frame frame, other;
	struct rt_shunting shunting;
	struct ringcap_exact flow;

	rt_shunting_open(&shunting, 10);
	rt_frame_tcp_ipv6(&frame, &ends, 0);
	RT_CHECK(!rt_frame_is_shunted(&shunting, &frame));
	flow = rt_flow_of_ipv6(&frame, 0);
	rt_shunt_one(shunting.queue.fd, &flow);
	RT_CHECK(rt_frame_is_shunted(&shunting, &frame));
	rt_frame_tcp_ipv6(&other, &back, 0);
	RT_CHECK(rt_frame_is_shunted(&shunting, &other));
	rt_frame_tcp_ipv6(&other, &(struct rt_ends){ 0x01020304, 0x05060708, 1235, 443 }, 0);
	RT_CHECK(!rt_frame_is_shunted(&shunting, &other));
	rt_shunting_check(&shunting, 2);
	rt_queue_close(&shunting.queue);
}

/* A tag belongs to the flow, its priority does not. */
RT_CASE(shunt_vlan)
{
	const struct rt_ends ends = { 0x01020304, 0x05060708, 1234, 443 };
	static struct rt_frame frame, other;
	struct rt_shunting shunting;
	struct ringcap_exact flow;

	rt_shunting_open(&shunting, 10);
	rt_frame_tcp_ipv6(&frame, &ends, 0x0064);
	flow = rt_flow_of_ipv6(&frame, 0x64);
	rt_shunt_one(shunting.queue.fd, &flow);
	RT_CHECK(rt_frame_is_shunted(&shunting, &frame));
	rt_frame_tcp_ipv6(&other, &ends, 0xe064);
	RT_CHECK(rt_frame_is_shunted(&shunting, &other));
	rt_frame_tcp_ipv6(&other, &ends, 0x0065);
	RT_CHECK(!rt_frame_is_shunted(&shunting, &other));
	rt_frame_tcp_ipv6(&other, &ends, 0);
	RT_CHECK(!rt_frame_is_shunted(&shunting, &other));
	rt_shunting_check(&shunting, 2);
	rt_queue_close(&shunting.queue);
}

/* A protocol without ports is shunted by its addresses; fragments of one with ports have none, and are not shunted. */
RT_CASE(shunt_without_ports)
{
	const struct rt_ends hosts = { 0x01020304, 0x05060708, 0, 0 }, ends = { 0x01020304, 0x05060708, 7, 9 };
	const struct ringcap_exact flows[] = { rt_flow_between(&hosts, 50), rt_flow_between(&ends, 17),
					       rt_flow_between(&hosts, 17) };
	struct rt_shunting shunting;
	static struct rt_frame frame;

	rt_shunting_open(&shunting, 10);
	RT_EQUAL(rt_shunt(shunting.queue.fd, flows, 3), 3);
	rt_frame_begin(&frame, 1, 60);
	rt_frame_push_ipv4(&frame, &hosts, 50);
	rt_frame_push_ethernet(&frame, 0x0800);
	RT_CHECK(rt_frame_is_shunted(&shunting, &frame));
	rt_frame_begin(&frame, 1, 60);
	rt_frame_push_udp(&frame, &ends);
	rt_frame_push_ipv4(&frame, &ends, 17);
	rt_frame_push_ethernet(&frame, 0x0800);
	RT_CHECK(rt_frame_is_shunted(&shunting, &frame));
	frame.data[14 + 6] = 0x20;	/* more fragments */
	RT_CHECK(!rt_frame_is_shunted(&shunting, &frame));
	frame.data[14 + 6] = 0;
	frame.data[14 + 7] = 9;		/* a later one */
	RT_CHECK(!rt_frame_is_shunted(&shunting, &frame));
	rt_shunting_check(&shunting, 2);
	rt_queue_close(&shunting.queue);
}

/* ---- to whom ---- */

/* Two clusters over one ring: each consumer sheds what it wants, and nothing else. */
RT_CASE(shunt_two_clusters)
{
	const struct rt_traffic traffic = { .flows = RT_FLOWS };
	struct rt_shunting shunting;
	struct rt_tally other = {};
	struct ringcap_exact flow;
	struct rt_queue queue;
	char name[40];
	u32 i;

	rt_shunting_open(&shunting, RT_FLOWS);
	snprintf(name, sizeof(name), "%s-b", shunting.fixture.cluster);
	RT_EQUAL(rt_cluster_set(&(struct rt_cluster){ .name = name, .metadata = 1, .shunt_quota = 10 }), 0);
	RT_EQUAL(rt_fixture_change(&shunting.fixture, &(struct rt_ring){ .outputs = { shunting.fixture.cluster, name } }), 0);
	rt_queue_open(&queue, name, 0);
	for (i = 0; i < RT_FLOWS; i++) {
		flow = rt_flow(i);
		rt_shunt_one(shunting.queue.fd, &flow);
	}
	flow = rt_flow(3);
	rt_shunt_one(queue.fd, &flow);
	rt_send(shunting.fixture.sender, &traffic, 0, 80);
	shunting.sent = 80;
	rt_ring_wait(shunting.fixture.ring, 80);
	rt_queue_read(&queue, rt_count_flow, &other);
	rt_queue_read(&shunting.queue, rt_count_flow, &shunting.tally);
	RT_EQUAL(shunting.tally.total, 0);
	for (i = 0; i < RT_FLOWS; i++)
		RT_EQUAL(other.of[i], i == 3 ? 0 : 10);
	rt_shunting_check(&shunting, 80);
	rt_queue_close(&queue);
	rt_queue_close(&shunting.queue);
}

/* A consumer that names flows of another queue takes nothing from that one, whatever balances them. */
static void rt_shunt_forged(const struct rt_cluster *options)
{
	struct rt_cluster shape = *options;
	const struct rt_traffic traffic = { .flows = RT_FLOWS };
	struct rt_tally tallies[2] = {};
	struct rt_fixture fixture;
	struct rt_queue queues[2];
	struct rt_queue_counts counts[2];
	struct ringcap_exact flow;
	u32 i;

	shape.queues = 2;
	shape.shunt_quota = RT_FLOWS;
	rt_fixture_open(&fixture, &shape);
	for (i = 0; i < 2; i++)
		rt_queue_open(&queues[i], fixture.cluster, i);
	for (i = 0; i < RT_FLOWS; i++) {
		flow = rt_flow(i);
		rt_shunt_one(queues[0].fd, &flow);
	}
	rt_send(fixture.sender, &traffic, 0, 800);
	rt_ring_wait(fixture.ring, 800);
	for (i = 0; i < 2; i++) {
		rt_queue_read(&queues[i], rt_count_flow, &tallies[i]);
		rt_queue_counts(fixture.cluster, i, &counts[i]);
		rt_queue_close(&queues[i]);
	}
	RT_EQUAL(tallies[0].total, 0);
	RT_EQUAL(counts[0].delivered, 0);
	RT_EQUAL(counts[1].shunted, 0);
	RT_EQUAL(tallies[1].total, counts[1].delivered);
	RT_EQUAL(counts[0].shunted + counts[1].delivered, 800);
	RT_CHECK(counts[1].delivered && counts[0].shunted);
}

RT_CASE(shunt_forged)
{
	rt_shunt_forged(&(struct rt_cluster){});
}

RT_CASE(shunt_forged_round_robin)
{
	rt_shunt_forged(&(struct rt_cluster){ .balance = RINGCAP_BALANCE_ROUND_ROBIN, .metadata = 1 });
}

RT_CASE(shunt_forged_spread)
{
	rt_shunt_forged(&(struct rt_cluster){ .when_full = RINGCAP_POLICY_SPREAD, .when_unattended = RINGCAP_POLICY_SPREAD });
}

/* ---- refusals ---- */

static void rt_refuse_flow(int fd, void (*spoil)(struct ringcap_exact *flow))
{
	struct ringcap_exact flows[2] = { rt_flow(1), rt_flow(2) };

	spoil(&flows[1]);
	RT_EQUAL(rt_shunt(fd, &flows[1], 1), -EINVAL);
	/* Those before it are shunted. */
	RT_EQUAL(rt_shunt(fd, flows, 2), 1);
	RT_CHECK(rt_is_shunted(fd, &flows[0]));
	RT_EQUAL(rt_unshunt(fd, flows, 1), 1);
}

static void rt_spoil_action(struct ringcap_exact *flow)
{
	flow->action = RINGCAP_ACTION_PASS;	/* in line only */
}

static void rt_spoil_action_more(struct ringcap_exact *flow)
{
	flow->action = RINGCAP_ACTION_QUEUE;
}

static void rt_spoil_target(struct ringcap_exact *flow)
{
	flow->target = 1;
}

static void rt_spoil_idle(struct ringcap_exact *flow)
{
	flow->idle_s = 1000001;
}

static void rt_spoil_address(struct ringcap_exact *flow)
{
	flow->saddr[7] = 1;
}

static void rt_spoil_protocol(struct ringcap_exact *flow)
{
	flow->l4_proto = 1;
}

static void rt_spoil_vlan(struct ringcap_exact *flow)
{
	flow->vlan_id = 4096;
}

static void rt_spoil_family(struct ringcap_exact *flow)
{
	flow->l3_proto = 0x0806;
}

RT_CASE(shunt_invalid)
{
	static void (*const spoils[])(struct ringcap_exact *flow) = { rt_spoil_action, rt_spoil_action_more, rt_spoil_target,
								      rt_spoil_idle, rt_spoil_address, rt_spoil_protocol,
								      rt_spoil_vlan, rt_spoil_family };
	struct rt_shunting shunting;
	u32 i;

	rt_shunting_open(&shunting, 5);
	for (i = 0; i < sizeof(spoils) / sizeof(spoils[0]); i++)
		rt_refuse_flow(shunting.queue.fd, spoils[i]);
	RT_EQUAL(rt_shunt_ioctl(shunting.queue.fd, RINGCAP_IOC_SHUNT, NULL, 1, NULL), -EFAULT);
	RT_EQUAL(rt_shunt_ioctl(shunting.queue.fd, RINGCAP_IOC_UNSHUNT, NULL, 1, NULL), -EFAULT);
	RT_EQUAL(rt_shunt_ioctl(shunting.queue.fd, RINGCAP_IOC_SHUNT_READ, NULL, 1, NULL), -EFAULT);
	RT_EQUAL(rt_shunt_ioctl(shunting.queue.fd, RINGCAP_IOC_SHUNT, NULL, 0, NULL), 0);
	RT_CHECK(ioctl(shunting.queue.fd, RINGCAP_IOC_SHUNT, NULL) == -1 && errno == EFAULT, "%m");
	rt_queue_close(&shunting.queue);
}

/* A record is not lost when it cannot be written. */
RT_CASE(shunt_record_fault)
{
	const struct ringcap_exact flow = rt_flow(1);
	struct ringcap_exact_state state;
	struct rt_shunting shunting;

	rt_shunting_open(&shunting, 5);
	rt_shunt_one(shunting.queue.fd, &flow);
	rt_shunting_send(&shunting, 80, false);
	RT_EQUAL(rt_unshunt(shunting.queue.fd, &flow, 1), 1);
	RT_EQUAL(rt_shunt_ioctl(shunting.queue.fd, RINGCAP_IOC_SHUNT_ENDED, NULL, 1, NULL), -EFAULT);
	RT_CHECK(rt_take_ended(shunting.queue.fd, &state));
	RT_EQUAL(state.counts.packets, 10);
	RT_CHECK(!rt_take_ended(shunting.queue.fd, &state));
	rt_queue_close(&shunting.queue);
}

RT_CASE(shunt_quota)
{
	struct ringcap_exact flows[4] = { rt_flow(0), rt_flow(1), rt_flow(2), rt_flow(3) };
	struct ringcap_shunts argument;
	struct rt_shunting shunting;
	struct rt_cluster shape;
	int fd;

	rt_shunting_open(&shunting, 0);
	fd = shunting.queue.fd;
	RT_EQUAL(rt_shunt(fd, flows, 1), -EPERM);
	RT_EQUAL(rt_shunt_ioctl(fd, RINGCAP_IOC_UNSHUNT, flows, 1, &argument), 1);
	RT_EQUAL(argument.missed, 1);
	shape = (struct rt_cluster){ .name = shunting.fixture.cluster, .lane_size = RT_LANE_SIZE, .shunt_quota = 3 };
	RT_EQUAL(rt_cluster_set(&shape), 0);
	RT_EQUAL(rt_shunt(fd, flows, 4), 3);
	RT_EQUAL(rt_shunt(fd, &flows[3], 1), -EDQUOT);
	/* Those that it has may be asked for once more. */
	RT_EQUAL(rt_shunt_ioctl(fd, RINGCAP_IOC_SHUNT, flows, 3, &argument), 3);
	RT_EQUAL(argument.missed, 3);
	RT_EQUAL(rt_unshunt(fd, &flows[1], 1), 1);
	RT_EQUAL(rt_shunt(fd, &flows[3], 1), 1);
	RT_EQUAL(rt_shunt_ioctl(fd, RINGCAP_IOC_UNSHUNT, flows, 4, &argument), 4);
	RT_EQUAL(argument.missed, 1);
	shape.shunt_quota = RINGCAP_SHUNTS_MAX + 1;
	RT_EQUAL(rt_cluster_set(&shape), -EINVAL);
	RT_EQUAL(rt_get_attr(RINGCAP_CMD_CLUSTER_GET, shape.name, RINGCAP_A_SHUNT_QUOTA), 3);
	rt_queue_close(&shunting.queue);
}

/* While the cluster has no quota, flows that are shunted have no effect. */
RT_CASE(shunt_right_withdrawn)
{
	const struct ringcap_exact flow = rt_flow(0);
	struct rt_shunting shunting;
	struct rt_cluster shape;

	rt_shunting_open(&shunting, 3);
	shape = (struct rt_cluster){ .name = shunting.fixture.cluster, .lane_size = RT_LANE_SIZE };
	rt_shunt_one(shunting.queue.fd, &flow);
	rt_shunting_send(&shunting, 80, false);
	RT_EQUAL(shunting.tally.of[0], 0);
	RT_EQUAL(rt_cluster_set(&shape), 0);
	rt_shunting_send(&shunting, 80, false);
	RT_EQUAL(shunting.tally.of[0], 10);
	shape.shunt_quota = 1;
	shape.metadata = 1;
	RT_EQUAL(rt_cluster_set(&shape), 0);
	rt_shunting_send(&shunting, 80, false);
	RT_EQUAL(shunting.tally.of[0], 10);
	rt_shunting_check(&shunting, 20);
	rt_queue_close(&shunting.queue);
}

/* ---- ends ---- */

RT_CASE(shunt_removed)
{
	const struct ringcap_exact flow = rt_flow(2);
	struct ringcap_exact_state state;
	struct rt_shunting shunting;

	rt_shunting_open(&shunting, 3);
	rt_shunt_one(shunting.queue.fd, &flow);
	rt_shunting_send(&shunting, 80, false);
	RT_CHECK(!rt_take_ended(shunting.queue.fd, &state));
	RT_EQUAL(rt_unshunt(shunting.queue.fd, &flow, 1), 1);
	RT_CHECK(rt_take_ended(shunting.queue.fd, &state));
	RT_EQUAL(state.counts.packets, 10);
	RT_EQUAL(state.counts.flags, RINGCAP_COUNTS_SHUNTED);
	RT_CHECK(!memcmp(&state.rule, &flow, sizeof(flow)), "another flow");
	rt_shunting_send(&shunting, 80, false);
	RT_EQUAL(shunting.tally.of[2], 10);
	rt_shunting_check(&shunting, 10);
	rt_queue_close(&shunting.queue);
}

/* An idle flow ends by itself, with its last counters, and comes back. One without idle time stays. */
RT_CASE(shunt_idle)
{
	struct ringcap_exact idle = rt_flow(1), always = rt_flow(2);
	struct ringcap_exact_state state;
	struct rt_shunting shunting;

	idle.idle_s = 1;
	rt_shunting_open(&shunting, 3);
	rt_shunt_one(shunting.queue.fd, &always);
	rt_shunt_one(shunting.queue.fd, &idle);
	rt_shunting_send(&shunting, 80, true);
	RT_EVENTUALLY(rt_take_ended(shunting.queue.fd, &state), 10000);
	RT_CHECK(!memcmp(&state.rule, &idle, sizeof(idle)), "another flow");
	RT_EQUAL(state.counts.packets, 10);
	RT_CHECK(state.counts.idle_ms >= 1000, "%u ms", state.counts.idle_ms);
	RT_CHECK(!rt_is_shunted(shunting.queue.fd, &idle));
	RT_CHECK(rt_is_shunted(shunting.queue.fd, &always));
	rt_shunting_send(&shunting, 80, false);
	RT_EQUAL(shunting.tally.of[1], 10);
	RT_EQUAL(shunting.tally.of[2], 0);
	rt_shunting_check(&shunting, 30);
	rt_queue_close(&shunting.queue);
}

/* Beyond the quota, the oldest records are lost, and counted. */
RT_CASE(shunt_records_lost)
{
	struct rt_queue_counts counts;
	struct rt_shunting shunting;
	struct ringcap_exact flow;
	u32 i;

	rt_shunting_open(&shunting, 4);
	for (i = 0; i < 10; i++) {
		flow = rt_flow(i);
		rt_shunt_one(shunting.queue.fd, &flow);
		RT_EQUAL(rt_unshunt(shunting.queue.fd, &flow, 1), 1);
	}
	rt_queue_counts(shunting.fixture.cluster, 0, &counts);
	RT_EQUAL(counts.shunts_lost, 6);
	RT_EQUAL(counts.shunts, 0);
	RT_EQUAL(rt_records_lost(shunting.queue.fd), 6);
	/* These have been read. */
	rt_queue_close(&shunting.queue);
	rt_queue_counts(shunting.fixture.cluster, 0, &counts);
	RT_EQUAL(counts.shunts_lost, 6);
}

/* The next consumer gets everything, and knows nothing of the flows. */
RT_CASE(shunt_detached)
{
	struct ringcap_exact flows[RT_FLOWS];
	struct rt_queue_counts counts;
	struct rt_shunting shunting;
	u32 i;

	rt_shunting_open(&shunting, RT_FLOWS);
	for (i = 0; i < RT_FLOWS; i++)
		flows[i] = rt_flow(i);
	RT_EQUAL(rt_shunt(shunting.queue.fd, flows, RT_FLOWS), RT_FLOWS);
	rt_shunting_send(&shunting, 80, false);
	RT_EQUAL(rt_unshunt(shunting.queue.fd, flows, 1), 1);
	rt_queue_close(&shunting.queue);
	rt_queue_counts(shunting.fixture.cluster, 0, &counts);
	RT_EQUAL(counts.shunts, 0);
	RT_EQUAL(counts.shunts_lost, RT_FLOWS);
	rt_queue_open(&shunting.queue, shunting.fixture.cluster, 0);
	RT_CHECK(!rt_is_shunted(shunting.queue.fd, &flows[3]));
	rt_shunting_send(&shunting, 80, false);
	RT_EQUAL(shunting.tally.total, 80);
	rt_shunting_check(&shunting, 80);
	rt_queue_close(&shunting.queue);
}

RT_CASE(shunt_taken_back)
{
	const struct ringcap_exact flow = rt_flow(1);
	struct rt_queue_counts counts;
	struct rt_shunting shunting;
	struct rt_queue old;

	rt_shunting_open(&shunting, 5);
	rt_shunt_one(shunting.queue.fd, &flow);
	rt_shunting_send(&shunting, 80, false);
	RT_EQUAL(rt_queue_revoke(shunting.fixture.cluster, 0, 0), 0);
	RT_EQUAL(rt_shunt(shunting.queue.fd, &flow, 1), -ENODEV);
	old = shunting.queue;
	rt_queue_open(&shunting.queue, shunting.fixture.cluster, 0);
	RT_EQUAL(rt_shunt(old.fd, &flow, 1), -ENODEV);
	RT_CHECK(!rt_is_shunted(shunting.queue.fd, &flow));
	rt_shunting_send(&shunting, 80, false);
	RT_EQUAL(shunting.tally.of[1], 10);
	rt_shunt_one(shunting.queue.fd, &flow);
	rt_queue_close(&old);
	rt_shunting_send(&shunting, 80, false);
	RT_EQUAL(shunting.tally.of[1], 10);
	rt_queue_counts(shunting.fixture.cluster, 0, &counts);
	RT_EQUAL(counts.shunts_lost, 1);
	rt_shunting_check(&shunting, 20);
	rt_queue_close(&shunting.queue);
}

/* ---- many ---- */

static struct ringcap_exact rt_numbered_flow(u32 n)
{
	const struct rt_ends ends = { 0x0b000000 + (n >> 4), 0x0c000001, (u16)(1000 + (n & 15)), 80 };

	return rt_flow_between(&ends, 6);
}

/* A million, with RT_DIVISOR a part of it. The traffic's own flows are among them. */
RT_CASE(shunt_million)
{
	const u32 many = rt_scaled(RINGCAP_SHUNTS_MAX) - RT_FLOWS;
	static struct ringcap_exact flows[4096];
	struct rt_shunting shunting;
	struct rt_queue_counts counts;
	u32 from, n, i;

	rt_shunting_open(&shunting, RINGCAP_SHUNTS_MAX);
	for (i = 0; i < RT_FLOWS; i++)
		flows[i] = rt_flow(i);
	RT_EQUAL(rt_shunt(shunting.queue.fd, flows, RT_FLOWS), RT_FLOWS);
	for (from = 0; from < many; from += n) {
		n = many - from < 4096 ? many - from : 4096;
		for (i = 0; i < n; i++)
			flows[i] = rt_numbered_flow(from + i);
		RT_EQUAL(rt_shunt(shunting.queue.fd, flows, n), n);
	}
	rt_queue_counts(shunting.fixture.cluster, 0, &counts);
	RT_EQUAL(counts.shunts, many + RT_FLOWS);
	for (from = 0; from < many; from += 1001) {
		flows[0] = rt_numbered_flow(from);
		RT_CHECK(rt_is_shunted(shunting.queue.fd, &flows[0]), "flow %u", from);
	}
	flows[0] = rt_numbered_flow(many);
	RT_CHECK(!rt_is_shunted(shunting.queue.fd, &flows[0]));
	if (many + RT_FLOWS == RINGCAP_SHUNTS_MAX)
		RT_EQUAL(rt_shunt(shunting.queue.fd, flows, 1), -EDQUOT);
	rt_shunting_send(&shunting, 80, false);
	rt_shunting_check(&shunting, 80);
	rt_queue_close(&shunting.queue);
	rt_queue_counts(shunting.fixture.cluster, 0, &counts);
	RT_EQUAL(counts.shunts_lost, many + RT_FLOWS);
}

#define RT_MANY 20000
#define RT_TAIL 1000000	/* flows of the request that are not shunted */

struct rt_unshunter {
	int fd;
	struct ringcap_exact *flows;
	int result;
	u32 done;
	pthread_t thread;
};

static void *rt_unshunter_run(void *arg)
{
	struct rt_unshunter *unshunter = arg;

	unshunter->result = rt_unshunt(unshunter->fd, unshunter->flows, RT_MANY + RT_TAIL);
	__atomic_store_n(&unshunter->done, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void rt_ignore(int signal)
{
	(void)signal;
}

/* Flows that a request ends become records while it goes on: not only at its end, which may be far. */
RT_CASE(shunt_long_request)
{
	struct sigaction interrupt = { .sa_handler = rt_ignore };
	struct rt_unshunter unshunter = {};
	struct ringcap_exact_state state;
	struct rt_shunting shunting;
	u32 i;

	rt_shunting_open(&shunting, RT_MANY);
	sigaction(SIGUSR1, &interrupt, NULL);
	unshunter.fd = shunting.queue.fd;
	unshunter.flows = calloc(RT_MANY + RT_TAIL, sizeof(*unshunter.flows));
	RT_CHECK(unshunter.flows, "no memory");
	for (i = 0; i < RT_MANY + RT_TAIL; i++)
		unshunter.flows[i] = rt_numbered_flow(i < RT_MANY ? i : 0);
	RT_EQUAL(rt_shunt(shunting.queue.fd, unshunter.flows, RT_MANY), RT_MANY);
	RT_CHECK(!pthread_create(&unshunter.thread, NULL, rt_unshunter_run, &unshunter), "no thread");
	RT_EVENTUALLY(rt_take_ended(shunting.queue.fd, &state) || __atomic_load_n(&unshunter.done, __ATOMIC_ACQUIRE), 60000);
	RT_CHECK(!__atomic_load_n(&unshunter.done, __ATOMIC_ACQUIRE), "the records came only when the request had ended");
	/* It ends at the signal, and says how far it came. */
	while (!__atomic_load_n(&unshunter.done, __ATOMIC_ACQUIRE)) {
		pthread_kill(unshunter.thread, SIGUSR1);
		usleep(1000);
	}
	pthread_join(unshunter.thread, NULL);
	printf("# %d flows before the signal\n", unshunter.result);
	RT_CHECK(unshunter.result > 0 && unshunter.result < RT_MANY + RT_TAIL, "%d", unshunter.result);
	free(unshunter.flows);
	rt_queue_close(&shunting.queue);
}

/* ---- under traffic ---- */

/* Shunts and unshunts flows at random until it is told to stop. */
struct rt_changer {
	int fd;
	u32 flows;	/* of traffic.h */
	u64 seed;
	u64 changes;
	u32 stop;
	u64 packets;	/* of the records that it has read */
	pthread_t thread;
};

static void rt_changer_read(struct rt_changer *changer)
{
	struct ringcap_exact_state states[16];
	int taken, i;

	while ((taken = rt_shunt_ioctl(changer->fd, RINGCAP_IOC_SHUNT_ENDED, states, 16, NULL)) > 0)
		for (i = 0; i < taken; i++)
			changer->packets += states[i].counts.packets;
	RT_EQUAL(taken, 0);
}

static void *rt_changer_run(void *arg)
{
	struct rt_changer *changer = arg;
	struct ringcap_exact flows[16];
	u32 i;

	while (!__atomic_load_n(&changer->stop, __ATOMIC_RELAXED)) {
		for (i = 0; i < 16; i++) {
			flows[i] = rt_flow(rt_random(&changer->seed) % changer->flows);
			flows[i].idle_s = rt_random(&changer->seed) % 2;
		}
		if (rt_random(&changer->seed) % 3)
			RT_EQUAL(rt_shunt(changer->fd, flows, 16), 16);
		else
			RT_EQUAL(rt_unshunt(changer->fd, flows, 16), 16);
		rt_changer_read(changer);
		changer->changes++;
	}
	return NULL;
}

static void rt_changer_start(struct rt_changer *changer, const struct rt_queue *queue, u32 flows)
{
	*changer = (struct rt_changer){ .fd = queue->fd, .flows = flows, .seed = 7 };
	RT_CHECK(!pthread_create(&changer->thread, NULL, rt_changer_run, changer), "no thread");
}

static void rt_changer_stop(struct rt_changer *changer)
{
	__atomic_store_n(&changer->stop, 1, __ATOMIC_RELAXED);
	pthread_join(changer->thread, NULL);
	printf("# %llu changes\n", (unsigned long long)changer->changes);
}

struct rt_sending {
	const struct rt_fixture *fixture;
	u32 cpu, count;
	pthread_t thread;
};

static void *rt_send_run(void *arg)
{
	const struct rt_traffic traffic = { .flows = RT_FLOWS };
	struct rt_sending *sending = arg;
	u32 from;

	rt_pin(sending->cpu);
	for (from = 0; from < sending->count; from += 40) {
		rt_send(sending->fixture->sender, &traffic, from, 40);
		usleep(1000);
	}
	return NULL;
}

/*
 * All processors send while flows come and go. What was shunted in all is what the flows' records and the flows that are
 * left say.
 */
RT_CASE(shunt_churn)
{
	u32 cpus = (u32)sysconf(_SC_NPROCESSORS_ONLN), count = rt_scaled(8000) / 40 * 40, i;
	struct rt_sending sendings[16];
	struct rt_shunting shunting;
	struct rt_queue_counts counts;
	struct ringcap_exact flow;
	struct rt_changer changer;

	cpus = cpus < 16 ? cpus : 16;
	rt_shunting_open(&shunting, 100);
	rt_changer_start(&changer, &shunting.queue, RT_FLOWS);
	for (i = 0; i < cpus; i++) {
		sendings[i] = (struct rt_sending){ .fixture = &shunting.fixture, .cpu = i, .count = count };
		RT_CHECK(!pthread_create(&sendings[i].thread, NULL, rt_send_run, &sendings[i]), "no thread");
	}
	for (i = 0; i < cpus; i++)
		pthread_join(sendings[i].thread, NULL);
	shunting.sent = (u64)cpus * count;
	rt_ring_wait(shunting.fixture.ring, shunting.sent);
	rt_changer_stop(&changer);
	for (i = 0; i < RT_FLOWS; i++) {
		flow = rt_flow(i);
		rt_unshunt(shunting.queue.fd, &flow, 1);
	}
	/* The worker may be about to hand over the last of them. */
	rt_queue_counts(shunting.fixture.cluster, 0, &counts);
	RT_EQUAL(counts.shunts_lost, 0);
	RT_EVENTUALLY((rt_changer_read(&changer), changer.packets == counts.shunted), 10000);
	printf("# %llu of %llu packets were shunted\n", (unsigned long long)counts.shunted, (unsigned long long)shunting.sent);
	rt_shunting_check(&shunting, counts.shunted);
	rt_queue_close(&shunting.queue);
}

/* A consumer that asks all the time, beside one that must lose nothing. */
RT_CASE(shunt_flood)
{
	const struct rt_traffic traffic = { .flows = RT_FLOWS };
	struct rt_receiver receiver;
	struct rt_shunting shunting;
	struct rt_changer changers[2];
	struct rt_queue_counts counts;
	u32 total = rt_scaled(20000), i;
	struct rt_queue queue;
	char name[40];

	rt_shunting_open(&shunting, RINGCAP_SHUNTS_MAX);
	snprintf(name, sizeof(name), "%s-b", shunting.fixture.cluster);
	RT_EQUAL(rt_cluster_set(&(struct rt_cluster){ .name = name }), 0);
	RT_EQUAL(rt_fixture_change(&shunting.fixture, &(struct rt_ring){ .outputs = { shunting.fixture.cluster, name } }), 0);
	rt_queue_open(&queue, name, 0);
	for (i = 0; i < 2; i++)
		rt_changer_start(&changers[i], &shunting.queue, 50000);
	rt_receiver_init(&receiver, &traffic, shunting.fixture.ifindex, total);
	rt_exchange(shunting.fixture.sender, &traffic, 0, total, &queue, 1, &receiver);
	for (i = 0; i < 2; i++)
		rt_changer_stop(&changers[i]);
	RT_EQUAL(receiver.count, total);
	rt_queue_counts(name, 0, &counts);
	RT_EQUAL(counts.delivered, total);
	RT_EQUAL(counts.dropped[0] + counts.dropped[1] + counts.dropped[2], 0);
	rt_queue_close(&queue);
	rt_queue_close(&shunting.queue);
	free(receiver.seen);
}

/* ---- in line ---- */

static const struct rt_traffic rt_line_traffic = { .flows = 2 };

static u64 rt_line_stat(const struct rt_line *line, enum ringcap_inline_stat stat)
{
	u64 stats[RINGCAP_INLINE_STATS];

	rt_line_stats(line, NULL, stats);
	return stats[stat];
}

struct rt_line_order {
	u32 next[2];	/* number of the next packet of each flow, at least */
	u32 count[2];
};

static void rt_check_order(const struct ringcap_slot *slot, const u8 *packet, void *arg)
{
	struct rt_line_order *order = arg;
	u32 number = rt_packet_number(packet, slot->caplen), flow = number % 2;

	RT_CHECK(number != UINT32_MAX && number >= order->next[flow], "packet %u of flow %u came after %u", number, flow,
		 order->next[flow]);
	order->next[flow] = number + 1;
	order->count[flow]++;
}

static void rt_line_send(struct rt_line *line, u32 *sent, u32 count)
{
	rt_send(line->a.sender, &rt_line_traffic, *sent, count);
	*sent += count;
	rt_ring_wait(line->ring, *sent);
}

/* A flow that is to pass does not overtake itself: it goes on waiting until what waited has gone. */
RT_CASE(shunt_inline_pass)
{
	struct rt_line line = { .open = 0, .hung_ms = 60000, .shunt_quota = 4 };
	struct ringcap_exact flow = rt_flow(0);
	struct rt_line_order order = {};
	u64 stats[RINGCAP_INLINE_STATS];
	struct rt_queue queue;
	u32 sent = 0;

	flow.action = RINGCAP_ACTION_PASS;
	rt_line_open(&line);
	rt_queue_open(&queue, line.cluster, 0);
	rt_line_send(&line, &sent, 20);
	rt_shunt_one(queue.fd, &flow);
	rt_line_send(&line, &sent, 20);
	RT_EQUAL(rt_line_stat(&line, RINGCAP_INLINE_HELD), 40);
	RT_EQUAL(rt_line_judge(&queue, NULL, NULL), 40);
	rt_line_send(&line, &sent, 20);
	RT_EQUAL(rt_line_stat(&line, RINGCAP_INLINE_HELD), 10);
	RT_EQUAL(rt_line_stat(&line, RINGCAP_INLINE_SHUNT_PASSED), 10);
	/* What waits now is of the other flow, and later than the last of this one that waited. */
	rt_line_send(&line, &sent, 20);
	RT_EQUAL(rt_line_stat(&line, RINGCAP_INLINE_SHUNT_PASSED), 20);
	RT_EQUAL(rt_line_judge(&queue, NULL, NULL), 20);
	RT_EVENTUALLY((rt_queue_read(&line.b.queue, rt_check_order, &order), order.count[0] + order.count[1] == sent), 10000);
	RT_EQUAL(rt_shunt_counts(queue.fd, &flow).packets, 20);
	RT_EQUAL(rt_unshunt(queue.fd, &flow, 1), 1);
	rt_line_send(&line, &sent, 20);
	RT_EQUAL(rt_line_judge(&queue, NULL, NULL), 20);
	rt_line_check(&line, sent, stats);
	RT_EQUAL(stats[RINGCAP_INLINE_PASSED], 80);
	rt_queue_close(&queue);
	rt_line_close(&line);
}

RT_CASE(shunt_inline_drop)
{
	struct rt_line line = { .open = 0, .hung_ms = 60000, .shunt_quota = 4 };
	const struct ringcap_exact flow = rt_flow(1);
	struct rt_line_order order = {};
	u64 stats[RINGCAP_INLINE_STATS];
	struct rt_queue queue;
	u32 sent = 0;

	rt_line_open(&line);
	rt_queue_open(&queue, line.cluster, 0);
	rt_line_send(&line, &sent, 20);
	rt_shunt_one(queue.fd, &flow);
	rt_line_send(&line, &sent, 20);
	/* Those that waited still get their verdicts. */
	RT_EQUAL(rt_line_judge(&queue, NULL, NULL), 30);
	RT_EVENTUALLY((rt_queue_read(&line.b.queue, rt_check_order, &order), order.count[0] == 20 && order.count[1] == 10), 10000);
	rt_line_check(&line, sent, stats);
	RT_EQUAL(stats[RINGCAP_INLINE_SHUNT_BLOCKED], 10);
	RT_EQUAL(stats[RINGCAP_INLINE_PASSED], 30);
	rt_queue_close(&queue);
	rt_line_close(&line);
}

/* While the cluster has no quota, packets wait as if no flow was shunted. None of the flow overtakes these later. */
RT_CASE(shunt_inline_right_withdrawn)
{
	struct rt_line line = { .open = 0, .hung_ms = 60000, .shunt_quota = 4 };
	struct ringcap_exact flows[2] = { rt_flow(0), rt_flow(1) };
	struct rt_line_order order = {};
	u64 stats[RINGCAP_INLINE_STATS];
	struct rt_queue queue;
	u32 sent = 0;

	flows[0].action = RINGCAP_ACTION_PASS;
	rt_line_open(&line);
	rt_queue_open(&queue, line.cluster, 0);
	RT_EQUAL(rt_shunt(queue.fd, flows, 2), 2);
	rt_line_send(&line, &sent, 20);
	RT_EQUAL(rt_line_stat(&line, RINGCAP_INLINE_SHUNT_PASSED), 10);
	RT_EQUAL(rt_line_stat(&line, RINGCAP_INLINE_SHUNT_BLOCKED), 10);
	line.shunt_quota = 0;
	RT_EQUAL(rt_line_set_cluster(&line), 0);
	rt_line_send(&line, &sent, 20);
	RT_EQUAL(rt_line_stat(&line, RINGCAP_INLINE_HELD), 20);
	line.shunt_quota = 1;
	RT_EQUAL(rt_line_set_cluster(&line), 0);
	rt_line_send(&line, &sent, 20);
	/* Those of the flow that passes wait behind those of it that wait. */
	RT_EQUAL(rt_line_stat(&line, RINGCAP_INLINE_HELD), 30);
	RT_EQUAL(rt_line_judge(&queue, NULL, NULL), 30);
	rt_line_send(&line, &sent, 20);
	RT_EVENTUALLY((rt_queue_read(&line.b.queue, rt_check_order, &order), order.count[0] + order.count[1] == 50), 10000);
	RT_EQUAL(order.count[0], 40);
	rt_line_check(&line, sent, stats);
	RT_EQUAL(stats[RINGCAP_INLINE_SHUNT_PASSED], 20);
	RT_EQUAL(stats[RINGCAP_INLINE_SHUNT_BLOCKED], 30);
	rt_queue_close(&queue);
	rt_line_close(&line);
}

/* The flow of both directions changes between asking and passing under traffic: its order is kept, and nothing is lost. */
RT_CASE(shunt_inline_order)
{
	struct rt_line line = { .open = 0, .hung_ms = 60000, .shunt_quota = 4 };
	struct ringcap_exact flows[2] = { rt_flow(0), rt_flow(1) };
	u32 count = rt_scaled(4000), sent = 0, arrived = 0, i;
	struct rt_line_order order = {};
	u64 stats[RINGCAP_INLINE_STATS], seed = 5;
	struct rt_queue queue;

	rt_line_open(&line);
	rt_queue_open(&queue, line.cluster, 0);
	flows[0].action = flows[1].action = RINGCAP_ACTION_PASS;
	rt_pin(0);
	while (arrived < count) {
		if (sent < count && sent - arrived < 200) {
			rt_send(line.a.sender, &rt_line_traffic, sent, 10);
			sent += 10;
		}
		i = rt_random(&seed) % 2;
		if (rt_random(&seed) % 3)
			RT_EQUAL(rt_shunt(queue.fd, &flows[i], 1), 1);
		else
			RT_EQUAL(rt_unshunt(queue.fd, &flows[i], 1), 1);
		if (rt_random(&seed) % 2)
			rt_line_judge(&queue, NULL, NULL);
		rt_queue_read(&line.b.queue, rt_check_order, &order);
		arrived = order.count[0] + order.count[1];
	}
	rt_line_check(&line, count, stats);
	RT_EQUAL(stats[RINGCAP_INLINE_PASSED] + stats[RINGCAP_INLINE_SHUNT_PASSED], count);
	RT_CHECK(stats[RINGCAP_INLINE_SHUNT_PASSED] && stats[RINGCAP_INLINE_PASSED]);
	rt_queue_close(&queue);
	rt_line_close(&line);
}

/* ---- no memory ---- */

/* Opens the queue, shunts flows until the table grows, and closes it. */
static int rt_shunt_some(const struct rt_fixture *fixture)
{
	int fd = rt_queue_try_open(fixture->cluster, 0), taken;
	struct ringcap_exact flows[3] = { rt_flow(0), rt_flow(1), rt_flow(2) };

	if (fd < 0)
		return fd;
	taken = rt_shunt(fd, flows, 3);
	/* The number, if the memory ended behind the first. */
	taken = taken > 0 && taken < 3 ? -ENOMEM : taken;
	close(fd);
	return taken < 0 ? taken : 0;
}

RT_CASE(shunt_failures)
{
	struct rt_shunting shunting;

	rt_faults_open();
	rt_shunting_open(&shunting, 10);
	rt_queue_close(&shunting.queue);
	rt_try_failures("shunting flows", rt_shunt_some, &shunting.fixture, 4);
	rt_queue_open(&shunting.queue, shunting.fixture.cluster, 0);
	rt_shunting_send(&shunting, 80, false);
	RT_EQUAL(shunting.tally.total, 80);
	rt_queue_close(&shunting.queue);
}
