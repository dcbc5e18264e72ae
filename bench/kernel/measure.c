// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "measure.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent.h"
#include "marker.h"
#include "producers.h"
#include "readers.h"

#define PACKETS		(8 * BURST)
#define WARM_UP		(2 * BURST)
#define SETTLE_MS	250

static void pause_ms(long milliseconds)
{
	const struct timespec time = { .tv_nsec = milliseconds * 1000000 };

	nanosleep(&time, NULL);
}

static pid_t pids[READERS_MAX];

static void start_readers(const struct experiment *e)
{
	const struct sched_param parameter = {};
	unsigned int i;

	for (i = 0; e->read && i < e->readers; i++) {
		pids[i] = fork();
		if (!pids[i]) {
			sched_setscheduler(0, SCHED_BATCH, &parameter);
			pin(nr_producers + i % nr_producers);
			e->read(i);
			exit(1);
		}
		while (!__atomic_load_n(&progress[i].ready, __ATOMIC_ACQUIRE)) {
			if (waitpid(pids[i], NULL, WNOHANG))
				fail_with(e->who, "a reader gave up");
			pause_ms(1);
		}
	}
}

static void stop_readers(const struct experiment *e)
{
	unsigned int i;

	for (i = 0; e->read && i < e->readers; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
}

uint64_t number_in(const char *path)
{
	unsigned long long number;
	FILE *file = fopen(path, "r");

	if (!file || fscanf(file, "%llu", &number) != 1)
		fail(path);
	fclose(file);
	return number;
}

uint64_t experiment_received(const struct experiment *e, unsigned int size)
{
	uint64_t bytes = 0;
	unsigned int i;

	if (e->counter)
		return number_in(e->counter);
	for (i = 0; i < READERS_MAX; i++)
		bytes += __atomic_load_n(&progress[i].bytes, __ATOMIC_RELAXED);
	return bytes / size;
}

uint64_t experiment_dropped(const struct experiment *e)
{
	uint64_t dropped = 0;
	unsigned int i;

	if (e->ring.device)
		return ring_dropped();
	for (i = 0; e->read && i < e->readers; i++)
		dropped += reader_dropped(i, pids[i]);
	return dropped;
}

void experiment_begin(const struct experiment *e, unsigned int size)
{
	memset(progress, 0, READERS_MAX * sizeof(*progress));
	traffic_build(e->traffic, size);
	if (e->ring.device)
		ring_make(&e->ring, e->readers);
	start_readers(e);
	if (e->ring.ebpf)
		agent_freeze();
	if (e->settle)
		e->settle();
}

void experiment_end(const struct experiment *e)
{
	stop_readers(e);
	if (e->ring.device)
		ring_delete(&e->ring);
	/* A worker frees memory, which takes millions of instructions. They must not count in the next measurement. */
	pause_ms(SETTLE_MS);
}

bool measure(const struct experiment *e, unsigned int size)
{
	uint64_t before, got;

	experiment_begin(e, size);
	producers_start(size);
	producers_send(WARM_UP);
	before = experiment_received(e, size);
	RB_MARK(RB_MARKER_BEGIN);
	producers_send(PACKETS);
	RB_MARK(RB_MARKER_END);
	got = experiment_received(e, size) - before;
	printf("run %s %s %u %u %u %llu\n", e->what, e->who,
	       e->queues ? e->queues : e->readers, size, PACKETS, (unsigned long long)got);
	producers_stop();
	experiment_end(e);
	return got == ((e->read || e->counter) && !e->rejected ? PACKETS : 0);
}
