// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include "consumer.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#define RT_BATCH 64

int rt_queue_try_open(const char *cluster, u32 queue)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "/dev/ringcap/%s/%u", cluster, queue);
	fd = open(path, O_RDWR | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static void *rt_map(int fd, size_t len, int protection, u64 offset)
{
	void *at = mmap(NULL, len, protection, MAP_SHARED, fd, (off_t)offset);

	RT_CHECK(at != MAP_FAILED, "mapping %zu bytes at %#llx: %m", len, (unsigned long long)offset);
	return at;
}

static size_t rt_pages(size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (bytes + page - 1) / page * page;
}

void rt_queue_open(struct rt_queue *queue, const char *cluster, u32 index)
{
	u32 lane;

	memset(queue, 0, sizeof(*queue));
	queue->fd = rt_queue_try_open(cluster, index);
	RT_CHECK(queue->fd >= 0, "/dev/ringcap/%s/%u: %s", cluster, index, strerror(-queue->fd));
	queue->info = rt_map(queue->fd, rt_pages(1), PROT_READ, RINGCAP_MMAP_INFO);
	RT_EQUAL(queue->info->magic, RINGCAP_MAGIC);
	RT_EQUAL(queue->info->abi, RINGCAP_ABI);
	RT_EQUAL(queue->info->queue, index);
	RT_CHECK(!strcmp(queue->info->name, cluster), "%s", queue->info->name);
	queue->nr_lanes = queue->info->nr_lanes;
	queue->lane_size = queue->info->lane_size;
	queue->kernel_len = rt_pages(queue->nr_lanes * sizeof(*queue->kernel));
	queue->kernel = rt_map(queue->fd, queue->kernel_len, PROT_READ, RINGCAP_MMAP_KERNEL);
	queue->consumer_len = rt_pages(queue->nr_lanes * sizeof(*queue->consumer));
	queue->consumer = rt_map(queue->fd, queue->consumer_len, PROT_READ | PROT_WRITE, RINGCAP_MMAP_CONSUMER);
	for (lane = 0; lane < queue->nr_lanes; lane++) {
		queue->data[lane] = rt_map(queue->fd, 2ULL * queue->lane_size, PROT_READ,
					   RINGCAP_MMAP_DATA + ((u64)lane << RINGCAP_MMAP_LANE_SHIFT));
		queue->position[lane] = queue->consumer[lane].released;
	}
}

void rt_queue_close(struct rt_queue *queue)
{
	u32 lane;

	for (lane = 0; lane < queue->nr_lanes; lane++)
		munmap((void *)queue->data[lane], 2ULL * queue->lane_size);
	munmap(queue->consumer, queue->consumer_len);
	munmap((void *)queue->kernel, queue->kernel_len);
	munmap((void *)queue->info, rt_pages(1));
	close(queue->fd);
}

static void rt_check_slot(const struct rt_queue *queue, const struct ringcap_slot *slot, u64 room)
{
	u32 size = RINGCAP_SLOT_SIZE(slot->hdr_len, slot->caplen);

	RT_CHECK(slot->hdr_len == sizeof(*slot) || slot->hdr_len == RINGCAP_SLOT_SHORT, "header of %u bytes",
		 slot->hdr_len);
	RT_CHECK(size <= room, "slot of %u bytes, %llu published", size, (unsigned long long)room);
	RT_CHECK(slot->caplen <= slot->len && slot->caplen <= queue->info->snaplen, "captured %u of %u bytes, snaplen %u",
		 slot->caplen, slot->len, queue->info->snaplen);
}

/* The position up to which a lane is published. */
static u64 rt_lane_end(const struct rt_queue *queue, u32 lane)
{
	u64 producer = __atomic_load_n(&queue->kernel[lane].producer, __ATOMIC_ACQUIRE); /* (B) */

	RT_CHECK(producer - queue->position[lane] <= queue->lane_size, "lane %u: producer %llu, read up to %llu", lane,
		 (unsigned long long)producer, (unsigned long long)queue->position[lane]);
	return producer;
}

static const struct ringcap_slot *rt_lane_next(const struct rt_queue *queue, u32 lane)
{
	return (const void *)(queue->data[lane] + (queue->position[lane] & (queue->lane_size - 1)));
}

static u32 rt_lane_read(struct rt_queue *queue, u32 lane, rt_slot_fn fn, void *arg, u32 max)
{
	u64 producer = rt_lane_end(queue, lane);
	const struct ringcap_slot *slot;
	u32 count = 0;

	while (queue->position[lane] != producer && count < max) {
		slot = rt_lane_next(queue, lane);
		rt_check_slot(queue, slot, producer - queue->position[lane]);
		if (fn)
			fn(slot, (const u8 *)slot + slot->hdr_len, arg);
		queue->position[lane] += RINGCAP_SLOT_SIZE(slot->hdr_len, slot->caplen);
		count++;
	}
	return count;
}

u32 rt_queue_peek(struct rt_queue *queue, rt_slot_fn fn, void *arg, u32 max)
{
	u32 lane, count = 0;

	for (lane = 0; lane < queue->nr_lanes; lane++)
		count += rt_lane_read(queue, lane, fn, arg, max - count);
	return count;
}

static void rt_queue_release(struct rt_queue *queue)
{
	u32 lane;

	for (lane = 0; lane < queue->nr_lanes; lane++)
		__atomic_store_n(&queue->consumer[lane].released, queue->position[lane], __ATOMIC_RELEASE); /* (C) */
}

u32 rt_queue_read(struct rt_queue *queue, rt_slot_fn fn, void *arg)
{
	u32 count = rt_queue_peek(queue, fn, arg, UINT32_MAX);

	rt_queue_release(queue);
	return count;
}

/*
 * Reads the position up to which each lane is published, the first lane last, as libringcap does. Sometimes pauses
 * before that.
 */
static void rt_queue_ends(const struct rt_queue *queue, u64 *ends)
{
	static u32 looks;
	u32 lane;

	for (lane = queue->nr_lanes; lane-- > 0;) {
		if (!lane && queue->stop_us && ++looks % 4 == 0)
			usleep(queue->stop_us);
		ends[lane] = rt_lane_end(queue, lane);
	}
}

/* The lane with the oldest packet; @queue->nr_lanes = no lane has one. */
static u32 rt_queue_oldest(const struct rt_queue *queue, const u64 *ends)
{
	u32 lane, oldest = queue->nr_lanes;

	for (lane = 0; lane < queue->nr_lanes; lane++)
		if (queue->position[lane] != ends[lane] &&
		    (oldest == queue->nr_lanes || rt_lane_next(queue, lane)->ts_ns < rt_lane_next(queue, oldest)->ts_ns))
			oldest = lane;
	return oldest;
}

u32 rt_queue_read_in_order(struct rt_queue *queue, rt_slot_fn fn, void *arg)
{
	u64 ends[RINGCAP_LANES_MAX];
	u32 lane, count;

	rt_queue_ends(queue, ends);
	for (count = 0; (lane = rt_queue_oldest(queue, ends)) != queue->nr_lanes; count++) {
		const struct ringcap_slot *slot = rt_lane_next(queue, lane);

		rt_check_slot(queue, slot, ends[lane] - queue->position[lane]);
		fn(slot, (const u8 *)slot + slot->hdr_len, arg);
		queue->position[lane] += RINGCAP_SLOT_SIZE(slot->hdr_len, slot->caplen);
	}
	rt_queue_release(queue);
	return count;
}

u32 rt_queue_lane_of(const struct rt_queue *queue, const struct ringcap_slot *slot)
{
	u32 lane;

	for (lane = 0; lane < queue->nr_lanes; lane++)
		if ((const u8 *)slot - queue->data[lane] < 2 * (ptrdiff_t)queue->lane_size && (const u8 *)slot >= queue->data[lane])
			break;
	return lane;
}

int rt_queue_poll(const struct rt_queue *queue, int milliseconds)
{
	struct pollfd ready = { .fd = queue->fd, .events = POLLIN };

	RT_CHECK(poll(&ready, 1, milliseconds) >= 0, "%m");
	return ready.revents;
}

/* ---- checking ---- */

void rt_receiver_init(struct rt_receiver *receiver, const struct rt_traffic *traffic, u32 ifindex, u32 last)
{
	memset(receiver, 0, sizeof(*receiver));
	receiver->traffic = traffic;
	receiver->ifindex = ifindex;
	receiver->last = last;
	receiver->seen = calloc(1, last);
	RT_CHECK(receiver->seen, "no memory");
}

static void rt_check_vlan(const struct ringcap_slot *slot, const struct rt_traffic *traffic)
{
	RT_EQUAL(!!(slot->flags & RINGCAP_SLOT_VLAN), !!traffic->tpid[0]);
	RT_EQUAL(slot->vlan_tpid, traffic->tpid[0]);
	RT_EQUAL(slot->vlan_tci, traffic->tci[0]);
	if (slot->hdr_len == RINGCAP_SLOT_SHORT)
		return;
	RT_EQUAL(slot->l3_proto, 0x0800);
	RT_EQUAL(slot->l4_proto, 17);
	RT_EQUAL(slot->l3_off, 14 + 4 * (!!traffic->tpid[0] + !!traffic->tpid[1]));
	RT_EQUAL(slot->l4_off, slot->l3_off + 20);
}

void rt_receive(const struct ringcap_slot *slot, const u8 *packet, void *arg)
{
	struct rt_receiver *receiver = arg;
	static __thread u8 bytes[RT_PACKET_MAX];
	u32 number = rt_packet_number(packet, slot->caplen);

	RT_CHECK(number < receiver->last, "a packet of %u bytes (%u captured) that nobody sent", slot->len, slot->caplen);
	RT_CHECK(!receiver->seen[number]++, "packet %u twice", number);
	RT_EQUAL(slot->len, rt_packet_build(receiver->traffic, number, bytes));
	RT_EQUAL(slot->caplen, slot->len);
	RT_CHECK(!memcmp(bytes, packet, slot->caplen), "packet %u is damaged", number);
	RT_EQUAL(slot->ifindex, receiver->ifindex);
	RT_EQUAL(!!(slot->flags & RINGCAP_SLOT_OUTGOING), receiver->outgoing);
	rt_check_vlan(slot, receiver->traffic);
	receiver->count++;
	receiver->bytes += slot->len;
}

void rt_exchange(int sender, const struct rt_traffic *traffic, u32 from, u32 count, struct rt_queue *queues,
		 u32 nr_queues, struct rt_receiver *receiver)
{
	u64 want = receiver->count, deadline;
	u32 done, batch, i;

	for (done = 0; done < count; done += batch) {
		batch = count - done < RT_BATCH ? count - done : RT_BATCH;
		rt_send(sender, traffic, from + done, batch);
		want += batch;
		deadline = rt_now() + RT_PATIENCE_NS;
		for (;;) {
			for (i = 0; i < nr_queues; i++)
				rt_queue_read(&queues[i], rt_receive, receiver);
			if (receiver->count == want)
				break;
			RT_CHECK(rt_now() < deadline, "%llu of %llu packets arrived", (unsigned long long)receiver->count,
				 (unsigned long long)want);
			sched_yield();
		}
	}
	/* Rings count a packet after it is published. */
	rt_settle();
}
