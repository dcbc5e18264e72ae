/* SPDX-License-Identifier: GPL-2.0-only */
/* What Suricata 7 and 8 name differently. */
#ifndef COMPAT_H
#define COMPAT_H

#include "suricata-common.h"

#include "conf.h"
#include "suricata-plugin.h"
#include "tm-threads.h"
#include "util-device.h"

#if SURICATA_MAJOR == 7

#define SCConfNode	ConfNode
#define SCConfGetNode	ConfGetNode
#define PacketIsTunnel(p)	IS_TUNNEL_PKT(p)

static inline void compat_set_interface(ThreadVars *tv, const char *name)
{
	(void)tv;
	(void)name;
}

static inline void compat_count(LiveDevice *device, uint64_t packets, uint64_t drops)
{
	(void)SC_ATOMIC_ADD(device->pkts, packets);
	(void)SC_ATOMIC_ADD(device->drop, drops);
}

#else

/* For CPU affinity by interface. The thread frees the name. */
static inline void compat_set_interface(ThreadVars *tv, const char *name)
{
	tv->iface_name = SCStrdup(name);
}

static inline void compat_count(LiveDevice *device, uint64_t packets, uint64_t drops)
{
	LiveDevicePktsAdd(device, packets);
	LiveDeviceDropAdd(device, drops);
}

#endif

#endif
