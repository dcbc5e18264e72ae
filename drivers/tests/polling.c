// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include "polling.h"

#include <dirent.h>
#include <sys/mount.h>
#include <sys/stat.h>

/* /sys shows the interfaces of the namespace that mounted it. That is not our namespace. */
#define OWN_SYS "/run/own-sys"

void rt_polling_by_threads(const char *interface)
{
	char path[128];

	mkdir(OWN_SYS, 0700);
	RT_CHECK(!mount("sysfs", OWN_SYS, "sysfs", 0, NULL), "%m");
	snprintf(path, sizeof(path), OWN_SYS "/class/net/%s/threaded", interface);
	RT_CHECK(rt_write_file(path, "1"), "%s: %m", path);
	RT_CHECK(!umount(OWN_SYS), "%m");
}

/* Reads the number after @label in a process's status. Returns false unless its name starts with @name. */
static bool rt_polling_status(const char *process, const char *name, const char *label, unsigned long long *number)
{
	char path[300], line[128];
	bool found = false, named = false;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%s/status", process);
	file = fopen(path, "r");
	while (file && !found && fgets(line, sizeof(line), file)) {
		if (!strncmp(line, "Name:\t", 6))
			named = !strncmp(line + 6, name, strlen(name));
		found = named && !strncmp(line, label, strlen(label)) && sscanf(line + strlen(label), "%llu", number) == 1;
	}
	if (file)
		fclose(file);
	return found;
}

u64 rt_polling_waits(const char *interface)
{
	DIR *processes = opendir("/proc");
	unsigned long long waits, sum = 0;
	struct dirent *process;
	char name[32];

	RT_CHECK(processes, "%m");
	snprintf(name, sizeof(name), "napi/%s-", interface);
	while ((process = readdir(processes)))
		if (rt_polling_status(process->d_name, name, "voluntary_ctxt_switches:", &waits))
			sum += waits;
	closedir(processes);
	return sum;
}
