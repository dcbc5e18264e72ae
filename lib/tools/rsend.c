// SPDX-License-Identifier: BSD-2-Clause
/*
 * rsend: sends a capture file, or packets that it generates, from a ringcap queue; see rsend(1).
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <net/if.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <ringcap/ringcap.h>

#include "capture_file.h"
#include "monotonic.h"
#include "number.h"

enum { BATCH = 64, LEN_MIN = 60, LEN_MAX = 65535, WAIT_US = 100 };

struct options {
	const char *name;	/* name of a queue or of an interface */
	const char *file;	/* NULL = generated packets */
	const char *out;	/* the interface to send from, if several are granted */
	uint64_t count;		/* packets, 0 = no limit */
	uint64_t loops;		/* repetitions of the file, 0 = no limit */
	double rate;		/* packets per second, 0 = as fast as possible */
	uint32_t size, flows;	/* of generated packets */
	bool interface, quiet, json;
};

static struct ringcap *queue;
static volatile sig_atomic_t stopped;

static void on_signal(int signal)
{
	(void)signal;
	stopped = 1;
}

/* ---------------------------------------------------------------- arguments */

static void usage(FILE *to)
{
	fputs("usage: rsend [-jq] [-c packets] [-r packets/s] [-l times] [-o interface] NAME[@QUEUE] [FILE]\n"
	      "       rsend [-jq] [-c packets] [-r packets/s] [-l times] -i INTERFACE [FILE]\n"
	      "  -i, --interface    INTERFACE instead of a queue: for root, ad hoc\n"
	      "  -c, --count N      stop after N packets (without FILE 1 unless said otherwise)\n"
	      "  -r, --rate N       N packets a second instead of as many as go\n"
	      "  -l, --loop N       send FILE N times, 0 = without end\n"
	      "  -o, --out IF       out of this one of the interfaces that the queue may send out of\n"
	      "  -s, --size N       without FILE: bytes of a packet, 60 to 65535\n"
	      "  -f, --flows N      without FILE: so many flows of UDP in turns\n"
	      "  -q, --quiet        no line a second, only the summary\n"
	      "  -j, --json         the summary as one JSON object\n", to);
}

static bool parse_option(int option, const char *arg, struct options *o)
{
	double v = 0;

	switch (option) {
	case 'c':
		o->count = parse_number(arg, 1e18, &v) ? (uint64_t)v : 0;
		return o->count > 0;
	case 'r':
		return parse_number(arg, 1e9, &o->rate) && o->rate > 0;
	case 'l':
		if (!parse_number(arg, 1e18, &v))
			return false;
		o->loops = (uint64_t)v;
		return true;
	case 's':
		o->size = parse_number(arg, LEN_MAX, &v) ? (uint32_t)v : 0;
		return o->size >= LEN_MIN;
	case 'f':
		o->flows = parse_number(arg, 1e6, &v) ? (uint32_t)v : 0;
		return o->flows > 0;
	case 'o':
		o->out = arg;
		return true;
	case 'i':
		o->interface = true;
		return true;
	case 'q':
		o->quiet = true;
		return true;
	case 'j':
		o->json = o->quiet = true;
		return true;
	}
	return false;
}

static bool parse(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {
		{ "count", required_argument, NULL, 'c' }, { "rate", required_argument, NULL, 'r' },
		{ "loop", required_argument, NULL, 'l' },  { "size", required_argument, NULL, 's' },
		{ "flows", required_argument, NULL, 'f' }, { "out", required_argument, NULL, 'o' },
		{ "interface", no_argument, NULL, 'i' },   { "quiet", no_argument, NULL, 'q' },
		{ "json", no_argument, NULL, 'j' },	   { "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int option;

	while ((option = getopt_long(argc, argv, "c:r:l:s:f:o:iqjh", longs, NULL)) != -1) {
		if (option == 'h') {
			usage(stdout);
			exit(0);
		}
		if (option == '?')
			return false;
		if (!parse_option(option, optarg, o)) {
			fprintf(stderr, "rsend: '%s' is not a value for -%c\n", optarg, option);
			return false;
		}
	}
	if (optind >= argc || argc - optind > 2)
		return false;
	o->name = argv[optind];
	o->file = optind + 1 < argc ? argv[optind + 1] : NULL;
	if (!o->file && !o->count)
		o->count = 1;
	return true;
}

/* ---------------------------------------------------------------- packets */

static void put16(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static void put32(uint8_t *at, uint32_t value)
{
	put16(at, value >> 16);
	put16(at + 2, value);
}

/* Makes a UDP packet over IPv4 from 198.18.0.0/16 to 198.19.0.1 (RFC 2544). Its last 4 bytes are its number. */
static void make_packet(uint8_t *packet, uint32_t size, uint32_t flow, uint64_t number)
{
	static const uint8_t macs[] = { 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0 };
	uint8_t *ip = packet + sizeof(macs);
	uint32_t sum = 0;

	memset(packet, 0, size);
	memcpy(packet, macs, sizeof(macs));
	ip[0] = 0x45;
	put16(ip + 2, size - (uint32_t)sizeof(macs));
	ip[8] = 64;
	ip[9] = 17;
	put32(ip + 12, 0xc6120000U + (flow & 0xffff));
	put32(ip + 16, 0xc6130001U);
	for (int i = 0; i < 20; i += 2)
		sum += (uint32_t)(ip[i] << 8 | ip[i + 1]);
	put16(ip + 10, ~((sum & 0xffff) + (sum >> 16)));
	put16(ip + 20, 1024 + (flow >> 16));
	put16(ip + 22, 9);	/* discard */
	put16(ip + 24, size - (uint32_t)sizeof(macs) - 20);
	put32(packet + size - 4, (uint32_t)number);
}

/* Returns the next packet to send, of *len bytes; NULL after the last one, or after an error, which it prints. */
static const uint8_t *next_packet(const struct options *o, struct capture_file *f, uint64_t number, uint64_t *loop,
				  uint32_t *len, bool *failed)
{
	static uint8_t own[LEN_MAX];
	const uint8_t *packet;

	if (o->count && number == o->count)
		return NULL;
	if (!o->file) {
		make_packet(own, o->size, (uint32_t)(number % o->flows), number);
		*len = o->size;
		return own;
	}
	packet = capture_file_next(f, len);
	if (!packet && !*len && number && ++*loop != o->loops) {
		capture_file_rewind(f);
		packet = capture_file_next(f, len);
	}
	if (!packet && *len) {
		fprintf(stderr, "rsend: %s: the rest of the file, from byte %zu on, makes no sense\n", o->file, f->at);
		*failed = true;
	}
	return packet;
}

/* ---------------------------------------------------------------- sending */

/* Injects a packet. Retries while too many packets are being sent. */
static int inject(uint32_t ifindex, const uint8_t *packet, uint32_t len)
{
	int err;

	while ((err = ringcap_inject(queue, ifindex, packet, len)) == -EAGAIN && !stopped)
		usleep(WAIT_US);
	return err == -EAGAIN ? 0 : err;
}

static int flush(void)
{
	int n;

	while ((n = ringcap_inject_flush(queue)) == -EAGAIN && !stopped)
		usleep(WAIT_US);
	return n < 0 && n != -EAGAIN ? n : 0;
}

/* Sleeps until packet @number is due. */
static void pace(const struct options *o, uint64_t start, uint64_t number)
{
	uint64_t due = start + (uint64_t)((double)number / o->rate * NSEC);
	struct timespec ts = { .tv_sec = (time_t)(due / NSEC), .tv_nsec = (long)(due % NSEC) };

	if (due > now_ns())
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
}

struct totals {
	uint64_t packets, bytes;
};

static void print_second(const struct totals *t, const struct totals *before, double seconds)
{
	struct ringcap_inject_stats stats;

	ringcap_inject_stats(queue, &stats);
	printf("%10.0f pkt/s %9.3f Mbit/s   total %" PRIu64 " packets %" PRIu64 " bytes, sent %" PRIu64 ", failed %" PRIu64 "\n",
	       (double)(t->packets - before->packets) / seconds, (double)(t->bytes - before->bytes) * 8e-6 / seconds,
	       t->packets, t->bytes, stats.sent, stats.failed);
	fflush(stdout);
}

/* Returns how many packets are sent at once: at a slow rate, one. */
static uint64_t batch_size(const struct options *o)
{
	if (o->rate <= 0 || o->rate > 1000.0 * BATCH)
		return BATCH;
	return o->rate < 1000 ? 1 : (uint64_t)(o->rate / 1000);
}

static int run(const struct options *o, uint32_t ifindex, struct capture_file *f, struct totals *t, bool *failed)
{
	uint64_t start = now_ns(), line = start, batch = batch_size(o), loop = 0;
	struct totals before = *t;
	const uint8_t *packet;
	uint32_t len;
	int err = 0;

	while (!err && !stopped && (packet = next_packet(o, f, t->packets, &loop, &len, failed))) {
		if (o->rate > 0 && t->packets % batch == 0)
			pace(o, start, t->packets);
		err = inject(ifindex, packet, len);
		if (err == -EMSGSIZE) {
			fprintf(stderr, "rsend: packet %" PRIu64 " of %" PRIu32 " bytes is too long for any interface\n",
				t->packets + 1, len);
			break;
		}
		if (err)
			break;
		t->packets++;
		t->bytes += len;
		if (t->packets % batch)
			continue;
		err = flush();
		if (!o->quiet && now_ns() - line >= NSEC) {
			print_second(t, &before, (double)(now_ns() - line) / NSEC);
			before = *t;
			line = now_ns();
		}
	}
	return err ? err : flush();
}

static struct ringcap *open_queue(const struct options *o, char *reason)
{
	const struct ringcap_capture how = { .flags = RINGCAP_CAPTURE_INJECT | RINGCAP_CAPTURE_NOTHING };

	return o->interface ? ringcap_open_interface(o->name, &how, reason) : ringcap_open(o->name, 0, reason);
}

static void print_summary(const struct options *o, const struct totals *t)
{
	struct ringcap_inject_stats stats;

	ringcap_inject_stats(queue, &stats);
	if (o->json)
		printf("{\"name\":\"%s\",\"packets\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"sent\":%" PRIu64 ",\"failed\":%" PRIu64 "}\n",
		       o->name, t->packets, t->bytes, stats.sent, stats.failed);
	else
		printf("%s: %" PRIu64 " packets, %" PRIu64 " bytes: sent %" PRIu64 ", failed %" PRIu64 "\n", o->name, t->packets,
		       t->bytes, stats.sent, stats.failed);
}

int main(int argc, char **argv)
{
	struct options options = { .loops = 1, .size = LEN_MIN, .flows = 1 };
	struct sigaction action = { .sa_handler = on_signal };
	char reason[RINGCAP_ERRBUF_SIZE];
	struct ringcap_inject_stats stats;
	struct totals totals = { 0 };
	struct capture_file file;
	uint32_t ifindex = 0;
	bool failed = false;
	int err;

	if (!parse(argc, argv, &options)) {
		usage(stderr);
		return 2;
	}
	if (options.out && !(ifindex = if_nametoindex(options.out))) {
		fprintf(stderr, "rsend: %s: %s\n", options.out, strerror(errno));
		return 1;
	}
	if (options.file && capture_file_open(&file, options.file, reason, sizeof(reason))) {
		fprintf(stderr, "rsend: %s\n", reason);
		return 1;
	}
	queue = open_queue(&options, reason);
	if (!queue || ringcap_may_inject(queue, reason)) {
		fprintf(stderr, "rsend: %s\n", reason);
		ringcap_close(queue);
		return 1;
	}
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	err = run(&options, ifindex, &file, &totals, &failed);
	print_summary(&options, &totals);
	if (err)
		fprintf(stderr, "rsend: %s: %s\n", options.name, err == -EPERM ? "no interface is granted any more" : strerror(-err));
	ringcap_inject_stats(queue, &stats);
	ringcap_close(queue);
	return err || failed || stats.failed ? 1 : 0;
}
