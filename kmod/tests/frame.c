// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include "frame.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include "fixture.h"

#define RT_NUMBER_MAGIC 0x52434e4fU

/* ---- building ---- */

void rt_frame_push(struct rt_frame *frame, const void *bytes, u32 len)
{
	frame->data -= len;
	RT_CHECK(frame->data >= frame->room, "a packet too long for this test");
	frame->len += len;
	memcpy(frame->data, bytes, len);
}

void rt_frame_begin(struct rt_frame *frame, u32 number, u32 payload)
{
	u32 tail[2] = { htonl(RT_NUMBER_MAGIC), htonl(number) }, i;

	frame->data = frame->room + sizeof(frame->room);
	frame->len = 0;
	rt_frame_push(frame, tail, sizeof(tail));
	for (i = sizeof(tail); i < payload; i++)
		rt_frame_push(frame, &(u8){ (u8)(number + i) }, 1);
}

static void rt_frame_push16(struct rt_frame *frame, u16 value)
{
	rt_frame_push(frame, &(u16){ htons(value) }, 2);
}

void rt_frame_push_tcp(struct rt_frame *frame, const struct rt_ends *ends)
{
	static const u8 rest[16] = { [8] = 0x50, [9] = 0x10 };

	rt_frame_push(frame, rest, sizeof(rest));
	rt_frame_push16(frame, ends->dport);
	rt_frame_push16(frame, ends->sport);
}

void rt_frame_push_udp(struct rt_frame *frame, const struct rt_ends *ends)
{
	rt_frame_push16(frame, 0);
	rt_frame_push16(frame, (u16)(frame->len + 6));
	rt_frame_push16(frame, ends->dport);
	rt_frame_push16(frame, ends->sport);
}

static u16 rt_checksum(const u8 *bytes, u32 len)
{
	u32 sum = 0, i;

	for (i = 0; i < len; i += 2)
		sum += (u32)(bytes[i] << 8 | bytes[i + 1]);
	return (u16)~((sum & 0xffff) + (sum >> 16));
}

void rt_frame_push_ipv4(struct rt_frame *frame, const struct rt_ends *ends, u8 proto)
{
	u8 header[20] = { 0x45, [8] = 64, [9] = proto };
	u32 addresses[2] = { htonl(ends->saddr), htonl(ends->daddr) };
	u16 len = htons((u16)(frame->len + sizeof(header))), sum;

	memcpy(header + 2, &len, 2);
	memcpy(header + 12, addresses, sizeof(addresses));
	sum = htons(rt_checksum(header, sizeof(header)));
	memcpy(header + 10, &sum, 2);
	rt_frame_push(frame, header, sizeof(header));
}

void rt_frame_push_ipv6(struct rt_frame *frame, const struct rt_ends *ends, u8 proto)
{
	u8 header[40] = { 0x60, [6] = proto, [7] = 64, [8] = 0xfd, [24] = 0xfd };
	u32 saddr = htonl(ends->saddr), daddr = htonl(ends->daddr);
	u16 len = htons((u16)frame->len);

	memcpy(header + 4, &len, 2);
	memcpy(header + 20, &saddr, 4);
	memcpy(header + 36, &daddr, 4);
	rt_frame_push(frame, header, sizeof(header));
}

void rt_frame_push_ethernet(struct rt_frame *frame, u16 type)
{
	static const u8 macs[12] = { 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1 };

	rt_frame_push16(frame, type);
	rt_frame_push(frame, macs, sizeof(macs));
}

void rt_frame_send(int sender, const struct rt_frame *frame)
{
	while (send(sender, frame->data, frame->len, 0) != (ssize_t)frame->len)
		RT_CHECK(errno == ENOBUFS || errno == EAGAIN, "sending %u bytes: %m", frame->len);
}

struct rt_ends rt_ends_reverse(const struct rt_ends *ends)
{
	return (struct rt_ends){ ends->daddr, ends->saddr, ends->dport, ends->sport };
}

/* ---- the model ---- */

void rt_model_open(struct rt_model *model, const struct rt_cluster *cluster, u32 last)
{
	int err;
	u32 i;

	memset(model, 0, sizeof(*model));
	model->cluster = cluster;
	model->last = last;
	model->seen = calloc(last, sizeof(u32));
	model->wanted = calloc(last, sizeof(u32));
	model->hash = calloc(last, sizeof(u32));
	RT_CHECK(model->seen && model->wanted && model->hash, "no memory");
	err = rt_cluster_set(cluster);
	RT_CHECK(!err, "%s: %s (%s)", cluster->name, strerror(-err), rt_reason);
	for (i = 0; i < cluster->queues; i++)
		rt_queue_open(&model->queues[i], cluster->name, i);
}

void rt_model_flow(const u8 *packet, u32 len, bool inner, struct rc_flow *flow)
{
	static __thread u8 copy[RC_INNER_MAX];
	struct rc_frame frame = { .data = copy, .avail = len < RC_INNER_MAX ? len : RC_INNER_MAX };
	struct rc_inner inside;

	memcpy(copy, packet, frame.avail);
	rc_parse(&frame, flow);
	if (inner && rc_parse_inner(&frame, flow, &inside))
		*flow = inside.found.flow;
}

/* Bits of the queues that a packet should go to; checks that its slot's hash leads there. */
static u32 rt_model_wants(const struct rt_model *model, const struct ringcap_slot *slot, const u8 *packet)
{
	const struct rt_cluster *cluster = model->cluster;
	struct rc_flow flow;
	u32 hash, ends[2];
	rc_u64 key[2];

	if (cluster->balance == RINGCAP_BALANCE_RX_QUEUE)
		return 1U << slot->rx_queue % cluster->queues;
	rt_model_flow(packet, slot->caplen, cluster->inner, &flow);
	rc_key_load(cluster->key, key);
	RT_CHECK(slot->flags & RINGCAP_SLOT_HASHED, "not hashed");
	if (cluster->balance == RINGCAP_BALANCE_BOTH_ENDS) {
		rc_end_hashes(&flow, key, ends);
		RT_CHECK(slot->hash == ends[0] || slot->hash == ends[1], "hash %x of neither end", slot->hash);
		return 1U << rc_queue(ends[0], cluster->queues) | 1U << rc_queue(ends[1], cluster->queues);
	}
	hash = rc_flow_hash(&flow, rc_flow_balance(&flow, cluster->balance), key);
	RT_EQUAL(slot->hash, hash);
	return 1U << rc_queue(hash, cluster->queues);
}

static void rt_model_take(const struct ringcap_slot *slot, const u8 *packet, void *arg)
{
	struct rt_model *model = arg;
	u32 number = rt_packet_number(packet, slot->caplen), bit = 1U << model->at;

	RT_CHECK(number < model->last, "%s: a packet of %u bytes that nobody sent", model->cluster->name, slot->len);
	RT_CHECK(!(model->seen[number] & bit), "%s: packet %u twice in queue %u", model->cluster->name, number, model->at);
	model->wanted[number] = rt_model_wants(model, slot, packet);
	model->seen[number] |= bit;
	model->hash[number] = slot->hash;
	RT_CHECK(model->wanted[number] & bit, "%s: packet %u in queue %u instead of %x", model->cluster->name, number, model->at,
		 model->wanted[number]);
	model->count++;
}

void rt_model_read(struct rt_model *model)
{
	for (model->at = 0; model->at < model->cluster->queues; model->at++)
		rt_queue_read(&model->queues[model->at], rt_model_take, model);
}

void rt_model_check(struct rt_model *model)
{
	u32 number;

	for (number = 0; number < model->last; number++) {
		RT_CHECK(model->seen[number], "%s: packet %u was lost", model->cluster->name, number);
		RT_CHECK(model->seen[number] == model->wanted[number], "%s: packet %u in queues %x instead of %x",
			 model->cluster->name, number, model->seen[number], model->wanted[number]);
	}
}

void rt_model_close(struct rt_model *model)
{
	u32 i;

	for (i = 0; i < model->cluster->queues; i++)
		rt_queue_close(&model->queues[i]);
	free(model->seen);
	free(model->wanted);
	free(model->hash);
}
