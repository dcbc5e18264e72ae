// SPDX-License-Identifier: BSD-2-Clause
#include "sender.h"

#include <errno.h>
#include <string.h>

static void write_slot(struct sender *s, uint32_t ifindex, uint32_t len)
{
	struct ringcap_tx_slot slot = { .len = len, .ifindex = ifindex };

	memcpy(s->data + (s->position & (s->size - 1)), &slot, sizeof(slot));
}

int sender_put(struct sender *s, uint32_t ifindex, const void *packet, size_t len)
{
	uint64_t used = s->position - __atomic_load_n(&s->index->consumed, __ATOMIC_ACQUIRE);
	uint64_t rest = s->size - (s->position & (s->size - 1));
	uint64_t size = (sizeof(struct ringcap_tx_slot) + (uint64_t)len + 7) & ~7ULL;
	uint64_t skip = size > rest ? rest : 0;

	/* A slot larger than half the ring, plus the bytes skipped before it, might never fit. */
	if (len > s->size / 2 - sizeof(struct ringcap_tx_slot))
		return -EMSGSIZE;
	if (used + skip + size > s->size)
		return -EAGAIN;
	if (skip) {
		write_slot(s, 0, RINGCAP_TX_WRAP);
		s->position += skip;
	}
	write_slot(s, ifindex, (uint32_t)len);
	memcpy(s->data + (s->position & (s->size - 1)) + sizeof(struct ringcap_tx_slot), packet, len);
	s->position += size;
	s->waiting++;
	__atomic_store_n(&s->index->produced, s->position, __ATOMIC_RELEASE);
	return 0;
}
