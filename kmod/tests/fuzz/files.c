// SPDX-License-Identifier: GPL-2.0-only
/* Readers of /proc/net/ringcap, which any user may be, and writers of module parameters, which are root. */
#define _GNU_SOURCE
#include "fuzz.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#define RF_PARAMETERS "/sys/module/ringcap/parameters"

static void rf_read_file(u64 *seed, const char *path)
{
	static char buffer[65536];
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return;
	rf_count(files);
	/* In pieces of any size, from anywhere. */
	if (rf_one_in(seed, 4))
		lseek(fd, rf_below(seed, 5000), SEEK_SET);
	while (read(fd, buffer, rf_one_in(seed, 3) ? 1 + rf_below(seed, 100) : sizeof(buffer)) > 0)
		if (rf_one_in(seed, 10))
			break;
	close(fd);
}

static void rf_read_folder(u64 *seed, const char *path, u32 depth)
{
	DIR *folder = opendir(path);
	struct dirent *entry;
	char below[512];

	while (folder && (entry = readdir(folder))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(below, sizeof(below), "%s/%s", path, entry->d_name);
		if (entry->d_type == DT_DIR && depth)
			rf_read_folder(seed, below, depth - 1);
		else
			rf_read_file(seed, below);
	}
	if (folder)
		closedir(folder);
}

/* Everything to any number, and text that is none. */
static void rf_write_parameter(u64 *seed)
{
	DIR *folder = opendir(RF_PARAMETERS);
	struct dirent *entry;
	char path[300], value[32];

	while (folder && (entry = readdir(folder))) {
		if (entry->d_name[0] == '.' || !rf_one_in(seed, 3))
			continue;
		snprintf(path, sizeof(path), RF_PARAMETERS "/%s", entry->d_name);
		snprintf(value, sizeof(value), rf_one_in(seed, 10) ? "x%d" : "%d", (int)rf_number(seed));
		rt_write_file(path, value);
	}
	if (folder)
		closedir(folder);
}

void rf_act_files(u64 seed)
{
	u32 steps;

	for (steps = 0; rf_go_on(steps); steps++) {
		if (rf_one_in(&seed, 20))
			rf_write_parameter(&seed);
		else
			rf_read_folder(&seed, "/proc/net/ringcap", 3);
		usleep(rf_below(&seed, 10000));
	}
}
