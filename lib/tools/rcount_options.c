// SPDX-License-Identifier: BSD-2-Clause
#include "rcount.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "number.h"

/* Options without a letter. */
enum {
	OPT_SLOW = 256, OPT_RX_QUEUES, OPT_FORMER_RX_QUEUES, OPT_WATERMARK, OPT_TIMEOUT, OPT_QUICK, OPT_HWTSTAMP,
	OPT_CLUSTER, OPT_SAMPLE
};

static void usage(FILE *to)
{
	fputs("usage: rcount [option...] NAME[@QUEUE]\n"
	      "       rcount [option...] -i INTERFACE\n"
	      "       rcount -l\n"
	      "what:\n"
	      "  -i, --interface NAME   a queue that was given, or an interface, captured ad hoc (root)\n"
	      "  -l, --list             list the queues that this process was given\n"
	      "until:\n"
	      "  -c, --count N          stop after N packets\n"
	      "  -t, --time S           stop after S seconds\n"
	      "how an interface is captured:\n"
	      "  -f, --filter EXPR      only what the libpcap filter expression lets through\n"
	      "  -d, --direction D      rx, tx or both (the module's default: rx)\n"
	      "  -s, --snaplen N        bytes of a packet\n"
	      "  -p, --no-promiscuous   only what is addressed to the interface\n"
	      "  -b, --buffer BYTES     size of a queue\n"
	      "      --rx-queues LIST   receive queues, such as 0,2-3\n"
	      "      --cluster NAME     deliver to that cluster, which is there, and read one of its queues\n"
	      "      --watermark BYTES  unread bytes at which to wake up\n"
	      "      --timeout US       microseconds after which to wake up for less\n"
	      "      --sample N         1 in N packets\n"
	      "      --quick            accepted, without effect: always quick\n"
	      "      --hwtstamp         the device's time stamps\n"
	      "  -m, --multi            a queue and a thread for each receive queue\n"
	      "  -g, --cpu LIST         run on these CPUs, a thread on each in turn\n"
	      "output:\n"
	      "  -q, --quiet            no line a second, only the summary\n"
	      "  -j, --json             the summary as one JSON object\n"
	      "  -v, --verbose          a line for each packet; twice: with its bytes\n"
	      "  -w, --write FILE       packets into a pcap file, - = standard output\n"
	      "      --slow US          sleep US microseconds after each batch of up to 64 packets\n", to);
}

static bool parse_u32(const char *text, uint32_t min, uint32_t max, uint32_t *out)
{
	char *end;
	unsigned long v;

	errno = 0;
	v = strtoul(text, &end, 10);
	*out = (uint32_t)v;
	return !errno && *text >= '0' && *text <= '9' && !*end && v >= min && v <= max;
}

typedef bool (*take_fn)(struct options *o, unsigned long number);

/* Parses a list such as "0,2-3", and calls take for each number. */
static bool parse_list(const char *text, struct options *o, take_fn take)
{
	while (*text) {
		unsigned long from, to;
		char *end;

		if (*text < '0' || *text > '9')
			return false;
		from = to = strtoul(text, &end, 10);
		if (*end == '-') {
			text = end + 1;
			if (*text < '0' || *text > '9')
				return false;
			to = strtoul(text, &end, 10);
		}
		if (to < from || (*end && *end != ',') || (*end == ',' && !end[1]))
			return false;
		for (; from <= to; from++)
			if (!take(o, from))
				return false;
		text = end + (*end == ',');
	}
	return true;
}

static bool take_rx_queue(struct options *o, unsigned long number)
{
	if (number >= RINGCAP_RX_QUEUES_MAX)
		return false;
	o->capture.rx_queues[number / 64] |= 1ULL << number % 64;
	return true;
}

static bool take_cpu(struct options *o, unsigned long number)
{
	if (number >= CPUS_MAX || o->nr_cpus == CPUS_MAX)
		return false;
	o->cpus[o->nr_cpus++] = (unsigned int)number;
	return true;
}

static bool parse_direction(const char *text, uint32_t *direction)
{
	static const struct { const char *name; uint32_t direction; } names[] = {
		{ "rx", RINGCAP_DIRECTION_RX }, { "tx", RINGCAP_DIRECTION_TX }, { "both", RINGCAP_DIRECTION_BOTH },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(text, names[i].name)) {
			*direction = names[i].direction;
			return true;
		}
	return false;
}

/* Parses the options of an interface's capture. */
static bool parse_capture(int option, const char *arg, struct options *o)
{
	struct ringcap_capture *c = &o->capture;

	switch (option) {
	case 'f':
		o->filter = arg;
		return *arg;
	case 'd':
		return parse_direction(arg, &c->direction);
	case 's':
		return parse_u32(arg, 1, RINGCAP_SNAPLEN_MAX, &c->snaplen);
	case 'p':
		c->flags &= ~RINGCAP_CAPTURE_PROMISC;
		return true;
	case 'b':
		return parse_u32(arg, 1, UINT32_MAX, &c->buffer_size);
	case 'm':
		o->multi = true;
		return true;
	case OPT_FORMER_RX_QUEUES:
		fputs("rcount: --channels is now --rx-queues\n", stderr);
		/* fall through */
	case OPT_RX_QUEUES:
		return *arg && parse_list(arg, o, take_rx_queue);
	case OPT_CLUSTER:
		c->cluster = arg;
		return *arg;
	case OPT_WATERMARK:
		return parse_u32(arg, 1, RINGCAP_LANE_SIZE_MAX, &c->watermark);
	case OPT_TIMEOUT:
		return parse_u32(arg, 1, 1000000, &c->timeout_us);
	case OPT_SAMPLE:
		return parse_u32(arg, 1, UINT32_MAX, &c->sample);
	case OPT_QUICK:
		c->flags |= RINGCAP_CAPTURE_QUICK;
		return true;
	case OPT_HWTSTAMP:
		c->flags |= RINGCAP_CAPTURE_HWTSTAMP;
		return true;
	}
	return false;
}

static bool parse_option(int option, const char *arg, struct options *o)
{
	double v = 0;

	switch (option) {
	case 'i':
		o->name = arg;
		return *arg;
	case 'c':
		o->count = parse_number(arg, 1e18, &v) ? (uint64_t)v : 0;
		return o->count > 0;
	case 't':
		return parse_number(arg, 1e9, &o->seconds) && o->seconds > 0;
	case 'g':
		return *arg && parse_list(arg, o, take_cpu);
	case 'w':
		o->dump_path = arg;
		return *arg;
	case 'v':
		o->verbose++;
		return true;
	case 'q':
		o->quiet = true;
		return true;
	case 'j':
		o->json = o->quiet = true;
		return true;
	case 'l':
		o->list = true;
		return true;
	case OPT_SLOW:
		return parse_u32(arg, 0, 10000000, &o->slow_us);
	}
	o->has_capture = true;
	return parse_capture(option, arg, o);
}

static const char *contradiction(const struct options *o)
{
	if (o->list)
		return o->name ? "-l lists all queues and takes no NAME" : NULL;
	if (!o->name)
		return "nothing to count: give -i INTERFACE or a queue's NAME; -l lists those";
	if (o->multi && o->capture.cluster)
		return "--multi makes a cluster of its own: leave out --cluster";
	if (o->multi && (o->dump_path || o->verbose))
		return "packets of several threads do not go into one dump: leave out --multi, or -v and -w";
	if (o->dump_path && !strcmp(o->dump_path, "-") && (o->verbose || o->json))
		return "-w - writes packets to standard output: leave out -v and -j";
	return NULL;
}

int options_parse(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {
		{ "interface", required_argument, NULL, 'i' }, { "count", required_argument, NULL, 'c' },
		{ "time", required_argument, NULL, 't' },      { "quiet", no_argument, NULL, 'q' },
		{ "json", no_argument, NULL, 'j' },	       { "list", no_argument, NULL, 'l' },
		{ "help", no_argument, NULL, 'h' },	       { "filter", required_argument, NULL, 'f' },
		{ "direction", required_argument, NULL, 'd' }, { "snaplen", required_argument, NULL, 's' },
		{ "no-promiscuous", no_argument, NULL, 'p' },  { "buffer", required_argument, NULL, 'b' },
		{ "multi", no_argument, NULL, 'm' },	       { "cpu", required_argument, NULL, 'g' },
		{ "verbose", no_argument, NULL, 'v' },	       { "write", required_argument, NULL, 'w' },
		{ "slow", required_argument, NULL, OPT_SLOW }, { "rx-queues", required_argument, NULL, OPT_RX_QUEUES },
		{ "quick", no_argument, NULL, OPT_QUICK },     { "watermark", required_argument, NULL, OPT_WATERMARK },
		{ "hwtstamp", no_argument, NULL, OPT_HWTSTAMP }, { "timeout", required_argument, NULL, OPT_TIMEOUT },
		{ "cluster", required_argument, NULL, OPT_CLUSTER }, { "sample", required_argument, NULL, OPT_SAMPLE },
		{ "channels", required_argument, NULL, OPT_FORMER_RX_QUEUES },
		{ 0 },
	};
	const char *wrong;
	int option, index = 0;

	o->capture.flags = RINGCAP_CAPTURE_PROMISC;
	while ((option = getopt_long(argc, argv, "i:c:t:qjlhf:d:s:pb:mg:vw:", longs, &index)) != -1) {
		if (option == 'h') {
			usage(stdout);
			return 1;
		}
		if (option == '?')
			return 3;
		if (!parse_option(option, optarg, o)) {
			if (option < 256)
				fprintf(stderr, "rcount: '%s' is not a value for -%c\n", optarg, option);
			else
				fprintf(stderr, "rcount: '%s' is not a value for --%s\n", optarg, longs[index].name);
			return 3;
		}
	}
	if (!o->name && optind < argc)
		o->name = argv[optind++];
	wrong = optind < argc ? "only one thing is counted at a time" : contradiction(o);
	if (!wrong)
		return 0;
	fprintf(stderr, "rcount: %s\n", wrong);
	usage(stderr);
	return 3;
}
