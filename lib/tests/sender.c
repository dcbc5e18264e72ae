// SPDX-License-Identifier: BSD-2-Clause
/* The transmit area as the consumer writes it, read back as the module does. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../src/sender.h"
#include "check.h"

#define SIZE (64U << 10)

/* Takes a packet as the module would. Returns its length, 0 if there is none. */
static uint32_t take(struct sender *s, uint64_t *position, const uint8_t **packet, uint32_t *ifindex)
{
	struct ringcap_tx_slot slot;
	uint64_t at;

	for (;;) {
		if (*position == s->index->produced)
			return 0;
		at = *position & (s->size - 1);
		CHECK(s->index->produced - *position <= s->size && at + sizeof(slot) <= s->size);
		memcpy(&slot, s->data + at, sizeof(slot));
		if (slot.len != RINGCAP_TX_WRAP)
			break;
		*position += s->size - at;
	}
	CHECK(at + sizeof(slot) + slot.len <= s->size);
	*packet = s->data + at + sizeof(slot);
	*ifindex = slot.ifindex;
	*position += (sizeof(slot) + (uint64_t)slot.len + 7) & ~7ULL;
	return slot.len;
}

/* Packets of all lengths come out as they went in, in order, however full the area is. */
static void round_trips(void)
{
	static struct ringcap_tx_index index;
	struct sender s = { .index = &index, .data = malloc(SIZE), .size = SIZE };
	uint32_t in = 0, out = 0, seed = 1, ifindex, len, i;
	static uint8_t bytes[9000];
	uint64_t position = 0;
	const uint8_t *packet;

	CHECK(s.data);
	memset(s.data, 0xaa, SIZE);
	while (out < 20000) {
		seed = seed * 1103515245 + 12345;
		len = 14 + (in * 7919) % 8000;
		memset(bytes, (int)in, len);
		if (seed >> 30 && !sender_put(&s, in, bytes, len)) {
			in++;
			continue;
		}
		len = take(&s, &position, &packet, &ifindex);
		if (!len)
			continue;
		CHECK(ifindex == out && len == 14 + (out * 7919) % 8000);
		for (i = 0; i < len; i++)
			CHECK(packet[i] == (uint8_t)out);
		index.consumed = position;
		out++;
	}
	CHECK(s.waiting == in);
	free(s.data);
}

static void refusals(void)
{
	static struct ringcap_tx_index index;
	struct sender s = { .index = &index, .data = malloc(SIZE), .size = SIZE };
	static uint8_t bytes[SIZE];
	unsigned int n = 0;

	CHECK(s.data);
	CHECK(sender_put(&s, 1, bytes, SIZE) == -EMSGSIZE);
	CHECK(sender_put(&s, 1, bytes, SIZE / 2) == -EMSGSIZE);
	CHECK(sender_put(&s, 1, bytes, (size_t)-1) == -EMSGSIZE);
	CHECK(sender_put(&s, 1, bytes, (size_t)UINT32_MAX + 61) == -EMSGSIZE);
	CHECK(!index.produced && !s.waiting);
	while (!sender_put(&s, 1, bytes, 56))
		n++;
	CHECK(n == SIZE / 64 && index.produced == SIZE);
	index.consumed = 64;
	CHECK(sender_put(&s, 1, bytes, 57) == -EAGAIN);
	CHECK(!sender_put(&s, 1, bytes, 56));
	free(s.data);
}

int main(void)
{
	round_trips();
	refusals();
	printf("  sender: packets come out as they went in\n");
	return 0;
}
