/* SPDX-License-Identifier: GPL-2.0-only */
/* The VM's network devices on the PCI bus (see run), their drivers, and their interfaces. */
#ifndef RT_NIC_H
#define RT_NIC_H

#include "test.h"

/**
 * struct rt_nic - one of the two ends of a cable
 * @bus, @device: its place, as in /sys/bus/<bus>/devices/<device>; set by rt_nic_find()
 * @name: its interface in this namespace; set by rt_nic_take()
 */
struct rt_nic {
	char bus[16];
	char device[64];
	char name[16];
};

/*
 * Finds the device behind root port @slot that the stock driver @driver supports. Slots are numbered from 1 in the
 * order of e2e/vm/run --nics.
 */
void rt_nic_find(struct rt_nic *nic, u32 slot, const char *driver);

/* Binds it to this driver, and moves its interface into this namespace as @name, up and promiscuous. */
void rt_nic_take(struct rt_nic *nic, const char *driver, const char *name);

/* Unbinds it from its driver. */
void rt_nic_release(const struct rt_nic *nic);

/* Creates this number of virtual functions, bound to no driver; 0 removes them. The PCI device's interface is up. */
void rt_nic_set_functions(const struct rt_nic *nic, u32 number);

/* Finds one of these virtual functions, numbered from 0. */
void rt_nic_find_function(struct rt_nic *function, const struct rt_nic *nic, u32 number);

/* Sets the MTU of an interface. */
void rt_nic_set_mtu(const char *name, u32 mtu);

/* Sets the number of descriptors of each receive queue. */
void rt_nic_set_descriptors(const char *name, u32 number);

/*
 * Waits until all packets that one interface sends come to the other for one second. Some cards reset when the MTU
 * changes. After a reset, cards report a carrier before the link is back, and the link may go once more. Some drivers
 * become promiscuous later than they report it. No ring may take packets from the stack.
 */
void rt_nic_wait_for_link(const char *from, const char *to);

/* Returns the packets received on an interface, by the driver's counter. */
u64 rt_nic_received(const char *name);

#endif /* RT_NIC_H */
