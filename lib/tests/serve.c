// SPDX-License-Identifier: BSD-2-Clause
/*
 * serve gen FILE N                   writes N packets of noise to FILE (pcap, nanoseconds): IPv4 and IPv6, TCP and UDP, VLANs
 * serve queue DIR NAME QUEUES FILE   serves QUEUES queues as the agent would (see fake.h); as soon as all are attached puts
 *                                    the packets of FILE in, each to the next queue, which have room for all of it; prints
 *                                    "served" and what was delivered; ends when all consumers have gone
 * serve full DIR NAME QUEUES FILE    the same, with the packets put in before anybody is attached
 *
 * Every fifth packet is marked as outgoing.
 */
#include "check.h"

#include <netinet/in.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "fake.h"

#define QUEUES_MAX 8
#define QUEUE_BYTES (1u << 25)
#define MAGIC_NSEC 0xa1b23c4d

struct file_header {
	uint32_t magic;
	uint16_t major, minor;
	uint32_t zone, sigfigs, snaplen, linktype;
};

struct packet_header {
	uint32_t sec, nsec, caplen, len;
};

/* Puts an IPv4 or IPv6 header and eight bytes of ports at p; returns their length. */
static uint32_t headers(uint8_t *p, uint64_t n)
{
	uint32_t v6 = n % 3 == 0, ip = v6 ? 40 : 20;

	memset(p, 0, ip + 8);
	p[0] = v6 ? 0x60 : 0x45;
	p[v6 ? 6 : 9] = n % 2 ? IPPROTO_TCP : IPPROTO_UDP;
	p[v6 ? 7 : 8] = 64;
	for (uint32_t i = v6 ? 8 : 12; i < ip; i++)
		p[i] = (uint8_t)(n >> 8 >> (i % 4));
	p[ip] = (uint8_t)n;
	p[ip + 3] = 80;
	return ip + 8;
}

static uint32_t frame(uint8_t *p, uint64_t i, uint64_t *seed)
{
	uint32_t n = 12;

	memset(p, 2, n);
	if (i % 4 == 1) {
		memcpy(p + n, (uint8_t[]){ 0x81, 0x00, 0x00, (uint8_t)i }, 4);
		n += 4;
	}
	memcpy(p + n, i % 3 == 0 ? (uint8_t[]){ 0x86, 0xdd } : (uint8_t[]){ 0x08, 0x00 }, 2);
	n += 2;
	n += headers(p + n, i);
	for (uint32_t end = n + (uint32_t)(noise(seed) % 1400); n < end; n++)
		p[n] = (uint8_t)noise(seed);
	return n;
}

static int generate(const char *path, uint64_t count)
{
	struct file_header file = { MAGIC_NSEC, 2, 4, 0, 0, 262144, 1 };
	FILE *f = fopen(path, "w");
	uint64_t seed = 5;
	uint8_t data[2048];

	CHECK(f);
	CHECK_EQ(fwrite(&file, sizeof(file), 1, f), 1);
	for (uint64_t i = 0; i < count; i++) {
		uint32_t n = frame(data, i, &seed);
		struct packet_header h = { 1700000000 + (uint32_t)(i / 1000), (uint32_t)(i % 1000 * 1000037 % 1000000000), n, n };

		CHECK_EQ(fwrite(&h, sizeof(h), 1, f), 1);
		CHECK_EQ(fwrite(data, n, 1, f), 1);
	}
	CHECK(!fclose(f));
	return 0;
}

static void serve_file(struct fake_queue *queues, unsigned int n, const char *path)
{
	struct file_header file;
	struct packet_header h;
	uint8_t data[65536];
	FILE *f = fopen(path, "r");

	CHECK(f);
	CHECK_EQ(fread(&file, sizeof(file), 1, f), 1);
	CHECK_EQ(file.magic, MAGIC_NSEC);
	for (uint64_t i = 0; fread(&h, sizeof(h), 1, f) == 1; i++) {
		struct ringcap_slot slot = { .hdr_len = sizeof(slot), .ts_ns = h.sec * 1000000000ULL + h.nsec,
					     .len = h.len, .caplen = h.caplen };

		CHECK(h.caplen < sizeof(data));
		CHECK_EQ(fread(data, h.caplen, 1, f), 1);
		if (i % 5 == 4)
			slot.flags = RINGCAP_SLOT_OUTGOING;
		CHECK(fake_put(&queues[i % n], &slot, data));
	}
	fclose(f);
}

struct served {
	const char *name;
	unsigned int n;
	struct fake_queue queues[QUEUES_MAX];
	struct pollfd fds[2 * QUEUES_MAX];	/* the listeners, then the consumers */
};

/* Answers the next request for queue i; 1 when that attached it. */
static int answer(struct served *s, unsigned int i)
{
	int taken = s->fds[s->n + i].fd >= 0;
	struct ringcap_handover_request request;
	int fd = fake_accept(s->fds[i].fd, &request);

	fake_answer(fd, &s->queues[i], s->name, i, taken ? EBUSY : 0, taken ? "another consumer is attached" : "", !taken);
	if (taken)
		close(fd);
	else
		s->fds[s->n + i] = (struct pollfd){ .fd = fd, .events = POLLIN };
	return !taken;
}

/* Answers requests until all queues are attached (until = n), or all have been left (until = 0). */
static void attend(struct served *s, unsigned int attached, unsigned int until)
{
	while (attached != until) {
		CHECK(poll(s->fds, 2 * s->n, 60000) > 0);
		for (unsigned int i = 0; i < s->n; i++) {
			if (s->fds[i].revents)
				attached += (unsigned int)answer(s, i);
			if (!s->fds[s->n + i].revents)
				continue;
			close(s->fds[s->n + i].fd);
			s->fds[s->n + i] = (struct pollfd){ .fd = -1 };
			attached--;
		}
	}
}

static int serve(const char *dir, const char *name, unsigned int n, const char *path, int early)
{
	struct served s = { .name = name, .n = n };
	uint64_t delivered = 0;

	CHECK(n >= 1 && n <= QUEUES_MAX);
	for (unsigned int i = 0; i < n; i++) {
		fake_make(&s.queues[i], QUEUE_BYTES, 1);
		s.fds[i] = (struct pollfd){ .fd = fake_listen(dir, name, i), .events = POLLIN };
		s.fds[n + i] = (struct pollfd){ .fd = -1 };
	}
	if (early)
		serve_file(s.queues, n, path);
	printf("ready\n");
	fflush(stdout);
	attend(&s, 0, n);
	if (!early)
		serve_file(s.queues, n, path);
	for (unsigned int i = 0; i < n; i++) {
		struct ringcap_lane_stats sum;

		fake_count(&s.queues[i], &sum);
		delivered += sum.delivered;
	}
	printf("served %" PRIu64 "\n", delivered);
	fflush(stdout);
	attend(&s, n, 0);
	for (unsigned int i = 0; i < n; i++)
		CHECK(!fake_remove(dir, name, i));
	return fake_remove_all(dir, name) ? 1 : 0;
}

int main(int argc, char **argv)
{
	signal(SIGPIPE, SIG_IGN);
	if (argc == 4 && !strcmp(argv[1], "gen"))
		return generate(argv[2], strtoull(argv[3], NULL, 10));
	if (argc == 6 && (!strcmp(argv[1], "queue") || !strcmp(argv[1], "full")))
		return serve(argv[2], argv[3], (unsigned int)atoi(argv[4]), argv[5], !strcmp(argv[1], "full"));
	fprintf(stderr, "usage: serve gen FILE N | serve queue|full DIR NAME QUEUES FILE\n");
	return 2;
}
