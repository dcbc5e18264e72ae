/* SPDX-License-Identifier: GPL-2.0-only */
/* Names the flow of a packet, for ringcap_shunt. */
#ifndef SHUNT_FLOW_H
#define SHUNT_FLOW_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <ringcap/ringcap.h>

#include "../../kmod/classify/rule.h"

/* UDP ports of tunnels that sensors look into. */
static inline bool shunt_flow_is_tunnel_port(uint16_t port)
{
	static const uint16_t ports[] = { RC_PORT_GTPU, RC_PORT_VXLAN, RC_PORT_GENEVE, 3386 /* GTP' */, 3544 /* Teredo */,
					  4790 /* VXLAN-GPE */, 8472 /* VXLAN, Linux's default */ };

	for (size_t i = 0; i < sizeof(ports) / sizeof(*ports); i++)
		if (ports[i] == port)
			return true;
	return false;
}

/* The key of a shunted flow has the outermost VLAN id alone, so it would be the flow of other inner VLANs, too. */
static inline bool shunt_flow_has_more_tags(const struct rc_flow *parsed)
{
	return parsed->l3_off > (parsed->vlan_tpid ? 18 : 14);
}

/*
 * Names the flow of the packet at data, of which caplen bytes are there. Leaves action, target and idle_s as they are.
 * Returns false if no shunted flow is exactly this one: the packet is not TCP, UDP or SCTP, is a fragment, ends before
 * its ports, has several VLAN tags, or is a tunnel, with the flow that a sensor means inside.
 *
 * This is the kernel module's own parser, so the module finds the packet in the flow that it gets here.
 */
static inline bool shunt_flow_of(const uint8_t *data, uint32_t caplen, struct ringcap_exact *flow)
{
	const struct rc_frame frame = { .data = data, .avail = caplen < RC_PARSE_MAX ? caplen : RC_PARSE_MAX };
	struct rc_exact_key key;
	struct rc_flow parsed;
	size_t size;

	rc_parse(&frame, &parsed);
	if (!rc_exact_key_of_packet(&frame, &parsed, &key) || !rc_proto_has_ports(parsed.l4_proto) ||
	    parsed.flags & RINGCAP_SLOT_FRAGMENT || shunt_flow_has_more_tags(&parsed))
		return false;
	if (parsed.l4_proto == RC_IPPROTO_UDP &&
	    (shunt_flow_is_tunnel_port(parsed.sport) || shunt_flow_is_tunnel_port(parsed.dport)))
		return false;
	size = parsed.l3_proto == RC_ETH_P_IPV4 ? 4 : 16;
	memset(flow->saddr, 0, sizeof(flow->saddr));
	memset(flow->daddr, 0, sizeof(flow->daddr));
	memcpy(flow->saddr, parsed.saddr, size);
	memcpy(flow->daddr, parsed.daddr, size);
	flow->sport = parsed.sport;
	flow->dport = parsed.dport;
	flow->l3_proto = parsed.l3_proto;
	flow->l4_proto = parsed.l4_proto;
	flow->vlan_id = parsed.vlan_tpid ? parsed.vlan_tci & 0xfff : 0;
	return true;
}

#endif
