/* SPDX-License-Identifier: GPL-2.0-only */
/* Netlink sockets: deletes the objects of a socket that is closed, see owner.h. */
#ifndef RC_SOCKET_H
#define RC_SOCKET_H

int rc_socket_module_init(void);
void rc_socket_module_exit(void);

#endif /* RC_SOCKET_H */
