// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include "test.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RT_CASE_SECONDS 120

static struct rt_case *rt_cases;

void rt_register(struct rt_case *test)
{
	struct rt_case **at = &rt_cases;

	while (*at)
		at = &(*at)->next;
	*at = test;
}

void rt_fail(const char *file, int line, const char *what, const char *format, ...)
{
	va_list args;

	printf("# %s:%d: %s: ", file, line, what);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
	_exit(1);
}

void rt_skip(const char *format, ...)
{
	va_list args;

	printf("# skipped: ");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
	_exit(RT_SKIP);
}

int rt_child(void (*body)(void *arg), void *arg)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	RT_CHECK(pid >= 0, "%m");
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		body(arg);
		fflush(stdout);
		_exit(0);
	}
	RT_CHECK(waitpid(pid, &status, 0) == pid, "%m");
	return WIFSIGNALED(status) ? 256 + WTERMSIG(status) : WEXITSTATUS(status);
}

bool rt_write_file(const char *path, const char *value)
{
	int fd = open(path, O_WRONLY);
	bool done;

	if (fd < 0)
		return false;
	done = write(fd, value, strlen(value)) == (ssize_t)strlen(value);
	close(fd);
	return done;
}

bool rt_mount_sysfs(void)
{
	mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
	return !mount("sysfs", "/sys", "sysfs", 0, NULL);
}

void rt_pin(u32 cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	RT_CHECK(!sched_setaffinity(0, sizeof(set), &set), "CPU %u: %m", cpu);
}

u32 rt_scaled(u32 count)
{
	const char *divisor = getenv("RT_DIVISOR");
	u32 by = divisor ? (u32)atoi(divisor) : 1;

	return by > 1 ? (count + by - 1) / by : count;
}

static u64 rt_clock(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (u64)now.tv_sec * 1000000000ULL + (u64)now.tv_nsec;
}

u64 rt_now(void)
{
	return rt_clock(CLOCK_MONOTONIC);
}

u64 rt_wall(void)
{
	return rt_clock(CLOCK_REALTIME);
}

u32 rt_random(u64 *seed)
{
	u64 x = *seed += 0x9e3779b97f4a7c15ULL;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return (u32)(x >> 32);
}

static void rt_run_case(void *arg)
{
	const struct rt_case *test = arg;

	if (unshare(CLONE_NEWNET | CLONE_NEWNS))
		rt_skip("no network namespaces here: %m");
	/* Or the stack would send packets of its own. */
	rt_write_file("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
	alarm(RT_CASE_SECONDS);
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
