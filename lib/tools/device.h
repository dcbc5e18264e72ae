/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of queues on the command lines of capture programs: see pcap-ringcap(7). */
#ifndef DEVICE_H
#define DEVICE_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ringcap/ringcap.h>

/* Returns the text after the prefix "ringcap:" or "rc-", or NULL if there is no such prefix. */
static inline const char *device_after_prefix(const char *device)
{
	if (!strncmp(device, "ringcap:", strlen("ringcap:")))
		return device + strlen("ringcap:");
	if (!strncmp(device, "rc-", strlen("rc-")))
		return device + strlen("rc-");
	return NULL;
}

/* Returns how many queues of that name this process was given. The name may end with "@QUEUE". */
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

/* Returns a device's queue, for programs whose names need no prefix. A queue's own name may start with rc-. */
static inline const char *device_queue(const char *device)
{
	const char *name = device_after_prefix(device);

	return name && !device_given(device) ? name : device;
}

/*
 * ringcap_open for programs that only read. Packets of an in-line queue would wait for verdicts that they do not give, so
 * it is refused. @reason has RINGCAP_ERRBUF_SIZE bytes.
 */
static inline struct ringcap *device_open_passive(const char *name, unsigned int flags, char *reason)
{
	struct ringcap *queue = ringcap_open(name, flags, reason);

	if (!queue || !ringcap_is_inline(queue))
		return queue;
	ringcap_close(queue);
	snprintf(reason, RINGCAP_ERRBUF_SIZE, "%.70s is in line: its packets wait for verdicts, which this program does not give", name);
	errno = ENOTSUP;
	return NULL;
}

#endif
