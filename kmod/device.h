/* SPDX-License-Identifier: GPL-2.0-only */
/* Updates taps when their devices go, come back or move to another namespace. */
#ifndef RC_DEVICE_H
#define RC_DEVICE_H

int rc_device_module_init(void);
void rc_device_module_exit(void);

#endif /* RC_DEVICE_H */
