// SPDX-License-Identifier: Apache-2.0
/*
 * Runs in the guest. Measures the packets that arrive on the network card vb over its cable from va, for one driver.
 *
 *   workload CASE QUEUES WHO...
 *   workload --rate LOAD SENDER RECEIVER CASE QUEUES WHO...
 *
 * CASE names the case in the results. QUEUES is the number of the card's receive queues. WHO is one of sender (the card
 * discards everything), no-reader, tpacket-v3, af-xdp-copy, or a ringcap reader: mode-0, mode-1, mode-2,
 * mode-2-per-queue, or the eBPF engine's ebpf-mode-2. mode-2-per-queue has a queue, and af-xdp-copy a socket, for each
 * of the card's queues. 60:WHO measures the smallest packets only. Prints lines as bench/kernel does.
 *
 * With --rate it finds the greatest rates at which nothing is lost, see rate.h. LOAD says whether the machine is idle
 * or busy. SENDER and RECEIVER are the cards' PCI addresses.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>

#include "control.h"
#include "measure.h"
#include "rate.h"
#include "readers.h"

#define LINK_S		30

static const unsigned int sizes[] = { 60, 512, 1500 };	/* bytes, without FCS */

static bool has_carrier(const char *path)
{
	FILE *file = fopen(path, "r");
	bool carrier = file && fgetc(file) == '1';

	if (file)
		fclose(file);
	return carrier;
}

static bool rates;

/* Attaching or detaching an XDP program resets the card. With --rate, the sender has no interface. */
static void await_link(void)
{
	const struct timespec second = { .tv_sec = 1 };
	unsigned int i;

	for (i = 0; i < LINK_S; i++) {
		nanosleep(&second, NULL);
		if ((rates || has_carrier("/sys/class/net/va/carrier")) && has_carrier("/sys/class/net/vb/carrier"))
			return;
	}
	fail_with("the link", "it does not come up");
}

/* Packets that reach the stack pass through all of it, to a socket without room for them. */
static void open_port(void)
{
	const struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(53) };
	int fd = socket(AF_INET, SOCK_DGRAM, 0), least = 1;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &least, sizeof(least)) ||
	    bind(fd, (const struct sockaddr *)&address, sizeof(address)))
		fail("port 53");
}

#define CARD_COUNTS .counter = "/sys/class/net/vb/statistics/rx_packets"
#define RING(...) .readers = 1, .read = read_ringcap, .ring = { .device = "vb", __VA_ARGS__ }

static const struct experiment experiments[] = {
	{ .who = "sender", CARD_COUNTS, .rejected = true },
	{ .who = "no-reader", CARD_COUNTS },
	{ .who = "tpacket-v3", .readers = 1, .read = read_tpacket },
	{ .who = "af-xdp-copy", .readers = 1, .read = read_xdp },
	{ .who = "mode-0", RING() },
	{ .who = "mode-1", RING(.transparent = 1) },
	{ .who = "mode-2", RING(.transparent = 2) },
	{ .who = "mode-2-per-queue", RING(.transparent = 2, .per_rx_queue = true) },
	{ .who = "ebpf-mode-2", RING(.transparent = 2, .ebpf = true) },
};

static struct experiment find(const char *who)
{
	size_t i;

	for (i = 0; i < sizeof(experiments) / sizeof(experiments[0]); i++)
		if (!strcmp(experiments[i].who, who))
			return experiments[i];
	fail_with(who, "no such reader");
}

static bool measure_who(const char *what, unsigned int queues, const char *who, bool first_size, unsigned int size)
{
	const bool small = !strncmp(who, "60:", 3);
	struct experiment e;

	if (small && !first_size)
		return true;
	e = find(who + (small ? 3 : 0));
	e.what = what;
	e.queues = queues;
	e.settle = await_link;
	if (e.ring.per_rx_queue || e.read == read_xdp)
		e.readers = queues;
	if (!rates)
		return measure(&e, size);
	rate_find(&e, size);
	return true;
}

int main(int argc, char **argv)
{
	bool lossless = true;
	unsigned int queues, s;
	int i;

	rates = argc > 5 && !strcmp(argv[1], "--rate");
	if (rates) {
		rate_open(argv[2], argv[3], argv[4]);
		argv += 4;
		argc -= 4;
	}
	progress = mmap(NULL, READERS_MAX * sizeof(*progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (progress == MAP_FAILED || argc < 4)
		fail("workload");
	queues = (unsigned int)strtoul(argv[2], NULL, 10);
	setvbuf(stdout, NULL, _IOLBF, 0);
	rt_control_open();
	open_port();
	for (s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
		for (i = 3; i < argc; i++)
			lossless &= measure_who(argv[1], queues, argv[i], !s, sizes[s]);
	if (!lossless)
		printf("packets were lost, or got where they should not: the figures of %s mean nothing\n", argv[1]);
	return !lossless;
}
