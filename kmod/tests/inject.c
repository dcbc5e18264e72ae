// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include "inject.h"

#include <sys/ioctl.h>
#include <sys/mman.h>

#define RT_INJECT_PAGE 4096

void rt_injector_open(struct rt_injector *injector, const struct rt_queue *queue)
{
	RT_EQUAL(queue->info->tx_size, RINGCAP_TX_SIZE);
	injector->fd = queue->fd;
	injector->index = mmap(NULL, RT_INJECT_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, queue->fd, RINGCAP_MMAP_TX_INDEX);
	RT_CHECK(injector->index != MAP_FAILED, "the index page: %m");
	injector->data = mmap(NULL, RINGCAP_TX_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, queue->fd, RINGCAP_MMAP_TX_DATA);
	RT_CHECK(injector->data != MAP_FAILED, "the data: %m");
	injector->position = injector->index->produced;
	RT_EQUAL(injector->position, 0);
}

void rt_injector_close(struct rt_injector *injector)
{
	munmap(injector->data, RINGCAP_TX_SIZE);
	munmap(injector->index, RT_INJECT_PAGE);
}

static void rt_inject_slot(struct rt_injector *injector, u32 ifindex, const u8 *bytes, u32 len)
{
	struct ringcap_tx_slot *slot = (void *)(injector->data + injector->position % RINGCAP_TX_SIZE);

	slot->len = len;
	slot->ifindex = ifindex;
	if (bytes)
		memcpy(slot + 1, bytes, len);
}

bool rt_inject_put(struct rt_injector *injector, u32 ifindex, const u8 *bytes, u32 len)
{
	u64 size = (sizeof(struct ringcap_tx_slot) + len + 7) & ~7ULL;
	u64 rest = RINGCAP_TX_SIZE - injector->position % RINGCAP_TX_SIZE;
	u64 used = injector->position - __atomic_load_n(&injector->index->consumed, __ATOMIC_ACQUIRE);

	if (used + size + (size > rest ? rest : 0) > RINGCAP_TX_SIZE)
		return false;
	if (size > rest) {
		rt_inject_slot(injector, 0, NULL, RINGCAP_TX_WRAP);
		injector->position += rest;
	}
	rt_inject_slot(injector, ifindex, bytes, len);
	injector->position += size;
	__atomic_store_n(&injector->index->produced, injector->position, __ATOMIC_RELEASE);
	return true;
}

int rt_inject_kick(const struct rt_injector *injector, u32 max)
{
	int taken = ioctl(injector->fd, RINGCAP_IOC_TX, max);

	return taken < 0 ? -errno : taken;
}

void rt_inject(struct rt_injector *injector, u32 ifindex, const struct rt_traffic *traffic, u32 from, u32 count)
{
	static __thread u8 bytes[RT_PACKET_MAX];
	u32 number, len, waiting = 0;

	for (number = from; number < from + count; number++) {
		len = rt_packet_build(traffic, number, bytes);
		if (!rt_inject_put(injector, ifindex, bytes, len)) {
			RT_EQUAL(rt_inject_kick(injector, 0), waiting);
			RT_CHECK(rt_inject_put(injector, ifindex, bytes, len), "no room for a packet");
			waiting = 0;
		}
		waiting++;
	}
	RT_EQUAL(rt_inject_kick(injector, 0), waiting);
}
