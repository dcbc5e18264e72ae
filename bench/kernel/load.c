// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "load.h"

#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define HOG_PRIORITY	5
#define SOFTIRQ_PRIORITY 6
#define SENDER_PRIORITY	10
#define LATE_PERCENT	10	/* a sender that took this much longer did not keep the rate */

static uint64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void sleep_us(unsigned int us)
{
	const struct timespec time = { us / 1000000, us % 1000000 * 1000 };

	nanosleep(&time, NULL);
}

static void schedule(pid_t pid, int policy, int priority)
{
	const struct sched_param parameter = { .sched_priority = priority };

	if (sched_setscheduler(pid, policy, &parameter)) {
		perror("a process's priority");
		exit(1);
	}
}

void load_prefer(void)
{
	schedule(0, SCHED_FIFO | SCHED_RESET_ON_FORK, SENDER_PRIORITY);
}

/* ---- the busy machine ---- */

static bool is_named(pid_t pid, const char *name)
{
	char path[32], line[32] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	file = fopen(path, "r");
	if (!file)
		return false;
	fgets(line, sizeof(line), file);
	fclose(file);
	return !strcmp(line, name);
}

void softirqs_prefer(bool above)
{
	pid_t pid;

	for (pid = 2; !is_named(pid, "ksoftirqd/0\n"); pid++)
		;
	schedule(pid, above ? SCHED_FIFO : SCHED_OTHER, above ? SOFTIRQ_PRIORITY : 0);
}

static void be_busy(void)
{
	schedule(0, SCHED_FIFO, HOG_PRIORITY);
	for (;;) {
		unsigned int at = (unsigned int)(now_us() % HOG_PERIOD_US);

		if (at > HOG_BUSY_US)
			sleep_us(HOG_PERIOD_US - at + 1000);
	}
}

pid_t hog_start(void)
{
	pid_t pid = fork();

	if (!pid)
		be_busy();
	return pid;
}

void hog_end(pid_t hog)
{
	kill(hog, SIGKILL);
	waitpid(hog, NULL, 0);
}

void hog_await(void)
{
	unsigned int at = (unsigned int)(now_us() % HOG_PERIOD_US);

	sleep_us((HOG_PERIOD_US + HOG_BUSY_US - at) % HOG_PERIOD_US);
}

/* ---- rates ---- */

bool send_paced(unsigned int rate, unsigned int count, unsigned int tick_us, void (*send)(unsigned int count))
{
	uint64_t start = now_us(), planned = (uint64_t)count * 1000000 / rate;
	unsigned int sent = 0;

	while (sent < count) {
		uint64_t due = (now_us() - start) * rate / 1000000;
		unsigned int n = due > count ? count - sent : (unsigned int)due - sent;

		send(n);
		sent += n;
		sleep_us(tick_us);
	}
	return now_us() - start > planned + planned * LATE_PERCENT / 100;
}

unsigned int ladder_rate(unsigned int first, unsigned int i)
{
	uint64_t rate = first;

	while (i--)
		rate = rate * STEP_PERCENT / 100;
	return (unsigned int)rate;
}

int ladder_climb(unsigned int steps, int guess, bool (*good)(unsigned int step, void *arg), void *arg)
{
	int best = -1, bad = (int)steps, at = guess < 0 ? bad / 2 : guess, stride = 1;

	while (bad - best > 1) {
		if (good((unsigned int)at, arg))
			best = at;
		else
			bad = at;
		at = (best + bad) / 2;
		if (guess >= 0 && best < 0 && bad - stride > at)
			at = bad - stride;
		if (guess >= 0 && bad == (int)steps && best + stride < at)
			at = best + stride;
		stride *= 2;
	}
	return best;
}
