// SPDX-License-Identifier: BSD-2-Clause
/*
 * rcount: reads ringcap queues and reports how many packets came; see rcount(1).
 */
#include "rcount.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 64 };

static struct reader readers[READERS_MAX];
static int nr_readers;
static volatile sig_atomic_t stopped;

static void stop_all(void)
{
	stopped = 1;
	for (int i = 0; i < nr_readers; i++)
		if (readers[i].queue)
			ringcap_wakeup(readers[i].queue);
}

static void on_signal(int signal)
{
	(void)signal;
	stop_all();
}

static int list(void)
{
	struct ringcap_device *devices;
	int n = ringcap_list(NULL, 0);

	devices = n > 0 ? calloc((size_t)n, sizeof(*devices)) : NULL;
	if (n < 0 || (n > 0 && !devices)) {
		fprintf(stderr, "rcount: out of memory\n");
		return 1;
	}
	if (n > 0 && ringcap_list(devices, (size_t)n) < n)
		n = 0;	/* was taken away meanwhile */
	for (int i = 0; i < n; i++)
		printf("%s@%" PRIu32 "\n", devices[i].name, devices[i].queue);
	free(devices);
	return 0;
}

/* ---- reading ---- */

static void store(uint64_t *counter, uint64_t value)
{
	__atomic_store_n(counter, value, __ATOMIC_RELAXED);
}

static void count(struct reader *r, const struct ringcap_pkt *pkts, int n)
{
	uint64_t bytes = 0, captured = 0;
	struct totals *t = &r->totals;

	for (int i = 0; i < n; i++) {
		bytes += pkts[i].slot->len;
		captured += pkts[i].slot->caplen;
		if (r->dump)
			dump_packet(r->dump, pkts[i].slot, pkts[i].data);
	}
	if (!t->packets)
		store(&t->first_ns, pkts[0].slot->ts_ns);
	store(&t->bytes, t->bytes + bytes);
	store(&t->captured, t->captured + captured);
	store(&t->last_ns, pkts[n - 1].slot->ts_ns);
	store(&t->packets, t->packets + (uint64_t)n);
}

/* Reads one batch. Returns 0 or -errno. */
static int read_batch(struct reader *r, uint64_t limit, int timeout_ms)
{
	struct ringcap_pkt pkts[BATCH];
	int n = ringcap_recv(r->queue, pkts, limit < BATCH ? (unsigned int)limit : BATCH, timeout_ms);

	if (n <= 0)
		return n == -EINTR ? 0 : n;
	count(r, pkts, n);
	ringcap_release(r->queue, (unsigned int)n);
	if (r->dump && !dump_flush(r->dump))
		return -EIO;
	if (r->options->slow_us)
		usleep(r->options->slow_us);
	return 0;
}

/* Returns true if all readers together have read enough. With several readers, this is approximate. */
static bool enough(const struct options *o)
{
	struct totals sum;

	if (!o->count)
		return false;
	report_sum(readers, nr_readers, &sum, NULL);
	return sum.packets >= o->count;
}

static void *read_on(void *arg)
{
	struct reader *r = arg;

	while (!stopped && !r->err) {
		r->err = read_batch(r, BATCH, 1000);
		if (enough(r->options))
			stop_all();
	}
	if (r->err)
		stop_all();
	return NULL;
}

/* ---- a line a second ---- */

struct clock {
	uint64_t line, end;
	struct totals before;
};

static void clock_start(struct clock *c, const struct options *o)
{
	*c = (struct clock){ .line = now_ns() };
	c->end = o->seconds > 0 ? c->line + (uint64_t)(o->seconds * NSEC) : UINT64_MAX;
}

/* Returns the milliseconds until the next action is due. */
static int clock_wait(const struct clock *c)
{
	uint64_t now = now_ns(), next = c->end < c->line + NSEC ? c->end : c->line + NSEC;

	return next > now ? (int)((next - now) / 1000000) + 1 : 0;
}

/* Returns false when the time is up. */
static bool clock_tick(struct clock *c, const struct options *o)
{
	uint64_t now = now_ns();

	if (now >= c->line + NSEC) {
		if (!o->quiet && !o->verbose && !(o->dump_path && !strcmp(o->dump_path, "-")))
			report_second(readers, nr_readers, &c->before, (double)(now - c->line) / NSEC);
		report_sum(readers, nr_readers, &c->before, NULL);
		c->line = now;
	}
	return now < c->end;
}

static void run_one(const struct options *o)
{
	struct reader *r = &readers[0];
	struct clock clock;

	clock_start(&clock, o);
	while (!stopped && !r->err && (!o->count || r->totals.packets < o->count)) {
		r->err = read_batch(r, o->count ? o->count - r->totals.packets : BATCH, clock_wait(&clock));
		if (!clock_tick(&clock, o))
			break;
	}
}

static void run_many(const struct options *o)
{
	pthread_t threads[READERS_MAX];
	struct clock clock;
	int started = 0;

	clock_start(&clock, o);
	for (; started < nr_readers; started++) {
		pthread_attr_t attr;
		cpu_set_t set;

		pthread_attr_init(&attr);
		CPU_ZERO(&set);
		if (readers[started].cpu >= 0) {
			CPU_SET((unsigned int)readers[started].cpu, &set);
			pthread_attr_setaffinity_np(&attr, sizeof(set), &set);
		}
		readers[started].err = -pthread_create(&threads[started], &attr, read_on, &readers[started]);
		pthread_attr_destroy(&attr);
		if (readers[started].err)
			break;
	}
	while (!stopped && started == nr_readers && clock_tick(&clock, o)) {
		int wait = clock_wait(&clock);

		usleep((unsigned int)(wait < 20 ? wait : 20) * 1000);
	}
	stop_all();
	while (started-- > 0)
		pthread_join(threads[started], NULL);
}

/* ---- */

static bool bind_readers(const struct options *o)
{
	cpu_set_t set;

	for (int i = 0; i < nr_readers; i++)
		readers[i].cpu = o->nr_cpus ? (int)o->cpus[(unsigned int)i % o->nr_cpus] : -1;
	if (!o->nr_cpus || nr_readers > 1)
		return true;
	CPU_ZERO(&set);
	CPU_SET(o->cpus[0], &set);
	if (!sched_setaffinity(0, sizeof(set), &set))
		return true;
	fprintf(stderr, "rcount: CPU %u: %s\n", o->cpus[0], strerror(errno));
	return false;
}

static int say_errors(void)
{
	int status = 0;

	for (int i = 0; i < nr_readers; i++) {
		struct ringcap_queue q;

		if (!readers[i].err)
			continue;
		status = 1;
		ringcap_queue(readers[i].queue, &q);
		fprintf(stderr, "rcount: %s@%" PRIu32 ": %s\n", q.name, q.queue, readers[i].err == -ENODEV ?
			"the queue was deleted, or taken back from this consumer" : strerror(-readers[i].err));
	}
	return status;
}

static int capture(const struct options *o)
{
	struct ringcap_queue q;

	for (int i = 0; i < nr_readers; i++)
		readers[i].options = o;
	ringcap_queue(readers[0].queue, &q);
	if (o->dump_path || o->verbose) {
		readers[0].dump = dump_open(o, q.snaplen);
		if (!readers[0].dump)
			return 1;
	}
	if (!bind_readers(o))
		return 1;
	(nr_readers > 1 ? run_many : run_one)(o);
	report_end(o, readers, nr_readers);
	if (readers[0].dump && !dump_close(readers[0].dump))
		return 1;
	return say_errors();
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_signal };
	static struct options options;
	int status = options_parse(argc, argv, &options);

	if (status)
		return status - 1;
	if (options.list)
		return list();
	nr_readers = readers_open(&options, readers);
	if (nr_readers < 0)
		return 1;
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	status = capture(&options);
	/* The first reader has the capture from which the others read, so it is closed last. */
	while (nr_readers-- > 0)
		ringcap_close(readers[nr_readers].queue);
	return status;
}
