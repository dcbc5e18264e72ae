// SPDX-License-Identifier: GPL-2.0-only

#include "fragment.h"

#include <linux/ip.h>
#include <linux/jiffies.h>
#include <linux/random.h>
#include <linux/siphash.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <net/ip.h>
#include <net/ipv6.h>

enum rc_fragment_state {
	RC_FRAGMENT_FREE,
	RC_FRAGMENT_TOGETHER,	/* a later fragment came first */
	RC_FRAGMENT_WITH_FLOW,
};

/*
 * A datagram.
 *
 * @tag: keyed hash of the fields that its fragments share; as good as these, to a sender that does not know the key
 * @stamp: jiffies when its first fragment came
 * @seen: bytes of payload that have come
 * @total: bytes of payload of the datagram, 0 = not known
 * @sport, @dport, @l4_proto: of the flow, in state WITH_FLOW
 */
struct rc_fragment_entry {
	u64 tag;
	u32 stamp;
	u32 seen;
	u32 total;
	u16 sport;
	u16 dport;
	u8 l4_proto;
	u8 state;
};

struct rc_fragment_bucket {
	spinlock_t lock;
	struct rc_fragment_entry entries[RC_FRAGMENT_WAYS];
};

struct rc_fragments {
	siphash_key_t key;
	struct rc_fragment_bucket buckets[RC_FRAGMENT_BUCKETS];
};

/*
 * Fields of a fragment's headers.
 *
 * @id: identification of the datagram
 * @off: offset of its payload in the datagram, in bytes
 * @len: length of its payload, in bytes
 * @more: it is not the last fragment
 */
struct rc_fragment {
	u32 id;
	u32 off;
	u32 len;
	bool more;
};

struct rc_fragments *rc_fragments_create(void)
{
	struct rc_fragments *fragments = kvzalloc(sizeof(*fragments), GFP_KERNEL_ACCOUNT);
	u32 i;

	if (!fragments)
		return NULL;
	get_random_bytes(&fragments->key, sizeof(fragments->key));
	for (i = 0; i < RC_FRAGMENT_BUCKETS; i++)
		spin_lock_init(&fragments->buckets[i].lock);
	return fragments;
}

void rc_fragments_destroy(struct rc_fragments *fragments)
{
	kvfree(fragments);
}

u64 rc_fragments_memory(const struct rc_fragments *fragments)
{
	return fragments ? sizeof(*fragments) : 0;
}

static bool rc_fragment_read_ipv4(const struct sk_buff *skb, int off, struct rc_fragment *fragment)
{
	struct iphdr copy;
	const struct iphdr *ip = skb_header_pointer(skb, off, sizeof(copy), &copy);
	u32 header, len;

	if (!ip)
		return false;
	header = ip->ihl * 4;
	len = ntohs(ip->tot_len);
	fragment->id = ntohs(ip->id);
	fragment->off = (ntohs(ip->frag_off) & IP_OFFSET) * 8;
	fragment->more = ip->frag_off & htons(IP_MF);
	fragment->len = len > header ? len - header : 0;
	return true;
}

/* The parser has reached the fragment header, so there are only a few other headers before it. */
static bool rc_fragment_read_ipv6(const struct sk_buff *skb, unsigned int l3_off, struct rc_fragment *fragment)
{
	unsigned int off = l3_off;
	struct ipv6hdr ip_copy;
	struct frag_hdr copy;
	const struct frag_hdr *header;
	const struct ipv6hdr *ip;
	u32 before, len;

	ip = skb_header_pointer(skb, l3_off, sizeof(ip_copy), &ip_copy);
	if (!ip || ipv6_find_hdr(skb, &off, NEXTHDR_FRAGMENT, NULL, NULL) != NEXTHDR_FRAGMENT)
		return false;
	len = sizeof(*ip) + ntohs(ip->payload_len);
	header = skb_header_pointer(skb, off, sizeof(copy), &copy);
	if (!header)
		return false;
	before = off - l3_off + sizeof(*header);
	fragment->id = ntohl(header->identification);
	fragment->off = ntohs(header->frag_off) & IP6_OFFSET;
	fragment->more = header->frag_off & htons(IP6_MF);
	fragment->len = len > before ? len - before : 0;
	return true;
}

/* Reads the ports of a first fragment; false if they are cut off. True without ports if the protocol has none. */
static bool rc_fragment_read_ports(const struct sk_buff *skb, u32 shift, struct rc_flow *flow)
{
	__be16 copy[2];
	const __be16 *ports;

	if (flow->l4_proto != IPPROTO_TCP && flow->l4_proto != IPPROTO_UDP && flow->l4_proto != IPPROTO_SCTP)
		return flow->l4_off;
	ports = flow->l4_off ? skb_header_pointer(skb, flow->l4_off - shift, sizeof(copy), &copy) : NULL;
	if (!ports)
		return false;
	flow->sport = ntohs(ports[0]);
	flow->dport = ntohs(ports[1]);
	return true;
}

/* The same for all fragments of a datagram, in this direction and VLAN. IPv6 tags do not include the protocol. */
static u64 rc_fragment_tag(const struct rc_fragments *fragments, const struct rc_flow *flow, u32 id)
{
	struct {
		u32 saddr[4];
		u32 daddr[4];
		u32 id;
		u16 vlan;
		u16 inner_vid;
		u32 kind;
		u32 zero;
	} common = {
		.id = id,
		.vlan = flow->vlan_tci & VLAN_VID_MASK,
		.inner_vid = flow->inner_vid,
		.kind = flow->l3_proto == ETH_P_IP ? flow->l4_proto : ETH_P_IPV6,
	};

	memcpy(common.saddr, flow->saddr, sizeof(common.saddr));
	memcpy(common.daddr, flow->daddr, sizeof(common.daddr));
	return siphash(&common, sizeof(common), &fragments->key);
}

/*
 * Returns the entry of @tag. If there is none, clears an entry for it: an expired one, or else the oldest. The caller
 * must read @now with the lock held. Otherwise it could be earlier than a stamp that another CPU wrote meanwhile, and
 * the entry would seem to be very old.
 */
static struct rc_fragment_entry *rc_fragment_find(struct rc_fragment_bucket *bucket, u64 tag, u32 now)
{
	struct rc_fragment_entry *oldest = &bucket->entries[0], *entry;
	u32 age, oldest_age = 0;

	lockdep_assert_held(&bucket->lock);
	for (entry = bucket->entries; entry < bucket->entries + RC_FRAGMENT_WAYS; entry++) {
		age = now - entry->stamp;
		if (age > RC_FRAGMENT_SECONDS * HZ)
			entry->state = RC_FRAGMENT_FREE;
		if (entry->state == RC_FRAGMENT_FREE)
			age = U32_MAX;
		else if (entry->tag == tag)
			return entry;
		if (age >= oldest_age) {
			oldest_age = age;
			oldest = entry;
		}
	}
	*oldest = (struct rc_fragment_entry){ .tag = tag, .stamp = now };
	return oldest;
}

/* A datagram is known from now on. @with_flow: its flow is known too. */
static void rc_fragment_begin(struct rc_fragment_entry *entry, const struct rc_flow *flow, bool with_flow, u32 now)
{
	entry->state = with_flow ? RC_FRAGMENT_WITH_FLOW : RC_FRAGMENT_TOGETHER;
	entry->stamp = now;
	entry->seen = 0;
	entry->total = 0;
	entry->sport = with_flow ? flow->sport : 0;
	entry->dport = with_flow ? flow->dport : 0;
	entry->l4_proto = flow->l4_proto;
}

static void rc_fragment_count(struct rc_fragment_entry *entry, const struct rc_fragment *fragment)
{
	entry->seen += fragment->len;
	if (!fragment->more)
		entry->total = fragment->off + fragment->len;
}

/* Decides for one fragment. @has_ports: it is a first fragment, its ports could be read, and @flow has them. */
static bool rc_fragment_decide(struct rc_fragment_entry *entry, const struct rc_fragment *fragment, bool has_ports,
			       struct rc_flow *flow, u32 now)
{
	bool whole = entry->total && entry->seen >= entry->total;

	if (entry->state == RC_FRAGMENT_FREE || (whole && !fragment->off))
		rc_fragment_begin(entry, flow, has_ports, now);
	rc_fragment_count(entry, fragment);
	if (entry->state != RC_FRAGMENT_WITH_FLOW)
		return false;
	flow->sport = entry->sport;
	flow->dport = entry->dport;
	flow->l4_proto = entry->l4_proto;
	flow->flags &= ~RINGCAP_SLOT_FRAGMENT;
	return true;
}

bool rc_fragments_complete(struct rc_fragments *fragments, const struct rc_packet *pkt, struct rc_flow *flow)
{
	u32 shift = pkt->vlan_tpid ? VLAN_HLEN : 0, now;
	struct rc_flow whole = *flow;
	struct rc_fragment_bucket *bucket;
	struct rc_fragment fragment;
	bool has_ports, done;
	u64 tag;

	if (flow->l3_proto == ETH_P_IP ? !rc_fragment_read_ipv4(pkt->skb, flow->l3_off - shift, &fragment) :
					 !rc_fragment_read_ipv6(pkt->skb, flow->l3_off - shift, &fragment))
		return false;
	has_ports = !fragment.off && rc_fragment_read_ports(pkt->skb, shift, &whole);
	tag = rc_fragment_tag(fragments, flow, fragment.id);
	bucket = &fragments->buckets[tag % RC_FRAGMENT_BUCKETS];
	spin_lock(&bucket->lock);
	now = (u32)jiffies;
	done = rc_fragment_decide(rc_fragment_find(bucket, tag, now), &fragment, has_ports, &whole, now);
	spin_unlock(&bucket->lock);
	if (done)
		*flow = whole;
	return done;
}
