// SPDX-License-Identifier: GPL-2.0-only
/*
 * In line: what `reject` rules send. A TCP reset, or for other protocols an ICMP error, goes to the sender of the
 * packet, to its receiver or to both, by the two interfaces of the packet's pair. Suricata's own module for this needs
 * a raw socket and a route.
 *
 * An answer has the packet's Ethernet header and VLAN tags. To the sender, addresses and ports are swapped.
 */
#include "capture.h"

#include <netinet/icmp6.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/ip_icmp.h>
#include <netinet/tcp.h>

#include "action-globals.h"
#include "packet.h"

enum {
	LINK_MIN = 14,
	LINK_MAX = LINK_MIN + 2 * 4,	/* with two VLAN tags */
	MACS = 12,
	QUOTED_MAX = 512,		/* most bytes of a packet that an ICMP error has */
	ICMP_SIZE = 8,			/* its header, in both versions */
	TTL = 64,
};

struct answer {
	uint8_t bytes[LINK_MAX + sizeof(struct ip6_hdr) + ICMP_SIZE + QUOTED_MAX];
	size_t len;
};

/* The packet to answer, in Suricata's memory. */
struct question {
	const Packet *p;
	const uint8_t *link, *network;
	bool six;
};

/* Returns where it is. */
static uint8_t *add(struct answer *a, const void *bytes, size_t len)
{
	uint8_t *at = a->bytes + a->len;

	memcpy(at, bytes, len);
	a->len += len;
	return at;
}

/* Adds two equal halves, in all len bytes; if swapped, the second half first. */
static uint8_t *add_halves(struct answer *a, const uint8_t *halves, size_t len, bool swapped)
{
	uint8_t *at = add(a, halves + (swapped ? len / 2 : 0), len / 2);

	add(a, halves + (swapped ? 0 : len / 2), len / 2);
	return at;
}

/* ---------------------------------------------------------------- checksums */

static uint32_t sum(uint32_t before, const uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i + 1 < len; i += 2)
		before += (uint32_t)bytes[i] << 8 | bytes[i + 1];
	return len % 2 ? before + ((uint32_t)bytes[len - 1] << 8) : before;
}

/* Writes the checksum of what adds up to total into a header, where there is 0 so far. */
static void put_checksum(uint8_t *at, uint32_t total)
{
	while (total >> 16)
		total = (total & 0xffff) + (total >> 16);
	at[0] = (uint8_t)(~total >> 8);
	at[1] = (uint8_t)~total;
}

/* ---------------------------------------------------------------- what is answered */

/* In Suricata 8 a packet's headers share their places, so they are asked for only where the packet has them. */
static bool find_headers(struct question *q, const Packet *p)
{
	*q = (struct question){ .p = p, .link = GET_PKT_DATA(p), .six = PacketIsIPv6(p) };
	if (PacketIsIPv4(p))
		q->network = (const uint8_t *)PacketGetIPv4(p);
	else if (PacketIsIPv6(p))
		q->network = (const uint8_t *)PacketGetIPv6(p);
	return q->network != NULL;
}

/* Only VLAN tags are between Ethernet and IP. Other headers there have lengths or numbers of their own. */
static bool plain_link(const struct question *q)
{
	size_t len = (size_t)(q->network - q->link);

	if (len < LINK_MIN || len > LINK_MAX || len % 4 != LINK_MIN % 4)
		return false;
	for (const uint8_t *type = q->link + MACS; type < q->network - 2; type += 4)
		if (memcmp(type, "\x81\x00", 2) && memcmp(type, "\x88\xa8", 2))
			return false;
	return true;
}

/* No ICMP packet, for it may be an error, no multicast and no fragment: RFC 1122, 3.2.2. Suricata answers no tunnel. */
static bool may_answer(const struct question *q)
{
	return q->p->proto != IPPROTO_ICMP && q->p->proto != IPPROTO_ICMPV6 && !(q->link[0] & 1) &&
	       !(q->p->flags & PKT_IS_FRAGMENT) && !PacketIsTunnel(q->p);
}

/* ---------------------------------------------------------------- answers */

static void add_link(struct answer *a, const struct question *q, bool to_sender)
{
	add_halves(a, q->link, MACS, to_sender);
	add(a, q->link + MACS, (size_t)(q->network - q->link) - MACS);
}

/* The header, for len bytes that follow it. Returns the sum of its pseudo header. */
static uint32_t add_ipv4(struct answer *a, const struct question *q, uint8_t protocol, size_t len, bool to_sender)
{
	struct ip ip = { .ip_v = 4, .ip_hl = sizeof(ip) / 4, .ip_len = htons((uint16_t)(sizeof(ip) + len)),
			 .ip_off = htons(IP_DF), .ip_ttl = TTL, .ip_p = protocol };
	uint8_t *header = add(a, &ip, offsetof(struct ip, ip_src));
	uint8_t *addresses = add_halves(a, q->network + offsetof(struct ip, ip_src), 8, to_sender);

	put_checksum(header + offsetof(struct ip, ip_sum), sum(0, header, sizeof(ip)));
	return sum((uint32_t)(protocol + len), addresses, 8);
}

static uint32_t add_ipv6(struct answer *a, const struct question *q, uint8_t protocol, size_t len, bool to_sender)
{
	struct ip6_hdr ip = { .ip6_flow = htonl(6U << 28), .ip6_plen = htons((uint16_t)len), .ip6_nxt = protocol,
			      .ip6_hlim = TTL };

	add(a, &ip, offsetof(struct ip6_hdr, ip6_src));
	return sum((uint32_t)(protocol + len),
		   add_halves(a, q->network + offsetof(struct ip6_hdr, ip6_src), 32, to_sender), 32);
}

static uint32_t add_ip(struct answer *a, const struct question *q, uint8_t protocol, size_t len, bool to_sender)
{
	add_link(a, q, to_sender);
	return q->six ? add_ipv6(a, q, protocol, len, to_sender) : add_ipv4(a, q, protocol, len, to_sender);
}

/* To the sender with the numbers of RFC 9293, 3.10.7.1. To the receiver, a reset in the place of the packet. */
static struct tcphdr reset_for(const struct question *q, bool to_sender)
{
	struct tcphdr tcp, reset = { .th_off = sizeof(reset) / 4, .th_flags = TH_RST | TH_ACK };
	bool acknowledges;
	uint32_t next;

	memcpy(&tcp, PacketGetTCP(q->p), sizeof(tcp));
	acknowledges = tcp.th_flags & TH_ACK;
	next = ntohl(tcp.th_seq) + q->p->payload_len + !!(tcp.th_flags & TH_SYN) + !!(tcp.th_flags & TH_FIN);
	reset.th_sport = to_sender ? tcp.th_dport : tcp.th_sport;
	reset.th_dport = to_sender ? tcp.th_sport : tcp.th_dport;
	reset.th_seq = to_sender ? (acknowledges ? tcp.th_ack : 0) : tcp.th_seq;
	reset.th_ack = to_sender ? htonl(next) : tcp.th_ack;
	if (!to_sender && !acknowledges)
		reset.th_flags = TH_RST;
	return reset;
}

static void add_reset(struct answer *a, const struct question *q, bool to_sender)
{
	struct tcphdr reset = reset_for(q, to_sender);
	uint32_t pseudo = add_ip(a, q, IPPROTO_TCP, sizeof(reset), to_sender);
	uint8_t *at = add(a, &reset, sizeof(reset));

	put_checksum(at + offsetof(struct tcphdr, th_sum), sum(pseudo, at, sizeof(reset)));
}

/* "Administratively prohibited", with the first bytes of the packet. */
static void add_error(struct answer *a, const struct question *q, bool to_sender)
{
	uint8_t header[ICMP_SIZE] = { q->six ? ICMP6_DST_UNREACH : ICMP_DEST_UNREACH,
				      q->six ? ICMP6_DST_UNREACH_ADMIN : ICMP_HOST_ANO };
	size_t there = GET_PKT_LEN(q->p) - (size_t)(q->network - q->link);
	size_t quoted = there < QUOTED_MAX ? there : QUOTED_MAX;
	size_t len = sizeof(header) + quoted;
	uint32_t pseudo = add_ip(a, q, q->six ? IPPROTO_ICMPV6 : IPPROTO_ICMP, len, to_sender);
	uint8_t *at = add(a, header, sizeof(header));

	add(a, q->network, quoted);
	put_checksum(at + offsetof(struct icmphdr, checksum), sum(q->six ? pseudo : 0, at, len));
}

static void answer(struct reader *reader, const struct question *q, uint64_t position, bool to_sender)
{
	struct answer a = { .len = 0 };
	struct ringcap_verdict packet = { .position = position, .data = (uint64_t)(uintptr_t)a.bytes,
		.verdict = to_sender ? RINGCAP_VERDICT_INJECT_REVERSE : RINGCAP_VERDICT_INJECT_FORWARD };

	if (PacketIsTCP(q->p))
		add_reset(&a, q, to_sender);
	else
		add_error(&a, q, to_sender);
	packet.len = (uint32_t)a.len;
	if (verdicts_inject(&reader->verdicts, reader->queue, &packet))
		reader->not_injected++;
	else
		reader->injected++;
}

static bool is_reset(const Packet *p)
{
	return PacketIsTCP(p) && PacketGetTCP(p)->th_flags & TH_RST;
}

void reject_answer(struct reader *reader, const Packet *p, uint64_t position)
{
	struct question q;

	if (!find_headers(&q, p) || !plain_link(&q) || !may_answer(&q) || is_reset(p))
		return;
	if (PacketCheckAction(p, ACTION_REJECT | ACTION_REJECT_BOTH))
		answer(reader, &q, position, true);
	if (PacketCheckAction(p, ACTION_REJECT_DST | ACTION_REJECT_BOTH))
		answer(reader, &q, position, false);
}
