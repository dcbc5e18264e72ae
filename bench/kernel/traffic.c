// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "traffic.h"

#include <linux/if_packet.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "readers.h"

#define VECTOR		32
#define PAUSE_MS	40

static uint8_t frames[FLOWS][1600];

/* Without the checksum, the stack would discard the packet at once. */
static void set_checksum(uint8_t *header)
{
	uint32_t sum = 0;
	unsigned int i;

	for (i = 0; i < 20; i += 2)
		sum += (uint32_t)(header[i] << 8 | header[i + 1]);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = ~((sum & 0xffff) + (sum >> 16));
	header[10] = (uint8_t)(sum >> 8);
	header[11] = (uint8_t)sum;
}

void traffic_build(enum traffic what, unsigned int size)
{
	const uint16_t port = what == TRAFFIC_TCP ? 80 : 53;
	unsigned int i;

	for (i = 0; i < FLOWS; i++) {
		uint8_t *frame = frames[i];

		memset(frame, 0x55, sizeof(frames[i]));
		memcpy(frame, "\2\0\0\0\0\2\2\0\0\0\0\1\x08\0\x45", 15);
		frame[16] = (uint8_t)((size - 14) >> 8);
		frame[17] = (uint8_t)(size - 14);
		memcpy(frame + 18, "\0\0\0\0\x40\x11\0\0\x0a\0\0\1\x0a\0\1\1", 16);
		frame[23] = what == TRAFFIC_TCP ? 6 : 17;
		frame[29] = (uint8_t)(1 + i / 8);
		set_checksum(frame + 14);
		frame[34] = (uint8_t)(FLOW_PORT(i) >> 8);
		frame[35] = (uint8_t)FLOW_PORT(i);
		frame[36] = 0;
		frame[37] = (uint8_t)port;
		if (what == TRAFFIC_TCP) {
			memcpy(frame + 38, "\0\0\0\1\0\0\0\1\x50\x10\x10\0\0\0\0\0", 16);
		} else {
			frame[38] = (uint8_t)((size - 34) >> 8);
			frame[39] = (uint8_t)(size - 34);
			frame[40] = frame[41] = 0;
		}
	}
}

const uint8_t *traffic_frame(unsigned int flow)
{
	return frames[flow];
}

int traffic_open(void)
{
	struct sockaddr_ll address = { .sll_family = AF_PACKET, .sll_ifindex = (int)if_nametoindex("va") };
	int fd = socket(AF_PACKET, SOCK_RAW, 0), one = 1;

	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) ||
	    setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof(one)))
		fail("sender");
	return fd;
}

/* QEMU runs a CPU for some milliseconds, until it is idle, or until it reaches this instruction. */
static void give_turn(void)
{
	__asm__ volatile("pause");
}

void traffic_send(int fd, const struct traffic_share *share, unsigned int size, unsigned int count)
{
	const unsigned int vector = share->of == 1 ? VECTOR : 1;
	const struct timespec pause = { .tv_nsec = PAUSE_MS * 1000000 };
	struct mmsghdr messages[VECTOR] = {};
	struct iovec vectors[VECTOR];
	unsigned int sent, i;
	int n;

	for (sent = 0; sent < count; sent += (unsigned int)n) {
		for (i = 0; i < vector; i++) {
			vectors[i] = (struct iovec){ frames[((sent + i) * share->of + share->which) % FLOWS], size };
			messages[i].msg_hdr.msg_iov = &vectors[i];
			messages[i].msg_hdr.msg_iovlen = 1;
		}
		n = sendmmsg(fd, messages, vector, 0);
		if (n <= 0)
			fail("sendmmsg");
		if (share->of > 1)
			give_turn();
		if ((sent + (unsigned int)n) % (BURST / share->of) == 0)
			nanosleep(&pause, NULL);
	}
}
