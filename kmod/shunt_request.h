/* SPDX-License-Identifier: GPL-2.0-only */
/* What a consumer asks about shunted flows. */
#ifndef RC_SHUNT_REQUEST_H
#define RC_SHUNT_REQUEST_H

#include <linux/ringcap.h>

struct rc_queue;

/* Runs RINGCAP_IOC_SHUNT, _UNSHUNT, _SHUNT_READ or _SHUNT_ENDED. @queue is that of an open file. Sleeps. */
long rc_shunt_request_run(struct rc_queue *queue, unsigned int cmd, struct ringcap_shunts __user *to);

#endif /* RC_SHUNT_REQUEST_H */
