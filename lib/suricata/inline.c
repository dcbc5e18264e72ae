// SPDX-License-Identifier: GPL-2.0-only
/*
 * In line: a packet waits in the kernel until Suricata releases it, and then the action that Suricata has set is its
 * verdict. Rules and the TCP engine change packets in place, and the queue's memory is read-only, so Suricata gets a
 * copy. A packet that it did not change leaves as it is, and not as the copy.
 */
#include "capture.h"

#include "action-globals.h"
#include "packet.h"

/* A packet that waits: the plugin's own memory in Suricata's packet. */
struct held {
	struct reader *reader;
	uint64_t position;
	bool cut;		/* the ring's snap length has shortened the copy */
};

_Static_assert(sizeof(struct held) <= PLUGIN_VAR_SIZE, "Suricata has room for it");

static void give(struct reader *reader, uint64_t position, uint8_t kind)
{
	struct ringcap_verdict verdict = { .position = position, .verdict = kind };

	verdicts_add(&reader->verdicts, reader->queue, &verdict);
}

static void block(struct reader *reader, uint64_t position)
{
	reader->blocked++;
	give(reader, position, RINGCAP_VERDICT_BLOCK);
}

static void pass(struct reader *reader, uint64_t position)
{
	reader->passed++;
	give(reader, position, RINGCAP_VERDICT_PASS);
}

/* At once, because Suricata uses the packet's memory again. What the ring has cut off cannot leave with the rest. */
static void replace(struct reader *reader, const struct held *held, const Packet *p)
{
	struct ringcap_verdict verdict = { .position = held->position, .verdict = RINGCAP_VERDICT_REPLACE,
					   .data = (uint64_t)(uintptr_t)GET_PKT_DATA(p), .len = GET_PKT_LEN(p) };

	if (held->cut) {
		reader->cut++;
		block(reader, held->position);
		return;
	}
	reader->replaced++;
	verdicts_add(&reader->verdicts, reader->queue, &verdict);
	verdicts_give(&reader->verdicts, reader->queue);
}

static void decide(const struct held *held, const Packet *p)
{
	struct reader *reader = held->reader;

	if (PacketCheckAction(p, ACTION_REJECT_ANY))
		reject_answer(reader, p, held->position);
	if (PacketCheckAction(p, ACTION_DROP))
		block(reader, held->position);
	else if (p->flags & PKT_STREAM_MODIFIED)
		replace(reader, held, p);
	else
		pass(reader, held->position);
}

/* Suricata calls it once for each packet, when all of the packet's work is done, in the worker's thread. */
static void release(Packet *p)
{
	struct held held;

	memcpy(&held, p->plugin_v, sizeof(held));
	decide(&held, p);
	PacketFreeOrRelease(p);
}

bool inline_take(struct reader *reader, Packet *p, const struct ringcap_slot *slot)
{
	struct held held = { .reader = reader, .position = ringcap_position(reader->queue, slot),
			     .cut = slot->caplen < slot->len };

	if (PacketCopyData(p, ringcap_data(slot), slot->caplen))
		return false;
	memcpy(p->plugin_v, &held, sizeof(held));
	p->ReleasePacket = release;
	return true;
}

void inline_pass(struct reader *reader, const struct ringcap_slot *slot)
{
	pass(reader, ringcap_position(reader->queue, slot));
}

void inline_print(const struct reader *reader)
{
	const struct verdicts *v = &reader->verdicts;

	SCLogPerf("(%s) ringcap: %s@%u in line: passed %" PRIu64 ", blocked %" PRIu64 ", replaced %" PRIu64
		  ", blocked instead of replaced %" PRIu64 "; verdicts %" PRIu64 ", too late %" PRIu64
		  "; answers %" PRIu64 ", not sent %" PRIu64, reader->tv->name, reader->about.name, reader->about.queue,
		  reader->passed, reader->blocked, reader->replaced, reader->cut + v->unreplaced, v->given, v->missed,
		  reader->injected, reader->not_injected);
}

void inline_flush(struct reader *reader)
{
	verdicts_give(&reader->verdicts, reader->queue);
}
