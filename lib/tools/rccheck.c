// SPDX-License-Identifier: BSD-2-Clause
/*
 * rccheck: sends packets to itself. It checks that each is in a queue once, unchanged and in order; see rccheck(1).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>

#include <ringcap/ringcap.h>

#include "device.h"
#include "monotonic.h"
#include "number.h"

enum { BATCH = 64, WAIT_MS = 100, BURST = 32 };

/* The payload that is sent. No other sender uses the same nonce. Number 0 may be lost, the others may not. */
struct datagram {
	uint64_t nonce, number;
	uint8_t rest[48];			/* longer than the shortest frame, so nothing is padded */
};

struct check {
	struct ringcap *queue;
	int socket;
	uint64_t nonce;
	uint64_t count, seconds;
	uint64_t sent, found;			/* last number sent and found, from 1 */
	bool begun;				/* a datagram with number 0 was found */
	uint64_t read;				/* packets of any kind */
	struct ringcap_stats before;		/* when the queue was opened */
};

static void usage(FILE *to)
{
	fputs("usage: rccheck [-c COUNT] [-p PORT] [-t SECONDS] NAME[@QUEUE] ADDRESS\n"
	      "  -c COUNT    UDP datagrams that are sent to ADDRESS and have to be in the queue (1000)\n"
	      "  -p PORT     the port that they are sent to (9)\n"
	      "  -t SECONDS  how long to wait for the first, and for each of the others (60)\n", to);
}

static bool connect_to(struct check *c, const char *address, uint16_t port)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	bool four = inet_pton(AF_INET, address, &v4.sin_addr) == 1;
	const void *to = four ? (const void *)&v4 : &v6;

	if (!four && inet_pton(AF_INET6, address, &v6.sin6_addr) != 1) {
		fprintf(stderr, "rccheck: '%s' is no IP address\n", address);
		return false;
	}
	c->socket = socket(four ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (c->socket < 0 || connect(c->socket, to, four ? sizeof(v4) : sizeof(v6))) {
		fprintf(stderr, "rccheck: packets cannot be sent to %s: %s\n", address, strerror(errno));
		return false;
	}
	return true;
}

/* 0 or -errno. */
static int send_number(const struct check *c, uint64_t number)
{
	struct datagram d = { .nonce = c->nonce, .number = number };
	int tries = 0;

	memset(d.rest, (int)(number & 0xff), sizeof(d.rest));
	while (send(c->socket, &d, sizeof(d), 0) != sizeof(d)) {
		/* ECONNREFUSED is about an earlier packet: nobody listens there. A full device is retried. */
		if (errno != ECONNREFUSED && errno != ENOBUFS && errno != EINTR)
			return -errno;
		if (errno == ENOBUFS)
			nanosleep(&(struct timespec){ .tv_nsec = NSEC / 1000 }, NULL);
		if (++tries == 1000)
			return -ENOBUFS;
	}
	return 0;
}

/* Returns true if the packet is valid here: not ours, one of the first ones, or the next of the others. */
static bool take(struct check *c, const struct ringcap_pkt *pkt)
{
	struct datagram d, want = { .nonce = c->nonce };

	if (pkt->slot->caplen != pkt->slot->len || pkt->slot->caplen < sizeof(d))
		return true;
	memcpy(&d, pkt->data + pkt->slot->caplen - sizeof(d), sizeof(d));
	if (d.nonce != c->nonce)
		return true;
	if (!d.number && !c->found) {
		c->begun = true;
		return true;
	}
	want.number = c->found + 1;
	memset(want.rest, (int)(want.number & 0xff), sizeof(want.rest));
	if (memcmp(&d, &want, sizeof(d)))
		fprintf(stderr, "rccheck: after packet %" PRIu64 " came packet %" PRIu64 "%s\n", c->found, d.number,
			d.number == want.number ? ", changed" : "");
	else
		c->found++;
	return c->found == want.number;
}

/* Reads the queue; waits for the first packet. Returns 0 or -errno, -EBADMSG after printing what is wrong. */
static int read_queue(struct check *c, int wait_ms)
{
	struct ringcap_pkt pkts[BATCH];
	int n = ringcap_recv(c->queue, pkts, BATCH, wait_ms);
	bool good = true;

	for (int i = 0; i < n && good; i++)
		good = take(c, &pkts[i]);
	if (n > 0) {
		ringcap_release(c->queue, (unsigned int)n);
		c->read += (uint64_t)n;
	}
	return !good ? -EBADMSG : n < 0 && n != -EINTR ? n : 0;
}

/*
 * Sends until a packet is found, because an interface may join the ring a moment after the pod has it. Returns 0 or
 * -errno.
 */
static int begin(struct check *c)
{
	uint64_t until = now_ns() + c->seconds * NSEC;
	int err = 0;

	while (!err && !c->begun && now_ns() < until) {
		err = send_number(c, 0);
		if (!err)
			err = read_queue(c, WAIT_MS);
	}
	return err;
}

/* Sends all packets, some at a time, until all are found or none came for a while. Returns 0 or -errno. */
static int exchange(struct check *c)
{
	uint64_t until = now_ns() + c->seconds * NSEC, found = 0;
	int err = 0;

	while (!err && c->found < c->count && now_ns() < until) {
		if (c->sent < c->count && c->sent - c->found < BURST)
			err = send_number(c, ++c->sent);
		else
			err = read_queue(c, WAIT_MS);
		if (c->found != found) {
			found = c->found;
			until = now_ns() + c->seconds * NSEC;
		}
	}
	return err;
}

/* Returns true if the queue's own counters agree with ours. */
static bool adds_up(const struct check *c)
{
	struct ringcap_stats now;
	uint64_t dropped = 0, delivered;

	if (ringcap_stats(c->queue, &now))
		return false;
	delivered = now.delivered - c->before.delivered;
	for (int i = 0; i < RINGCAP_DROP_REASONS; i++)
		dropped += now.dropped[i] - c->before.dropped[i];
	if (delivered == c->read && !dropped)
		return true;
	fprintf(stderr, "rccheck: %" PRIu64 " packets were read, and the queue counts %" PRIu64 " delivered, %" PRIu64 " dropped\n",
		c->read, delivered, dropped);
	return false;
}

static bool conclude(const struct check *c, const char *address, int err)
{
	struct ringcap_queue q;

	ringcap_queue(c->queue, &q);
	if (err && err != -EBADMSG)
		fprintf(stderr, "rccheck: %s@%" PRIu32 ": %s\n", q.name, q.queue, strerror(-err));
	else if (!err && !c->begun)
		fprintf(stderr, "rccheck: nothing that was sent to %s in %" PRIu64 " s came to %s@%" PRIu32 " (%s): is what is sent from here "
			"on an interface of the ring, and let through by its filter?\n", address, c->seconds, q.name, q.queue, q.engine);
	else if (!err && c->found < c->count)
		fprintf(stderr, "rccheck: of %" PRIu64 " packets to %s, %" PRIu64 " came to %s@%" PRIu32 " (%s)\n", c->sent, address,
			c->found, q.name, q.queue, q.engine);
	if (err || c->found < c->count || !adds_up(c))
		return false;
	printf("%" PRIu64 " packets were sent and captured by %s in %s@%" PRIu32 ", in order and unchanged; none was lost\n", c->found,
	       q.engine, q.name, q.queue);
	return true;
}

static bool check(struct check *c, const char *name, const char *address)
{
	char reason[RINGCAP_ERRBUF_SIZE] = "";
	bool good;
	int err;

	c->queue = device_open_passive(name, 0, reason);
	if (!c->queue || ringcap_stats(c->queue, &c->before)) {
		fprintf(stderr, "rccheck: %s: %s\n", name, reason);
		return false;
	}
	err = begin(c);
	if (!err && c->begun)
		err = exchange(c);
	good = conclude(c, address, err);
	ringcap_close(c->queue);
	return good;
}

static bool whole_number(const char *text, double max, uint64_t *out)
{
	double n;

	if (!parse_number(text, max, &n) || n < 1 || n != (double)(uint64_t)n) {
		fprintf(stderr, "rccheck: '%s' must be a whole number from 1 to %.0f\n", text, max);
		return false;
	}
	*out = (uint64_t)n;
	return true;
}

int main(int argc, char **argv)
{
	struct check c = { .count = 1000, .seconds = 60 };
	uint64_t port = 9;
	bool good = true;
	int option;

	while (good && (option = getopt(argc, argv, "c:p:t:h")) != -1) {
		switch (option) {
		case 'c':
			good = whole_number(optarg, 1e9, &c.count);
			break;
		case 'p':
			good = whole_number(optarg, 65535, &port);
			break;
		case 't':
			good = whole_number(optarg, 3600, &c.seconds);
			break;
		case 'h':
			usage(stdout);
			return 0;
		default:
			good = false;
		}
	}
	if (!good || argc - optind != 2) {
		usage(stderr);
		return 2;
	}
	if (getrandom(&c.nonce, sizeof(c.nonce), 0) != sizeof(c.nonce) || !connect_to(&c, argv[optind + 1], (uint16_t)port))
		return 1;
	return check(&c, argv[optind], argv[optind + 1]) ? 0 : 1;
}
