// SPDX-License-Identifier: BSD-2-Clause
/*
 * rbridge: makes the module forward packets between two interfaces, in both directions; see rbridge(1).
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <net/if.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../src/control.h"
#include "filter.h"
#include "monotonic.h"
#include "number.h"

enum { ERRBUF = 256 };

struct options {
	const char *interface[2];
	const char *filter;
	double seconds;		/* 0 = until a signal */
	bool one_way, no_promisc, quiet, json;
};

/* Packets received by one interface, and how many were forwarded. */
struct counts {
	uint64_t seen, bytes, filtered, reflected, failed;
};

static volatile sig_atomic_t stopped;

static void on_signal(int signal)
{
	(void)signal;
	stopped = 1;
}

/* ---------------------------------------------------------------- arguments */

static void usage(FILE *to)
{
	fputs("usage: rbridge [-1jpq] [-f filter] [-t seconds] INTERFACE INTERFACE\n"
	      "  -1, --one-way       only from the first to the second\n"
	      "  -f, --filter EXPR   only packets that this expression of pcap-filter(7) matches\n"
	      "  -p, --no-promisc    do not make the interfaces receive what is not addressed to them\n"
	      "  -t, --time S        stop after S seconds\n"
	      "  -q, --quiet         no line a second, only the summary\n"
	      "  -j, --json          the summary as one JSON object\n", to);
}

static bool parse_option(int option, const char *arg, struct options *o)
{
	switch (option) {
	case '1':
		o->one_way = true;
		return true;
	case 'f':
		o->filter = arg;
		return true;
	case 'p':
		o->no_promisc = true;
		return true;
	case 't':
		return parse_number(arg, 1e9, &o->seconds) && o->seconds > 0;
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
		{ "one-way", no_argument, NULL, '1' }, { "filter", required_argument, NULL, 'f' },
		{ "no-promisc", no_argument, NULL, 'p' }, { "time", required_argument, NULL, 't' },
		{ "quiet", no_argument, NULL, 'q' },   { "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },    { 0 },
	};
	int option;

	while ((option = getopt_long(argc, argv, "1f:pt:qjh", longs, NULL)) != -1) {
		if (option == 'h') {
			usage(stdout);
			exit(0);
		}
		if (option == '?')
			return false;
		if (!parse_option(option, optarg, o)) {
			fprintf(stderr, "rbridge: '%s' is not a value for -%c\n", optarg, option);
			return false;
		}
	}
	if (optind != argc - 2)
		return false;
	o->interface[0] = argv[optind];
	o->interface[1] = argv[optind + 1];
	return true;
}

/* Returns the other end of a veth, or the device under a VLAN device; 0 = none. */
static unsigned int peer(const char *interface)
{
	char path[PATH_MAX], text[32] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/net/%s/iflink", interface);
	f = fopen(path, "r");
	if (!f)
		return 0;
	if (!fgets(text, sizeof(text), f))
		text[0] = '\0';
	fclose(f);
	return (unsigned int)strtoul(text, NULL, 10);
}

static int find_interfaces(const struct options *o, unsigned int ifindex[2])
{
	for (int i = 0; i < 2; i++) {
		ifindex[i] = if_nametoindex(o->interface[i]);
		if (!ifindex[i]) {
			fprintf(stderr, "rbridge: %s: %s\n", o->interface[i], strerror(errno));
			return -1;
		}
	}
	if (ifindex[0] == ifindex[1]) {
		fprintf(stderr, "rbridge: both are %s: a bridge has two ends\n", o->interface[0]);
		return -1;
	}
	if (!o->one_way && peer(o->interface[0]) == ifindex[1] && peer(o->interface[1]) == ifindex[0]) {
		fprintf(stderr, "rbridge: %s and %s are the two ends of one veth: packets would go round for ever\n",
			o->interface[0], o->interface[1]);
		return -1;
	}
	return 0;
}

/* ---------------------------------------------------------------- the module's objects */

static void ring_name(char *name, int direction)
{
	snprintf(name, RINGCAP_NAME_MAX + 1, "rbridge-%d-%d", (int)getpid(), direction);
}

static int refused(const struct control *c, const char *interface, const char *what, int err)
{
	fprintf(stderr, "rbridge: %s: %s: %s\n", interface, what,
		err == -EPERM ? "no permission: it needs CAP_NET_ADMIN" : c->reason[0] ? c->reason : strerror(-err));
	return -1;
}

/* Creates a ring on interface from that sends all packets to interface to. The module removes it with the socket. */
static int make_direction(struct control *c, const struct options *o, const unsigned int *ifindex, int from,
			  const struct bpf_program *filter)
{
	char name[RINGCAP_NAME_MAX + 1];
	uint32_t nest;
	int err;

	ring_name(name, from);
	control_start(c, RINGCAP_CMD_RING_SET, 0);
	control_put_string(c, RINGCAP_A_NAME, name);
	control_put_u32(c, RINGCAP_A_OWNED, 1);
	control_put_u32(c, RINGCAP_A_PROMISC, !o->no_promisc);
	if (o->filter)
		control_put(c, RINGCAP_A_FILTER, filter->bf_insns, filter->bf_len * sizeof(*filter->bf_insns));
	nest = control_nest(c, RINGCAP_A_TAP);
	control_put_u32(c, RINGCAP_A_TAP_IFINDEX, ifindex[from]);
	control_put_u32(c, RINGCAP_A_TAP_DIRECTION, RINGCAP_DIRECTION_RX);
	control_nest_end(c, nest);
	err = control_call(c, NULL, NULL);
	if (err)
		return refused(c, o->interface[from], "tapping it", err);

	control_start(c, RINGCAP_CMD_RULES_BEGIN, 0);
	control_put_string(c, RINGCAP_A_NAME, name);
	control_put_u32(c, RINGCAP_A_DEFAULT_ACTION, RINGCAP_ACTION_REFLECT);
	nest = control_nest(c, RINGCAP_A_TARGET);
	control_put_u32(c, RINGCAP_A_TAP_IFINDEX, ifindex[!from]);
	control_nest_end(c, nest);
	err = control_call(c, NULL, NULL);
	if (!err) {
		control_start(c, RINGCAP_CMD_RULES_COMMIT, 0);
		control_put_string(c, RINGCAP_A_NAME, name);
		err = control_call(c, NULL, NULL);
	}
	return err ? refused(c, o->interface[!from], "reflecting out of it", err) : 0;
}

static void take_ring(const struct control_answer *answer, void *arg)
{
	struct counts *counts = arg;

	counts->seen = control_u64(answer, RINGCAP_A_SEEN);
	counts->bytes = control_u64(answer, RINGCAP_A_SEEN_BYTES);
	counts->filtered = control_u64(answer, RINGCAP_A_FILTERED);
	counts->reflected = control_u64(answer, RINGCAP_A_REFLECTED);
	counts->failed = control_u64(answer, RINGCAP_A_REFLECT_FAILED);
}

/* Without a ring at the second end (-1), its counters stay 0. */
static int read_counts(struct control *c, const struct options *o, struct counts *counts)
{
	char name[RINGCAP_NAME_MAX + 1];
	int err = 0;

	for (int i = 0; i < 2 - o->one_way && !err; i++) {
		ring_name(name, i);
		control_start(c, RINGCAP_CMD_RING_GET, 0);
		control_put_string(c, RINGCAP_A_NAME, name);
		err = control_call(c, take_ring, &counts[i]);
	}
	if (err)
		fprintf(stderr, "rbridge: reading the counters: %s\n", c->reason[0] ? c->reason : strerror(-err));
	return err;
}

/* ---------------------------------------------------------------- output */

static void print_second(const struct options *o, const struct counts *now, const struct counts *before)
{
	for (int i = 0; i < 2 - o->one_way; i++)
		printf("%s%s > %s: %" PRIu64 " pkt/s %.3f Mbit/s, carried %" PRIu64 ", filtered %" PRIu64 ", failed %" PRIu64,
		       i ? "   " : "", o->interface[i], o->interface[!i], now[i].seen - before[i].seen,
		       (double)(now[i].bytes - before[i].bytes) * 8e-6, now[i].reflected - now[i].failed, now[i].filtered,
		       now[i].failed);
	printf("\n");
	fflush(stdout);
}

static void print_summary(const struct options *o, const struct counts *counts)
{
	if (o->json)
		printf("[");
	for (int i = 0; i < 2 - o->one_way; i++)
		printf(o->json ? "%s{\"from\":\"%s\",\"to\":\"%s\",\"seen\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"carried\":%" PRIu64
		       ",\"filtered\":%" PRIu64 ",\"failed\":%" PRIu64 "}" :
		       "%s%s > %s: seen %" PRIu64 " packets, %" PRIu64 " bytes: carried %" PRIu64 ", filtered %" PRIu64 ", failed %" PRIu64,
		       i ? o->json ? "," : "\n" : "", o->interface[i], o->interface[!i], counts[i].seen, counts[i].bytes,
		       counts[i].reflected - counts[i].failed, counts[i].filtered, counts[i].failed);
	printf(o->json ? "]\n" : "\n");
}

/* Runs until it is stopped, the time is up, or the counters are gone. */
static int run(struct control *c, const struct options *o, struct counts *counts)
{
	struct counts before[2] = { 0 };
	double left = o->seconds;
	int err = 0;

	while (!stopped && !err) {
		double nap = o->seconds > 0 && left < 1 ? left : 1;
		struct timespec ts = { .tv_sec = (time_t)nap, .tv_nsec = (long)((nap - (double)(time_t)nap) * NSEC) };

		nanosleep(&ts, NULL);
		err = read_counts(c, o, counts);
		if (!o->quiet && !stopped && !err)
			print_second(o, counts, before);
		memcpy(before, counts, sizeof(before));
		left -= nap;
		if (o->seconds > 0 && left <= 0)
			break;
	}
	return err;
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_signal };
	static struct control control = { .fd = -1 };
	struct bpf_program filter = { 0 };
	struct options options = { 0 };
	struct counts counts[2] = { 0 };
	unsigned int ifindex[2];
	char reason[ERRBUF];
	int err;

	if (!parse(argc, argv, &options)) {
		usage(stderr);
		return 2;
	}
	if ((options.filter && !filter_compile("rbridge", options.filter, &filter)) || find_interfaces(&options, ifindex))
		return 1;
	if (control_open(&control, reason)) {
		fprintf(stderr, "rbridge: %s\n", reason);
		return 1;
	}
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	err = make_direction(&control, &options, ifindex, 0, &filter);
	if (!err && !options.one_way)
		err = make_direction(&control, &options, ifindex, 1, &filter);
	if (!err) {
		err = run(&control, &options, counts);
		print_summary(&options, counts);
	}
	/* The module removes the rings with the socket, however this program ends. */
	control_close(&control);
	return err ? 1 : 0;
}
