// SPDX-License-Identifier: GPL-2.0-only
/* Runs the cases with names that contain one of the arguments, or all: each in a process and a namespace of its own. */
#define _GNU_SOURCE
#include "test.h"

#include <sched.h>
#include <signal.h>
#include <unistd.h>

#define RT_CASE_SECONDS 300
#define RT_FULL_SECONDS 3600

static struct rt_case *rt_cases;

void rt_register(struct rt_case *test)
{
	struct rt_case **at = &rt_cases;

	while (*at)
		at = &(*at)->next;
	*at = test;
}

static void rt_run_case(void *arg)
{
	const struct rt_case *test = arg;

	if (unshare(CLONE_NEWNET | CLONE_NEWNS))
		rt_skip("no network namespaces here: %m");
	/* Or the stack would send packets of its own. */
	rt_write_file("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
	/*
	 * Otherwise reassembly would give up a datagram when its sender moves to a CPU that is 64 fragments ahead of
	 * the other.
	 */
	rt_write_file("/proc/sys/net/ipv4/ipfrag_max_dist", "0");
	alarm(getenv("RT_FULL") ? RT_FULL_SECONDS : RT_CASE_SECONDS);
	test->run();
}

static bool rt_is_wanted(const struct rt_case *test, int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++)
		if (strstr(test->name, argv[i]))
			return true;
	return argc < 2;
}

int main(int argc, char **argv)
{
	unsigned int number = 0, failed = 0;
	struct rt_case *test;
	int status;
	u64 start;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (test = rt_cases; test; test = test->next) {
		if (!rt_is_wanted(test, argc, argv))
			continue;
		start = rt_now();
		status = rt_child(rt_run_case, test);
		if (status >= 256)
			printf("# ended by signal %d%s\n", status - 256, status - 256 == SIGALRM ? " (took too long)" : "");
		printf("%s %u - %s%s (%.1f s)\n", status && status != RT_SKIP ? "not ok" : "ok", ++number, test->name,
		       status == RT_SKIP ? " # SKIP" : "", (double)(rt_now() - start) / 1e9);
		failed += status && status != RT_SKIP;
	}
	printf("1..%u\n", number);
	if (!number)
		printf("# no case has that in its name\n");
	return failed || !number;
}
