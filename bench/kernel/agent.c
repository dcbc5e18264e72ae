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
#include "rules.h"
#include "shape.h"

#define MANIFESTS	"/manifests"
#define STATUS		"/status.json"
#define LOG		"/agent.log"
#define TRIES		3000	/* each takes 100 ms */

static pid_t agent;

static void wait_a_moment(void)
{
	const struct timespec time = { .tv_nsec = 100000000 };

	nanosleep(&time, NULL);
}

static void put_prefix(FILE *file, const char *field, const __u8 *address, unsigned int len)
{
	fprintf(file, "%s: %u.%u.%u.%u/%u, ", field, address[0], address[1], address[2], address[3], len);
}

static void put_rule(FILE *file, const struct ringcap_rule *rule)
{
	fprintf(file, "{action: %s, priority: %u, match: {", rule->action == RINGCAP_ACTION_LEARN ? "Learn" : "Pass",
		rule->priority);
	if (rule->fields & RINGCAP_MATCH_SADDR)
		put_prefix(file, "source", rule->saddr, rule->splen);
	if (rule->fields & RINGCAP_MATCH_DADDR)
		put_prefix(file, "destination", rule->daddr, rule->dplen);
	if (rule->fields & RINGCAP_MATCH_SPORT)
		fprintf(file, "sourcePort: %u, ", rule->sport[0]);
	if (rule->fields & RINGCAP_MATCH_DPORT)
		fprintf(file, "destinationPort: %u, ", rule->dport[0]);
	if (rule->fields & RINGCAP_MATCH_PROTO)
		fprintf(file, "protocol: %u", rule->l4_proto);
	fprintf(file, "}}, ");
}

static void put_filter(FILE *file, const struct ring_shape *shape)
{
	struct ringcap_rule rule = rule_learning();
	char text[PATTERN_MAX];
	unsigned int n;

	fprintf(file, "{defaultAction: %s", ring_passes_by_rule(shape) ? "Drop" : "Pass");
	if (shape->filter)
		fprintf(file, ", bpf: tcp port 80");
	fprintf(file, ", rules: [");
	if (shape->learn)
		put_rule(file, &rule);
	for (n = 0; n < shape->wildcards; n++) {
		rule = rule_wildcard(n);
		put_rule(file, &rule);
	}
	fprintf(file, "]");
	for (n = 0; n < shape->patterns; n++) {
		rule_pattern(n, text);
		fprintf(file, "%s{text: %s}", n ? ", " : ", payloadAction: Drop, payload: [", text);
	}
	fprintf(file, "%s}", n ? "]" : "");
}

/* With slots of this number and length, a lane has 16 MiB. */
static void write_manifest(const struct ring_shape *shape, unsigned int queues)
{
	FILE *file;

	mkdir(MANIFESTS, 0755);
	file = fopen(MANIFESTS "/bench.yaml", "w");
	if (!file)
		fail(MANIFESTS);
	fprintf(file, "apiVersion: ringcap.io/v1alpha1\n"
		      "kind: CaptureRing\n"
		      "metadata: {name: bench}\n"
		      "spec: {engine: EBPF, interfaces: [{name: %s}], transparentMode: %u, nodeTraffic: Allow, "
		      "queues: %u, slots: 8192, snapLength: 1536, filter: ",
		shape->device, shape->transparent, queues);
	put_filter(file, shape);
	if (shape->shunt)
		fprintf(file, ", consumers: {shunt: %u}", shape->shunt);
	fprintf(file, "}\n");
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

/* Returns true if the status reports the ring and its queues as ready. */
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

void agent_start(const struct ring_shape *shape, unsigned int queues)
{
	int tries;

	write_manifest(shape, queues);
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
	wait_a_moment(); /* the agent notices that its consumers are gone */
	kill(agent, SIGTERM);
	waitpid(agent, NULL, 0);
}
