// SPDX-License-Identifier: BSD-2-Clause
#include "ifname.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/ringcap.h>

static FILE *open_names(const char *name)
{
	const char *dir = secure_getenv("RINGCAP_RUN_DIR");
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/%s/interfaces/names", dir && *dir ? dir : RINGCAP_RUN_DIR, name);

	return n < 0 || (size_t)n >= sizeof(path) ? NULL : fopen(path, "re");
}

/* A line has the number, the interface and its pod, separated by tabs. */
void ifname_find(struct ifname *found, const char *name, uint32_t ifindex)
{
	FILE *file = open_names(name);
	char *line = NULL, *end, *pod;
	size_t room = 0;

	memset(found, 0, sizeof(*found));
	while (file && !*found->interface && getline(&line, &room, file) > 0) {
		line[strcspn(line, "\n")] = '\0';
		if (strtoul(line, &end, 10) != ifindex || *end++ != '\t')
			continue;
		pod = end + strcspn(end, "\t");
		if (*pod)
			*pod++ = '\0';
		snprintf(found->interface, sizeof(found->interface), "%s", end);
		snprintf(found->pod, sizeof(found->pod), "%s", pod);
	}
	free(line);
	if (file)
		fclose(file);
}
