/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of queues as the command lines of capture programs have them: see pcap-ringcap(7). */
#ifndef DEVICE_H
#define DEVICE_H

#include <stdlib.h>
#include <string.h>

#include <ringcap/ringcap.h>

/* What is behind the prefix "ringcap:" or "rc-"; NULL when there is none. */
static inline const char *device_after_prefix(const char *device)
{
	if (!strncmp(device, "ringcap:", strlen("ringcap:")))
		return device + strlen("ringcap:");
	if (!strncmp(device, "rc-", strlen("rc-")))
		return device + strlen("rc-");
	return NULL;
}

/* How many queues of that name, which may have "@QUEUE" behind it, this process was given. */
static inline int device_given(const char *name)
{
	size_t len = strcspn(name, "@");
	struct ringcap_device *devices;
	int n = ringcap_list(NULL, 0), found = 0;

	if (n <= 0)
		return 0;
	devices = calloc((size_t)n, sizeof(*devices));
	if (!devices)
		return 0;
	n = ringcap_list(devices, (size_t)n) < n ? 0 : n;
	for (int i = 0; i < n; i++)
		found += strlen(devices[i].name) == len && !memcmp(devices[i].name, name, len);
	free(devices);
	return found;
}

/* The queue that a device is, for programs to which a name needs no prefix. A queue may be called rc-something. */
static inline const char *device_queue(const char *device)
{
	const char *name = device_after_prefix(device);

	return name && !device_given(device) ? name : device;
}

#endif
