// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "agent.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "readers.h"
#include "rings.h"

#define MANIFESTS	"/manifests"
#define STATUS		"/status.json"
#define LOG		"/agent.log"
#define TRIES		3000	/* of 100 ms */

/* With these slots of this length a queue is 16 MiB. */
static const char manifest[] =
	"apiVersion: ringcap.io/v1alpha1\n"
	"kind: CaptureRing\n"
	"metadata: {name: bench}\n"
	"spec:\n"
	"  {engine: EBPF, interfaces: [{name: %s}], queues: %u, slots: 8192, snapLength: 1536, filter: {defaultAction: Pass%s";

static pid_t agent;

static void wait_a_moment(void)
{
	const struct timespec time = { .tv_nsec = 100000000 };

	nanosleep(&time, NULL);
}

static void write_manifest(const char *device, unsigned int queues, unsigned int patterns)
{
	char text[RING_PATTERN_MAX];
	unsigned int n;
	FILE *file;

	mkdir(MANIFESTS, 0755);
	file = fopen(MANIFESTS "/bench.yaml", "w");
	if (!file)
		fail(MANIFESTS);
	fprintf(file, manifest, device, queues, patterns ? ", payloadAction: Drop, payload: [" : "");
	for (n = 0; n < patterns; n++) {
		ring_pattern(n, text);
		fprintf(file, "%s{text: %s}", n ? ", " : "", text);
	}
	fprintf(file, "%s}}\n", patterns ? "]" : "");
	fclose(file);
}

static void run(void)
{
	int log = open(LOG, O_CREAT | O_TRUNC | O_WRONLY, 0644);

	dup2(log, STDOUT_FILENO);
	dup2(log, STDERR_FILENO);
	execl("/bin/node-agent", "node-agent", "--standalone", MANIFESTS, "--status-json", STATUS, "--metrics-address", "", NULL);
	_exit(1);
}

/* Whether the ring and its queues are said to be ready. */
static int is_ready(void)
{
	static char text[1 << 16];
	FILE *file = fopen(STATUS, "r");
	char *ring;
	size_t n;

	if (!file)
		return 0;
	n = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[n] = 0;
	ring = strstr(text, "\"rings\"");
	return ring && strstr(ring, "\"ready\": true") && !strstr(text, "\"ready\": false");
}

void agent_start(const char *device, unsigned int queues, unsigned int patterns)
{
	int tries;

	write_manifest(device, queues, patterns);
	unlink(STATUS);
	agent = fork();
	if (!agent)
		run();
	for (tries = 0; !is_ready(); tries++) {
		if (tries == TRIES || waitpid(agent, NULL, WNOHANG)) {
			system("cat " LOG);
			fail_with("the agent", "its ring is not there");
		}
		wait_a_moment();
	}
}

void agent_freeze(void)
{
	kill(agent, SIGSTOP);
	wait_a_moment();
}

void agent_end(void)
{
	kill(agent, SIGCONT);
	wait_a_moment(); /* it notices that its consumers are gone */
	kill(agent, SIGTERM);
	waitpid(agent, NULL, 0);
}
