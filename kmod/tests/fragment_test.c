// SPDX-License-Identifier: GPL-2.0-only
/* Fragments: kept together, kept with their flow, and reassembled. */
#define _GNU_SOURCE
#include "faults.h"
#include "fixture.h"

#include <arpa/inet.h>
#include <pthread.h>

#include "frame.h"

#define RT_QUEUES	8
#define RT_PARTS	3
#define RT_PART		184	/* bytes of IP payload in each part but the last: a multiple of 8 */
#define RT_PAYLOAD	460	/* with the UDP header */

static const u8 rt_key[RINGCAP_KEY_LEN] = { 6, 6, 2, 6, 0, 7, 0, 1, 5, 0 };

static struct rt_ends rt_datagram_ends(u32 number)
{
	/* Many flows between two hosts. */
	return (struct rt_ends){ 0x0a000001, 0x0a010001, (u16)(1000 + number * 7), 53 };
}

static void rt_build_whole(struct rt_frame *frame, u32 number, bool ipv6)
{
	struct rt_ends ends = rt_datagram_ends(number);

	rt_frame_begin(frame, number, RT_PAYLOAD - 8);
	rt_frame_push_udp(frame, &ends);
	if (ipv6)
		rt_frame_push_ipv6(frame, &ends, 17);
	else
		rt_frame_push_ipv4(frame, &ends, 17);
	rt_frame_push_ethernet(frame, ipv6 ? 0x86dd : 0x0800);
}

/*
 * Part @part of the datagram @number. Each part's data ends in its number again; the last part's ends in that of the
 * whole.
 */
static void rt_build_part(struct rt_frame *frame, u32 number, u32 part, bool ipv6)
{
	static __thread struct rt_frame whole;
	struct rt_ends ends = rt_datagram_ends(number);
	u32 from = part * RT_PART, len = part < RT_PARTS - 1 ? RT_PART : RT_PAYLOAD - from, id = number + 1;
	bool more = part < RT_PARTS - 1;

	rt_build_whole(&whole, number, ipv6);
	frame->data = frame->room + sizeof(frame->room);
	frame->len = 0;
	rt_frame_push(frame, whole.data + (ipv6 ? 54 : 34) + from, len);
	if (ipv6) {
		u16 offset = htons((u16)(from | more));
		u8 header[8] = { 17 };

		memcpy(header + 2, &offset, 2);
		id = htonl(id);
		memcpy(header + 4, &id, 4);
		rt_frame_push(frame, header, 8);
		rt_frame_push_ipv6(frame, &ends, 44);
	} else {
		u16 offset = htons((u16)(from / 8 | (more ? 0x2000 : 0))), id16 = htons((u16)id);

		rt_frame_push_ipv4(frame, &ends, 17);
		memcpy(frame->data + 4, &id16, 2);
		memcpy(frame->data + 6, &offset, 2);
		memset(frame->data + 10, 0, 2);
	}
	rt_frame_push_ethernet(frame, ipv6 ? 0x86dd : 0x0800);
}

/*
 * Queues of a cluster, and the queues where datagrams arrived.
 *
 * @took: for each datagram, bits of the queues
 * @count: packets
 */
struct rt_reader {
	struct rt_fixture fixture;
	struct rt_cluster cluster;
	struct rt_queue queues[RT_QUEUES];
	u32 at;
	u32 *took;
	u32 last;
	u64 count;
};

/* A fragment by its identification, a whole datagram by its number. */
static void rt_reader_take(const struct ringcap_slot *slot, const u8 *packet, void *arg)
{
	struct rt_reader *reader = arg;
	u32 number;

	if (packet[12] == 0x86) {
		memcpy(&number, packet + 58, 4);
		number = packet[20] == 44 ? ntohl(number) - 1 : rt_packet_number(packet, slot->caplen);
	} else if ((packet[20] & 0x3f) || packet[21]) {
		number = (u32)(packet[18] << 8 | packet[19]) - 1;
	} else {
		number = rt_packet_number(packet, slot->caplen);
	}
	RT_CHECK(number < reader->last, "datagram %u", number);
	reader->took[number] |= 1U << reader->at;
	reader->count++;
}

static void rt_reader_read(struct rt_reader *reader)
{
	for (reader->at = 0; reader->at < reader->cluster.queues; reader->at++)
		rt_queue_read(&reader->queues[reader->at], rt_reader_take, reader);
}

static void rt_reader_open(struct rt_reader *reader, const struct rt_cluster *shape, u32 last)
{
	u32 i;

	memset(reader, 0, sizeof(*reader));
	reader->cluster = *shape;
	reader->cluster.key = rt_key;
	reader->last = last;
	reader->took = calloc(last, sizeof(u32));
	RT_CHECK(reader->took, "no memory");
	rt_fixture_open(&reader->fixture, &reader->cluster);
	for (i = 0; i < reader->cluster.queues; i++)
		rt_queue_open(&reader->queues[i], reader->cluster.name, i);
}

/* Bits of the queue that datagram @number's flow has. */
static u32 rt_flow_queue(u32 number, bool ipv6)
{
	static struct rt_frame whole;
	struct rc_flow flow;
	rc_u64 key[2];

	rt_build_whole(&whole, number, ipv6);
	rt_model_flow(whole.data, whole.len, false, &flow);
	rc_key_load(rt_key, key);
	return 1U << rc_queue(rc_flow_hash(&flow, RINGCAP_BALANCE_FLOW, key), RT_QUEUES);
}

/*
 * 100 datagrams in parts, sent in @order. All parts of a datagram are together; those of the first order are with their
 * flow.
 */
static void rt_try_fragments(bool ipv6, u32 fragments, const u8 order[RT_PARTS], bool with_flow)
{
	static struct rt_reader reader;
	struct rt_queue_counts counts;
	struct rt_frame frame;
	u32 number, i, all = 0, own = 0;

	rt_reader_open(&reader, &(struct rt_cluster){ .queues = RT_QUEUES, .fragments = fragments }, 100);
	/* From several processors the parts could come in another order. */
	rt_pin(0);
	for (i = 0; i < RT_PARTS; i++) {
		for (number = 0; number < 100; number++) {
			rt_build_part(&frame, number, order[i], ipv6);
			rt_frame_send(reader.fixture.sender, &frame);
		}
	}
	RT_EVENTUALLY((rt_reader_read(&reader), reader.count >= RT_PARTS * 100), 10000);
	for (number = 0; number < 100; number++) {
		RT_CHECK(__builtin_popcount(reader.took[number]) == 1, "datagram %u in queues %x", number, reader.took[number]);
		all |= reader.took[number];
		own += reader.took[number] == rt_flow_queue(number, ipv6);
	}
	if (with_flow)
		RT_EQUAL(own, 100);
	else
		RT_CHECK(__builtin_popcount(all) == 1, "fragments between two hosts in queues %x", all);
	rt_cluster_counts(reader.cluster.name, &counts);
	RT_EQUAL(counts.delivered, RT_PARTS * 100);
}

static const u8 rt_in_order[RT_PARTS] = { 0, 1, 2 }, rt_first_first[RT_PARTS] = { 0, 2, 1 }, rt_backwards[RT_PARTS] = { 2, 1, 0 };

RT_CASE(fragments_together)
{
	rt_try_fragments(false, RINGCAP_FRAGMENTS_TOGETHER, rt_in_order, false);
}

RT_CASE(fragments_with_flow)
{
	rt_try_fragments(false, RINGCAP_FRAGMENTS_WITH_FLOW, rt_in_order, true);
}

RT_CASE(fragments_with_flow_ipv6)
{
	rt_try_fragments(true, RINGCAP_FRAGMENTS_WITH_FLOW, rt_first_first, true);
}

/* The first fragment comes last: then all of them go by the fields that all fragments have. */
RT_CASE(fragments_first_last)
{
	rt_try_fragments(false, RINGCAP_FRAGMENTS_WITH_FLOW, rt_backwards, false);
}

RT_CASE(fragments_first_last_ipv6)
{
	rt_try_fragments(true, RINGCAP_FRAGMENTS_WITH_FLOW, rt_backwards, false);
}

/* An identification is used again for another flow, once the datagram before is complete. */
RT_CASE(fragments_identification_again)
{
	static struct rt_reader reader;
	struct rt_frame frame, other;
	u32 number, part;

	rt_reader_open(&reader, &(struct rt_cluster){ .queues = RT_QUEUES, .fragments = RINGCAP_FRAGMENTS_WITH_FLOW }, 100);
	rt_pin(0);
	for (number = 0; number < 50; number++) {
		for (part = 0; part < RT_PARTS; part++) {
			rt_build_part(&frame, number, part, false);
			rt_build_part(&other, 7, part, false);
			memcpy(frame.data + 18, other.data + 18, 2);
			rt_frame_send(reader.fixture.sender, &frame);
		}
		reader.took[7] = 0;
		reader.count = 0;
		RT_EVENTUALLY((rt_reader_read(&reader), reader.count >= RT_PARTS), 10000);
		RT_EQUAL(reader.took[7], rt_flow_queue(number, false));
	}
}

/*
 * Far more datagrams begin than the table can hold, and never end. Datagrams that come meanwhile are still with their
 * flow.
 */
RT_CASE(fragments_eviction)
{
	static struct rt_reader reader;
	struct rt_queue_counts counts;
	struct rt_frame frame;
	u32 number, part, flood = 0, i;

	rt_reader_open(&reader, &(struct rt_cluster){ .queues = RT_QUEUES, .fragments = RINGCAP_FRAGMENTS_WITH_FLOW }, 60000);
	rt_pin(0);
	for (number = 0; number < 30; number++) {
		for (i = 0; i < rt_scaled(400); i++, flood++) {
			rt_build_part(&frame, 100 + flood, flood % 2, false);
			rt_frame_send(reader.fixture.sender, &frame);
		}
		for (part = 0; part < RT_PARTS; part++) {
			rt_build_part(&frame, number, part, false);
			rt_frame_send(reader.fixture.sender, &frame);
		}
		rt_reader_read(&reader);
	}
	RT_EVENTUALLY((rt_reader_read(&reader), reader.count >= 30 * RT_PARTS + flood), 10000);
	for (number = 0; number < 30; number++)
		RT_EQUAL(reader.took[number], rt_flow_queue(number, false));
	rt_cluster_counts(reader.cluster.name, &counts);
	RT_EQUAL(counts.delivered, 30 * RT_PARTS + flood);
}

/* ---- several CPUs ---- */

struct rt_part_sender {
	int sender;
	u32 cpu;
	u32 count;
	u32 *turn;
};

/* Parts in turns with the other CPU, in unknown order. */
static void *rt_send_parts(void *arg)
{
	const struct rt_part_sender *this = arg;
	static __thread struct rt_frame frame;
	u32 number, part;

	rt_pin(this->cpu);
	for (number = 0; number < this->count; number++) {
		__atomic_fetch_add(this->turn, 1, __ATOMIC_ACQ_REL);
		while (__atomic_load_n(this->turn, __ATOMIC_ACQUIRE) < 2 * (number + 1))
			sched_yield();
		for (part = this->cpu; part < RT_PARTS; part += 2) {
			rt_build_part(&frame, number, part, false);
			rt_frame_send(this->sender, &frame);
		}
	}
	return NULL;
}

/* One CPU has the first and last part, the other CPU the second one: they are never in two queues. */
RT_CASE(fragments_smp)
{
	static struct rt_reader reader;
	struct rt_part_sender senders[2];
	const u32 count = rt_scaled(1000);
	pthread_t threads[2];
	u32 i, number, turn = 0, own = 0;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		rt_skip("this machine has one processor");
	rt_reader_open(&reader, &(struct rt_cluster){ .queues = RT_QUEUES, .fragments = RINGCAP_FRAGMENTS_WITH_FLOW }, count);
	for (i = 0; i < 2; i++) {
		senders[i] = (struct rt_part_sender){ reader.fixture.sender, i, count, &turn };
		RT_CHECK(!pthread_create(&threads[i], NULL, rt_send_parts, &senders[i]), "no thread");
	}
	for (i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	RT_EVENTUALLY((rt_reader_read(&reader), reader.count >= (u64)count * RT_PARTS), 20000);
	for (number = 0; number < count; number++) {
		RT_CHECK(__builtin_popcount(reader.took[number]) == 1, "datagram %u in queues %x", number, reader.took[number]);
		own += reader.took[number] == rt_flow_queue(number, false);
	}
	printf("# %u of %u datagrams began with their first fragment, or happen to be in their flow's queue\n", own, count);
}

/* ---- defragmentation ---- */

/* Whole datagrams, as if they had never been fragmented. */
static void rt_check_whole(const struct ringcap_slot *slot, const u8 *packet, void *arg)
{
	struct rt_reader *reader = arg;
	u32 number = rt_packet_number(packet, slot->caplen);
	static struct rt_frame whole;

	RT_CHECK(number < reader->last, "number %u of %u bytes", number, slot->len);
	RT_CHECK(!reader->took[number], "datagram %u twice", number);
	rt_build_whole(&whole, number, false);
	RT_EQUAL(slot->len, whole.len);
	RT_EQUAL(slot->caplen, whole.len);
	RT_EQUAL(slot->flags & RINGCAP_SLOT_FRAGMENT, 0);
	/* But for identification and checksum. */
	RT_CHECK(!memcmp(packet, whole.data, 18) && !memcmp(packet + 26, whole.data + 26, whole.len - 26), "datagram %u is damaged",
		 number);
	RT_EQUAL(slot->ifindex, reader->fixture.ifindex);
	reader->took[number] = 1U << reader->at;
	RT_EQUAL(reader->took[number], rt_flow_queue(number, false));
	reader->count++;
}

/*
 * Parts of several datagrams in any order, and one that never ends; two rings on one device do not affect each other.
 */
RT_CASE(defrag_two_rings)
{
	static const u8 orders[3][RT_PARTS] = { { 0, 1, 2 }, { 2, 1, 0 }, { 1, 2, 0 } };
	static struct rt_reader reader;
	struct rt_ring_counts counts[2];
	struct rt_frame frame;
	struct rt_ring other;
	u32 number, part, i;
	char second[40];

	rt_reader_open(&reader, &(struct rt_cluster){ .queues = RT_QUEUES, .metadata = 1 }, 90);
	snprintf(second, sizeof(second), "%s-2", reader.fixture.ring);
	other = (struct rt_ring){ .name = second, .taps = { { reader.fixture.ifindex, RINGCAP_DIRECTION_RX } }, .defrag = 1 };
	RT_EQUAL(rt_ring_set(&other), 0);
	RT_EQUAL(rt_fixture_change(&reader.fixture, &(struct rt_ring){ .defrag = 1 }), 0);
	for (i = 0; i < 60 * RT_PARTS; i++) {
		number = i / (10 * RT_PARTS) * 10 + i % 10;
		part = i / 10 % RT_PARTS;
		rt_build_part(&frame, number, orders[number % 3][part], false);
		rt_frame_send(reader.fixture.sender, &frame);
	}
	/* Datagrams that were never fragmented, and the beginning of one that never ends. */
	for (number = 60; number < 89; number++) {
		rt_build_whole(&frame, number, false);
		rt_frame_send(reader.fixture.sender, &frame);
	}
	rt_build_part(&frame, 89, 0, false);
	rt_frame_send(reader.fixture.sender, &frame);
	rt_ring_wait(reader.fixture.ring, 60 * RT_PARTS + 30);
	for (reader.at = 0; reader.at < RT_QUEUES; reader.at++)
		rt_queue_read(&reader.queues[reader.at], rt_check_whole, &reader);
	RT_EQUAL(reader.count, 89);
	rt_ring_counts(reader.fixture.ring, &counts[0]);
	rt_ring_counts(second, &counts[1]);
	for (i = 0; i < 2; i++) {
		RT_EQUAL(counts[i].seen, 60 * RT_PARTS + 30);
		RT_EQUAL(counts[i].absorbed, 60 * (RT_PARTS - 1) + 1);
		RT_EQUAL(counts[i].passed, 89);
	}
}

/* Gives vb the datagrams' address and returns a socket that gets those that the stack has put together. */
static int rt_stack_socket(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(53) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	rt_ip("addr add 10.1.0.1/8 dev vb");
	rt_ip("link set lo up");
	rt_write_file("/proc/sys/net/ipv4/conf/all/rp_filter", "0");
	rt_write_file("/proc/sys/net/ipv4/conf/vb/rp_filter", "0");
	RT_CHECK(fd >= 0 && !bind(fd, (struct sockaddr *)&address, sizeof(address)), "%m");
	return fd;
}

/* Datagram @number in parts, to vb, and with a checksum that the stack accepts: @fd gets it whole. */
static void rt_send_to_stack(const struct rt_reader *reader, int fd, u32 number)
{
	struct rt_frame frame;
	u8 received[2048];
	u32 part, sum, i;

	for (part = 0; part < RT_PARTS; part++) {
		rt_build_part(&frame, number, part, false);
		memcpy(frame.data, "\xff\xff\xff\xff\xff\xff", 6);
		for (sum = 0, i = 14; i < 34; i += 2)
			sum += (u32)(frame.data[i] << 8 | frame.data[i + 1]);
		sum = ~((sum & 0xffff) + (sum >> 16));
		frame.data[24] = (u8)(sum >> 8);
		frame.data[25] = (u8)sum;
		rt_frame_send(reader->fixture.sender, &frame);
	}
	RT_EVENTUALLY(recv(fd, received, sizeof(received), MSG_DONTWAIT) == RT_PAYLOAD - 8, 5000);
}

/* The stack's own reassembly of the same fragments is not affected: a socket gets the datagrams. */
RT_CASE(defrag_leaves_the_stack_alone)
{
	static struct rt_reader reader;
	struct rt_ring_counts counts;
	u32 number;
	int fd;

	rt_reader_open(&reader, &(struct rt_cluster){ .queues = RT_QUEUES }, 20);
	RT_EQUAL(rt_fixture_change(&reader.fixture, &(struct rt_ring){ .defrag = 1 }), 0);
	fd = rt_stack_socket();
	for (number = 0; number < 20; number++)
		rt_send_to_stack(&reader, fd, number);
	rt_ring_wait(reader.fixture.ring, 20 * RT_PARTS);
	rt_ring_counts(reader.fixture.ring, &counts);
	RT_EQUAL(counts.passed, counts.seen - counts.absorbed);
	RT_EQUAL(counts.absorbed, 20 * (RT_PARTS - 1));
	close(fd);
}

/*
 * A thousand datagrams for another host begin and never end. The stack reassembles the datagrams that are sent
 * meanwhile, and the ring has all of them, in fragments. When there is room again, the ring has whole datagrams again.
 */
RT_CASE(defrag_flood)
{
	static struct rt_reader reader;
	struct rt_ring_counts flood, counts;
	struct rt_frame frame;
	u32 number;
	int fd;

	rt_reader_open(&reader, &(struct rt_cluster){ .queues = RT_QUEUES }, 2000);
	RT_CHECK(rt_write_file("/proc/sys/net/ipv4/ipfrag_low_thresh", "300000") &&
		 rt_write_file("/proc/sys/net/ipv4/ipfrag_high_thresh", "400000") &&
		 rt_write_file("/proc/sys/net/ipv4/ipfrag_time", "3600"), "%m");
	RT_EQUAL(rt_fixture_change(&reader.fixture, &(struct rt_ring){ .defrag = 1 }), 0);
	fd = rt_stack_socket();
	for (number = 1000; number < 2000; number++) {
		rt_build_part(&frame, number, 0, false);
		rt_frame_send(reader.fixture.sender, &frame);
	}
	rt_ring_wait(reader.fixture.ring, 1000);
	rt_ring_counts(reader.fixture.ring, &flood);
	RT_CHECK(flood.absorbed && flood.absorbed < 900, "%llu absorbed", (unsigned long long)flood.absorbed);
	RT_EQUAL(flood.passed + flood.absorbed, 1000);
	for (number = 0; number < 20; number++)
		rt_send_to_stack(&reader, fd, number);
	rt_ring_counts(reader.fixture.ring, &counts);
	RT_EQUAL(counts.absorbed, flood.absorbed);
	RT_EVENTUALLY((rt_reader_read(&reader), reader.count >= flood.passed + 20 * RT_PARTS), 10000);
	RT_EQUAL(reader.count, counts.passed);
	for (number = 0; number < 20; number++)
		RT_CHECK(reader.took[number], "datagram %u is hidden", number);
	RT_CHECK(rt_write_file("/proc/sys/net/ipv4/ipfrag_high_thresh", "4000000"), "%m");
	for (number = 20; number < 40; number++)
		rt_send_to_stack(&reader, fd, number);
	rt_ring_counts(reader.fixture.ring, &counts);
	RT_EQUAL(counts.absorbed, flood.absorbed + 20 * (RT_PARTS - 1));
	RT_EQUAL(counts.passed, counts.seen - counts.absorbed);
	close(fd);
}

/*
 * Fragments are captured as they are, or absorbed, if there is no memory to reassemble them. Each is counted once. On
 * the debug kernel only.
 */
RT_CASE(defrag_no_memory)
{
	static struct rt_reader reader;
	struct rt_ring_counts before, counts;
	const u32 count = 60;
	struct rt_frame frame;
	u64 read = 0;
	u32 number, i;

	rt_faults_open();
	rt_reader_open(&reader, &(struct rt_cluster){ .queues = RT_QUEUES, .metadata = 1 }, 2 * count);
	RT_EQUAL(rt_fixture_change(&reader.fixture, &(struct rt_ring){ .defrag = 1 }), 0);
	rt_fail_atomic(30);
	for (i = 0; i < count * RT_PARTS; i++) {
		rt_build_part(&frame, i / RT_PARTS, i % RT_PARTS, false);
		rt_frame_send(reader.fixture.sender, &frame);
	}
	rt_ring_wait(reader.fixture.ring, count * RT_PARTS);
	rt_fail_atomic(0);
	rt_ring_counts(reader.fixture.ring, &before);
	RT_EQUAL(before.seen, count * RT_PARTS);
	RT_EQUAL(before.passed + before.absorbed, count * RT_PARTS);
	RT_CHECK(before.absorbed != count * (RT_PARTS - 1), "no allocation failed");
	for (i = 0; i < RT_QUEUES; i++)
		read += rt_queue_read(&reader.queues[i], NULL, NULL);
	RT_EQUAL(read, before.passed);
	/* With memory, everything works as before. */
	for (number = count; number < 2 * count; number++) {
		for (i = 0; i < RT_PARTS; i++) {
			rt_build_part(&frame, number, i, false);
			rt_frame_send(reader.fixture.sender, &frame);
		}
	}
	rt_ring_wait(reader.fixture.ring, 2 * count * RT_PARTS);
	for (reader.at = 0; reader.at < RT_QUEUES; reader.at++)
		rt_queue_read(&reader.queues[reader.at], rt_check_whole, &reader);
	RT_EQUAL(reader.count, count);
	rt_ring_counts(reader.fixture.ring, &counts);
	RT_EQUAL(counts.passed - before.passed, count);
	RT_EQUAL(counts.absorbed - before.absorbed, count * (RT_PARTS - 1));
}
