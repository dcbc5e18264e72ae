// SPDX-License-Identifier: GPL-2.0-only
/* Payload patterns: found at their position, in packets of one piece and of several, and counted. */
#define _GNU_SOURCE
#include "fixture.h"
#include "rules.h"

#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <linux/virtio_net.h>
#include <sys/socket.h>
#include <unistd.h>

#define RT_UDP_PAYLOAD 42	/* where it begins in the packets of traffic.h */

struct rt_pattern {
	const char *bytes;
	u32 len;
	u32 flags, offset, depth;
};

/* A pattern without NUL in it. */
#define RT_PATTERN(text, ...) { .bytes = (text), .len = sizeof(text) - 1, ##__VA_ARGS__ }

static void rt_put_pattern(struct rt_message *message, const struct rt_pattern *pattern)
{
	u32 nest = rt_message_nest(message, RINGCAP_A_PATTERN);

	rt_message_put(message, RINGCAP_A_PATTERN_BYTES, pattern->bytes, pattern->len);
	if (pattern->flags)
		rt_message_put_u32(message, RINGCAP_A_PATTERN_FLAGS, pattern->flags);
	if (pattern->offset)
		rt_message_put_u32(message, RINGCAP_A_PATTERN_OFFSET, pattern->offset);
	if (pattern->depth)
		rt_message_put_u32(message, RINGCAP_A_PATTERN_DEPTH, pattern->depth);
	rt_message_nest_end(message, nest);
}

static int rt_patterns_begin(const char *ring, u32 action)
{
	static struct rt_message message;

	rt_message_init(&message, RINGCAP_CMD_RULES_BEGIN, 0);
	rt_message_put_name(&message, RINGCAP_A_NAME, ring);
	rt_message_put_u32(&message, RINGCAP_A_PATTERN_ACTION, action);
	return rt_call(&message, NULL, NULL);
}

static int rt_patterns_send(u8 cmd, const char *ring, const struct rt_pattern *patterns, u32 nr)
{
	static struct rt_message message;
	u32 i;

	rt_message_init(&message, cmd, 0);
	rt_message_put_name(&message, RINGCAP_A_NAME, ring);
	for (i = 0; i < nr; i++)
		rt_put_pattern(&message, &patterns[i]);
	return rt_call(&message, NULL, NULL);
}

/* Activates a whole set, in messages of a moderate size. */
static void rt_patterns_set(const char *ring, u32 action, const struct rt_pattern *patterns, u32 nr)
{
	u32 at, some;

	RT_CHECK(!rt_patterns_begin(ring, action), "%s", rt_reason);
	for (at = 0; at < nr; at += some) {
		some = nr - at < 500 ? nr - at : 500;
		RT_CHECK(!rt_patterns_send(RINGCAP_CMD_RULES_ADD, ring, patterns + at, some), "%s", rt_reason);
	}
	RT_CHECK(!rt_rules_commit(ring), "%s", rt_reason);
}

/* Matches in the order of the patterns. rt_take_answer has only the last nest of a message, so this reads all nests. */
struct rt_matches {
	u64 *matches;
	u32 nr, room;
};

static void rt_take_matches(const struct rt_answer *answer, void *arg)
{
	const u8 *at = answer->attr[RINGCAP_A_PATTERN], *end;
	struct rt_matches *matches = arg;
	u16 head[2];

	if (!at)
		return;
	end = at + answer->len[RINGCAP_A_PATTERN];
	for (; at + 4 <= end; at += (head[0] + 3u) & ~3u) {
		memcpy(head, at, sizeof(head));
		if (head[1] == RINGCAP_A_PATTERN_MATCHES && matches->nr < matches->room)
			memcpy(&matches->matches[matches->nr++], at + 4, sizeof(u64));
	}
}

/* Of a set of one pattern. */
static u64 rt_only_matches(const char *ring)
{
	static struct rt_message message;
	u64 value = UINT64_MAX;
	struct rt_matches matches = { .matches = &value, .room = 1 };

	rt_message_init(&message, RINGCAP_CMD_RULES_GET, NLM_F_DUMP);
	rt_message_put_name(&message, RINGCAP_A_NAME, ring);
	RT_EQUAL(rt_call(&message, rt_take_matches, &matches), 0);
	RT_EQUAL(matches.nr, 1);
	return value;
}

/* A packet of @len bytes of which those at @at are @text. */
static void rt_send_text(int sender, u32 len, u32 at, const char *text)
{
	struct rt_traffic traffic = { .min_len = len };
	static u8 bytes[RT_PACKET_MAX];

	rt_packet_build(&traffic, 0, bytes);
	memcpy(bytes + at, text, strlen(text));
	RT_CHECK(send(sender, bytes, len, 0) == (ssize_t)len, "%m");
}

RT_CASE(payload_pass)
{
	static const struct rt_pattern patterns[] = { RT_PATTERN("Secret", .flags = RINGCAP_PATTERN_NOCASE) };
	struct rt_traffic traffic = { .flows = 5, .min_len = 300 };
	struct rt_fixture fixture;
	struct rt_queue queue;

	rt_fixture_open(&fixture, &(struct rt_cluster){});
	rt_queue_open(&queue, fixture.cluster, 0);
	rt_patterns_set(fixture.ring, RINGCAP_ACTION_PASS, patterns, 1);
	rt_send(fixture.sender, &traffic, 0, 100);
	rt_send_text(fixture.sender, 300, RT_UDP_PAYLOAD, "sEcReT");
	rt_send_text(fixture.sender, 300, 150, "SECRET");
	rt_send_text(fixture.sender, 300, 294, "secret");
	/* In the headers it is no payload, nor is half of it. */
	rt_send_text(fixture.sender, 300, RT_UDP_PAYLOAD - 1, "secret");
	rt_send_text(fixture.sender, 300, 0, "secret");
	rt_send_text(fixture.sender, 300, 295, "secre");
	rt_fixture_check(&fixture, 106, 103, 3, 0, 0);
	RT_EQUAL(rt_only_matches(fixture.ring), 3);
	RT_EQUAL(rt_queue_read(&queue, NULL, NULL), 3);
	/* A set without patterns takes them away. */
	rt_patterns_set(fixture.ring, RINGCAP_ACTION_PASS, NULL, 0);
	rt_send(fixture.sender, &traffic, 0, 50);
	rt_fixture_check(&fixture, 156, 103, 53, 0, 0);
	rt_queue_close(&queue);
}

RT_CASE(payload_drop)
{
	static const struct rt_pattern patterns[] = { RT_PATTERN("GET ", .offset = 2, .depth = 6) };
	struct rt_fixture fixture;

	rt_fixture_open(&fixture, &(struct rt_cluster){});
	rt_patterns_set(fixture.ring, RINGCAP_ACTION_DROP, patterns, 1);
	rt_send_text(fixture.sender, 300, RT_UDP_PAYLOAD + 2, "GET ");
	rt_send_text(fixture.sender, 300, RT_UDP_PAYLOAD + 4, "GET ");
	/* Too early, too late, other case. */
	rt_send_text(fixture.sender, 300, RT_UDP_PAYLOAD + 1, "GET ");
	rt_send_text(fixture.sender, 300, RT_UDP_PAYLOAD + 5, "GET ");
	rt_send_text(fixture.sender, 300, RT_UDP_PAYLOAD + 3, "get ");
	rt_fixture_check(&fixture, 5, 2, 0, 0, 3);
	RT_EQUAL(rt_only_matches(fixture.ring), 2);
}

/* Thousands of them, of which each packet has one. */
RT_CASE(payload_many)
{
	const u32 nr = rt_scaled(8000), sent = 200;
	struct rt_pattern *patterns = calloc(nr, sizeof(*patterns));
	struct rt_rules_counts counts;
	struct rt_fixture fixture;
	char (*texts)[16] = calloc(nr, 16);
	u32 i;

	rt_fixture_open(&fixture, &(struct rt_cluster){});
	for (i = 0; i < nr; i++) {
		patterns[i] = (struct rt_pattern){ .bytes = texts[i], .flags = i % 2 };
		patterns[i].len = (u32)snprintf(texts[i], 16, "<%u-pattern>", i);
	}
	rt_patterns_set(fixture.ring, RINGCAP_ACTION_PASS, patterns, nr);
	for (i = 0; i < sent; i++)
		rt_send_text(fixture.sender, 200, 60 + i % 50, texts[i * (nr / sent)]);
	rt_send_text(fixture.sender, 200, 60, "<1234567-pattern>");
	rt_fixture_check(&fixture, sent + 1, 1, 0, 0, sent);
	rt_rules_counts(fixture.ring, &counts);
	RT_CHECK(counts.memory > nr * 16 && counts.memory < nr * 2048 + (8 << 20), "%llu bytes", (unsigned long long)counts.memory);
}

/* For jumbo frames, a sender of which rt_send_pieces() makes use. */
static int rt_open_pieces(struct rt_fixture *fixture)
{
	int pieces, one = 1;

	rt_fixture_open(fixture, &(struct rt_cluster){});
	rt_ip("link set va mtu 9000");
	rt_ip("link set vb mtu 9000");
	pieces = rt_sender_open("va");
	RT_CHECK(!setsockopt(pieces, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof(one)), "%m");
	return pieces;
}

/* Sends a packet with its first @linear bytes contiguous in the kernel, and the rest in pages. */
static void rt_send_pieces(int sender, u32 len, u32 linear, u32 at, const char *text)
{
	struct rt_traffic traffic = { .min_len = len };
	static u8 bytes[sizeof(struct virtio_net_hdr) + RT_PACKET_MAX];
	struct virtio_net_hdr header = { .hdr_len = (u16)linear };

	memcpy(bytes, &header, sizeof(header));
	rt_packet_build(&traffic, 0, bytes + sizeof(header));
	memcpy(bytes + sizeof(header) + at, text, strlen(text));
	RT_CHECK(send(sender, bytes, sizeof(header) + len, 0) == (ssize_t)(sizeof(header) + len), "%m");
}

/* A pattern that begins in one piece and ends in the next. */
RT_CASE(payload_pieces)
{
	static const struct rt_pattern patterns[] = { RT_PATTERN("straddling") };
	static const u32 linear[] = { 14, 30, 60, 100, 105, 109, 110, 111, 2000 };
	const u32 len = 8000, nr = sizeof(linear) / sizeof(linear[0]);
	struct rt_fixture fixture;
	int pieces;
	u32 i;

	pieces = rt_open_pieces(&fixture);
	rt_patterns_set(fixture.ring, RINGCAP_ACTION_PASS, patterns, 1);
	for (i = 0; i < nr; i++) {
		rt_send_pieces(pieces, len, linear[i], 100, "straddling");
		rt_send_pieces(pieces, len, linear[i], len - 10, "straddling");
		rt_send_pieces(pieces, len, linear[i], 4090, "straddling");
		rt_send_pieces(pieces, len, linear[i], 100, "straddlinG");
		rt_send_pieces(pieces, len, linear[i], len - 9, "straddlin");
	}
	rt_fixture_check(&fixture, 5 * nr, 2 * nr, 0, 0, 3 * nr);
	RT_EQUAL(rt_only_matches(fixture.ring), 3 * nr);
	close(pieces);
}

/* A ring's BPF filter, which loads bytes of one piece, and of two. */
RT_CASE(filter_pieces)
{
	static const struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 100),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x6c6f6164, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 0xffffffff),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	static const u32 linear[] = { 14, 60, 99, 100, 101, 102, 103, 104, 105, 2000 };
	const u32 len = 8000, nr = sizeof(linear) / sizeof(linear[0]);
	struct rt_fixture fixture;
	int pieces;
	u32 i;

	pieces = rt_open_pieces(&fixture);
	RT_EQUAL(rt_fixture_change(&fixture, &(struct rt_ring){ .filter = filter, .filter_len = 4 }), 0);
	for (i = 0; i < nr; i++) {
		rt_send_pieces(pieces, len, linear[i], 100, "load");
		rt_send_pieces(pieces, len, linear[i], 100, "loaD");
		rt_send_pieces(pieces, len, linear[i], 100, "Load");
	}
	rt_fixture_check(&fixture, 3 * nr, 2 * nr, 0, 0, nr);
	close(pieces);
}

/*
 * Patterns of both kinds at once: one that respects case is found in its own case only, however the packet is cut into
 * pieces.
 */
RT_CASE(payload_case)
{
	static const struct rt_pattern patterns[] = {
		RT_PATTERN("Straddling"), RT_PATTERN("anything", .flags = RINGCAP_PATTERN_NOCASE), RT_PATTERN("Ling"),
	};
	static const u32 linear[] = { 14, 60, 100, 101, 105, 109, 110, 2000 };
	const u32 len = 8000, nr = sizeof(linear) / sizeof(linear[0]);
	struct rt_fixture fixture;
	int pieces;
	u32 i;

	pieces = rt_open_pieces(&fixture);
	rt_patterns_set(fixture.ring, RINGCAP_ACTION_PASS, patterns, 3);
	for (i = 0; i < nr; i++) {
		rt_send_pieces(pieces, len, linear[i], 100, "Straddling");
		rt_send_pieces(pieces, len, linear[i], 4090, "Straddling");
		rt_send_pieces(pieces, len, linear[i], 100, "straddLing");
		rt_send_pieces(pieces, len, linear[i], 100, "aNyThInG");
		rt_send_pieces(pieces, len, linear[i], 100, "straddling");
		rt_send_pieces(pieces, len, linear[i], 4090, "StraddlinG");
		rt_send_pieces(pieces, len, linear[i], 100, "LINGling");
	}
	rt_fixture_check(&fixture, 7 * nr, 3 * nr, 0, 0, 4 * nr);
	close(pieces);
}

/* Sets the IP length of a packet of traffic.h to @len bytes; what comes after them is a trailer. */
static void rt_cut_ip(u8 *packet, u32 len)
{
	packet[16] = (u8)(len >> 8);
	packet[17] = (u8)len;
	packet[38] = (u8)((len - 20) >> 8);
	packet[39] = (u8)(len - 20);
}

/* Bytes behind an IP packet in its frame are no payload, however the packet is cut into pieces. */
RT_CASE(payload_trailer)
{
	static const struct rt_pattern patterns[] = { RT_PATTERN("straddling") };
	static const u32 linear[] = { 14, 60, 2990, 3000, 3005, 3010, 5000, 8000 };
	static u8 bytes[sizeof(struct virtio_net_hdr) + RT_PACKET_MAX];
	const u32 len = 8000, end = 3010, nr = sizeof(linear) / sizeof(linear[0]);
	struct rt_traffic traffic = { .min_len = len };
	u8 *packet = bytes + sizeof(struct virtio_net_hdr);
	struct rt_fixture fixture;
	int pieces;
	u32 i, at;

	pieces = rt_open_pieces(&fixture);
	rt_patterns_set(fixture.ring, RINGCAP_ACTION_PASS, patterns, 1);
	for (i = 0; i < nr; i++) {
		struct virtio_net_hdr header = { .hdr_len = (u16)linear[i] };

		/* The last bytes of the payload, one byte too late, and after it. */
		for (at = end - 10; at <= end; at += at == end - 10 ? 1 : 9) {
			memcpy(bytes, &header, sizeof(header));
			rt_packet_build(&traffic, 0, packet);
			rt_cut_ip(packet, end - 14);
			memcpy(packet + at, "straddling", 10);
			RT_CHECK(send(pieces, bytes, sizeof(header) + len, 0) == (ssize_t)(sizeof(header) + len), "%m");
		}
	}
	rt_fixture_check(&fixture, 3 * nr, 2 * nr, 0, 0, nr);
	RT_EQUAL(rt_only_matches(fixture.ring), nr);
	close(pieces);
}

/* Invalid patterns are rejected with a reason. If one pattern of a message is invalid, none is taken. */
RT_CASE(payload_refused)
{
	static const struct {
		struct rt_pattern pattern;
		const char *reason;
	} wrong[] = {
		{ { .bytes = "" }, "RINGCAP_A_PATTERN_BYTES" },
		{ RT_PATTERN("abc", .flags = 2), "RINGCAP_A_PATTERN_FLAGS" },
		{ RT_PATTERN("abc", .depth = 2), "RINGCAP_A_PATTERN_DEPTH" },
	};
	struct rt_pattern both[2] = { RT_PATTERN("good") };
	struct rt_fixture fixture;
	u32 i;

	rt_fixture_open(&fixture, &(struct rt_cluster){});
	RT_EQUAL(rt_patterns_send(RINGCAP_CMD_RULES_ADD, fixture.ring, both, 1), -ENOENT);
	RT_EQUAL(rt_patterns_begin(fixture.ring, 2), -EINVAL);
	RT_CHECK(strstr(rt_reason, "RINGCAP_A_PATTERN_ACTION"), "%s", rt_reason);
	RT_EQUAL(rt_patterns_begin(fixture.ring, RINGCAP_ACTION_DROP), 0);
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		both[1] = wrong[i].pattern;
		RT_EQUAL(rt_patterns_send(RINGCAP_CMD_RULES_ADD, fixture.ring, both, 2), -EINVAL);
		RT_CHECK(strstr(rt_reason, wrong[i].reason), "%u: %s", i, rt_reason);
	}
	/* The good one beside them was not kept: the set is empty, and lets everything pass. */
	RT_EQUAL(rt_rules_commit(fixture.ring), 0);
	rt_send_text(fixture.sender, 200, 100, "good");
	rt_fixture_check(&fixture, 1, 0, 0, 0, 1);
	rt_patterns_set(fixture.ring, RINGCAP_ACTION_DROP, both, 1);
	RT_EQUAL(rt_patterns_send(RINGCAP_CMD_RULE_NEW, fixture.ring, both, 1), -EINVAL);
	RT_CHECK(strstr(rt_reason, "RINGCAP_A_PATTERN"), "%s", rt_reason);
	rt_send_text(fixture.sender, 200, 100, "good");
	rt_fixture_check(&fixture, 2, 1, 0, 0, 1);
}

/* Sets a text's letters in upper case where @n has a bit. */
static void rt_spell(char *text, u32 n)
{
	u32 i;

	for (i = 0; text[i]; i++)
		if (n >> i & 1)
			text[i] &= ~0x20;
}

/*
 * Patterns that differ only in case are all compared where one ends: more than RINGCAP_PATTERN_ENDS_MAX are rejected.
 */
RT_CASE(payload_crowded)
{
	const u32 most = RINGCAP_PATTERN_ENDS_MAX;
	struct rt_pattern patterns[RINGCAP_PATTERN_ENDS_MAX + 2] = {
		RT_PATTERN("any case", .flags = RINGCAP_PATTERN_NOCASE),
	};
	char texts[RINGCAP_PATTERN_ENDS_MAX + 1][9];
	struct rt_fixture fixture;
	u32 i;

	rt_fixture_open(&fixture, &(struct rt_cluster){});
	for (i = 0; i <= most; i++) {
		memcpy(texts[i], "password", 9);
		rt_spell(texts[i], i);
		patterns[1 + i] = (struct rt_pattern){ .bytes = texts[i], .len = 8 };
	}
	RT_EQUAL(rt_patterns_begin(fixture.ring, RINGCAP_ACTION_PASS), 0);
	RT_EQUAL(rt_patterns_send(RINGCAP_CMD_RULES_ADD, fixture.ring, patterns, 1 + most + 1), 0);
	RT_EQUAL(rt_rules_commit(fixture.ring), -E2BIG);
	RT_CHECK(strstr(rt_reason, "pattern 1: over 64 can end with it"), "%s", rt_reason);
	/* One less, and the first again and again, which never decides. */
	rt_patterns_set(fixture.ring, RINGCAP_ACTION_PASS, patterns, 1 + most);
	patterns[1 + most] = patterns[1];
	rt_patterns_set(fixture.ring, RINGCAP_ACTION_PASS, patterns, 1 + most + 1);
	for (i = 0; i < most; i++)
		rt_send_text(fixture.sender, 200, 60, texts[i]);
	rt_send_text(fixture.sender, 200, 60, "PASSWORD");
	rt_fixture_check(&fixture, most + 1, 1, 0, 0, most);
}
