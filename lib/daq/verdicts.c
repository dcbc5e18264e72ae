// SPDX-License-Identifier: BSD-2-Clause
#include "verdicts.h"

#include <errno.h>
#include <time.h>

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* Without memory for the packet that replaces another, neither leaves. */
static bool block_instead(struct verdicts *v, struct ringcap_verdict *verdict)
{
	if (verdict->verdict != RINGCAP_VERDICT_REPLACE)
		return false;
	*verdict = (struct ringcap_verdict){ .position = verdict->position, .verdict = RINGCAP_VERDICT_BLOCK };
	v->unreplaced++;
	return true;
}

void verdicts_give(struct verdicts *v, struct ringcap *queue)
{
	unsigned int done = 0, missed;
	int taken;

	while (done < v->n) {
		taken = ringcap_verdicts(queue, v->batch + done, v->n - done, &missed);
		if (taken < 0 && (taken != -ENOMEM || !block_instead(v, &v->batch[done])))
			break;
		done += taken > 0 ? (unsigned int)taken : 0;
		v->missed += missed;
	}
	v->given += done;
	v->n = 0;
}

void verdicts_add(struct verdicts *v, struct ringcap *queue, const struct ringcap_verdict *verdict)
{
	uint64_t now = now_ns();

	if (!v->n)
		v->since = now;
	v->batch[v->n++] = *verdict;
	if (v->n == VERDICTS_MAX || now - v->since >= VERDICTS_NS_MAX)
		verdicts_give(v, queue);
}

int verdicts_inject(struct verdicts *v, struct ringcap *queue, const struct ringcap_verdict *packet)
{
	unsigned int missed;
	int taken;

	verdicts_give(v, queue);
	taken = ringcap_verdicts(queue, packet, 1, &missed);
	return taken < 0 ? taken : missed ? -ESRCH : 0;
}
