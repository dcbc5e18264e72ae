// SPDX-License-Identifier: GPL-2.0-only
/*
 * Flows that Suricata bypasses (stream.bypass, the keyword bypass, encryption-handling) are shunted, if the queue's ring
 * or cluster lets its consumers do that: the kernel module keeps the rest of the flow away from this Suricata. Otherwise
 * Suricata bypasses the flow itself: it gets the packets, and does not look at them.
 */
#include "capture.h"

#include "packet.h"

/* Suricata gives the callback nothing but the packet, and calls it in the worker that has it. */
static __thread struct reader *worker;

static void say(const struct shunts *s, const char *why)
{
	SCLogNotice("ringcap: %s@%u: not every bypassed flow is shunted: %s. Suricata bypasses them itself", s->about->name,
		    s->about->queue, why);
}

/* Returns whether the rest of the flow does not come any more. What a tunnel has inside, others may want to see. */
static int bypass(Packet *p)
{
	struct reader *reader = worker;

	if (!reader || PacketIsTunnel(p))
		return 0;
	return shunts_add_now(&reader->shunts, reader->queue, GET_PKT_DATA(p), GET_PKT_LEN(p), RINGCAP_ACTION_DROP);
}

/* In line, the flow's packets would have to go on. */
void bypass_init(struct reader *reader, const struct input *input)
{
	bool on = input->bypass && !ringcap_is_inline(reader->queue);

	reader->shunts = (struct shunts){ .idle_s = on ? input->bypass_idle_s : 0, .about = &reader->about, .say = say };
}

void bypass_enter(struct reader *reader)
{
	worker = reader;
}

void bypass_offer(const struct reader *reader, Packet *p)
{
	if (reader->shunts.idle_s)
		p->BypassPacketsFlow = bypass;
}
