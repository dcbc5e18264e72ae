// SPDX-License-Identifier: BSD-2-Clause
/* Tests which flows verdicts shunt, and what libdaq's module says and counts when it may not. The kernel is this file. */
#include "check.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "../daq/shunts.h"
#include "shunt_flow.h"

/* ---------------------------------------------------------------- the kernel */

static struct kernel {
	int answer;			/* of the flows from room on */
	unsigned int room;		/* flows that are taken */
	unsigned int calls;
	unsigned int n;
	struct ringcap_exact flows[64];
	struct ringcap_exact_state ended[100];
	unsigned int nr_ended;
	struct ringcap_shunt_stats stats;
} kernel;

int ringcap_shunt(struct ringcap *h, const struct ringcap_exact *flows, unsigned int n)
{
	unsigned int taken = n < kernel.room ? n : kernel.room;

	(void)h;
	kernel.calls++;
	memcpy(kernel.flows + kernel.n, flows, taken * sizeof(*flows));
	kernel.n += taken;
	kernel.room -= taken;
	return taken ? (int)taken : kernel.answer;
}

int ringcap_shunt_ended(struct ringcap *h, struct ringcap_exact_state *states, unsigned int n, uint64_t *lost)
{
	unsigned int taken = n < kernel.nr_ended ? n : kernel.nr_ended;

	(void)h;
	memcpy(states, kernel.ended + kernel.nr_ended - taken, taken * sizeof(*states));
	kernel.nr_ended -= taken;
	*lost = 3;
	return (int)taken;
}

int ringcap_shunt_stats(const struct ringcap *h, struct ringcap_shunt_stats *stats)
{
	(void)h;
	*stats = kernel.stats;
	return 0;
}

/* ---------------------------------------------------------------- packets */

#define UDP_PORT	34	/* where the ports begin in an IPv4 packet without tags */

static const uint8_t ipv4[60] = {
	2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0,
	0x45, 0, 0, 46, 0, 0, 0x40, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2,
	0x27, 0x10, 0, 53, 0, 26, 0, 0,
};

static const uint8_t ipv6[80] = {
	2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x86, 0xdd,
	0x60, 0, 0, 0, 0, 26, 6, 64, 0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
	0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0xc0, 0, 0x01, 0xbb,
};

/* The packet with a tag of this VLAN in front of what follows its addresses. */
static void tag(uint8_t *packet, size_t len, uint16_t tpid, uint16_t vlan)
{
	memmove(packet + 16, packet + 12, len - 16);
	packet[12] = (uint8_t)(tpid >> 8);
	packet[13] = (uint8_t)tpid;
	packet[14] = (uint8_t)(vlan >> 8);
	packet[15] = (uint8_t)vlan;
}

static void test_named(void)
{
	struct ringcap_exact flow = { .action = RINGCAP_ACTION_PASS, .idle_s = 9 };
	uint8_t packet[80];

	CHECK(shunt_flow_of(ipv4, sizeof(ipv4), &flow));
	CHECK_EQ(flow.l3_proto, 0x0800);
	CHECK_EQ(flow.l4_proto, 17);
	CHECK_EQ(flow.sport, 10000);
	CHECK_EQ(flow.dport, 53);
	CHECK_EQ(flow.vlan_id, 0);
	CHECK(!memcmp(flow.saddr, ipv4 + 26, 4) && !memcmp(flow.daddr, ipv4 + 30, 4));
	CHECK_EQ(flow.saddr[4] | flow.daddr[15], 0);
	CHECK_EQ(flow.action, RINGCAP_ACTION_PASS);
	CHECK_EQ(flow.idle_s, 9);
	CHECK(shunt_flow_of(ipv6, sizeof(ipv6), &flow));
	CHECK_EQ(flow.l3_proto, 0x86dd);
	CHECK_EQ(flow.l4_proto, 6);
	CHECK_EQ(flow.sport, 49152);
	CHECK_EQ(flow.dport, 443);
	CHECK(!memcmp(flow.saddr, ipv6 + 22, 16) && !memcmp(flow.daddr, ipv6 + 38, 16));
	memcpy(packet, ipv4, sizeof(ipv4));
	tag(packet, sizeof(packet), 0x8100, 0xe005);
	CHECK(shunt_flow_of(packet, 64, &flow));
	CHECK_EQ(flow.vlan_id, 5);
	CHECK_EQ(flow.dport, 53);
}

static bool is_named(const uint8_t *packet, uint32_t caplen)
{
	struct ringcap_exact flow;

	return shunt_flow_of(packet, caplen, &flow);
}

/* Whether the packet is named after one of its bytes was changed. */
static bool is_named_with(const uint8_t *packet, uint32_t len, size_t at, uint8_t byte)
{
	uint8_t other[80];

	memcpy(other, packet, len);
	other[at] = byte;
	return is_named(other, len);
}

static void test_not_named(void)
{
	static const uint16_t tunnels[] = { 2152, 3386, 3544, 4789, 4790, 6081, 8472 };
	uint8_t packet[80];

	CHECK(!is_named_with(ipv4, 60, 12, 9));		/* not IP */
	CHECK(!is_named_with(ipv4, 60, 20, 0x20));	/* a first fragment */
	CHECK(!is_named_with(ipv4, 60, 21, 1));		/* a later one */
	CHECK(!is_named_with(ipv4, 60, 23, 1));		/* ICMP */
	CHECK(!is_named_with(ipv4, 60, 23, 4));		/* IP in IP */
	CHECK(!is_named_with(ipv4, 60, 23, 47));	/* GRE */
	CHECK(is_named_with(ipv4, 60, 23, 132));
	CHECK(!is_named_with(ipv6, 80, 20, 44));	/* a fragment header */
	CHECK(!is_named_with(ipv6, 80, 20, 58));	/* ICMPv6 */
	for (uint32_t len = 0; len < UDP_PORT + 4; len++)
		CHECK(!is_named(ipv4, len));
	CHECK(is_named(ipv4, UDP_PORT + 4));
	memcpy(packet, ipv4, sizeof(ipv4));
	tag(packet, sizeof(packet), 0x8100, 7);
	tag(packet, sizeof(packet), 0x88a8, 5);
	CHECK(!is_named(packet, 68));
	for (size_t i = 0; i < sizeof(tunnels) / sizeof(*tunnels); i++)
		for (size_t at = UDP_PORT; at <= UDP_PORT + 2; at += 2) {
			memcpy(packet, ipv4, sizeof(ipv4));
			packet[at] = (uint8_t)(tunnels[i] >> 8);
			packet[at + 1] = (uint8_t)tunnels[i];
			CHECK(!is_named(packet, 60));
			packet[23] = 6;	/* TCP with that port is none */
			CHECK(is_named(packet, 60));
		}
}

/* ---------------------------------------------------------------- verdicts */

static const struct ringcap_queue about = { .name = "ids", .queue = 2, .engine = "KernelModule" };
static struct ringcap *const queue = (struct ringcap *)&kernel;

static void say(const struct shunts *s, const char *why)
{
	fprintf(stderr, "%s@%u: %s\n", s->about->name, s->about->queue, why);
}

static struct shunts make(unsigned int room, int answer)
{
	kernel = (struct kernel){ .room = room, .answer = answer, .stats = { 1000, 100000 } };
	return (struct shunts){ .idle_s = 30, .about = &about, .say = say };
}

static void add(struct shunts *s, uint8_t port)
{
	uint8_t packet[60];

	memcpy(packet, ipv4, sizeof(packet));
	packet[UDP_PORT + 1] = port;
	shunts_add(s, queue, packet, sizeof(packet), RINGCAP_ACTION_DROP);
}

/* What the function prints on standard error or the file, in a buffer that the next call uses again. */
static const char *printed(struct shunts *s, void (*print)(struct shunts *s))
{
	static char text[1024];
	FILE *file = tmpfile();
	int saved = dup(2);
	size_t len;

	CHECK(file && saved >= 0 && dup2(fileno(file), 2) == 2);
	print(s);
	fflush(stderr);
	CHECK(dup2(saved, 2) == 2);
	close(saved);
	rewind(file);
	len = fread(text, 1, sizeof(text) - 1, file);
	text[len] = '\0';
	fclose(file);
	return text;
}

static void give(struct shunts *s)
{
	shunts_give(s, queue);
}

static void report(struct shunts *s)
{
	shunts_report(s, queue, stderr);
}

static void check_text(const char *text, const char *want)
{
	if (strcmp(text, want)) {
		fprintf(stderr, "got '%s', want '%s'\n", text, want);
		exit(1);
	}
}

static void test_batches(void)
{
	struct shunts s = make(64, 0);

	shunts_give(&s, queue);
	CHECK_EQ(kernel.calls, 0);
	for (uint8_t i = 0; i < 15; i++)
		add(&s, i);
	for (int i = 0; i < 5; i++)
		add(&s, 14);	/* once more for the same flow */
	CHECK_EQ(kernel.calls, 0);
	add(&s, 15);
	CHECK_EQ(kernel.calls, 1);
	CHECK_EQ(kernel.n, 16);
	CHECK_EQ(kernel.flows[3].sport, 0x2703);
	CHECK_EQ(kernel.flows[3].idle_s, 30);
	CHECK_EQ(kernel.flows[3].action, RINGCAP_ACTION_DROP);
	CHECK_EQ(s.shunting, 21);
	add(&s, 15);
	shunts_give(&s, queue);
	CHECK_EQ(kernel.n, 17);
	CHECK_EQ(s.shunting, 22);
}

/* Nothing is asked for. */
static void test_off(void)
{
	struct shunts s = make(64, 0);

	s.idle_s = 0;
	add(&s, 1);
	shunts_give(&s, queue);
	shunts_read_ended(&s, queue, true);
	CHECK_EQ(kernel.calls, 0);
	CHECK_EQ(shunts_stats(&s, queue).shunted, 0);
	check_text(printed(&s, report), "");
}

static void test_no_right(void)
{
	struct shunts s = make(0, -EPERM);

	add(&s, 1);
	add(&s, 2);
	check_text(printed(&s, give), "ids@2: its ring or cluster gives no right to it (spec.consumers.shunt)\n");
	CHECK_EQ(s.refused[SHUNTS_NO_RIGHT], 2);
	CHECK_EQ(kernel.calls, 1);
	for (int i = 0; i < 100; i++)
		add(&s, 3);
	shunts_give(&s, queue);
	CHECK_EQ(kernel.calls, 1);	/* it asks again only after a second */
	CHECK_EQ(s.refused[SHUNTS_NO_RIGHT], 102);
	usleep(1100000);
	add(&s, 3);
	check_text(printed(&s, give), "");	/* said once */
	CHECK_EQ(kernel.calls, 2);
	usleep(1100000);
	kernel.room = 64;	/* the cluster was changed */
	add(&s, 3);
	shunts_give(&s, queue);
	CHECK_EQ(kernel.n, 1);
	CHECK_EQ(s.shunting, 1);
	CHECK_EQ(s.refused[SHUNTS_NO_RIGHT], 103);
}

static void test_quota(void)
{
	struct shunts s = make(2, -EDQUOT);

	for (uint8_t i = 0; i < 5; i++)
		add(&s, i);
	check_text(printed(&s, give), "ids@2: as many are shunted as its ring or cluster allows (spec.consumers.shunt)\n");
	CHECK_EQ(s.shunting, 2);
	CHECK_EQ(s.refused[SHUNTS_NO_QUOTA], 3);
	kernel.stats = (struct ringcap_shunt_stats){ 1070, 107000 };
	check_text(printed(&s, report), "ringcap: ids@2 shunted: packets 70, bytes 7000; flows that ended 0 with packets 0, bytes 0, lost 0; "
		   "verdicts that shunted 2, without a flow 0, without the engine 0, without the right 0, above the quota 3, failed 0\n");
}

/* A module, or an agent, that cannot: it is asked once. */
static void test_no_engine(void)
{
	struct shunts s = make(0, -ENOTSUP);

	add(&s, 1);
	check_text(printed(&s, give), "ids@2: the kernel module, or the node agent, is older than shunting\n");
	usleep(1100000);
	add(&s, 1);
	shunts_give(&s, queue);
	CHECK_EQ(kernel.calls, 1);
	CHECK_EQ(s.refused[SHUNTS_NO_ENGINE], 2);
}

/* For callers that must know at once. */
static void test_now(void)
{
	struct shunts s = make(1, -EDQUOT);

	CHECK(shunts_add_now(&s, queue, ipv4, sizeof(ipv4), RINGCAP_ACTION_DROP));
	CHECK_EQ(kernel.n, 1);
	CHECK(!shunts_add_now(&s, queue, ipv4, sizeof(ipv4), RINGCAP_ACTION_DROP));	/* the quota */
	CHECK(!shunts_add_now(&s, queue, ipv4, sizeof(ipv4), RINGCAP_ACTION_DROP));	/* it is not asked for again yet */
	CHECK(!shunts_add_now(&s, queue, ipv4, 20, RINGCAP_ACTION_DROP));
	CHECK_EQ(kernel.calls, 2);
}

static void test_failed(void)
{
	struct shunts s = make(0, -ENOMEM);

	add(&s, 1);
	check_text(printed(&s, give), "ids@2: Cannot allocate memory\n");
	s = make(0, -ENODEV);
	add(&s, 1);
	check_text(printed(&s, give), "");	/* receiving says so */
	CHECK_EQ(s.refused[SHUNTS_FAILED], 1);
}

static void test_no_flow(void)
{
	struct shunts s = make(64, 0);
	uint8_t packet[60] = { 0 };

	shunts_add(&s, queue, packet, sizeof(packet), RINGCAP_ACTION_DROP);
	shunts_give(&s, queue);
	CHECK_EQ(kernel.calls, 0);
	CHECK_EQ(s.refused[SHUNTS_NO_FLOW], 1);
}

/* More than one call reads; and again only after a second. */
static void test_ended(void)
{
	struct shunts s = make(64, 0);

	shunts_read_ended(&s, queue, true);
	for (int i = 0; i < 100; i++)
		kernel.ended[i].counts = (struct ringcap_rule_counts){ .packets = 2, .bytes = 300 };
	kernel.nr_ended = 100;
	shunts_read_ended(&s, queue, true);
	CHECK_EQ(kernel.nr_ended, 100);	/* none was shunted */
	add(&s, 1);
	shunts_give(&s, queue);
	shunts_read_ended(&s, queue, false);
	CHECK_EQ(kernel.nr_ended, 0);
	kernel.nr_ended = 1;
	shunts_read_ended(&s, queue, false);
	CHECK_EQ(kernel.nr_ended, 1);
	shunts_read_ended(&s, queue, true);
	CHECK_EQ(s.ended, 101);
	kernel.stats = (struct ringcap_shunt_stats){ 1202, 130300 };
	check_text(printed(&s, report), "ringcap: ids@2 shunted: packets 202, bytes 30300; flows that ended 101 with packets 202, bytes 30300, "
		   "lost 3; verdicts that shunted 1, without a flow 0, without the engine 0, without the right 0, above the quota 0, failed 0\n");
	shunts_reset(&s, queue);
	CHECK_EQ(shunts_stats(&s, NULL).shunted, 0);
	kernel.stats.shunted++;
	CHECK_EQ(shunts_stats(&s, NULL).shunted, 0);	/* the queue is closed */
	CHECK_EQ(shunts_stats(&s, queue).shunted, 1);
	CHECK_EQ(shunts_stats(&s, NULL).shunted, 1);
}

int main(void)
{
	RUN(test_named);
	RUN(test_not_named);
	RUN(test_batches);
	RUN(test_off);
	RUN(test_no_right);
	RUN(test_quota);
	RUN(test_no_engine);
	RUN(test_now);
	RUN(test_failed);
	RUN(test_no_flow);
	RUN(test_ended);
	return 0;
}
