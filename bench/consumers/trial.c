// SPDX-License-Identifier: Apache-2.0
/*
 * trial PROGRAM SOURCE ROUND RATE SECONDS INTERFACE READY COMMAND...
 *
 * Starts a consumer, and waits until its output contains the text READY. Sends RATE packets per second for SECONDS from
 * INTERFACE of the network namespace rc-wire. Ends the consumer by SIGINT. Prints its output, each line after "| ", and
 * its cost:
 *
 *   run {"program":...}
 *
 * The sender has the first CPU and a real-time priority; the consumer has all other CPUs. On a veth, the kernel's part
 * of capturing runs in the sender's time, and none of it in the consumer's. The exit status is 3 if the sender was
 * late. Such a trial says nothing about the consumer.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "load.h"
#include "readers.h"
#include "traffic.h"

#define SIZE		60	/* bytes of a packet, without FCS */
#define VECTOR		64
#define TICK_US		100
#define READY_S		180
#define CALM_MS		1000	/* wait after READY: threads have started, files are open */
#define DRAIN_MS	1500	/* more than the second for which tcpdump lets packets wait */
#define END_S		60
#define NSEC		1000000000ULL

/* Resources that a process has used so far, for all of its threads together. */
struct usage {
	uint64_t cpu_ns;	/* user + system */
	unsigned long voluntary, involuntary;	/* context switches of the current threads */
};

struct consumer {
	pid_t pid;
	clockid_t clock;
	char said[32];	/* path of a file */
	struct usage before, after;
	struct rusage whole;
	int status;
};

static struct {
	int fd;
	unsigned int flow;
} sender;

void fail(const char *what)
{
	fail_with(what, strerror(errno));
}

void fail_with(const char *what, const char *why)
{
	fprintf(stderr, "trial: %s: %s\n", what, why);
	exit(1);
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	if (clock_gettime(clock, &now))
		fail("a clock");
	return (uint64_t)now.tv_sec * NSEC + (uint64_t)now.tv_nsec;
}

static void sleep_ms(unsigned int milliseconds)
{
	const struct timespec time = { milliseconds / 1000, milliseconds % 1000 * 1000000 };

	nanosleep(&time, NULL);
}

/* ---- processors ---- */

/* Binds this process to the first of the CPUs that it may use, or to all others. */
static void take_processors(bool first)
{
	cpu_set_t may, mine;
	int cpu, seen = 0;

	CPU_ZERO(&mine);
	if (sched_getaffinity(0, sizeof(may), &may))
		fail("sched_getaffinity");
	if (CPU_COUNT(&may) < 2)
		fail_with("this machine has one processor", "the sender and the consumer need one each");
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &may) && (seen++ == 0) == first)
			CPU_SET(cpu, &mine);
	if (sched_setaffinity(0, sizeof(mine), &mine))
		fail("sched_setaffinity");
}

/* ---- the consumer ---- */

static void consumer_start(struct consumer *c, char **argv)
{
	int fd;

	strcpy(c->said, "/tmp/trial.XXXXXX");
	fd = mkostemp(c->said, O_APPEND);
	if (fd < 0)
		fail(c->said);
	c->pid = fork();
	if (c->pid < 0)
		fail("fork");
	if (!c->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		take_processors(false);
		dup2(fd, STDOUT_FILENO);
		dup2(fd, STDERR_FILENO);
		execvp(argv[0], argv);
		fail(argv[0]);
	}
	close(fd);
	if (clock_getcpuclockid(c->pid, &c->clock))
		fail_with("clock_getcpuclockid", "no clock of this process");
}

static void consumer_print(const struct consumer *c)
{
	FILE *file = fopen(c->said, "r");
	char line[1024];

	while (file && fgets(line, sizeof(line), file))
		printf("| %s%s", line, strchr(line, '\n') ? "" : "\n");
	if (file)
		fclose(file);
}

static bool consumer_said(const struct consumer *c, const char *text)
{
	char line[1024];
	bool found = false;
	FILE *file = fopen(c->said, "r");

	while (file && !found && fgets(line, sizeof(line), file))
		found = strstr(line, text);
	if (file)
		fclose(file);
	return found;
}

static void consumer_await(struct consumer *c, const char *text)
{
	unsigned int waited;

	for (waited = 0; !consumer_said(c, text); waited += 50) {
		bool ended = waitpid(c->pid, NULL, WNOHANG) == c->pid;

		if (ended || waited > READY_S * 1000) {
			consumer_print(c);
			unlink(c->said);
			if (!ended)
				kill(c->pid, SIGKILL);
			fail_with(text, ended ? "the consumer ended before it said this" : "the consumer does not say this");
		}
		sleep_ms(50);
	}
	sleep_ms(CALM_MS);
}

/* Adds up one line of each thread's status file. */
static unsigned long sum_of_threads(pid_t pid, const char *name)
{
	char path[300], line[256];
	unsigned long sum = 0;
	struct dirent *thread;
	DIR *threads;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	threads = opendir(path);
	while (threads && (thread = readdir(threads))) {
		FILE *file;

		snprintf(path, sizeof(path), "/proc/%d/task/%s/status", pid, thread->d_name);
		file = thread->d_name[0] == '.' ? NULL : fopen(path, "r");
		while (file && fgets(line, sizeof(line), file))
			if (!strncmp(line, name, strlen(name)))
				sum += strtoul(line + strlen(name), NULL, 10);
		if (file)
			fclose(file);
	}
	if (threads)
		closedir(threads);
	return sum;
}

static struct usage consumer_usage(const struct consumer *c)
{
	return (struct usage){
		.cpu_ns = clock_ns(c->clock),
		.voluntary = sum_of_threads(c->pid, "voluntary_ctxt_switches:"),
		.involuntary = sum_of_threads(c->pid, "nonvoluntary_ctxt_switches:"),
	};
}

static void consumer_end(struct consumer *c)
{
	unsigned int waited;

	kill(c->pid, SIGINT);
	for (waited = 0; wait4(c->pid, &c->status, WNOHANG, &c->whole) != c->pid; waited += 50) {
		if (waited == END_S * 1000)
			kill(c->pid, SIGKILL);
		sleep_ms(50);
	}
}

/* ---- the sender ---- */

static void sender_open(const char *interface)
{
	struct sockaddr_ll to = { .sll_family = AF_PACKET };
	int namespace = open("/run/netns/rc-wire", O_RDONLY | O_CLOEXEC), one = 1;

	if (namespace < 0 || setns(namespace, CLONE_NEWNET))
		fail("network namespace rc-wire");
	to.sll_ifindex = (int)if_nametoindex(interface);
	sender.fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (sender.fd < 0 || !to.sll_ifindex || bind(sender.fd, (struct sockaddr *)&to, sizeof(to)) ||
	    setsockopt(sender.fd, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof(one)))
		fail(interface);
	traffic_build(TRAFFIC_UDP, SIZE);
}

static void sender_send(unsigned int count)
{
	struct mmsghdr messages[VECTOR];
	struct iovec vectors[VECTOR];
	unsigned int i;
	int n;

	for (; count; count -= (unsigned int)n) {
		for (i = 0; i < VECTOR; i++) {
			vectors[i] = (struct iovec){ (void *)traffic_frame((sender.flow + i) % FLOWS), SIZE };
			messages[i] = (struct mmsghdr){ .msg_hdr = { .msg_iov = &vectors[i], .msg_iovlen = 1 } };
		}
		n = sendmmsg(sender.fd, messages, count < VECTOR ? count : VECTOR, 0);
		if (n <= 0)
			fail("sendmmsg");
		sender.flow += (unsigned int)n;
	}
}

/* ---- */

static double seconds(const struct timeval *time)
{
	return (double)time->tv_sec + (double)time->tv_usec / 1e6;
}

static void print_run(char **argv, unsigned int rate, unsigned int sent, double sending, const struct consumer *c)
{
	printf("run {\"program\":\"%s\",\"source\":\"%s\",\"round\":%s,\"rate\":%u,\"sent\":%u,\"sendingSeconds\":%.6f,"
	       "\"windowSeconds\":%.6f,\"cpuSeconds\":%.9f,\"voluntarySwitches\":%lu,\"involuntarySwitches\":%lu,\"wholeUserSeconds\":%.6f,"
	       "\"wholeSystemSeconds\":%.6f,\"wholeVoluntarySwitches\":%ld,\"wholeInvoluntarySwitches\":%ld,\"status\":%d}\n",
	       argv[1], argv[2], argv[3], rate, sent, sending, sending + DRAIN_MS / 1e3,
	       (double)(c->after.cpu_ns - c->before.cpu_ns) / NSEC,
	       c->after.voluntary - c->before.voluntary, c->after.involuntary - c->before.involuntary,
	       seconds(&c->whole.ru_utime), seconds(&c->whole.ru_stime), c->whole.ru_nvcsw, c->whole.ru_nivcsw,
	       WIFEXITED(c->status) ? WEXITSTATUS(c->status) : 128 + WTERMSIG(c->status));
}

int main(int argc, char **argv)
{
	struct consumer consumer = { 0 };
	unsigned int rate, sent;
	uint64_t start;
	double sending;
	bool late;

	if (argc < 9) {
		fprintf(stderr, "usage: trial PROGRAM SOURCE ROUND RATE SECONDS INTERFACE READY COMMAND...\n");
		return 2;
	}
	rate = (unsigned int)strtoul(argv[4], NULL, 10);
	sent = rate * (unsigned int)strtoul(argv[5], NULL, 10);
	consumer_start(&consumer, argv + 8);
	consumer_await(&consumer, argv[7]);
	take_processors(true);
	sender_open(argv[6]);
	load_prefer();
	consumer.before = consumer_usage(&consumer);
	start = clock_ns(CLOCK_MONOTONIC);
	late = send_paced(rate, sent, TICK_US, sender_send);
	sending = (double)(clock_ns(CLOCK_MONOTONIC) - start) / NSEC;
	sleep_ms(DRAIN_MS);
	consumer.after = consumer_usage(&consumer);
	consumer_end(&consumer);
	if (!late) {
		consumer_print(&consumer);
		print_run(argv, rate, sent, sending, &consumer);
	}
	unlink(consumer.said);
	return late ? 3 : 0;
}
