// SPDX-License-Identifier: GPL-2.0-only
#include "shunts.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "shunt_flow.h"

#define RETRY_MS	1000	/* after a refusal: the cluster may be changed, and flows end */
#define READ_MS		1000

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* ---------------------------------------------------------------- refusals */

static enum shunts_refusal refusal_of(int err)
{
	return err == -ENOTSUP ? SHUNTS_NO_ENGINE : err == -EPERM ? SHUNTS_NO_RIGHT : err == -EDQUOT ? SHUNTS_NO_QUOTA :
	       SHUNTS_FAILED;
}

static const char *text_of(enum shunts_refusal refusal, int err)
{
	switch (refusal) {
	case SHUNTS_NO_ENGINE:
		return "the kernel module, or the node agent, is older than shunting";
	case SHUNTS_NO_RIGHT:
		return "its ring or cluster gives no right to it (spec.consumers.shunt)";
	case SHUNTS_NO_QUOTA:
		return "as many are shunted as its ring or cluster allows (spec.consumers.shunt)";
	default:
		return strerror(-err);
	}
}

/* If the queue is gone, the next receive says so. */
static void say_once(struct shunts *s, enum shunts_refusal refusal, int err)
{
	if (s->said[refusal] || err == -ENODEV)
		return;
	s->said[refusal] = true;
	s->say(s, text_of(refusal, err));
}

static void refuse(struct shunts *s, int err, uint64_t verdicts)
{
	s->refusal = refusal_of(err);
	s->refused[s->refusal] += verdicts;
	s->refused_until = s->refusal == SHUNTS_NO_ENGINE ? INT64_MAX : now_ms() + RETRY_MS;
	say_once(s, s->refusal, err);
}

static bool is_refused(const struct shunts *s)
{
	return s->refused_until && (s->refused_until == INT64_MAX || now_ms() < s->refused_until);
}

/* ---------------------------------------------------------------- shunting */

static void begin(struct shunts *s, const struct ringcap *queue)
{
	if (s->began)
		return;
	s->began = true;
	ringcap_shunt_stats(queue, &s->start);
	s->last = s->start;
}

static uint64_t weigh(const struct shunts *s, unsigned int from, unsigned int to)
{
	uint64_t verdicts = 0;

	for (; from < to; from++)
		verdicts += s->weight[from];
	return verdicts;
}

void shunts_give(struct shunts *s, struct ringcap *queue)
{
	unsigned int done = 0;
	int taken = 0;

	if (!s->n)
		return;
	begin(s, queue);
	while (done < s->n && (taken = ringcap_shunt(queue, s->batch + done, s->n - done)) > 0)
		done += (unsigned int)taken;
	s->shunting += weigh(s, 0, done);
	if (done < s->n)
		refuse(s, taken, weigh(s, done, s->n));
	s->n = 0;
}

static bool is_last(const struct shunts *s, const struct ringcap_exact *flow)
{
	return s->n && !memcmp(&s->batch[s->n - 1], flow, sizeof(*flow));
}

void shunts_add(struct shunts *s, struct ringcap *queue, const uint8_t *data, uint32_t caplen, uint8_t action)
{
	struct ringcap_exact flow = { .action = action, .idle_s = s->idle_s };

	if (!s->idle_s)
		return;
	if (!shunt_flow_of(data, caplen, &flow)) {
		s->refused[SHUNTS_NO_FLOW]++;
	} else if (is_refused(s)) {
		s->refused[s->refusal]++;
	} else if (is_last(s, &flow)) {
		s->weight[s->n - 1]++;
	} else {
		s->batch[s->n] = flow;
		s->weight[s->n++] = 1;
	}
	if (s->n == SHUNTS_MAX)
		shunts_give(s, queue);
}

bool shunts_add_now(struct shunts *s, struct ringcap *queue, const uint8_t *data, uint32_t caplen, uint8_t action)
{
	uint64_t shunting = s->shunting;

	shunts_add(s, queue, data, caplen, action);
	shunts_give(s, queue);
	return s->shunting != shunting;
}

/* ---------------------------------------------------------------- counters */

void shunts_read_ended(struct shunts *s, struct ringcap *queue, bool now)
{
	struct ringcap_exact_state ended[64];
	int64_t at = s->began ? now_ms() : 0;
	int n;

	if (!s->began || (!now && at < s->read_at))
		return;
	s->read_at = at + READ_MS;
	while ((n = ringcap_shunt_ended(queue, ended, sizeof(ended) / sizeof(*ended), &s->lost)) > 0) {
		s->ended += (uint64_t)n;
		for (int i = 0; i < n; i++) {
			s->ended_packets += ended[i].counts.packets;
			s->ended_bytes += ended[i].counts.bytes;
		}
	}
}

struct ringcap_shunt_stats shunts_stats(struct shunts *s, const struct ringcap *queue)
{
	if (queue && s->began)
		ringcap_shunt_stats(queue, &s->last);
	return (struct ringcap_shunt_stats){ s->last.shunted - s->start.shunted,
					     s->last.shunted_bytes - s->start.shunted_bytes };
}

void shunts_reset(struct shunts *s, const struct ringcap *queue)
{
	shunts_stats(s, queue);
	s->start = s->last;
	s->shunting = s->ended = s->ended_packets = s->ended_bytes = 0;
	memset(s->refused, 0, sizeof(s->refused));
}

static bool has_verdicts(const struct shunts *s)
{
	uint64_t n = s->shunting;

	for (int i = 0; i < SHUNTS_REFUSALS; i++)
		n += s->refused[i];
	return n || s->began;
}

void shunts_report(struct shunts *s, const struct ringcap *queue, FILE *to)
{
	struct ringcap_shunt_stats sum = shunts_stats(s, queue);

	if (!has_verdicts(s))
		return;
	fprintf(to, "ringcap: %s@%u shunted: packets %" PRIu64 ", bytes %" PRIu64 "; flows that ended %" PRIu64 " with packets %" PRIu64
		", bytes %" PRIu64 ", lost %" PRIu64 "; verdicts that shunted %" PRIu64 ", without a flow %" PRIu64
		", without the engine %" PRIu64 ", without the right %" PRIu64 ", above the quota %" PRIu64 ", failed %" PRIu64 "\n",
		s->about->name, s->about->queue, sum.shunted, sum.shunted_bytes, s->ended, s->ended_packets, s->ended_bytes, s->lost,
		s->shunting, s->refused[SHUNTS_NO_FLOW], s->refused[SHUNTS_NO_ENGINE], s->refused[SHUNTS_NO_RIGHT],
		s->refused[SHUNTS_NO_QUOTA], s->refused[SHUNTS_FAILED]);
}
