// SPDX-License-Identifier: GPL-2.0-only

#include "send.h"

#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/sched/signal.h>
#include <linux/skbuff.h>
#include <net/sock.h>

#include "account.h"
#include "forward.h"
#include "grant.h"
#include "queue.h"
#include "transmit.h"

/* Packets that are sent together, with bottom halves off. */
#define RC_SEND_BATCH	32
/* No device takes more. */
#define RC_SEND_LEN_MAX	(65536 + VLAN_ETH_HLEN)
/*
 * If a packet is longer than a page, its first piece has this length: it holds more headers than any code looks for
 * there.
 */
#define RC_SEND_LINEAR	256

/* Packets that were copied but not sent yet. */
struct rc_send_batch {
	u32 nr;
	struct sk_buff *skbs[RC_SEND_BATCH];
	u32 ifindex[RC_SEND_BATCH];
};

/*
 * Finds the next packet before position @produced: 1 with its slot; 0 when there is none; -EINVAL when the data is no
 * valid slot.
 */
static int rc_send_next(struct rc_transmit *transmit, u64 produced, struct ringcap_tx_slot *slot)
{
	u64 left, at, size;

	for (;;) {
		left = produced - transmit->position;
		at = transmit->position & (RINGCAP_TX_SIZE - 1);
		if (!left)
			return 0;
		if (left < sizeof(*slot))
			return -EINVAL;
		slot->len = READ_ONCE(((struct ringcap_tx_slot *)(transmit->data.addr + at))->len);
		slot->ifindex = READ_ONCE(((struct ringcap_tx_slot *)(transmit->data.addr + at))->ifindex);
		size = slot->len == RINGCAP_TX_WRAP ? RINGCAP_TX_SIZE - at : sizeof(*slot) + (u64)slot->len;
		if (size > RINGCAP_TX_SIZE - at || ALIGN(size, 8) > left)
			return -EINVAL;
		if (slot->len != RINGCAP_TX_WRAP)
			return 1;
		transmit->position += size;
	}
}

/*
 * A copy of the packet behind @slot, which is the next one. NULL with -EAGAIN, or with the error of a signal, when the
 * memory for packets in flight is used up. NULL with -ENOBUFS when there is no memory at all.
 */
static struct sk_buff *rc_send_copy(struct rc_transmit *transmit, const struct ringcap_tx_slot *slot,
				    bool nonblock, int *err)
{
	const void *packet = transmit->data.addr + (transmit->position & (RINGCAP_TX_SIZE - 1)) + sizeof(*slot);
	u32 linear = slot->len < PAGE_SIZE ? slot->len : RC_SEND_LINEAR;
	struct sk_buff *skb;

	skb = sock_alloc_send_pskb(transmit->socket->sk, LL_MAX_HEADER + linear, slot->len - linear, nonblock, err,
				   PAGE_ALLOC_COSTLY_ORDER);
	if (!skb)
		return NULL;
	skb_reserve(skb, LL_MAX_HEADER);
	skb_put(skb, linear);
	skb->data_len = slot->len - linear;
	skb->len = slot->len;
	if (WARN_ON_ONCE(skb_store_bits(skb, 0, packet, slot->len))) {
		kfree_skb(skb);
		*err = -ENOBUFS;
		return NULL;
	}
	rc_forward_set_headers(skb);
	return skb;
}

/* If a packet with a VLAN's EtherType is shorter, the stack that receives it drops it before any tap sees it. */
#define RC_SEND_TAGGED_MIN	(VLAN_ETH_HLEN + 2)

static bool rc_send_admits(const struct net_device *dev, const struct sk_buff *skb)
{
	u32 min = eth_type_vlan(skb->protocol) ? RC_SEND_TAGGED_MIN : ETH_HLEN;
	u32 max = READ_ONCE(dev->mtu) + dev->hard_header_len + (eth_type_vlan(skb->protocol) ? VLAN_HLEN : 0);

	return dev->flags & IFF_UP && skb->len >= min && skb->len <= max;
}

static void rc_send_account(struct rc_queue *queue, u32 sent, u32 failed)
{
	struct rc_transmit *transmit = queue->transmit;
	struct ringcap_tx_index *index = transmit->index.addr;

	transmit->sent += sent;
	transmit->failed += failed;
	WRITE_ONCE(index->sent, transmit->sent);
	WRITE_ONCE(index->failed, transmit->failed);
	rc_account_add(queue->tx_sent, sent);
	rc_account_add(queue->tx_failed, failed);
}

/* Sends the copied packets, and lets the consumer overwrite them. */
static void rc_send_flush(struct rc_queue *queue, struct rc_send_batch *batch)
{
	struct ringcap_tx_index *index = queue->transmit->index.addr;
	const struct rc_grants *grants;
	struct net_device *dev;
	u32 i, sent = 0;

	/* Otherwise a veth would run the receive softirq for each packet. */
	local_bh_disable();
	rcu_read_lock();
	grants = rcu_dereference(queue->grants);
	for (i = 0; i < batch->nr; i++) {
		dev = rc_grants_find(grants, batch->ifindex[i]);
		if (dev && rc_send_admits(dev, batch->skbs[i]))
			sent += rc_egress_send(dev, batch->skbs[i]);
		else
			kfree_skb(batch->skbs[i]);
	}
	/* Done before a revoker of the queue reads the account, which it does after a grace period. */
	rc_send_account(queue, sent, batch->nr - sent);
	rcu_read_unlock();
	local_bh_enable();
	batch->nr = 0;
	smp_store_release(&index->consumed, queue->transmit->position);
}

/* Takes the next slot: returns 1; 0 when there is none; or an error, and then the slot is still the next one. */
static int rc_send_take(struct rc_queue *queue, u64 produced, bool nonblock, struct rc_send_batch *batch)
{
	struct rc_transmit *transmit = queue->transmit;
	struct ringcap_tx_slot slot;
	struct sk_buff *skb = NULL;
	int err;

	err = rc_send_next(transmit, produced, &slot);
	if (err <= 0)
		return err;
	if (slot.len >= ETH_HLEN && slot.len <= RC_SEND_LEN_MAX) {
		/* A sender that waits for memory holds none. */
		skb = rc_send_copy(transmit, &slot, nonblock || batch->nr, &err);
		if (!skb && err == -EAGAIN && !nonblock) {
			rc_send_flush(queue, batch);
			skb = rc_send_copy(transmit, &slot, false, &err);
		}
		if (!skb && err != -ENOBUFS)
			return err;
	}
	transmit->position += ALIGN(sizeof(slot) + slot.len, 8);
	if (!skb) {
		rc_send_account(queue, 0, 1);
		return 1;
	}
	batch->skbs[batch->nr] = skb;
	batch->ifindex[batch->nr++] = slot.ifindex;
	if (batch->nr == RC_SEND_BATCH)
		rc_send_flush(queue, batch);
	return 1;
}

static long rc_send_slots(struct rc_queue *queue, u32 max, bool nonblock)
{
	const struct ringcap_tx_index *index = queue->transmit->index.addr;
	struct rc_send_batch batch;
	long taken = 0;
	u64 produced;
	int err;

	/* Pairs with the consumer's release: everything that it wrote before is visible. */
	produced = smp_load_acquire(&index->produced);
	if (produced - queue->transmit->position > RINGCAP_TX_SIZE)
		return -EINVAL;
	batch.nr = 0;
	do {
		err = signal_pending(current) ? -ERESTARTSYS : rc_send_take(queue, produced, nonblock, &batch);
		taken += err > 0;
		cond_resched();
	} while (err > 0 && taken != max);
	rc_send_flush(queue, &batch);
	return taken ?: err;
}

long rc_send_run(struct rc_queue *queue, u32 max, bool nonblock)
{
	long taken;

	if (READ_ONCE(queue->dead))
		return -ENODEV;
	if (!queue->transmit || !rcu_access_pointer(queue->grants))
		return -EPERM;
	if (mutex_lock_interruptible(&queue->transmit->lock))
		return -ERESTARTSYS;
	taken = rc_send_slots(queue, max, nonblock);
	mutex_unlock(&queue->transmit->lock);
	return taken;
}
