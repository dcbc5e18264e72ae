// SPDX-License-Identifier: Apache-2.0
/*
 * workload PRODUCERS [CASE...]
 *
 * Runs in the guest. Sends the same packets over a veth pair to each kind of reader in turn. Marks for the counting
 * plugin where each measurement starts and ends. Prints a line for each measurement:
 *
 *   run CASE WHO READERS SIZE PACKETS RECEIVED
 *
 * The sender sleeps after each burst. A burst fits in every ring, so nothing is lost. The cost of the sender and the
 * interfaces is measured without readers, and can be subtracted. The sender runs in one process, the readers in others
 * at SCHED_BATCH. For several PRODUCERS, see producers.h.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "control.h"
#include "measure.h"
#include "producers.h"
#include "readers.h"

static const unsigned int sizes[] = { 60, 512, 1500 };	/* bytes, without FCS */

/* The packet sizes of an experiment, as bits. */
#define SMALL		1U
#define EVERY		7U

static char **cases;	/* names, the last is NULL */

/* Returns true if the user asked for this case. Without cases, the user asks for all. */
static bool asked_for(const char *what)
{
	char **only;

	for (only = cases; *only && strcmp(*only, what); only++)
		;
	return !*cases || *only || !strcmp(what, "warm-up") || !strcmp(what, "baseline");
}

static bool measure_all(const struct experiment *experiments, unsigned int nr)
{
	unsigned int s, i;
	bool lossless = true;

	for (s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
		for (i = 0; i < nr; i++)
			if (experiments[i].sizes & 1U << s && asked_for(experiments[i].what) &&
			    !(experiments[i].one_rx_queue && nr_producers > 1))
				lossless &= measure(&experiments[i], sizes[s]);
	return lossless;
}

/* Writes the kernel's functions and their addresses to a port that is faster than a terminal. */
static void write_symbols(const char *path)
{
	FILE *symbols = fopen("/proc/kallsyms", "r"), *port = fopen(path, "w");
	char line[512], type;

	if (!symbols || !port)
		fail(path);
	while (fgets(line, sizeof(line), symbols))
		if (sscanf(line, "%*x %c", &type) == 1 && (type == 't' || type == 'T' || type == 'w' || type == 'W'))
			fputs(line, port);
	fclose(port);
	fclose(symbols);
}

static void load_module(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || syscall(SYS_finit_module, fd, "", 0))
		fail(path);
	close(fd);
	rt_control_open();
}

static const struct experiment without_module[] = {
	{ "warm-up", "tpacket-v3", 1, read_tpacket, .sizes = SMALL },
	{ "no-module", "no-reader", 0, NULL, .sizes = EVERY },
};

static const struct experiment with_module[] = {
	{ "warm-up", "ringcap", 1, read_ringcap, .ring = { .device = "vb" }, .sizes = SMALL },
	{ "baseline", "no-reader", 0, NULL, .sizes = EVERY },
	{ "ring-elsewhere", "no-reader", 1, NULL, .ring = { .device = "lo" }, .sizes = SMALL },
	{ "unattended", "ringcap", 1, NULL, .ring = { .device = "vb" }, .sizes = SMALL },
	{ "plain", "ringcap", 1, read_ringcap, .ring = { .device = "vb" }, .sizes = EVERY },
	{ "plain", "ringcap", 4, read_ringcap, .ring = { .device = "vb" }, .sizes = EVERY },
	{ "plain", "ringcap-recv", 1, read_ringcap_batches, .ring = { .device = "vb" }, .sizes = SMALL },
	{ "plain", "ringcap-ebpf", 1, read_ringcap, .ring = { .device = "vb", .ebpf = true }, .sizes = EVERY },
	{ "plain", "ringcap-ebpf", 4, read_ringcap, .ring = { .device = "vb", .ebpf = true }, .sizes = EVERY },
	{ "plain", "tpacket-v3", 1, read_tpacket, .sizes = EVERY },
	{ "plain", "tpacket-v3-fanout-hash", 4, read_fanout, .sizes = EVERY },
	{ "plain", "af-xdp-copy", 1, read_xdp, .sizes = EVERY, .one_rx_queue = true },
	{ "plain", "af-xdp-generic", 1, read_xdp_generic, .sizes = SMALL, .one_rx_queue = true },
	{ "libpcap", "ringcap", 1, read_pcap_ringcap, .ring = { .device = "vb" }, .sizes = SMALL },
	{ "libpcap", "ringcap-ebpf", 1, read_pcap_ringcap, .ring = { .device = "vb", .ebpf = true }, .sizes = SMALL },
	{ "libpcap", "tpacket-v3", 1, read_pcap_tpacket, .sizes = SMALL },
	{ "tcp-port-80-passes", "ringcap", 1, read_ringcap,
	  .ring = { .device = "vb", .filter = true }, .traffic = TRAFFIC_TCP, .sizes = SMALL },
	{ "tcp-port-80-passes", "ringcap-ebpf", 1, read_ringcap,
	  .ring = { .device = "vb", .ebpf = true, .filter = true }, .traffic = TRAFFIC_TCP, .sizes = SMALL },
	{ "tcp-port-80-passes", "tpacket-v3", 1, read_tpacket_filtered, .traffic = TRAFFIC_TCP, .sizes = SMALL },
	{ "tcp-port-80-rejects", "ringcap", 1, read_ringcap,
	  .ring = { .device = "vb", .filter = true }, .sizes = SMALL, .rejected = true },
	{ "tcp-port-80-rejects", "ringcap-ebpf", 1, read_ringcap,
	  .ring = { .device = "vb", .ebpf = true, .filter = true }, .sizes = SMALL, .rejected = true },
	{ "tcp-port-80-rejects", "tpacket-v3", 1, read_tpacket_filtered, .sizes = SMALL, .rejected = true },
	{ "10-wildcard-rules", "ringcap", 1, read_ringcap, .ring = { .device = "vb", .wildcards = 10 }, .sizes = SMALL },
	{ "10-wildcard-rules", "ringcap-ebpf", 1, read_ringcap,
	  .ring = { .device = "vb", .ebpf = true, .wildcards = 10 }, .sizes = SMALL },
	{ "1000-wildcard-rules", "ringcap", 1, read_ringcap,
	  .ring = { .device = "vb", .wildcards = 1000 }, .sizes = SMALL },
	{ "1000-wildcard-rules", "ringcap-ebpf", 1, read_ringcap,
	  .ring = { .device = "vb", .ebpf = true, .wildcards = 1000 }, .sizes = SMALL },
	{ "4096-wildcard-rules", "ringcap-ebpf", 1, read_ringcap,	/* the maximum of a manifest */
	  .ring = { .device = "vb", .ebpf = true, .wildcards = 4096 }, .sizes = SMALL },
	{ "10000-wildcard-rules", "ringcap", 1, read_ringcap,
	  .ring = { .device = "vb", .wildcards = 10000 }, .sizes = SMALL },
	{ "1000-near-rules", "ringcap", 1, read_ringcap,
	  .ring = { .device = "vb", .wildcards = 1000, .near = true }, .sizes = SMALL },
	{ "flows-not-learnt", "ringcap", 1, read_ringcap,
	  .ring = { .device = "vb", .learn = true, .full = true }, .sizes = SMALL },
	{ "learnt-flows", "ringcap", 1, read_ringcap, .ring = { .device = "vb", .learn = true }, .sizes = SMALL },
	{ "learnt-flows", "ringcap-ebpf", 1, read_ringcap,
	  .ring = { .device = "vb", .ebpf = true, .learn = true }, .sizes = SMALL },
	{ "1000-exact-rules", "ringcap", 1, read_ringcap, .ring = { .device = "vb", .exact = 1000 }, .sizes = SMALL },
	{ "may-shunt", "ringcap", 1, read_ringcap, .ring = { .device = "vb", .shunt = FLOWS }, .sizes = SMALL },
	{ "shunted", "ringcap", 1, read_shunted, .ring = { .device = "vb", .shunt = FLOWS }, .sizes = SMALL, .rejected = true },
	{ "others-shunted", "ringcap", 1, read_others_shunted, .ring = { .device = "vb", .shunt = FLOWS }, .sizes = SMALL },
	{ "others-shunted", "ringcap", 4, read_others_shunted, .ring = { .device = "vb", .shunt = FLOWS }, .sizes = SMALL },
	{ "may-shunt", "ringcap-ebpf", 1, read_ringcap,
	  .ring = { .device = "vb", .ebpf = true, .shunt = FLOWS }, .sizes = SMALL },
	{ "may-shunt", "ringcap-ebpf", 4, read_ringcap,
	  .ring = { .device = "vb", .ebpf = true, .shunt = FLOWS }, .sizes = SMALL },
	{ "shunted", "ringcap-ebpf", 1, read_shunted,
	  .ring = { .device = "vb", .ebpf = true, .shunt = FLOWS }, .sizes = SMALL, .rejected = true },
	{ "others-shunted", "ringcap-ebpf", 1, read_others_shunted,
	  .ring = { .device = "vb", .ebpf = true, .shunt = FLOWS }, .sizes = SMALL },
	{ "1000-patterns", "ringcap", 1, read_ringcap, .ring = { .device = "vb", .patterns = 1000 }, .sizes = EVERY },
	{ "1000-patterns", "ringcap-ebpf", 1, read_ringcap,
	  .ring = { .device = "vb", .ebpf = true, .patterns = 1000 }, .sizes = EVERY },
	{ "baseline", "no-reader", 0, NULL, .sizes = EVERY },
};

int main(int argc, char **argv)
{
	bool lossless;

	nr_producers = argc > 1 ? (unsigned int)atoi(argv[1]) : 0;
	if (!nr_producers || nr_producers > PRODUCERS_MAX || nr_producers & (nr_producers - 1))
		fail_with("workload", "the number of producers is a power of two, at most 8");
	pin(2 * nr_producers - 1);
	cases = argv + 2;
	progress = mmap(NULL, READERS_MAX * sizeof(*progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (progress == MAP_FAILED)
		fail("mmap");
	setvbuf(stdout, NULL, _IOLBF, 0);
	lossless = measure_all(without_module, sizeof(without_module) / sizeof(without_module[0]));
	load_module("/ringcap.ko");
	lossless &= measure_all(with_module, sizeof(with_module) / sizeof(with_module[0]));
	write_symbols("/dev/vport0p1");
	if (!lossless)
		printf("some reader missed packets, or got what it should not: its figures mean nothing\n");
	return !lossless;
}
