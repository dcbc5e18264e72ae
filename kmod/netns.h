/* SPDX-License-Identifier: GPL-2.0-only */
/* Network namespaces: setup and cleanup of each. */
#ifndef RC_NETNS_H
#define RC_NETNS_H

int rc_netns_module_init(void);
void rc_netns_module_exit(void);

#endif /* RC_NETNS_H */
