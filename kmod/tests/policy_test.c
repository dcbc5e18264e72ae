// SPDX-License-Identifier: GPL-2.0-only
/* Packets for queues that can't take them: flows move to stand-ins and back, and other flows don't move. */
#define _GNU_SOURCE
#include "fixture.h"

#include <pthread.h>

#include "frame.h"

#define RT_QUEUES	6
#define RT_FLOWS	200

static const u8 rt_key[RINGCAP_KEY_LEN] = { 2, 7, 1, 8, 2, 8, 1, 8, 2, 8, 4, 5, 9, 0, 4, 5 };

/*
 * @queues: attached where @attended has their bit
 * @hash: of each flow
 * @took: of each flow, the queue where its last packet came out, -1 = nowhere
 * @at: the queue that is being read
 * @count: packets that came out
 * @stop: the producer is to end
 */
struct rt_policy {
	struct rt_fixture fixture;
	struct rt_cluster cluster;
	struct rt_queue queues[RT_QUEUES];
	u32 attended;
	u32 hash[RT_FLOWS];
	int took[RT_FLOWS];
	u32 at;
	u64 count;
	u64 sent;
	u32 rounds;
	bool stop;
};

static void rt_policy_build(struct rt_frame *frame, u32 number)
{
	u32 flow = number % RT_FLOWS;
	struct rt_ends ends = { 0x0a000001 + flow, 0x0a010001, (u16)(30000 + flow), 80 };

	if (number / RT_FLOWS % 2)
		ends = rt_ends_reverse(&ends);
	rt_frame_begin(frame, number, 200);
	rt_frame_push_udp(frame, &ends);
	rt_frame_push_ipv4(frame, &ends, 17);
	rt_frame_push_ethernet(frame, 0x0800);
}

static void rt_policy_open(struct rt_policy *policy, const struct rt_cluster *shape)
{
	struct rt_frame frame;
	struct rc_flow flow;
	rc_u64 key[2];
	u32 i;

	memset(policy, 0, sizeof(*policy));
	policy->cluster = *shape;
	policy->cluster.queues = RT_QUEUES;
	policy->cluster.key = rt_key;
	rt_fixture_open(&policy->fixture, &policy->cluster);
	rc_key_load(rt_key, key);
	for (i = 0; i < RT_FLOWS; i++) {
		rt_policy_build(&frame, i);
		rt_model_flow(frame.data, frame.len, false, &flow);
		policy->hash[i] = rc_flow_hash(&flow, RINGCAP_BALANCE_FLOW, key);
	}
}

static void rt_policy_attach(struct rt_policy *policy, u32 queue)
{
	rt_queue_open(&policy->queues[queue], policy->cluster.name, queue);
	policy->attended |= 1U << queue;
}

static void rt_policy_detach(struct rt_policy *policy, u32 queue)
{
	rt_queue_close(&policy->queues[queue]);
	policy->attended &= ~(1U << queue);
}

static u32 rt_policy_home(const struct rt_policy *policy, u32 flow)
{
	return rc_queue(policy->hash[flow], RT_QUEUES);
}

/* By rendezvous, as balance.h defines it; -1 if no queue is attended. */
static int rt_policy_queue(const struct rt_policy *policy, u32 flow)
{
	u32 home = rt_policy_home(policy, flow), i;
	u64 weight, most = 0;
	int found = -1;

	if (policy->attended & 1U << home)
		return (int)home;
	for (i = 0; i < RT_QUEUES; i++) {
		weight = rc_mix((u64)policy->hash[flow] << 32 | (i + 1));
		if (policy->attended & 1U << i && weight >= most) {
			most = weight;
			found = (int)i;
		}
	}
	return found;
}

static void rt_policy_take(const struct ringcap_slot *slot, const u8 *packet, void *arg)
{
	struct rt_policy *policy = arg;
	u32 flow = rt_packet_number(packet, slot->caplen) % RT_FLOWS;

	RT_EQUAL(slot->hash, policy->hash[flow]);
	policy->took[flow] = (int)policy->at;
	policy->count++;
}

static void rt_policy_read_by(struct rt_policy *policy, rt_slot_fn take, void *arg)
{
	for (policy->at = 0; policy->at < RT_QUEUES; policy->at++)
		if (policy->attended & 1U << policy->at)
			rt_queue_read(&policy->queues[policy->at], take, arg);
}

static void rt_policy_read(struct rt_policy *policy)
{
	rt_policy_read_by(policy, rt_policy_take, policy);
}

/* All that was sent has come to a queue, or was dropped, and what came has been read. */
static bool rt_policy_settled(struct rt_policy *policy, rt_slot_fn take, void *arg)
{
	struct rt_queue_counts counts;

	rt_policy_read_by(policy, take, arg);
	rt_cluster_counts(policy->cluster.name, &counts);
	return policy->count == counts.delivered && counts.delivered + counts.dropped[RINGCAP_DROP_FULL] +
	       counts.dropped[RINGCAP_DROP_UNATTENDED] == policy->sent;
}

/* One packet of each flow. Each arrives at the model's queue, and this many flows have another queue than before. */
static u32 rt_policy_round(struct rt_policy *policy)
{
	int before[RT_FLOWS], want;
	u32 flow, moved = 0;
	struct rt_frame frame;

	memcpy(before, policy->took, sizeof(before));
	memset(policy->took, -1, sizeof(policy->took));
	for (flow = 0; flow < RT_FLOWS; flow++) {
		rt_policy_build(&frame, policy->rounds * RT_FLOWS + flow);
		rt_frame_send(policy->fixture.sender, &frame);
	}
	policy->rounds++;
	policy->sent += RT_FLOWS;
	RT_EVENTUALLY(rt_policy_settled(policy, rt_policy_take, policy), 10000);
	for (flow = 0; flow < RT_FLOWS; flow++) {
		want = rt_policy_queue(policy, flow);
		RT_CHECK(policy->took[flow] == want, "round %u: flow %u of queue %u came to queue %d instead of %d (attended %x)",
			 policy->rounds, flow, rt_policy_home(policy, flow), policy->took[flow], want, policy->attended);
		moved += want != before[flow];
	}
	return moved;
}

static u32 rt_policy_flows_of(const struct rt_policy *policy, u32 queue)
{
	u32 flow, count = 0;

	for (flow = 0; flow < RT_FLOWS; flow++)
		count += rt_policy_home(policy, flow) == queue;
	return count;
}

static void rt_policy_account(const struct rt_policy *policy, u64 delivered, u64 full, u64 unattended, u64 spread)
{
	struct rt_queue_counts counts;
	u64 copies, went;

	/* What is spread is counted after it was shown. */
	rt_settle();
	rt_cluster_counts(policy->cluster.name, &counts);
	rt_cluster_balance(policy->cluster.name, &copies, &went);
	RT_EQUAL(counts.delivered, delivered);
	RT_EQUAL(counts.dropped[RINGCAP_DROP_FULL], full);
	RT_EQUAL(counts.dropped[RINGCAP_DROP_UNATTENDED], unattended);
	RT_EQUAL(went, spread);
	RT_EQUAL(copies, 0);
}

/* Members leave one after the other and come back in another order. */
RT_CASE(policy_unattended_spread)
{
	static const u32 leave[] = { 2, 5, 0, 3, 1 }, back[] = { 0, 1, 5, 3, 2 };
	static struct rt_policy policy;
	u64 spread = 0;
	u32 i, flow, moved, gone;

	rt_policy_open(&policy, &(struct rt_cluster){ .when_unattended = RINGCAP_POLICY_SPREAD });
	for (i = 0; i < RT_QUEUES; i++)
		rt_policy_attach(&policy, i);
	rt_policy_round(&policy);
	for (i = 0; i < 5; i++) {
		rt_policy_detach(&policy, leave[i]);
		for (flow = gone = 0; flow < RT_FLOWS; flow++)
			gone += policy.took[flow] == (int)leave[i];
		moved = rt_policy_round(&policy);
		RT_EQUAL(moved, gone);	/* those of the queue that left, and no others */
		for (flow = 0; flow < RT_FLOWS; flow++)
			spread += policy.took[flow] != (int)rt_policy_home(&policy, flow);
	}
	for (i = 0; i < 5; i++) {
		rt_policy_attach(&policy, back[i]);
		moved = rt_policy_round(&policy);
		for (flow = gone = 0; flow < RT_FLOWS; flow++) {
			gone += policy.took[flow] == (int)back[i];
			spread += policy.took[flow] != (int)rt_policy_home(&policy, flow);
		}
		RT_EQUAL(moved, gone);	/* to the queue that came, and nowhere else */
		RT_CHECK(gone >= rt_policy_flows_of(&policy, back[i]), "not all of queue %u's flows came home", back[i]);
	}
	for (flow = 0; flow < RT_FLOWS; flow++)
		RT_EQUAL(policy.took[flow], rt_policy_home(&policy, flow));
	rt_policy_account(&policy, policy.sent, 0, 0, spread);
}

/* Nobody at all: dropped and counted at their own queues. */
RT_CASE(policy_nobody_there)
{
	static struct rt_policy policy;
	struct rt_queue_counts counts;
	u32 i;
	const struct rt_cluster shape = { .when_unattended = RINGCAP_POLICY_SPREAD, .when_full = RINGCAP_POLICY_SPREAD };

	rt_policy_open(&policy, &shape);
	rt_policy_round(&policy);
	rt_policy_account(&policy, 0, 0, RT_FLOWS, 0);
	for (i = 0; i < RT_QUEUES; i++) {
		rt_queue_counts(policy.cluster.name, i, &counts);
		RT_EQUAL(counts.dropped[RINGCAP_DROP_UNATTENDED], rt_policy_flows_of(&policy, i));
	}
}

/* The policy is enabled and disabled while a queue is unattended. */
RT_CASE(policy_changed)
{
	static struct rt_policy policy;
	u32 i, of_two;

	rt_policy_open(&policy, &(struct rt_cluster){});
	for (i = 0; i < RT_QUEUES; i++)
		if (i != 2)
			rt_policy_attach(&policy, i);
	of_two = rt_policy_flows_of(&policy, 2);
	policy.cluster.when_unattended = RINGCAP_POLICY_SPREAD;
	RT_EQUAL(rt_cluster_set(&policy.cluster), 0);
	rt_policy_round(&policy);
	rt_policy_account(&policy, RT_FLOWS, 0, 0, of_two);
	policy.cluster.when_unattended = RINGCAP_POLICY_DROP;
	RT_EQUAL(rt_cluster_set(&policy.cluster), 0);
	for (i = 0; i < RT_FLOWS; i++) {
		struct rt_frame frame;

		rt_policy_build(&frame, i);
		rt_frame_send(policy.fixture.sender, &frame);
	}
	rt_ring_wait(policy.fixture.ring, 2 * RT_FLOWS);
	rt_policy_account(&policy, 2 * RT_FLOWS - of_two, 0, of_two, of_two);
}

/* Queue @full's consumer doesn't read: packets without room there go to other queues. The own flows of those stay. */
static void rt_try_full(u32 lanes, u32 balance)
{
	static struct rt_policy policy;
	struct rt_queue_counts counts;
	u32 i, full = 1;
	u64 copies, spread, delivered = 0;
	const struct rt_cluster shape = { .when_full = RINGCAP_POLICY_SPREAD, .lanes = lanes, .balance = balance,
					  .lane_size = RINGCAP_LANE_SIZE_MIN, .metadata = 1 };

	rt_policy_open(&policy, &shape);
	rt_pin(0);
	for (i = 0; i < RT_QUEUES; i++)
		rt_policy_attach(&policy, i);
	for (i = 0; i < rt_scaled(8000); i++) {
		struct rt_frame frame;

		rt_policy_build(&frame, i);
		rt_frame_send(policy.fixture.sender, &frame);
		if (i % 50)
			continue;
		RT_EVENTUALLY(rt_ring_seen(policy.fixture.ring) > i, 10000);
		policy.attended &= ~(1U << full);
		rt_policy_read(&policy);
		policy.attended |= 1U << full;
	}
	policy.sent = i;
	rt_ring_wait(policy.fixture.ring, policy.sent);
	rt_policy_read(&policy);
	rt_cluster_balance(policy.cluster.name, &copies, &spread);
	RT_CHECK(spread > 0 || policy.sent < 5000, "nothing was spread");
	for (i = 0; i < RT_QUEUES; i++) {
		rt_queue_counts(policy.cluster.name, i, &counts);
		delivered += counts.delivered;
		RT_EQUAL(counts.dropped[RINGCAP_DROP_FULL] + counts.dropped[RINGCAP_DROP_UNATTENDED], 0);
	}
	RT_EQUAL(delivered, policy.sent);
	RT_EQUAL(policy.count, policy.sent);
}

RT_CASE(policy_full_spread)
{
	rt_try_full(0, RINGCAP_BALANCE_FLOW);
}

RT_CASE(policy_full_spread_shared_lane)
{
	rt_try_full(1, RINGCAP_BALANCE_FLOW);
}

/* Nobody reads: all room there is is used, then packets are dropped at their own queues. */
RT_CASE(policy_all_full)
{
	static struct rt_policy policy;
	struct rt_queue_counts counts;
	u64 copies, spread, room = 0;
	struct rt_frame frame;
	u32 i;
	const struct rt_cluster shape = { .when_full = RINGCAP_POLICY_SPREAD, .lanes = 1, .lane_size = RINGCAP_LANE_SIZE_MIN };

	rt_policy_open(&policy, &shape);
	for (i = 0; i < RT_QUEUES; i++)
		rt_policy_attach(&policy, i);
	for (i = 0; i < 4000; i++) {
		rt_policy_build(&frame, i);
		rt_frame_send(policy.fixture.sender, &frame);
	}
	rt_ring_wait(policy.fixture.ring, 4000);
	room = RINGCAP_LANE_SIZE_MIN / RINGCAP_SLOT_SIZE(RINGCAP_SLOT_SHORT, frame.len);
	rt_cluster_balance(policy.cluster.name, &copies, &spread);
	rt_cluster_counts(policy.cluster.name, &counts);
	RT_EQUAL(counts.delivered, room * RT_QUEUES);
	RT_EQUAL(counts.dropped[RINGCAP_DROP_FULL], 4000 - room * RT_QUEUES);
	RT_CHECK(spread > 0 && spread < counts.delivered, "%llu were spread", (unsigned long long)spread);
	rt_policy_read(&policy);
	RT_EQUAL(policy.count, room * RT_QUEUES);
}

/* ---- under traffic ---- */

static void *rt_policy_produce(void *arg)
{
	struct rt_policy *policy = arg;
	struct rt_frame frame;
	u32 number;

	for (number = 0; !__atomic_load_n(&policy->stop, __ATOMIC_ACQUIRE); number++) {
		rt_policy_build(&frame, number);
		rt_frame_send(policy->fixture.sender, &frame);
	}
	policy->sent = number;
	return NULL;
}

/*
 * The flows that a consumer that comes and goes may get: its own at any time, others only while their queues are
 * unattended.
 */
struct rt_visit {
	struct rt_policy *policy;
	u32 always;	/* queues that are attended all the time */
	u32 strays;
};

static void rt_policy_visit(const struct ringcap_slot *slot, const u8 *packet, void *arg)
{
	struct rt_visit *visit = arg;
	u32 home = rt_policy_home(visit->policy, rt_packet_number(packet, slot->caplen) % RT_FLOWS);

	visit->policy->count++;
	visit->strays += home != visit->policy->at && (visit->always & 1U << home);
}

/* Members come and go all the time: the account has every packet once, and flows of queues that stay don't move. */
RT_CASE(policy_churn_under_traffic)
{
	static struct rt_policy policy;
	struct rt_visit visit = { .policy = &policy, .always = 0x7 };
	struct rt_queue_counts counts;
	u64 copies, spread, churn, seed = 5, deadline = rt_now() + RT_PATIENCE_NS;
	pthread_t thread;
	u32 i;

	rt_policy_open(&policy, &(struct rt_cluster){ .when_unattended = RINGCAP_POLICY_SPREAD, .lane_size = 1U << 22 });
	for (i = 0; i < 3; i++)
		rt_policy_attach(&policy, i);
	RT_CHECK(!pthread_create(&thread, NULL, rt_policy_produce, &policy), "no thread");
	/* Until something was spread, however seldom the other thread gets a turn. */
	for (churn = 0, spread = 0; churn < 60 || (!spread && rt_now() < deadline); churn++) {
		i = 3 + rt_random(&seed) % 3;
		if (policy.attended & 1U << i)
			rt_policy_detach(&policy, i);
		else
			rt_policy_attach(&policy, i);
		rt_policy_read_by(&policy, rt_policy_visit, &visit);
		rt_cluster_balance(policy.cluster.name, &copies, &spread);
	}
	__atomic_store_n(&policy.stop, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	for (i = 0; i < RT_QUEUES; i++)
		if (!(policy.attended & 1U << i))
			rt_policy_attach(&policy, i);
	RT_EVENTUALLY(rt_policy_settled(&policy, rt_policy_visit, &visit), 10000);
	rt_cluster_counts(policy.cluster.name, &counts);
	rt_cluster_balance(policy.cluster.name, &copies, &spread);
	RT_CHECK(spread > 0, "nothing was spread");
	RT_EQUAL(visit.strays, 0);
	RT_EQUAL(counts.delivered + counts.dropped[RINGCAP_DROP_UNATTENDED] + counts.dropped[RINGCAP_DROP_FULL], policy.sent);
	RT_EQUAL(policy.count, counts.delivered);
}
