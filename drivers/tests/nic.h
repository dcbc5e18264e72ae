/* SPDX-License-Identifier: GPL-2.0-only */
/* The VM's network devices on the PCI bus (see run): their drivers, and the interfaces that they make. */
#ifndef RT_NIC_H
#define RT_NIC_H

#include "test.h"

/**
 * struct rt_nic - one of the two ends of a cable
 * @bus, @device: where the driver finds it, as in /sys/bus/<bus>/devices/<device>; set by rt_nic_find()
 * @name: its interface in this namespace; set by rt_nic_take()
 */
struct rt_nic {
	char bus[16];
	char device[64];
	char name[16];
};

/* The device behind root port @slot, from 1 on in the order of e2e/vm/run --nics, that @driver, a stock one, is for. */
void rt_nic_find(struct rt_nic *nic, u32 slot, const char *driver);

/* Binds it to the driver of this name, and takes its interface into this namespace as @name, up and promiscuous. */
void rt_nic_take(struct rt_nic *nic, const char *driver, const char *name);

/* Takes it away from its driver. */
void rt_nic_release(const struct rt_nic *nic);

/* Makes so many virtual functions of a PCI device whose interface is up, bound to no driver; 0 takes them away. */
void rt_nic_set_functions(const struct rt_nic *nic, u32 number);

/* One of them, from 0 on. */
void rt_nic_find_function(struct rt_nic *function, const struct rt_nic *nic, u32 number);

/* Sets the MTU of an interface. */
void rt_nic_set_mtu(const char *name, u32 mtu);

/* Sets how many descriptors each of its receive queues has. */
void rt_nic_set_descriptors(const char *name, u32 number);

/*
 * Waits until a second long all that one interface sends comes to the other. After a reset, which a new MTU is to some
 * cards, they report a carrier before the link is back, and it may go once more; and some drivers become promiscuous
 * later than they report it. No ring may take packets from the stack.
 */
void rt_nic_wait_for_link(const char *from, const char *to);

/* Packets received on an interface, by the driver's counter. */
u64 rt_nic_received(const char *name);

#endif /* RT_NIC_H */
