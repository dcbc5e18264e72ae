// SPDX-License-Identifier: BSD-2-Clause
#include "rcount.h"

#include <inttypes.h>
#include <poll.h>
#include <string.h>

#define COUNTING_MS 100	/* longer than a CPU needs to count a packet that it has published */

static const char *const drop_names[RINGCAP_DROP_REASONS] = {
	[RINGCAP_DROP_FULL] = "full",
	[RINGCAP_DROP_UNATTENDED] = "unattended",
	[RINGCAP_DROP_NOMEM] = "nomem",
	[RINGCAP_DROP_HUNG] = "hung",
};

/* Loads a counter of a thread that is still counting. */
static uint64_t load(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

static void add_totals(struct totals *sum, const struct totals *t)
{
	uint64_t first = load(&t->first_ns), last = load(&t->last_ns);

	sum->packets += load(&t->packets);
	sum->bytes += load(&t->bytes);
	sum->captured += load(&t->captured);
	if (first && (!sum->first_ns || first < sum->first_ns))
		sum->first_ns = first;
	if (last > sum->last_ns)
		sum->last_ns = last;
}

static void add_stats(struct ringcap_stats *sum, struct ringcap *queue)
{
	struct ringcap_stats stats;

	ringcap_stats(queue, &stats);
	sum->delivered += stats.delivered;
	sum->delivered_bytes += stats.delivered_bytes;
	sum->truncated += stats.truncated;
	sum->truncated_bytes += stats.truncated_bytes;
	for (int i = 0; i < RINGCAP_DROP_REASONS; i++)
		sum->dropped[i] += stats.dropped[i];
}

void report_sum(const struct reader *readers, int n, struct totals *totals, struct ringcap_stats *stats)
{
	memset(totals, 0, sizeof(*totals));
	if (stats)
		memset(stats, 0, sizeof(*stats));
	for (int i = 0; i < n; i++) {
		add_totals(totals, &readers[i].totals);
		if (stats)
			add_stats(stats, readers[i].queue);
	}
}

/* Prints the truncated packets. Prints nothing if there are none. */
static void print_truncated(FILE *to, const struct ringcap_stats *stats)
{
	if (stats->truncated)
		fprintf(to, ", truncated %" PRIu64 " by %" PRIu64 " bytes", stats->truncated, stats->truncated_bytes);
}

void report_second(const struct reader *readers, int n, const struct totals *before, double seconds)
{
	struct ringcap_stats stats;
	struct totals now;

	report_sum(readers, n, &now, &stats);
	printf("%10.0f pkt/s %9.3f Mbit/s   total %" PRIu64 " packets %" PRIu64 " bytes, dropped", (double)(now.packets -
	       before->packets) / seconds, (double)(now.bytes - before->bytes) * 8e-6 / seconds, now.packets, now.bytes);
	for (int i = 0; i < RINGCAP_DROP_REASONS; i++)
		if (drop_names[i])
			printf(" %s %" PRIu64, drop_names[i], stats.dropped[i]);
	print_truncated(stdout, &stats);
	printf("\n");
	fflush(stdout);
}

static void print_dropped_json(const struct ringcap_stats *stats)
{
	printf("\"dropped\":{");
	for (int i = 0, n = 0; i < RINGCAP_DROP_REASONS; i++)
		if (drop_names[i])
			printf("%s\"%s\":%" PRIu64, n++ ? "," : "", drop_names[i], stats->dropped[i]);
	printf("}");
}

/* Sums up what consumers have shunted, of the queues that tell it now. */
static void sum_shunted(const struct reader *readers, int n, struct ringcap_shunt_stats *sum)
{
	memset(sum, 0, sizeof(*sum));
	for (int i = 0; i < n; i++) {
		struct ringcap_shunt_stats stats;

		if (ringcap_shunt_stats(readers[i].queue, &stats))
			continue;
		sum->shunted += stats.shunted;
		sum->shunted_bytes += stats.shunted_bytes;
	}
}

static void print_shunted_json(const struct reader *readers, int n)
{
	struct ringcap_shunt_stats shunted;

	sum_shunted(readers, n, &shunted);
	printf(",\"shunted\":%" PRIu64 ",\"shuntedBytes\":%" PRIu64, shunted.shunted, shunted.shunted_bytes);
}

/* Prints nothing if there are none. */
static void print_shunted(FILE *to, const struct reader *readers, int n)
{
	struct ringcap_shunt_stats shunted;

	sum_shunted(readers, n, &shunted);
	if (shunted.shunted)
		fprintf(to, ", shunted %" PRIu64, shunted.shunted);
}

static void print_ring_json(struct ringcap *queue)
{
	struct ringcap_ring_stats ring;

	if (!ringcap_ring_stats(queue, &ring))
		printf(",\"ring\":{\"seen\":%" PRIu64 ",\"seenBytes\":%" PRIu64 ",\"filtered\":%" PRIu64 ",\"sampledOut\":%" PRIu64
		       ",\"passed\":%" PRIu64 "}", ring.seen, ring.seen_bytes, ring.filtered, ring.sampled_out, ring.passed);
}

static void print_queues_json(const struct reader *readers, int n)
{
	printf(",\"queues\":[");
	for (int i = 0; i < n; i++) {
		struct ringcap_stats stats = { 0 };

		add_stats(&stats, readers[i].queue);
		printf("%s{\"queue\":%d,\"packets\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"delivered\":%" PRIu64 ",", i ? "," : "", i,
		       readers[i].totals.packets, readers[i].totals.bytes, stats.delivered);
		print_dropped_json(&stats);
		printf("}");
	}
	printf("]");
}

/* Returns the number of packets that earlier consumers left and that opening skipped. */
static uint64_t sum_skipped(const struct reader *readers, int n)
{
	uint64_t sum = 0;

	for (int i = 0; i < n; i++)
		sum += ringcap_skipped(readers[i].queue);
	return sum;
}

static void print_json(const struct reader *readers, int n, const struct totals *t, const struct ringcap_stats *stats)
{
	struct ringcap_queue q;

	ringcap_queue(readers[0].queue, &q);
	printf("{\"name\":\"%s\",\"queue\":%" PRIu32 ",\"engine\":\"%s\",\"packets\":%" PRIu64 ",\"bytes\":%" PRIu64
	       ",\"capturedBytes\":%" PRIu64 ",\"firstNs\":%" PRIu64 ",\"lastNs\":%" PRIu64, q.name, q.queue, q.engine,
	       t->packets, t->bytes, t->captured, t->first_ns, t->last_ns);
	printf(",\"skipped\":%" PRIu64 ",\"delivered\":%" PRIu64 ",\"deliveredBytes\":%" PRIu64 ",\"truncated\":%" PRIu64
	       ",\"truncatedBytes\":%" PRIu64 ",", sum_skipped(readers, n), stats->delivered, stats->delivered_bytes,
	       stats->truncated, stats->truncated_bytes);
	print_dropped_json(stats);
	print_shunted_json(readers, n);
	print_ring_json(readers[0].queue);
	if (n > 1)
		print_queues_json(readers, n);
	printf("}\n");
}

static void print_text(FILE *to, const struct reader *readers, int n, const struct totals *t, const struct ringcap_stats *stats)
{
	struct ringcap_ring_stats ring;
	struct ringcap_queue q;

	for (int i = 0; n > 1 && i < n; i++)
		fprintf(to, "queue %d: read %" PRIu64 " packets, %" PRIu64 " bytes\n", i, readers[i].totals.packets,
			readers[i].totals.bytes);
	ringcap_queue(readers[0].queue, &q);
	fprintf(to, "%s@%" PRIu32 " (%s): read %" PRIu64 " packets, %" PRIu64 " bytes; the queue since it was made: delivered %"
		PRIu64, q.name, q.queue, q.engine, t->packets, t->bytes, stats->delivered);
	for (int i = 0; i < RINGCAP_DROP_REASONS; i++)
		if (drop_names[i])
			fprintf(to, ", %s %" PRIu64, drop_names[i], stats->dropped[i]);
	print_truncated(to, stats);
	print_shunted(to, readers, n);
	if (sum_skipped(readers, n))
		fprintf(to, "; %" PRIu64 " that an earlier consumer left were skipped (RINGCAP_UNREAD=take reads them)",
			sum_skipped(readers, n));
	if (!ringcap_ring_stats(readers[0].queue, &ring))
		fprintf(to, "; the ring: seen %" PRIu64 ", filtered %" PRIu64 ", sampled out %" PRIu64 ", passed %" PRIu64, ring.seen,
			ring.filtered, ring.sampled_out, ring.passed);
	fprintf(to, "\n");
}

/* Called after reading has ended. The queues' counters include what was read, if not yet, then soon (ringcap_stats). */
static void sum_up(const struct reader *readers, int n, struct totals *totals, struct ringcap_stats *stats)
{
	report_sum(readers, n, totals, stats);
	for (int ms = 0; ms < COUNTING_MS && (stats->delivered < totals->packets || stats->delivered_bytes < totals->captured); ms++) {
		poll(NULL, 0, 1);
		report_sum(readers, n, totals, stats);
	}
}

void report_end(const struct options *o, const struct reader *readers, int n)
{
	bool to_stdout = !o->dump_path || strcmp(o->dump_path, "-");
	struct ringcap_stats stats;
	struct totals totals;

	sum_up(readers, n, &totals, &stats);
	if (o->json)
		print_json(readers, n, &totals, &stats);
	else
		print_text(to_stdout ? stdout : stderr, readers, n, &totals, &stats);
}
