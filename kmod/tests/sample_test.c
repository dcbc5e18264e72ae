// SPDX-License-Identifier: GPL-2.0-only
/* VLANs and samples: which packets of a ring are for its clusters at all. */
#define _GNU_SOURCE
#include "fixture.h"

struct rt_sample {
	u32 n;
	u32 by;
	const u16 *vlans;
	u32 nr_vlans;
};

static void rt_put_sample(struct rt_message *message, const void *arg)
{
	const struct rt_sample *sample = arg;

	if (sample->n)
		rt_message_put_u32(message, RINGCAP_A_SAMPLE, sample->n);
	if (sample->by)
		rt_message_put_u32(message, RINGCAP_A_SAMPLE_BY, sample->by);
	if (sample->vlans)
		rt_message_put(message, RINGCAP_A_VLANS, sample->vlans, sample->nr_vlans * (u32)sizeof(u16));
}

static int rt_set_sample(const struct rt_fixture *fixture, const struct rt_sample *sample, u32 direction)
{
	return rt_fixture_change(fixture, &(struct rt_ring){ .more = rt_put_sample, .arg = sample,
				 .taps = { { fixture->ifindex, direction } } });
}

/* Of @sent packets, all are seen, and are filtered, sampled out or passed on and delivered; returns how many of the last. */
static u64 rt_check_parts(const struct rt_fixture *fixture, u64 sent, u64 filtered)
{
	struct rt_ring_counts ring;
	struct rt_queue_counts queues;

	rt_ring_wait(fixture->ring, sent);
	rt_ring_counts(fixture->ring, &ring);
	rt_cluster_counts(fixture->cluster, &queues);
	RT_EQUAL(ring.seen, sent);
	RT_EQUAL(ring.filtered, filtered);
	RT_EQUAL(ring.filtered + ring.sampled_out + ring.passed, sent);
	RT_EQUAL(queues.delivered, ring.passed);
	return queues.delivered;
}

RT_CASE(sample_random)
{
	const struct rt_sample sample = { .n = 10 };
	struct rt_traffic traffic = { .flows = 3 };
	struct rt_fixture fixture;
	struct rt_queue queue;
	u64 kept;

	rt_fixture_open(&fixture, &(struct rt_cluster){});
	RT_EQUAL(rt_set_sample(&fixture, &sample, RINGCAP_DIRECTION_RX), 0);
	rt_queue_open(&queue, fixture.cluster, 0);
	rt_send(fixture.sender, &traffic, 0, 5000);
	kept = rt_check_parts(&fixture, 5000, 0);
	RT_CHECK(kept > 350 && kept < 650, "%llu of 5000 are no tenth", (unsigned long long)kept);
	RT_EQUAL(rt_queue_read(&queue, NULL, NULL), kept);
	rt_queue_close(&queue);
}

#define RT_SAMPLE_FLOWS 400
#define RT_SAMPLE_EACH 6	/* packets of a flow in each direction */

static void rt_count_flow(const struct ringcap_slot *slot, const u8 *packet, void *arg)
{
	u32 *flows = arg, number = rt_packet_number(packet, slot->caplen);

	RT_CHECK(number != UINT32_MAX, "a packet that nobody sent");
	flows[number % RT_SAMPLE_FLOWS]++;
}

/* A flow is in the sample in both directions or not at all, and what is in spreads over all queues. */
RT_CASE(sample_flow)
{
	struct rt_traffic forth = { .flows = RT_SAMPLE_FLOWS }, back = { .flows = RT_SAMPLE_FLOWS, .reverse = true };
	const struct rt_sample sample = { .n = 4, .by = RINGCAP_SAMPLE_FLOW };
	u32 flows[RT_SAMPLE_FLOWS] = {}, in = 0, i, count;
	struct rt_queue queues[4];
	struct rt_fixture fixture;
	u64 kept, total = 0;

	rt_fixture_open(&fixture, &(struct rt_cluster){ .queues = 4 });
	RT_EQUAL(rt_set_sample(&fixture, &sample, RINGCAP_DIRECTION_BOTH), 0);
	for (i = 0; i < 4; i++)
		rt_queue_open(&queues[i], fixture.cluster, i);
	rt_send(fixture.sender, &forth, 0, RT_SAMPLE_EACH * RT_SAMPLE_FLOWS);
	rt_send(fixture.back, &back, 0, RT_SAMPLE_EACH * RT_SAMPLE_FLOWS);
	kept = rt_check_parts(&fixture, 2 * RT_SAMPLE_EACH * RT_SAMPLE_FLOWS, 0);
	for (i = 0; i < 4; i++) {
		count = rt_queue_read(&queues[i], rt_count_flow, flows);
		RT_CHECK(count > kept / 16, "queue %u got %u of %llu", i, count, (unsigned long long)kept);
		total += count;
		rt_queue_close(&queues[i]);
	}
	RT_EQUAL(total, kept);
	for (i = 0; i < RT_SAMPLE_FLOWS; i++) {
		RT_CHECK(!flows[i] || flows[i] == 2 * RT_SAMPLE_EACH, "%u packets of flow %u", flows[i], i);
		in += !!flows[i];
	}
	RT_CHECK(in > 50 && in < 160, "%u of %u flows are no quarter", in, RT_SAMPLE_FLOWS);
}

/* ---- VLANs ---- */

/* Untagged, of id 5, of id 6, of id 100 around 5, and with a priority only. */
static const struct rt_traffic rt_tagged[] = {
	{ .min_len = 68 },
	{ .min_len = 68, .tpid = { 0x8100 }, .tci = { 0xe005 } },
	{ .min_len = 68, .tpid = { 0x8100 }, .tci = { 6 } },
	{ .min_len = 72, .tpid = { 0x88a8, 0x8100 }, .tci = { 100, 5 } },
	{ .min_len = 68, .tpid = { 0x8100 }, .tci = { 0xe000 } },
};

#define RT_KINDS (sizeof(rt_tagged) / sizeof(rt_tagged[0]))

/* Sends 20 of each kind, of which those of the bits of @wanted pass. */
static void rt_try_vlans(const u16 *vlans, u32 nr, u32 direction, u32 wanted)
{
	const struct rt_sample sample = { .vlans = vlans, .nr_vlans = nr };
	u32 pass = (u32)__builtin_popcount(wanted), i;
	struct rt_fixture fixture;
	struct rt_queue queue;

	rt_fixture_open(&fixture, &(struct rt_cluster){});
	RT_EQUAL(rt_set_sample(&fixture, &sample, direction), 0);
	rt_queue_open(&queue, fixture.cluster, 0);
	for (i = 0; i < RT_KINDS; i++)
		rt_send(direction == RINGCAP_DIRECTION_TX ? fixture.back : fixture.sender, &rt_tagged[i], i * 20, 20);
	RT_EQUAL(rt_check_parts(&fixture, 20 * RT_KINDS, 20 * (RT_KINDS - pass)), 20 * pass);
	RT_EQUAL(rt_queue_read(&queue, NULL, NULL), 20 * pass);
	rt_queue_close(&queue);
}

static const u16 rt_vlans_5[] = { 5 }, rt_vlans_untagged[] = { 0 }, rt_vlans_some[] = { 100, 6, 0 };

RT_CASE(vlans_one)
{
	rt_try_vlans(rt_vlans_5, 1, RINGCAP_DIRECTION_RX, 0x02);
}

RT_CASE(vlans_untagged)
{
	rt_try_vlans(rt_vlans_untagged, 1, RINGCAP_DIRECTION_RX, 0x11);
}

RT_CASE(vlans_several)
{
	rt_try_vlans(rt_vlans_some, 3, RINGCAP_DIRECTION_RX, 0x1d);
}

/* What is sent has its tags in the data. */
RT_CASE(vlans_sent)
{
	rt_try_vlans(rt_vlans_some, 3, RINGCAP_DIRECTION_TX, 0x1d);
}

struct rt_shown {
	u32 nr_vlans, n, by, found;
};

static void rt_take_shown(const struct rt_answer *answer, void *arg)
{
	struct rt_shown *shown = arg;

	shown->found++;
	shown->nr_vlans = answer->len[RINGCAP_A_VLANS] / 2u;
	shown->n = rt_answer_u32(answer, RINGCAP_A_SAMPLE);
	shown->by = rt_answer_u32(answer, RINGCAP_A_SAMPLE_BY);
}

/* All VLANs that there are fit into an answer, and into a dump's first one. */
RT_CASE(sample_shown)
{
	struct rt_sample sample = { .n = 3, .by = RINGCAP_SAMPLE_FLOW, .nr_vlans = 4095 };
	static struct rt_message message;
	struct rt_shown shown = {};
	struct rt_fixture fixture;
	static u16 vlans[4095];
	u32 i;

	for (i = 0; i < 4095; i++)
		vlans[i] = (u16)(4094 - i);
	sample.vlans = vlans;
	rt_fixture_open(&fixture, &(struct rt_cluster){});
	RT_EQUAL(rt_set_sample(&fixture, &sample, RINGCAP_DIRECTION_RX), 0);
	rt_message_init(&message, RINGCAP_CMD_RING_GET, 0);
	rt_message_put_name(&message, RINGCAP_A_NAME, fixture.ring);
	RT_EQUAL(rt_call(&message, rt_take_shown, &shown), 0);
	RT_EQUAL(shown.nr_vlans, 4095);
	RT_EQUAL(shown.n, 3);
	RT_EQUAL(shown.by, RINGCAP_SAMPLE_FLOW);
	/* A socket that has received nothing yet. */
	rt_control_open();
	rt_message_init(&message, RINGCAP_CMD_RING_GET, 0x300);
	RT_EQUAL(rt_call(&message, rt_take_shown, &shown), 0);
	RT_EQUAL(shown.found, 2);
	RT_EQUAL(shown.nr_vlans, 4095);
}

RT_CASE(sample_refused)
{
	static const u16 reserved[] = { 5, 4095 };
	static const struct {
		struct rt_sample sample;
		const char *reason;
	} wrong[] = {
		{ { .n = 2, .by = 2 }, "RINGCAP_A_SAMPLE_BY" },
		{ { .by = RINGCAP_SAMPLE_FLOW }, "RINGCAP_A_SAMPLE_BY" },
		{ { .vlans = reserved, .nr_vlans = 2 }, "RINGCAP_A_VLANS" },
		{ { .vlans = reserved, .nr_vlans = 0 }, "RINGCAP_A_VLANS" },
	};
	struct rt_fixture fixture;
	u64 before;
	u32 i;

	rt_fixture_open(&fixture, &(struct rt_cluster){});
	before = rt_control_digest();
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		RT_EQUAL(rt_set_sample(&fixture, &wrong[i].sample, RINGCAP_DIRECTION_RX), -EINVAL);
		RT_CHECK(strstr(rt_reason, wrong[i].reason), "%u: %s", i, rt_reason);
		RT_CHECK(rt_control_digest() == before, "%u: refused, but something changed", i);
	}
}
