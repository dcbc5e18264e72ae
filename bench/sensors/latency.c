// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "latency.h"

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "load.h"
#include "readers.h"
#include "traffic.h"

#define TIME_AT		44		/* in a packet's payload */
#define NSEC_PER_SEC	1000000000ULL
#define DRAIN_MS	100

static struct {
	int fd;
	unsigned int size, next;
} sender;

static uint64_t to_ns(const struct timespec *time)
{
	return (uint64_t)time->tv_sec * NSEC_PER_SEC + (uint64_t)time->tv_nsec;
}

/* The clock by which the kernel notes when packets arrive. */
static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return to_ns(&now);
}

static int open_far_end(void)
{
	struct sockaddr_ll address = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IP),
				       .sll_ifindex = (int)if_nametoindex("wb") };
	int fd = socket(AF_PACKET, SOCK_RAW, 0), bytes = 256 << 20, one = 1;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) ||
	    setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof(one)) ||
	    bind(fd, (struct sockaddr *)&address, sizeof(address)))
		fail("far end");
	return fd;
}

static void send_stamped(unsigned int count)
{
	uint8_t frame[2048];
	uint64_t now;

	while (count--) {
		memcpy(frame, traffic_frame(sender.next++ % FLOWS), sender.size);
		now = now_ns();
		memcpy(frame + TIME_AT, &now, sizeof(now));
		if (send(sender.fd, frame, sender.size, 0) != (ssize_t)sender.size)
			fail("send");
	}
}

/* Returns false if no packet waits. */
static int receive(int fd, uint64_t *took)
{
	uint8_t frame[2048], control[64] __attribute__((aligned(8)));
	struct iovec vector = { frame, sizeof(frame) };
	struct msghdr message = { .msg_iov = &vector, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control) };
	struct timespec arrived;
	const struct cmsghdr *part;
	uint64_t sent;

	if (recvmsg(fd, &message, MSG_DONTWAIT) < 0)
		return 0;
	part = CMSG_FIRSTHDR(&message);
	if (!part || part->cmsg_type != SCM_TIMESTAMPNS)
		fail_with("far end", "a packet without a time");
	memcpy(&arrived, CMSG_DATA(part), sizeof(arrived));
	memcpy(&sent, frame + TIME_AT, sizeof(sent));
	*took = to_ns(&arrived) - sent;
	return 1;
}

static int compare(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static struct latency summarise(int fd, unsigned int count)
{
	uint64_t *took = calloc(count + 1, sizeof(*took));
	struct latency l = {};

	if (!took)
		fail("calloc");
	while (l.arrived <= count && receive(fd, &took[l.arrived]))
		l.arrived++;
	if (!l.arrived)
		return l;
	qsort(took, l.arrived, sizeof(*took), compare);
	l.p50 = took[l.arrived / 2];
	l.p99 = took[l.arrived - 1 - l.arrived / 100];
	l.most = took[l.arrived - 1];
	free(took);
	return l;
}

struct latency latency_measure(unsigned int size, unsigned int rate, unsigned int group, unsigned int count)
{
	const struct timespec drain = { .tv_nsec = DRAIN_MS * 1000000 };
	const struct sched_param normal = {};
	int fd = open_far_end(), late;
	struct latency l;

	sender.fd = traffic_open();
	sender.size = size;
	sender.next = 0;
	load_prefer();
	late = send_paced(rate, count, group * 1000000 / rate, send_stamped);
	nanosleep(&drain, NULL);
	sched_setscheduler(0, SCHED_OTHER, &normal);
	l = summarise(fd, count);
	l.late = late;
	close(sender.fd);
	close(fd);
	return l;
}
