/* SPDX-License-Identifier: GPL-2.0-only */
/* What Suricata 7 and 8 name differently. */
#ifndef COMPAT_H
#define COMPAT_H

#include "suricata-common.h"

#include "conf.h"
#include "suricata-plugin.h"
#include "suricata.h"
#include "tm-threads.h"
#include "util-device.h"

#if SURICATA_MAJOR == 7

#define SCConfNode	ConfNode
#define SCConfGetNode	ConfGetNode
#define PacketGetIPv4(p)	((p)->ip4h)
#define PacketGetIPv6(p)	((p)->ip6h)
#define PacketGetTCP(p)		((p)->tcph)
#define PacketIsIPv4(p)		PKT_IS_IPV4(p)
#define PacketIsIPv6(p)		PKT_IS_IPV6(p)
#define PacketIsTCP(p)		PKT_IS_TCP(p)
#define PacketIsTunnel(p)	IS_TUNNEL_PKT(p)

/* What a run mode's function returns that says if packets wait for Suricata. */
#define COMPAT_IPS	void
#define COMPAT_IPS_IS(on) ((void)(on))

static inline void compat_set_runmode(int mode)
{
	run_mode = mode;
}

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

#define COMPAT_IPS	int
#define COMPAT_IPS_IS(on) ((on) ? 1 : 0)

static inline void compat_set_runmode(int mode)
{
	SCRunmodeSet(mode);
}

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
