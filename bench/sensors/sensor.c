// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "sensor.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "readers.h"

#define STARTED		"/tmp/started"
#define OUTPUT		"/tmp/pass"
#define SETTLE_MS	250

static pid_t pid;

static void pause_ms(long milliseconds)
{
	const struct timespec time = { .tv_nsec = milliseconds * 1000000 };

	nanosleep(&time, NULL);
}

/* afpacket's own defaults: 128 MiB of buffers for each instance. Several share the packets by fanout. */
static void run(const struct sensor *s)
{
	const bool ringcap = !strcmp(s->module, "ringcap");
	const struct sched_param parameter = {};
	char instances[12];
	int out = open(OUTPUT, O_CREAT | O_TRUNC | O_WRONLY, 0600);

	dup2(out, 1);
	dup2(out, 2);
	snprintf(instances, sizeof(instances), "%u", s->instances);
	sched_setscheduler(0, SCHED_BATCH, &parameter);
	execl("/bin/pass", "pass", s->module, ringcap ? "bench" : s->in_line ? "vb:wa" : "vb",
	      s->in_line ? "inline" : "passive", instances, ringcap || s->instances == 1 ? NULL : "fanout_type=hash", NULL);
	fail("/bin/pass");
}

static void show_output(void)
{
	FILE *file = fopen(OUTPUT, "r");
	char line[256];

	while (file && fgets(line, sizeof(line), file))
		fputs(line, stdout);
	if (file)
		fclose(file);
}

void sensor_start(const struct sensor *sensor)
{
	unlink(STARTED);
	pid = fork();
	if (!pid)
		run(sensor);
	while (access(STARTED, F_OK)) {
		if (waitpid(pid, NULL, WNOHANG)) {
			show_output();
			fail_with(sensor->module, "the sensor gave up");
		}
		pause_ms(1);
	}
	pause_ms(SETTLE_MS);
}

struct sensor_counts sensor_end(void)
{
	unsigned long long received, dropped;
	struct sensor_counts sum = {};
	char line[256];
	int status;
	FILE *file;

	kill(pid, SIGTERM);
	waitpid(pid, &status, 0);
	file = fopen(OUTPUT, "r");
	if (status || !file) {
		show_output();
		fail_with("pass", "it did not end well");
	}
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "instance %*u received %llu dropped %llu", &received, &dropped) != 2)
			continue;
		sum.received += received;
		sum.dropped += dropped;
	}
	fclose(file);
	return sum;
}
