/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Known packets: the contents of packet number N of a kind of traffic follow from N alone, and N is in its last bytes.
 * So a receiver can tell whether a packet arrived whole, once, and in the right place.
 */
#ifndef RT_TRAFFIC_H
#define RT_TRAFFIC_H

#include "test.h"

#define RT_PACKET_MAX 9216

/**
 * struct rt_traffic - a kind of traffic, UDP over IPv4
 * @flows: how many flows take turns, 0 = 1
 * @min_len, @max_len: bytes without FCS; 0 = 60 and @min_len
 * @tpid, @tci: VLAN tags from the outside in; tpid 0 ends them
 * @reverse: from the servers to the clients
 * @first: number of the first packet
 */
struct rt_traffic {
	u32 flows;
	u32 min_len;
	u32 max_len;
	u16 tpid[2];
	u16 tci[2];
	bool reverse;
	u32 first;
};

#define RT_CLIENT_PORT	10000	/* of flow 0 */
#define RT_SERVER_PORT	53	/* of even flows; odd ones have the next */

/*
 * A pair of connected interfaces in this namespace, up. They are veth, or with RT_AWARE in the environment of a
 * capture-aware driver.
 */
bool rt_pair_is_aware(void);
void rt_veth_create(const char *a, const char *b);
void rt_link_delete(const char *name);
u32 rt_ifindex(const char *name);

/* Runs one line of iproute2. */
void rt_ip(const char *format, ...) __attribute__((format(printf, 1, 2)));

u32 rt_packet_build(const struct rt_traffic *traffic, u32 number, u8 *bytes);

/* The number of a whole packet, or UINT32_MAX when it is none of ours. */
u32 rt_packet_number(const u8 *bytes, u32 len);
u32 rt_packet_flow(const struct rt_traffic *traffic, u32 number);

/* A socket that sends on an interface as any program would. */
int rt_sender_open(const char *interface);
void rt_send(int sender, const struct rt_traffic *traffic, u32 from, u32 count);
u64 rt_traffic_bytes(const struct rt_traffic *traffic, u32 from, u32 count);

#endif /* RT_TRAFFIC_H */
