// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The plain-C classifier's results for packets: the expected values of the conformance suite. One packet a line,
 *
 *	<balance> <inner> <key, 32 hex digits> <queues> <attended queues, hex mask> <spread> <frame, hex digits>
 *
 * and of each a line with what a slot tells, the hash and the queue, and of a second copy (BOTH_ENDS) hash and queue too:
 *
 *	<l3_off> <l4_off> <l3_proto> <l4_proto> <flags> <vlan_tpid> <vlan_tci> <hash> <queue> <hash> <queue or -1>
 *
 * With spread, packets for an unattended queue go to its stand-in.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "classify.h"

struct line {
	unsigned int balance, inner, queues, spread;
	unsigned long long attended;
	rc_u64 key[2];
	rc_u8 frame[65536];
	size_t len;
};

static size_t unhex(const char *text, rc_u8 *bytes, size_t room)
{
	unsigned int byte;
	size_t n;

	for (n = 0; n < room && sscanf(text + 2 * n, "%2x", &byte) == 1; n++)
		bytes[n] = (rc_u8)byte;
	return n;
}

/* The queue of @hash, or its stand-in; @except is where the other copy is. */
static int choose(const struct line *line, rc_u32 hash, int except)
{
	unsigned int home = rc_queue(hash, line->queues), i;
	rc_u64 most = 0, weight;
	int found = -1;

	if (!line->spread || line->attended >> home & 1)
		return (int)home;
	for (i = 0; i < line->queues; i++) {
		if (i == home || !(line->attended >> i & 1))
			continue;
		weight = rc_mix((rc_u64)hash << 32 | (i + 1));
		if (weight < most)
			continue;
		most = weight;
		found = (int)i;
	}
	if (found < 0)
		return (int)home;
	return found == except ? -1 : found;
}

static void tell(const struct line *line)
{
	struct rc_frame frame = { .data = line->frame };
	static struct rc_inner inner;
	const struct rc_flow *hashed;
	rc_u32 hashes[2] = { 0, 0 };
	int queues[2] = { -1, -1 };
	struct rc_flow flow;

	frame.avail = line->len < RC_PARSE_MAX ? (rc_u32)line->len : RC_PARSE_MAX;
	rc_parse(&frame, &flow);
	hashed = &flow;
	frame.avail = line->len < RC_INNER_MAX ? (rc_u32)line->len : RC_INNER_MAX;
	if (line->inner && rc_parse_inner(&frame, &flow, &inner))
		hashed = &inner.found.flow;
	if (line->balance == RINGCAP_BALANCE_BOTH_ENDS) {
		rc_end_hashes(hashed, line->key, hashes);
		queues[0] = choose(line, hashes[0], -1);
		if (rc_queue(hashes[0], line->queues) != rc_queue(hashes[1], line->queues) &&
		    (int)rc_queue(hashes[1], line->queues) != queues[0])
			queues[1] = choose(line, hashes[1], queues[0]);
	} else {
		hashes[0] = rc_flow_hash(hashed, rc_flow_balance(hashed, line->balance), line->key);
		queues[0] = choose(line, hashes[0], -1);
	}
	printf("%u %u %u %u %u %u %u %u %d %u %d\n", flow.l3_off, flow.l4_off, flow.l3_proto, flow.l4_proto, flow.flags,
	       flow.vlan_tpid, flow.vlan_tci, hashes[0], queues[0], hashes[1], queues[1]);
}

int main(void)
{
	static char text[140000], key[33], frame[131073];
	static struct line line;
	rc_u8 bytes[16];

	while (fgets(text, sizeof(text), stdin)) {
		if (sscanf(text, "%u %u %32s %u %llx %u %131072s", &line.balance, &line.inner, key, &line.queues,
			   &line.attended, &line.spread, frame) != 7 || unhex(key, bytes, sizeof(bytes)) != sizeof(bytes)) {
			fprintf(stderr, "oracle: not a packet: %.80s\n", text);
			return 2;
		}
		rc_key_load(bytes, line.key);
		line.len = unhex(frame, line.frame, sizeof(line.frame));
		tell(&line);
	}
	return 0;
}
