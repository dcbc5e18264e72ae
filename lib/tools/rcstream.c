// SPDX-License-Identifier: BSD-2-Clause
/*
 * rcstream: writes a queue's packets as pcapng to standard output, until the other end of standard input tells it to
 * stop; see rcstream(1).
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ringcap/ringcap.h>

#include "device.h"
#include "filter.h"
#include "ifname.h"
#include "pcapng.h"

enum { BATCH = 64, WAIT_MS = 1000, REST_MS = 2000, BUFFER = 1 << 18 };

struct interface {
	uint32_t ifindex;
	uint64_t written;			/* packets */
};

struct stream {
	struct ringcap *queue;
	const char *name;			/* name of the queue's cluster */
	struct ringcap_stats before;		/* when it was opened */
	struct bpf_program filter;		/* bf_insns NULL = everything */
	uint32_t snaplen;
	struct interface *interfaces;		/* by number in the file */
	uint32_t nr_interfaces, room;
	uint64_t read;				/* packets, whether they pass the filter or not */
	uint64_t others;			/* packets that the queue got and others read; UINT64_MAX = unknown */
};

static void usage(FILE *to)
{
	fputs("usage: rcstream [-f EXPR] NAME[@QUEUE]\n"
	      "       rcstream --idle SECONDS\n"
	      "  -f, --filter EXPR   only what the libpcap filter expression lets through\n"
	      "      --idle SECONDS  do nothing for that long, so that a pod is there to run the other in\n", to);
}

static void name_interface(const struct stream *s, uint32_t ifindex)
{
	struct ifname known;
	char number[16];

	ifname_find(&known, s->name, ifindex);
	snprintf(number, sizeof(number), "%" PRIu32, ifindex);
	pcapng_interface(stdout, *known.pod ? known.pod : *known.interface ? known.interface : number, known.interface, s->snaplen);
}

/*
 * Returns an interface's number in the file, or -ENOMEM. The search starts with the newest, because interfaces of pods
 * come and go.
 */
static int interface_number(struct stream *s, uint32_t ifindex)
{
	for (uint32_t i = s->nr_interfaces; i--;)
		if (s->interfaces[i].ifindex == ifindex)
			return (int)i;
	if (s->nr_interfaces == s->room) {
		uint32_t room = s->room * 2 + 64;
		struct interface *more = realloc(s->interfaces, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		s->interfaces = more;
		s->room = room;
	}
	name_interface(s, ifindex);
	s->interfaces[s->nr_interfaces] = (struct interface){ .ifindex = ifindex };
	return (int)s->nr_interfaces++;
}

/* 0 or -errno. */
static int write_packet(struct stream *s, const struct ringcap_pkt *pkt)
{
	int i;

	if (s->filter.bf_insns && !bpf_filter(s->filter.bf_insns, pkt->data, pkt->slot->len, pkt->slot->caplen))
		return 0;
	i = interface_number(s, pkt->slot->ifindex);
	if (i < 0)
		return i;
	s->interfaces[i].written++;
	pcapng_packet(stdout, (uint32_t)i, pkt->slot, pkt->data);
	return 0;
}

/* Copies the packets that are there, or that come within timeout_ms. Returns their number, or -errno. */
static int copy_batch(struct stream *s, int timeout_ms)
{
	struct ringcap_pkt pkts[BATCH];
	int n = ringcap_recv(s->queue, pkts, BATCH, timeout_ms);

	if (n <= 0)
		return n == -EINTR ? 0 : n;
	for (int i = 0; i < n; i++) {
		int err = write_packet(s, &pkts[i]);

		if (err)
			return err;
	}
	ringcap_release(s->queue, (unsigned int)n);
	s->read += (uint64_t)n;
	return n;
}

/*
 * Does the same without waiting. An empty queue has given all packets that it had got to others and to us. Engines
 * count a packet a moment before or after it can be read, so the smallest result is used.
 */
static int copy_what_is_there(struct stream *s)
{
	struct ringcap_stats before;
	int n;

	n = copy_batch(s, 0);
	if (n)
		return n;
	/* Read before the queue is found empty, and only when it seems empty: a busy queue leaves no time for it. */
	ringcap_stats(s->queue, &before);
	n = copy_batch(s, 0);
	if (!n && before.delivered >= s->read && before.delivered - s->read < s->others)
		s->others = before.delivered - s->read;
	return n;
}

/* Copies until standard input has data or ends. Returns 0 or -errno. */
static int copy(struct stream *s)
{
	struct pollfd fds[2] = { { .fd = STDIN_FILENO, .events = POLLIN }, { .fd = ringcap_fd(s->queue), .events = POLLIN } };

	while (!(fds[0].revents & (POLLIN | POLLHUP | POLLERR | POLLNVAL))) {
		int n = copy_what_is_there(s);

		if (n < 0)
			return n;
		if (!n && fflush(stdout))
			return -errno;
		if (ferror(stdout))
			return -EIO;
		if (poll(fds, 2, n ? 0 : WAIT_MS) < 0 && errno != EINTR)
			return -errno;
	}
	return 0;
}

/*
 * Copies the packets that the queue had got when it was told to stop. If the queue was never empty before, we assume
 * that others read nothing from it. A stalled producer may have counted a packet that cannot be read yet. We wait for
 * such a packet for up to REST_MS. Returns 0 or -errno.
 */
static int copy_rest(struct stream *s)
{
	uint64_t others = s->others == UINT64_MAX ? 0 : s->others;
	struct ringcap_stats now;
	int n = 0;

	ringcap_stats(s->queue, &now);
	while (s->read + others < now.delivered) {
		n = copy_batch(s, REST_MS);
		if (n <= 0)
			break;
	}
	return n < 0 ? n : 0;
}

/* Writes the counters: all packets that were read, and what the queue lost since it was opened. */
static void write_end(struct stream *s)
{
	struct ringcap_stats now = s->before;
	uint64_t dropped[RINGCAP_DROP_REASONS], sum = 0;
	char text[160];

	ringcap_stats(s->queue, &now);
	for (int i = 0; i < RINGCAP_DROP_REASONS; i++) {
		dropped[i] = now.dropped[i] - s->before.dropped[i];
		sum += dropped[i];
	}
	snprintf(text, sizeof(text), "read %" PRIu64 " full %" PRIu64 " unattended %" PRIu64 " nomem %" PRIu64, s->read,
		 dropped[RINGCAP_DROP_FULL], dropped[RINGCAP_DROP_UNATTENDED], dropped[RINGCAP_DROP_NOMEM]);
	if (!s->nr_interfaces)
		pcapng_interface(stdout, "none", "", s->snaplen);
	for (uint32_t i = 1; i < s->nr_interfaces; i++)
		pcapng_statistics(stdout, i, s->interfaces[i].written, 0, NULL);
	pcapng_statistics(stdout, 0, s->nr_interfaces ? s->interfaces[0].written : 0, sum, text);
}

/* Data in flight may be lost when this process exits. So it waits until the receiver has everything and closes. */
static void wait_for_end(void)
{
	char bytes[64];

	while (read(STDIN_FILENO, bytes, sizeof(bytes)) > 0)
		;
}

static int stream(const char *name, const char *expression)
{
	static struct stream s;
	char reason[RINGCAP_ERRBUF_SIZE] = "";
	struct ringcap_queue q;
	char c;
	int err;

	if (expression && !filter_compile("rcstream", expression, &s.filter))
		return 1;
	s.queue = device_open_passive(name, RINGCAP_OPEN_SKIP, reason);
	if (!s.queue) {
		fprintf(stderr, "rcstream: %s: %s\n", name, reason);
		return 1;
	}
	ringcap_stats(s.queue, &s.before);
	ringcap_queue(s.queue, &q);
	s.snaplen = q.snaplen;
	s.name = q.name;
	s.others = UINT64_MAX;
	setvbuf(stdout, NULL, _IOFBF, BUFFER);
	pcapng_section(stdout, "rcstream");
	err = copy(&s);
	if (!err) {
		/* Standard input was only polled so far. */
		if (read(STDIN_FILENO, &c, 1) < 0)
			err = -errno;
		else
			err = copy_rest(&s);
	}
	if (!err)
		write_end(&s);
	if (fflush(stdout) && !err)
		err = -errno;
	if (err)
		fprintf(stderr, "rcstream: %s@%" PRIu32 ": %s\n", q.name, q.queue, err == -ENODEV ?
			"the queue was deleted, or taken back from this consumer" : strerror(-err));
	else
		wait_for_end();
	ringcap_close(s.queue);
	return err ? 1 : 0;
}

static void on_signal(int signal)
{
	(void)signal;
	_exit(0);
}

/* As the first process of a container, it gets only the signals that it handles. */
static int idle(const char *seconds)
{
	const struct sigaction action = { .sa_handler = on_signal };
	char *end;
	unsigned long n = strtoul(seconds, &end, 10);

	if (*seconds < '0' || *seconds > '9' || *end || n > 365UL * 86400) {
		fprintf(stderr, "rcstream: '%s' is not a value for --idle: seconds, up to a year\n", seconds);
		return 2;
	}
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	for (unsigned int left = (unsigned int)n; left;)
		left = sleep(left);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "filter", required_argument, NULL, 'f' }, { "idle", required_argument, NULL, 'I' },
		{ "help", no_argument, NULL, 'h' },	    { 0 },
	};
	const char *expression = NULL, *seconds = NULL;
	int option;

	while ((option = getopt_long(argc, argv, "f:h", longs, NULL)) != -1) {
		switch (option) {
		case 'f':
			expression = optarg;
			break;
		case 'I':
			seconds = optarg;
			break;
		case 'h':
			usage(stdout);
			return 0;
		default:
			return 2;
		}
	}
	if (argc - optind != !seconds || (seconds && expression)) {
		usage(stderr);
		return 2;
	}
	return seconds ? idle(seconds) : stream(argv[optind], expression);
}
