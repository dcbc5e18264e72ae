// SPDX-License-Identifier: BSD-2-Clause
#include "internal.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

static int map_area(struct kmod *k)
{
	struct sender *s = &k->sender;
	void *index, *data;

	index = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE, MAP_SHARED, k->fd, (off_t)RINGCAP_MMAP_TX_INDEX);
	if (index == MAP_FAILED)
		return -errno;
	data = mmap(NULL, k->info->tx_size, PROT_READ | PROT_WRITE, MAP_SHARED, k->fd, (off_t)RINGCAP_MMAP_TX_DATA);
	if (data == MAP_FAILED) {
		int err = -errno;

		munmap(index, (size_t)sysconf(_SC_PAGESIZE));
		return err;
	}
	s->index = index;
	s->data = data;
	s->size = k->info->tx_size;
	s->position = s->index->produced;
	return 0;
}

void inject_close(struct kmod *k)
{
	if (!k->sender.index)
		return;
	munmap(k->sender.data, k->sender.size);
	munmap(k->sender.index, (size_t)sysconf(_SC_PAGESIZE));
	k->sender.index = NULL;
}

RINGCAP_API int ringcap_may_inject(struct ringcap *h, char *errbuf)
{
	uint32_t size;
	int err;

	if (h->engine != &engine_kmod)
		return fail(errbuf, ENOTSUP, "%s@%u: the %s engine cannot send: that needs the kernel module", h->queue.name,
			    h->queue.queue, h->engine->name);
	if (h->kmod.sender.index)
		return 0;
	size = h->kmod.info->tx_size;
	if (!size)
		return fail(errbuf, EPERM, "%s@%u: its consumers may not send: no interface was granted (RINGCAP_A_INJECT) when it was "
			    "opened", h->queue.name, h->queue.queue);
	if (size & (size - 1) || size < RINGCAP_TX_SIZE / 16 || size > RINGCAP_TX_SIZE * 16)
		return fail(errbuf, EPROTO, "%s@%u: a transmit area of %u bytes makes no sense", h->queue.name, h->queue.queue, size);
	err = map_area(&h->kmod);
	return err ? fail(errbuf, -err, "%s@%u: mapping the transmit area: %s", h->queue.name, h->queue.queue, strerror(-err)) : 0;
}

RINGCAP_API int ringcap_inject_flush(struct ringcap *h)
{
	unsigned int taken = 0;

	if (h->engine != &engine_kmod || !h->kmod.sender.index)
		return 0;
	while (h->kmod.sender.waiting) {
		int n = ioctl(h->kmod.fd, RINGCAP_IOC_TX, 0);

		if (n <= 0)
			return taken ? (int)taken : n < 0 ? -errno : -EPROTO;
		taken += (unsigned int)n;
		h->kmod.sender.waiting -= (unsigned int)n < h->kmod.sender.waiting ? (unsigned int)n : h->kmod.sender.waiting;
	}
	return (int)taken;
}

RINGCAP_API int ringcap_inject(struct ringcap *h, uint32_t ifindex, const void *packet, size_t len)
{
	int err = ringcap_may_inject(h, NULL);

	if (err)
		return err;
	err = sender_put(&h->kmod.sender, ifindex, packet, len);
	if (err != -EAGAIN)
		return err;
	err = ringcap_inject_flush(h);
	return err < 0 ? err : sender_put(&h->kmod.sender, ifindex, packet, len);
}

RINGCAP_API int ringcap_inject_stats(const struct ringcap *h, struct ringcap_inject_stats *stats)
{
	const struct ringcap_tx_index *index = h->engine == &engine_kmod ? h->kmod.sender.index : NULL;

	memset(stats, 0, sizeof(*stats));
	if (!index)
		return 0;
	stats->sent = __atomic_load_n(&index->sent, __ATOMIC_RELAXED);
	stats->failed = __atomic_load_n(&index->failed, __ATOMIC_RELAXED);
	return 0;
}
