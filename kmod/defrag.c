// SPDX-License-Identifier: GPL-2.0-only

#include "defrag.h"

#include <linux/jhash.h>
#include <linux/netdevice.h>
#include <net/dst.h>
#include <net/inet_frag.h>
#include <net/ip.h>

#include "deliver.h"
#include "net.h"
#include "stages.h"
#include "vlans.h"

/*
 * The device that our fragments come from, as reassembly sees it. No device in a namespace has its index. So when a
 * datagram times out, the stack finds no device to answer on, and sends no ICMP error for our copies. The device is a
 * layer 3 domain of its own. Otherwise a sender's fragments would count twice against net.ipv4.ipfrag_max_dist, in the
 * stack too.
 */
static struct net_device *rc_defrag_device;

static void rc_defrag_setup(struct net_device *dev)
{
	dev->ifindex = -1;
	dev->priv_flags |= IFF_L3MDEV_MASTER;
}

int rc_defrag_module_init(void)
{
	rc_defrag_device = alloc_netdev(0, "ringcap", NET_NAME_UNKNOWN, rc_defrag_setup);
	return rc_defrag_device ? 0 : -ENOMEM;
}

void rc_defrag_module_exit(void)
{
	free_netdev(rc_defrag_device);
}

bool rc_defrag_wants(struct rc_packet *pkt)
{
	if (!pkt->parsed)
		rc_packet_parse(pkt);
	return (pkt->flow.flags & RINGCAP_SLOT_FRAGMENT) && pkt->flow.l3_proto == ETH_P_IP;
}

/*
 * The user ID for reassembly. Fragments belong together if they have the same ring, device, direction and VLAN. The ID
 * is above all that the kernel itself uses.
 */
static u32 rc_defrag_user(const struct rc_ring *ring, const struct rc_packet *pkt)
{
	const struct rc_flow *flow = &pkt->flow;
	u32 words[4] = {
		(u32)((unsigned long)ring >> 4), pkt->ifindex, pkt->flags & RINGCAP_SLOT_OUTGOING,
		(u32)(flow->vlan_tci & VLAN_VID_MASK) << 16 | flow->inner_vid,
	};

	return jhash2(words, ARRAY_SIZE(words), 0) | BIT(31);
}

/*
 * Fragments that wait for us are charged to the namespace. Its own reassembly stops when its memory is used up, so we
 * leave half of it alone. Once half is used, no fragment waits until the use is down to a quarter. Otherwise some
 * fragments of most datagrams would wait, and not be seen because the others are missing.
 */
static bool rc_defrag_has_room(struct rc_net *this)
{
	const struct fqdir *fqdir = this->net->ipv4.fqdir;
	unsigned long limit = READ_ONCE(fqdir->high_thresh), used = frag_mem_limit(fqdir);
	bool full = READ_ONCE(this->defrag_full);

	if (full ? used < limit / 4 : used >= limit / 2) {
		full = !full;
		WRITE_ONCE(this->defrag_full, full);
	}
	return !full;
}

/* Trims @skb as the stack does on receipt: its header is linear, and it ends where the header says. */
static bool rc_defrag_trim(struct sk_buff *skb)
{
	u32 off = skb_network_offset(skb), header, len;

	if (!pskb_may_pull(skb, off + sizeof(struct iphdr)))
		return false;
	header = ip_hdrlen(skb);
	len = ntohs(ip_hdr(skb)->tot_len);
	if (header < sizeof(struct iphdr) || len < header || skb->len < off + len)
		return false;
	return pskb_may_pull(skb, off + header) && !pskb_trim_rcsum(skb, off + len);
}

/*
 * Gives a fragment to reassembly. Returns the datagram if this fragment completes it: it begins at the MAC header, and
 * the caller frees it. Returns NULL if the fragment waits or could not be used. Returns an ERR_PTR if nothing was done
 * with it, mostly because memory is short.
 */
static struct sk_buff *rc_defrag_add(const struct rc_ring *ring, const struct rc_packet *pkt)
{
	struct sk_buff *skb;
	int err;

	if (!rc_defrag_has_room(ring->rc_net))
		return ERR_PTR(-ENOBUFS);
	skb = skb_clone(pkt->skb, GFP_ATOMIC);
	if (!skb)
		return ERR_PTR(-ENOMEM);
	/* A waiting packet must not hold references that the stack waits for. */
	skb_dst_drop(skb);
	nf_reset_ct(skb);
	skb_ext_reset(skb);
	skb->dev = rc_defrag_device;
	skb->protocol = htons(ETH_P_IP);
	skb_reset_mac_header(skb);
	skb_set_network_header(skb, pkt->flow.l3_off - (pkt->vlan_tpid ? VLAN_HLEN : 0));
	if (!rc_defrag_trim(skb)) {
		kfree_skb(skb);
		return ERR_PTR(-EINVAL);
	}
	memset(IPCB(skb), 0, sizeof(struct inet_skb_parm));
	err = ip_defrag(ring->rc_net->net, skb, rc_defrag_user(ring, pkt));
	if (err)
		return err == -ENOMEM ? ERR_PTR(err) : NULL;
	skb_clear_hash(skb);
	skb->dev = pkt->skb->dev;
	/* After reassembly, the data begin at the IP header. */
	__skb_push(skb, skb->data - skb_mac_header(skb));
	return skb;
}

enum rc_fate rc_defrag_receive(struct rc_ring *ring, const struct rc_ring_config *config, struct rc_packet *fragment)
{
	struct rc_packet pkt rc_uninitialized;
	enum rc_fate fate;
	struct sk_buff *skb;

	/* Fragments in VLANs that the ring filters out do not wait. */
	if (config->vlans && !rc_vlans_pass(config->vlans, fragment))
		return RC_FATE_FILTERED;
	skb = rc_defrag_add(ring, fragment);
	if (!skb)
		return RC_FATE_ABSORBED;
	if (IS_ERR(skb))
		skb = skb_get(fragment->skb);
	rc_packet_init(&pkt, skb, skb->len + (skb_vlan_tag_present(skb) ? VLAN_HLEN : 0), config->snaplen,
		       fragment->ifindex);
	fate = rc_stages_run(ring, config, &pkt);
	if (fate == RC_FATE_PASSED)
		rc_ring_deliver(config, &pkt);
	consume_skb(skb);
	return fate;
}
