/* SPDX-License-Identifier: BSD-2-Clause */
/* A queue of the kernel module: its character device and the areas that are mapped from it. */
#ifndef RINGCAP_KMOD_H
#define RINGCAP_KMOD_H

#include <ringcap/ringcap.h>

#include "lanes.h"
#include "sender.h"

struct kmod {
	int fd;
	const struct ringcap_queue_info *info;
	const struct ringcap_lane_kernel *kernel;
	struct ringcap_lane_consumer *consumer;
	struct lanes lanes;
	struct sender sender;		/* see inject.c */
};

/* Attaches the handle to the device node at path. Returns 0 or, after cleaning up, -errno with the reason in errbuf. */
int kmod_open(struct ringcap *h, const char *path, char *errbuf);

/* Unmaps the transmit area, if it is mapped. */
void inject_close(struct kmod *k);

#endif
