// SPDX-License-Identifier: BSD-2-Clause
/*
 * line: for tests in a VM with the module.
 *
 *	line set NAME A B QUEUES OPEN HUNG_MS [FLOWS]	makes the in-line cluster NAME, whose consumers may shunt FLOWS, and the ring
 *						NAME-pair between interfaces A and B
 *	line mirror NAME A QUEUES [FLOWS]	makes a cluster and a ring that are not in line, of what A receives
 *	line verdicts NAME A B			ringcap_verdicts on its queues: packets are sent into A and must come out of B
 *	line carry A B FLOWS PACKETS		sends packets into A, each flow's by turns, and all come out of B in their order
 *	line stop A B FLOWS PACKETS		the same, and none comes out of B
 *
 * OPEN is RINGCAP_A_INLINE. Each packet carries its flow and its number in the flow.
 */
#include "check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ringcap/ringcap.h>

#include "../src/control.h"

enum { QUEUES = 4, FLOWS = 32, PACKETS = 20000, WINDOW = 512, BATCH = 64, LEN = 64, FLOW_AT = 42, NUMBER_AT = 46, MARK_AT = 50 };

/* ---------------------------------------------------------------- making a pair */

static void call(struct control *c)
{
	int err = control_call(c, NULL, NULL);

	if (err) {
		fprintf(stderr, "line: %s: %s\n", strerror(-err), c->reason);
		exit(1);
	}
}

/* peer: NULL = not in line. */
static void put_tap(struct control *c, const char *interface, const char *peer)
{
	uint32_t nest = control_nest(c, RINGCAP_A_TAP);

	CHECK(if_nametoindex(interface) && (!peer || if_nametoindex(peer)));
	control_put_u32(c, RINGCAP_A_TAP_IFINDEX, if_nametoindex(interface));
	if (peer)
		control_put_u32(c, RINGCAP_A_TAP_PEER, if_nametoindex(peer));
	control_nest_end(c, nest);
}

static struct control *open_control(void)
{
	static struct control control;
	char reason[RINGCAP_ERRBUF_SIZE];

	if (control_open(&control, reason)) {
		fprintf(stderr, "line: %s\n", reason);
		exit(1);
	}
	return &control;
}

static void start_cluster(struct control *c, const char *cluster, const char *queues, const char *flows)
{
	control_start(c, RINGCAP_CMD_CLUSTER_SET, 0);
	control_put_string(c, RINGCAP_A_NAME, cluster);
	control_put_u32(c, RINGCAP_A_QUEUES, (uint32_t)atoi(queues));
	control_put_u32(c, RINGCAP_A_TIMEOUT_US, 0);
	control_put_u32(c, RINGCAP_A_FRAGMENTS, RINGCAP_FRAGMENTS_WITH_FLOW);
	if (flows)
		control_put_u32(c, RINGCAP_A_SHUNT_QUOTA, (uint32_t)atoi(flows));
}

static void start_ring(struct control *c, const char *cluster)
{
	char ring[RINGCAP_NAME_MAX + 1];

	snprintf(ring, sizeof(ring), "%s-pair", cluster);
	control_start(c, RINGCAP_CMD_RING_SET, 0);
	control_put_string(c, RINGCAP_A_NAME, ring);
	control_put_string(c, RINGCAP_A_OUTPUT, cluster);
}

static int set(char **argv)
{
	struct control *c = open_control();

	start_cluster(c, argv[0], argv[3], argv[6]);
	control_put_u32(c, RINGCAP_A_INLINE, (uint32_t)atoi(argv[4]));
	control_put_u32(c, RINGCAP_A_HUNG_MS, (uint32_t)atoi(argv[5]));
	call(c);
	start_ring(c, argv[0]);
	put_tap(c, argv[1], argv[2]);
	put_tap(c, argv[2], argv[1]);
	call(c);
	control_close(c);
	return 0;
}

static int mirror(char **argv)
{
	struct control *c = open_control();

	start_cluster(c, argv[0], argv[2], argv[3]);
	call(c);
	start_ring(c, argv[0]);
	put_tap(c, argv[1], NULL);
	call(c);
	control_close(c);
	return 0;
}

/* ---------------------------------------------------------------- packets */

static int open_socket(const char *interface)
{
	struct sockaddr_ll address = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IP) };
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0), bytes = 64 << 20;

	address.sll_ifindex = (int)if_nametoindex(interface);
	CHECK(fd >= 0 && !bind(fd, (struct sockaddr *)&address, sizeof(address)));
	CHECK(!setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)));
	return fd;
}

/* UDP from port 10000 + flow. */
static void make_packet(uint8_t *packet, uint32_t flow, uint32_t number)
{
	static const uint8_t head[FLOW_AT] = {
		2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0,
		0x45, 0, 0, LEN - 14, 0, 0, 0x40, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2,
		0, 0, 0x27, 0x10, 0, LEN - 34, 0, 0,
	};

	memset(packet, 0, LEN);
	memcpy(packet, head, sizeof(head));
	packet[34] = (uint8_t)((10000 + flow) >> 8);
	packet[35] = (uint8_t)(10000 + flow);
	memcpy(packet + FLOW_AT, &flow, sizeof(flow));
	memcpy(packet + NUMBER_AT, &number, sizeof(number));
}

static uint32_t read_u32(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

/* Every sixteenth packet is blocked, and every seventh of the others is replaced. */
static uint8_t kind_of(uint32_t number)
{
	return number % 16 == 3 ? RINGCAP_VERDICT_BLOCK : number % 7 == 1 ? RINGCAP_VERDICT_REPLACE : RINGCAP_VERDICT_PASS;
}

static void send_packet(int fd, uint32_t flow, uint32_t number)
{
	uint8_t packet[LEN];

	make_packet(packet, flow, number);
	CHECK_EQ(send(fd, packet, LEN, 0), LEN);
}

/* Returns false if none comes within the time. The interface's own are left out. */
static bool receive_packet(int fd, uint8_t *packet, int timeout_ms)
{
	struct sockaddr_ll from;
	struct pollfd p = { .fd = fd, .events = POLLIN };

	while (poll(&p, 1, timeout_ms) > 0) {
		socklen_t len = sizeof(from);
		ssize_t n = recvfrom(fd, packet, LEN, MSG_TRUNC, (struct sockaddr *)&from, &len);

		if (from.sll_pkttype == PACKET_OUTGOING)
			continue;
		CHECK_EQ(n, LEN);
		return true;
	}
	return false;
}

/* ---------------------------------------------------------------- consumers */

struct consumer {
	struct ringcap *queue;
	pthread_t thread;
	uint64_t kinds[RINGCAP_VERDICT_REPLACE + 1];
};

static struct ringcap *open_queue(const char *name, unsigned int queue)
{
	char full[RINGCAP_NAME_MAX + 8], reason[RINGCAP_ERRBUF_SIZE];
	struct ringcap *h;

	snprintf(full, sizeof(full), "%s@%u", name, queue);
	h = ringcap_open(full, 0, reason);
	if (!h) {
		fprintf(stderr, "line: %s\n", reason);
		exit(1);
	}
	CHECK_EQ(ringcap_is_inline(h), 1);
	return h;
}

static void judge(struct consumer *c, const struct ringcap_pkt *pkt, struct ringcap_verdict *verdict, uint8_t *other)
{
	uint8_t kind = kind_of(read_u32(pkt->data + NUMBER_AT));

	CHECK_EQ(pkt->slot->caplen, LEN);
	c->kinds[kind]++;
	*verdict = (struct ringcap_verdict){ .position = ringcap_position(c->queue, pkt->slot), .verdict = kind };
	if (kind != RINGCAP_VERDICT_REPLACE)
		return;
	memcpy(other, pkt->data, LEN);
	other[MARK_AT] = 1;
	verdict->data = (uint64_t)(uintptr_t)other;
	verdict->len = LEN;
}

/* Gives verdicts in batches, every second time after it has released the packets. */
static void *consume(void *arg)
{
	struct ringcap_verdict verdicts[BATCH];
	struct ringcap_pkt pkts[BATCH];
	uint8_t others[BATCH][LEN];
	struct consumer *c = arg;
	unsigned int missed, round = 0;
	int n, i;

	while ((n = ringcap_recv(c->queue, pkts, BATCH, -1)) > 0) {
		for (i = 0; i < n; i++)
			judge(c, &pkts[i], &verdicts[i], others[i]);
		if (round++ % 2)
			ringcap_release(c->queue, (unsigned int)n);
		CHECK_EQ(ringcap_verdicts(c->queue, verdicts, (unsigned int)n, &missed), n);
		CHECK_EQ(missed, 0);
		if (round % 2)
			ringcap_release(c->queue, (unsigned int)n);
	}
	CHECK_EQ(n, -EINTR);
	return NULL;
}

/* ---------------------------------------------------------------- tests */

static int socket_a, socket_b;
static const char *name;

/* Takes what has come out. Each flow's numbers rise; none is missing but those that were blocked. */
static void take(uint32_t *next, uint64_t *count, bool wait)
{
	uint8_t packet[LEN];

	while (receive_packet(socket_b, packet, wait ? 20000 : 0)) {
		uint32_t flow = read_u32(packet + FLOW_AT), number = read_u32(packet + NUMBER_AT);

		CHECK(flow < FLOWS);
		while (kind_of(next[flow]) == RINGCAP_VERDICT_BLOCK)
			next[flow]++;
		CHECK_EQ(number, next[flow]);
		CHECK_EQ(packet[MARK_AT], kind_of(number) == RINGCAP_VERDICT_REPLACE);
		next[flow]++;
		(*count)++;
		wait = false;
	}
	CHECK(!wait);
}

/* Sends all packets, at most WINDOW ahead of what came out. */
static void carry(void)
{
	uint64_t passed = 0, expected = 0;
	uint32_t next[FLOWS] = { 0 };

	for (uint32_t i = 0; i < PACKETS; i++) {
		send_packet(socket_a, i % FLOWS, i / FLOWS);
		expected += kind_of(i / FLOWS) != RINGCAP_VERDICT_BLOCK;
		take(next, &passed, expected - passed > WINDOW);
	}
	while (passed < expected)
		take(next, &passed, true);
}

static void test_verdicts(void)
{
	struct consumer consumers[QUEUES] = { 0 };
	uint64_t kinds[RINGCAP_VERDICT_REPLACE + 1] = { 0 };

	for (unsigned int i = 0; i < QUEUES; i++) {
		consumers[i].queue = open_queue(name, i);
		CHECK(!pthread_create(&consumers[i].thread, NULL, consume, &consumers[i]));
	}
	carry();
	for (unsigned int i = 0; i < QUEUES; i++) {
		ringcap_wakeup(consumers[i].queue);
		pthread_join(consumers[i].thread, NULL);
		CHECK(consumers[i].kinds[RINGCAP_VERDICT_PASS]);
		for (int kind = 0; kind <= RINGCAP_VERDICT_REPLACE; kind++)
			kinds[kind] += consumers[i].kinds[kind];
		ringcap_close(consumers[i].queue);
	}
	printf("passed %" PRIu64 " blocked %" PRIu64 " replaced %" PRIu64 "\n", kinds[RINGCAP_VERDICT_PASS],
	       kinds[RINGCAP_VERDICT_BLOCK], kinds[RINGCAP_VERDICT_REPLACE]);
}

static unsigned int receive_all(struct ringcap *h, struct ringcap_pkt *pkts, unsigned int want)
{
	unsigned int n = 0;

	while (n < want) {
		int more = ringcap_recv(h, pkts + n, want - n, 10000);

		CHECK(more > 0);
		n += (unsigned int)more;
	}
	return n;
}

/* The queue that a flow comes to. */
static unsigned int find_queue(struct ringcap **queues)
{
	struct ringcap_pkt pkt;

	send_packet(socket_a, 0, 0);
	for (;;)
		for (unsigned int i = 0; i < QUEUES; i++)
			if (ringcap_recv(queues[i], &pkt, 1, 1)) {
				struct ringcap_verdict pass = { .position = ringcap_position(queues[i], pkt.slot),
								.verdict = RINGCAP_VERDICT_PASS };

				CHECK_EQ(ringcap_verdicts(queues[i], &pass, 1, NULL), 1);
				ringcap_release(queues[i], 1);
				return i;
			}
}

/* Verdicts that miss: expected is how many of the n. */
static void give(struct ringcap *h, const struct ringcap_verdict *verdicts, unsigned int n, unsigned int expected)
{
	unsigned int missed;

	CHECK_EQ(ringcap_verdicts(h, verdicts, n, &missed), n);
	CHECK_EQ(missed, expected);
}

/* Twice, for what never was, for another queue's packets, invalid ones, and after the queue was taken back. */
static void test_wrong(void)
{
	struct ringcap_verdict verdicts[10], odd[10];
	uint8_t own[LEN], packet[LEN];
	struct ringcap *queues[QUEUES], *h, *another;
	struct ringcap_pkt pkts[10];
	unsigned int which, i;

	for (i = 0; i < QUEUES; i++)
		queues[i] = open_queue(name, i);
	which = find_queue(queues);
	h = queues[which];
	another = queues[(which + 1) % QUEUES];
	CHECK(receive_packet(socket_b, packet, 10000));
	for (i = 0; i < 10; i++)
		send_packet(socket_a, 0, 1 + i);
	receive_all(h, pkts, 10);
	for (i = 0; i < 10; i++) {
		verdicts[i] = (struct ringcap_verdict){ .position = ringcap_position(h, pkts[i].slot), .verdict = RINGCAP_VERDICT_PASS };
		odd[i] = verdicts[i];
		odd[i].position += 8 + (uint64_t)i * 1000000;
	}
	give(another, verdicts, 10, 10);
	give(h, odd, 10, 10);
	make_packet(own, 1, 99);
	odd[0] = (struct ringcap_verdict){ .position = verdicts[9].position, .verdict = RINGCAP_VERDICT_INJECT_REVERSE,
					   .data = (uint64_t)(uintptr_t)own, .len = LEN };
	give(h, odd, 1, 0);
	CHECK(receive_packet(socket_a, packet, 10000));
	CHECK_EQ(read_u32(packet + NUMBER_AT), 99);
	odd[0].verdict = RINGCAP_VERDICT_INJECT_FORWARD;
	give(h, odd, 1, 0);
	CHECK(receive_packet(socket_b, packet, 10000));
	CHECK_EQ(read_u32(packet + NUMBER_AT), 99);
	give(h, verdicts, 5, 0);
	give(h, verdicts, 10, 5);
	give(h, verdicts, 10, 10);
	give(h, odd, 1, 1);
	for (i = 0; i < 10; i++) {
		CHECK(receive_packet(socket_b, packet, 10000));
		CHECK_EQ(read_u32(packet + NUMBER_AT), 1 + i);
	}
	odd[1].verdict = 0;
	CHECK_EQ(ringcap_verdicts(h, odd, 2, NULL), 1);
	CHECK_EQ(ringcap_verdicts(h, odd + 1, 1, NULL), -EINVAL);
	odd[1] = (struct ringcap_verdict){ .verdict = RINGCAP_VERDICT_REPLACE, .len = LEN, .data = 8 };
	CHECK_EQ(ringcap_verdicts(h, odd + 1, 1, NULL), -EFAULT);
	CHECK_EQ(ringcap_verdicts(h, NULL, 0, NULL), 0);
	ringcap_release(h, 10);
	for (i = 0; i < QUEUES; i++)
		if (i != which)
			ringcap_close(queues[i]);

	send_packet(socket_a, 0, 11);
	receive_all(h, pkts, 1);
	verdicts[0].position = ringcap_position(h, pkts[0].slot);
	struct control *c = open_control();

	control_start(c, RINGCAP_CMD_QUEUE_REVOKE, 0);
	control_put_string(c, RINGCAP_A_NAME, name);
	control_put_u32(c, RINGCAP_A_QUEUE, which);
	call(c);
	control_close(c);
	CHECK_EQ(ringcap_verdicts(h, verdicts, 1, NULL), -ENODEV);
	CHECK_EQ(ringcap_is_inline(h), 0);
	CHECK(receive_packet(socket_b, packet, 10000));	/* it went past its consumer */
	CHECK_EQ(read_u32(packet + NUMBER_AT), 11);
	ringcap_close(h);
	h = ringcap_open_interface("lo", NULL, NULL);
	CHECK(h && !ringcap_is_inline(h));
	CHECK_EQ(ringcap_verdicts(h, verdicts, 1, NULL), -EPERM);
	ringcap_close(h);
}

static int test(char **argv)
{
	name = argv[0];
	socket_a = open_socket(argv[1]);
	socket_b = open_socket(argv[2]);
	RUN(test_verdicts);
	RUN(test_wrong);
	return 0;
}

/* ---------------------------------------------------------------- packets that others decide on */

/* Takes what has come out of B: each flow's numbers rise by one. */
static void take_in_order(uint32_t *next, uint32_t flows, uint32_t *count, bool wait)
{
	uint8_t packet[LEN];

	while (receive_packet(socket_b, packet, wait ? 20000 : 0)) {
		uint32_t flow = read_u32(packet + FLOW_AT);

		CHECK(flow < flows);
		CHECK_EQ(read_u32(packet + NUMBER_AT), next[flow]++);
		++*count;
		wait = false;
	}
	CHECK(!wait);
}

static int carry_all(char **argv)
{
	uint32_t flows = (uint32_t)atoi(argv[2]), all = flows * (uint32_t)atoi(argv[3]), came = 0;
	uint32_t *next = calloc(flows, sizeof(*next));

	CHECK(next);
	socket_a = open_socket(argv[0]);
	socket_b = open_socket(argv[1]);
	for (uint32_t i = 0; i < all; i++) {
		send_packet(socket_a, i % flows, i / flows);
		take_in_order(next, flows, &came, i + 1 - came > WINDOW);
	}
	while (came < all)
		take_in_order(next, flows, &came, true);
	free(next);
	return 0;
}

/* The caller sees by the counters when all are decided on, and that none has left. */
static int stop_all(char **argv)
{
	uint32_t flows = (uint32_t)atoi(argv[2]), all = flows * (uint32_t)atoi(argv[3]);
	uint8_t packet[LEN];

	socket_a = open_socket(argv[0]);
	socket_b = open_socket(argv[1]);
	for (uint32_t i = 0; i < all; i++)
		send_packet(socket_a, i % flows, i / flows);
	CHECK(!receive_packet(socket_b, packet, 1000));
	return 0;
}

int main(int argc, char **argv)
{
	if ((argc == 8 || argc == 9) && !strcmp(argv[1], "set"))
		return set(argv + 2);
	if ((argc == 5 || argc == 6) && !strcmp(argv[1], "mirror"))
		return mirror(argv + 2);
	if (argc == 6 && !strcmp(argv[1], "carry"))
		return carry_all(argv + 2);
	if (argc == 6 && !strcmp(argv[1], "stop"))
		return stop_all(argv + 2);
	if (argc == 5 && !strcmp(argv[1], "verdicts"))
		return test(argv + 2);
	fprintf(stderr, "usage: line set NAME A B QUEUES OPEN HUNG_MS [FLOWS]\n       line mirror NAME A QUEUES [FLOWS]\n"
		"       line verdicts NAME A B\n       line carry A B FLOWS PACKETS\n       line stop A B FLOWS PACKETS\n");
	return 2;
}
