// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include "flood.h"

#include <sys/socket.h>
#include <unistd.h>

#include "traffic.h"

#define NUMBERS (1U << 22)
#define BURST 16U
#define PAUSE_US 1000
#define POLL_MS 20

static const struct rt_traffic short_packets = { .flows = 16, .min_len = 60, .max_len = 1514 };
static const struct rt_traffic long_packets = { .flows = 16, .min_len = 1600, .max_len = RT_FLOOD_LONGEST };

/* Builds a packet. One in eight is long. */
static u32 build(u32 number, u8 *bytes)
{
	return rt_packet_build(number % 8 == 7 ? &long_packets : &short_packets, number, bytes);
}

static bool stopped(const struct rt_flood *flood)
{
	return __atomic_load_n(&flood->stop, __ATOMIC_ACQUIRE);
}

/* Packets that an interface refuses because it is down or full are not sent again. */
static void *send_all(void *arg)
{
	struct rt_flood *flood = arg;
	static u8 bytes[RT_PACKET_MAX];
	u32 number;

	for (number = 0; number < NUMBERS && !stopped(flood); number++) {
		if (send(flood->sender, bytes, build(number, bytes), 0) < 0 || number % BURST == 0)
			usleep(PAUSE_US);
	}
	return NULL;
}

static void check(const struct ringcap_slot *slot, const u8 *packet, void *arg)
{
	u32 number = rt_packet_number(packet, slot->caplen);
	static u8 wanted[RT_PACKET_MAX];
	struct rt_flood *flood = arg;

	RT_CHECK(number < NUMBERS, "a packet of %u bytes (%u captured) that nobody sent", slot->len, slot->caplen);
	RT_CHECK(!flood->seen[number]++, "packet %u twice", number);
	RT_EQUAL(slot->len, build(number, wanted));
	RT_CHECK(slot->caplen == slot->len && !memcmp(packet, wanted, slot->len), "packet %u is damaged", number);
	flood->read++;
}

static void *read_all(void *arg)
{
	struct rt_flood *flood = arg;
	bool last;

	do {
		last = stopped(flood);
		if (!last)
			rt_queue_poll(flood->queue, POLL_MS);
		rt_queue_read(flood->queue, check, flood);
	} while (!last);
	return NULL;
}

void rt_flood_start(struct rt_flood *flood, const char *interface, struct rt_queue *queue)
{
	*flood = (struct rt_flood){ .sender = rt_sender_open(interface), .queue = queue, .seen = calloc(1, NUMBERS) };
	RT_CHECK(flood->seen, "no memory");
	RT_CHECK(!pthread_create(&flood->threads[0], NULL, send_all, flood), "no thread");
	RT_CHECK(!queue || !pthread_create(&flood->threads[1], NULL, read_all, flood), "no thread");
}

void rt_flood_stop(struct rt_flood *flood)
{
	/* After this, the reader finds the last packets. */
	rt_settle();
	__atomic_store_n(&flood->stop, true, __ATOMIC_RELEASE);
	pthread_join(flood->threads[0], NULL);
	if (flood->queue)
		pthread_join(flood->threads[1], NULL);
	close(flood->sender);
	free(flood->seen);
}
