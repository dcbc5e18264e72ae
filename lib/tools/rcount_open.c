// SPDX-License-Identifier: BSD-2-Clause
#include "rcount.h"

#include <dirent.h>
#include <errno.h>
#include <net/if.h>
#include <string.h>

#include "device.h"
#include "filter.h"

static bool given(const char *name)
{
	return strchr(name, '@') || device_given(name);
}

/* ---- receive queues ---- */

static int count_rx_queues(const char *interface)
{
	char path[64];
	struct dirent *entry;
	int n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/sys/class/net/%.32s/queues", interface);
	dir = opendir(path);
	while (dir && (entry = readdir(dir)))
		n += !strncmp(entry->d_name, "rx-", 3);
	if (dir)
		closedir(dir);
	return n < READERS_MAX ? n : READERS_MAX;
}

/* ---- opening ---- */

static struct ringcap *open_interface(const struct options *o, uint32_t queues, char *reason)
{
	struct ringcap_capture how = o->capture;
	struct bpf_program program = { 0 };
	struct ringcap *queue;

	how.queues = queues;
	how.balance = queues ? RINGCAP_BALANCE_RX_QUEUE : 0;
	if (o->filter && !filter_compile("rcount", o->filter, &program))
		return NULL;
	how.filter = program.bf_insns;
	how.filter_len = program.bf_len;
	queue = ringcap_open_interface(o->name, &how, reason);
	if (!queue)
		fprintf(stderr, "rcount: %s\n", reason);
	if (program.bf_insns)
		pcap_freecode(&program);
	return queue;
}

/* One handle has the capture. The others read its further queues, and are closed before it. */
static int open_multi(const struct options *o, struct reader *readers, char *reason)
{
	int n = count_rx_queues(o->name);
	char name[RINGCAP_NAME_MAX + 8];
	struct ringcap_queue first;

	if (!n) {
		fprintf(stderr, "rcount: %s: /sys/class/net does not show how many receive queues it has\n", o->name);
		return -1;
	}
	readers[0].queue = open_interface(o, (uint32_t)n, reason);
	if (!readers[0].queue)
		return -1;
	ringcap_queue(readers[0].queue, &first);
	for (int i = 1; i < n; i++) {
		snprintf(name, sizeof(name), "%s@%d", first.name, i);
		readers[i].queue = ringcap_open(name, 0, reason);
		if (!readers[i].queue) {
			fprintf(stderr, "rcount: %s\n", reason);
			return -1;
		}
	}
	return n;
}

static struct ringcap *open_queue(const char *name, char *reason)
{
	struct ringcap *queue = device_open_passive(name, 0, reason);

	if (!queue)
		fprintf(stderr, "rcount: %s\n", reason);
	return queue;
}

int readers_open(const struct options *o, struct reader *readers)
{
	const char *name = device_queue(o->name);
	char reason[RINGCAP_ERRBUF_SIZE] = "";
	int n = 1;

	if (!given(name) && if_nametoindex(o->name)) {
		if (o->multi)
			n = open_multi(o, readers, reason);
		else
			readers[0].queue = open_interface(o, 0, reason);
	} else if (o->has_capture && given(name)) {
		fprintf(stderr, "rcount: %s is a queue that another program made: only that program can set how it captures\n", name);
		return -1;
	} else {
		readers[0].queue = open_queue(name, reason);
	}
	return n > 0 && readers[0].queue ? n : -1;
}
