// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include "test.h"

#include <fcntl.h>
#include <linux/netlink.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

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

u64 rt_proc_number(const char *path, const char *word)
{
	char line[128];
	u64 number = 0;
	FILE *f = fopen(path, "re");

	RT_CHECK(f, "%s: %s", path, strerror(errno));
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, word, strlen(word)))
			number = strtoull(line + strlen(word), NULL, 10);
	fclose(f);
	return number;
}

u64 rt_available(void)
{
	return rt_proc_number("/proc/meminfo", "MemAvailable:");
}

/*
 * Bottom halves are not preempted, so no packet is being processed on a CPU where we run. Enabling them again, as a
 * socket's lock does, runs those that are pending.
 */
void rt_settle(void)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC), size = 65536;
	long cpu, nr = sysconf(_SC_NPROCESSORS_ONLN);
	cpu_set_t before;

	RT_CHECK(fd >= 0 && !sched_getaffinity(0, sizeof(before), &before), "%m");
	for (cpu = 0; cpu < nr; cpu++) {
		rt_pin((u32)cpu);
		RT_CHECK(!setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)), "%m");
	}
	RT_CHECK(!sched_setaffinity(0, sizeof(before), &before), "%m");
	close(fd);
}

u32 rt_scaled(u32 count)
{
	const char *divisor = getenv("RT_DIVISOR");
	u32 by = divisor ? (u32)atoi(divisor) : 1;

	return by > 1 ? (count + by - 1) / by : count;
}

u32 rt_rounds(u32 full, u32 usual)
{
	return getenv("RT_FULL") ? full : rt_scaled(usual);
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
