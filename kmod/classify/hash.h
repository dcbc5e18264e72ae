/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The flow hash, and the queue that it selects.
 *
 * Each end of a flow (address and port) becomes one 64-bit word. IPv4 and MAC addresses are kept exactly; IPv6
 * addresses are folded with the key. The two words are put in order, so that both directions give the same hash. Then
 * they are mixed one after the other with the key, and with the other fields by which the balance type distinguishes
 * flows:
 *
 *	h = mix(smaller ^ key[0])
 *	h = mix(h ^ greater ^ key[1] ^ rest * odd constant)
 *
 * mix is the finaliser of SplitMix64 (G. L. Steele, D. Lea, C. H. Flood, "Fast splittable pseudorandom number
 * generators", OOPSLA 2014, with D. Stafford's "Mix13" constants). It is a permutation of 64 bits in which every bit of
 * the input reaches every bit of the output. So IPv4 flows with a common end cannot all have the same hash. The
 * sequential addresses and ports of real networks spread like random ones.
 *
 * A sender that does not see where packets go cannot predict the spread, because of the key. The hash is not a
 * cryptographic one and must not be used to prove anything.
 *
 *	balance		hashed
 *	TWO_TUPLE	addresses
 *	FOUR_TUPLE	addresses, ports
 *	FIVE_TUPLE	addresses, ports, protocol
 *	FLOW		addresses, ports, protocol, the ids of the first two VLAN tags
 *
 * TCP_FIVE_TUPLE is FIVE_TUPLE for TCP, and TWO_TUPLE for other packets and for TCP's fragments. BOTH_ENDS hashes each
 * address by itself, like one end of a flow with only a key at the other end:
 *
 *	h = mix(mix(address ^ key[0]) ^ key[1])
 *
 * Packets that are not IP use MAC addresses as addresses, and the ethertype as protocol.
 *
 * Fragments, including the first, have no ports. Fragments of IPv6 have no protocol either. Receivers reassemble them
 * by addresses and identification, and take the protocol from the first fragment. So a sender could separate them by
 * writing different protocols (RFC 8200, section 4.5).
 */
#ifndef RC_HASH_H
#define RC_HASH_H

#include <linux/ringcap.h>

#include "flow.h"
#include "parse.h"

/* The two words of a key of RINGCAP_KEY_LEN bytes: little endian, so a plain copy on most machines. */
static rc_inline void rc_key_load(const rc_u8 *bytes, rc_u64 key[2])
{
	__builtin_memcpy(key, bytes, RINGCAP_KEY_LEN);
	key[0] = rc_le64(key[0]);
	key[1] = rc_le64(key[1]);
}

static rc_inline rc_u64 rc_mix(rc_u64 x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

/* An IPv6 address as one word: one multiplication per half is enough before rc_mix. */
static rc_inline rc_u64 rc_fold_ipv6(const rc_u32 addr[4], const rc_u64 key[2])
{
	rc_u64 hi = (rc_u64)rc_be32(addr[0]) << 32 | rc_be32(addr[1]);
	rc_u64 lo = (rc_u64)rc_be32(addr[2]) << 32 | rc_be32(addr[3]);

	hi = (hi ^ key[0]) * 0xbf58476d1ce4e5b9ULL;
	lo = (lo ^ key[1] ^ hi ^ (hi >> 32)) * 0x94d049bb133111ebULL;
	return lo ^ (lo >> 32);
}

/* The addresses of a flow as one word each; MAC addresses if it has no others. */
static rc_inline void rc_flow_ends(const struct rc_flow *flow, const rc_u64 key[2], rc_u64 *a, rc_u64 *b)
{
	if (!flow->l3_off) {
		*a = flow->smac;
		*b = flow->dmac;
	} else if (flow->l3_proto == RC_ETH_P_IPV4) {
		*a = rc_be32_by_16(flow->saddr[0]);
		*b = rc_be32_by_16(flow->daddr[0]);
	} else {
		*a = rc_fold_ipv6(flow->saddr, key);
		*b = rc_fold_ipv6(flow->daddr, key);
	}
}

/* The fields of a flow besides its two ends: the protocol, and for FLOW its VLANs. */
static rc_inline rc_u64 rc_flow_rest(const struct rc_flow *flow, rc_u32 balance)
{
	rc_u64 rest = flow->l4_proto;

	if (balance == RINGCAP_BALANCE_TWO_TUPLE || balance == RINGCAP_BALANCE_FOUR_TUPLE)
		return 0;
	if (!flow->l3_off)
		rest = flow->l3_proto;
	else if ((flow->flags & RINGCAP_SLOT_FRAGMENT) && flow->l3_proto == RC_ETH_P_IPV6)
		rest = RC_IPPROTO_FRAGMENT;
	if ((flow->flags & RINGCAP_SLOT_VLAN) && balance != RINGCAP_BALANCE_FIVE_TUPLE)
		rest |= (rc_u64)(flow->vlan_tci & 0xfff) << 16 | (rc_u64)flow->inner_vid << 28;
	return rest;
}

/*
 * The flow hash of @flow under @balance (enum ringcap_balance) and a 128-bit @key from rc_key_load. Balance types that
 * select no queue by hash (ROUND_ROBIN), and unknown ones, give the hash of FLOW.
 */
static rc_inline rc_u32 rc_flow_hash(const struct rc_flow *flow, rc_u32 balance, const rc_u64 key[2])
{
	rc_u64 a, b, swap;

#ifdef __bpf__
	/*
	 * Otherwise the verifier would know the fields from rc_parse, and verify this code once for every path through
	 * it.
	 */
	asm volatile("" : : : "memory");
#endif
	rc_flow_ends(flow, key, &a, &b);
	if (balance != RINGCAP_BALANCE_TWO_TUPLE) {
		a ^= flow->sport;
		b ^= flow->dport;
	}
	if (a > b) {
		swap = a;
		a = b;
		b = swap;
	}
	a = rc_mix(a ^ key[0]);
	b ^= key[1] ^ rc_flow_rest(flow, balance) * 0x9e3779b97f4a7c15ULL;
	return (rc_u32)(rc_mix(a ^ b) >> 32);
}

/*
 * For balance types that choose the hash by the packet: the type of rc_flow_hash that fits @flow. Other types are
 * returned unchanged.
 */
static rc_inline rc_u32 rc_flow_balance(const struct rc_flow *flow, rc_u32 balance)
{
	if (balance != RINGCAP_BALANCE_TCP_FIVE_TUPLE)
		return balance;
	if (flow->l3_off && flow->l4_proto == RC_IPPROTO_TCP && !(flow->flags & RINGCAP_SLOT_FRAGMENT))
		return RINGCAP_BALANCE_FIVE_TUPLE;
	return RINGCAP_BALANCE_TWO_TUPLE;
}

/* For BOTH_ENDS: the hashes of the source address and of the destination address of @flow. */
static rc_inline void rc_end_hashes(const struct rc_flow *flow, const rc_u64 key[2], rc_u32 hashes[2])
{
	rc_u64 a, b;

	rc_flow_ends(flow, key, &a, &b);
	hashes[0] = (rc_u32)(rc_mix(rc_mix(a ^ key[0]) ^ key[1]) >> 32);
	hashes[1] = (rc_u32)(rc_mix(rc_mix(b ^ key[0]) ^ key[1]) >> 32);
}

/* The queue, 0 .. @nr_queues - 1, for a flow hash. */
static rc_inline rc_u32 rc_queue(rc_u32 hash, rc_u32 nr_queues)
{
	return (rc_u32)(((rc_u64)hash * nr_queues) >> 32);
}

#endif /* RC_HASH_H */
