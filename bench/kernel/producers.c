// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "producers.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "readers.h"
#include "traffic.h"

unsigned int nr_producers = 1;

/* @orders: a pipe with the numbers of packets to send */
static struct {
	pid_t pid;
	int orders;
} producers[PRODUCERS_MAX];

static int done[2];		/* a pipe with one byte for each order that was carried out */

static int only_socket;		/* socket of the only producer */
static unsigned int only_size;

void pin(unsigned int processor)
{
	cpu_set_t set;

	if (nr_producers == 1)
		return;
	CPU_ZERO(&set);
	CPU_SET(processor, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		fail("sched_setaffinity");
}

static void produce(unsigned int n, unsigned int size, int orders)
{
	const struct traffic_share share = { .which = n, .of = nr_producers };
	int sender = traffic_open();
	unsigned int count;

	pin(n);
	while (read(orders, &count, sizeof(count)) == sizeof(count)) {
		traffic_send(sender, &share, size, count);
		if (write(done[1], "", 1) != 1)
			break;
	}
	exit(1);
}

static void start(unsigned int n, unsigned int size)
{
	int ends[2];

	if (pipe(ends))
		fail("pipe");
	producers[n].orders = ends[1];
	producers[n].pid = fork();
	if (!producers[n].pid)
		produce(n, size, ends[0]);
	close(ends[0]);
}

void producers_start(unsigned int size)
{
	unsigned int n;

	only_size = size;
	if (nr_producers == 1) {
		only_socket = traffic_open();
		return;
	}
	if (pipe(done))
		fail("pipe");
	for (n = 0; n < nr_producers; n++)
		start(n, size);
}

void producers_stop(void)
{
	unsigned int n;

	if (nr_producers == 1) {
		close(only_socket);
		return;
	}
	for (n = 0; n < nr_producers; n++) {
		kill(producers[n].pid, SIGKILL);
		waitpid(producers[n].pid, NULL, 0);
		close(producers[n].orders);
	}
	close(done[0]);
	close(done[1]);
}

void producers_send(unsigned int count)
{
	const struct traffic_share all = { .which = 0, .of = 1 };
	const unsigned int each = count / nr_producers;
	unsigned int n;
	char byte;

	if (nr_producers == 1) {
		traffic_send(only_socket, &all, only_size, count);
		return;
	}
	for (n = 0; n < nr_producers; n++)
		if (write(producers[n].orders, &each, sizeof(each)) != sizeof(each))
			fail("a producer");
	for (n = 0; n < nr_producers; n++)
		if (read(done[0], &byte, 1) != 1)
			fail("a producer");
}
