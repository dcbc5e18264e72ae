// SPDX-License-Identifier: GPL-2.0-only
/* In line: pairs of interfaces, verdicts, and the three events at which packets go past the consumer. */
#define _GNU_SOURCE
#include "inline.h"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "frame.h"
#include "link.h"
#include "tcp.h"

/* ---- packets pass unharmed ---- */

/* Sends packets at @from in batches, answers for them by @judge, and reads what comes out at @to. */
static void rt_line_carry(struct rt_queue *queue, struct rt_end *from, struct rt_end *to,
			  const struct rt_traffic *traffic, u32 count)
{
	u64 deadline = rt_now() + RT_PATIENCE_NS;
	struct rt_receiver receiver;
	u32 sent, n;

	rt_receiver_init(&receiver, traffic, to->ifindex, count);
	for (sent = 0; sent < count; sent += n) {
		n = count - sent < 64 ? count - sent : 64;
		rt_send(from->sender, traffic, sent, n);
		while (receiver.count < sent + n) {
			rt_line_judge(queue, NULL, NULL);
			rt_queue_read(&to->queue, rt_receive, &receiver);
			RT_CHECK(rt_now() < deadline, "%llu of %u came", (unsigned long long)receiver.count, count);
		}
	}
	free(receiver.seen);
}

/* Both ways. */
static void rt_line_carry_both(const struct rt_traffic *traffic, u32 count, u32 mtu)
{
	struct rt_line line = { .open = 0, .hung_ms = 60000 };
	u64 stats[RINGCAP_INLINE_STATS];
	struct rt_queue queue;
	const char *const names[] = { "a0", "a1", "b0", "b1" };
	u32 i;

	rt_line_open(&line);
	for (i = 0; mtu && i < 4; i++)
		rt_ip("link set %s mtu %u", names[i], mtu);
	rt_queue_open(&queue, line.cluster, 0);
	rt_line_carry(&queue, &line.a, &line.b, traffic, count);
	rt_line_carry(&queue, &line.b, &line.a, traffic, count);
	rt_line_check(&line, 2 * count, stats);
	RT_EQUAL(stats[RINGCAP_INLINE_PASSED], 2 * count);
	/* Nothing came back to where it was sent. */
	RT_EQUAL(rt_ring_seen(line.a.ring), count);
	RT_EQUAL(rt_ring_seen(line.b.ring), count);
	rt_queue_close(&queue);
	rt_line_close(&line);
}

RT_CASE(inline_pass)
{
	rt_line_carry_both(&(struct rt_traffic){ .flows = 20, .min_len = 60, .max_len = 1514 }, rt_scaled(2000), 0);
}

RT_CASE(inline_vlan)
{
	rt_line_carry_both(&(struct rt_traffic){ .flows = 5, .max_len = 1518, .tpid = { 0x8100 }, .tci = { 0x6fff } }, 200, 0);
}

RT_CASE(inline_qinq)
{
	rt_line_carry_both(&(struct rt_traffic){ .flows = 5, .max_len = 1500, .tpid = { 0x88a8, 0x8100 }, .tci = { 1, 2 } }, 200, 0);
}

RT_CASE(inline_jumbo)
{
	rt_line_carry_both(&(struct rt_traffic){ .flows = 5, .min_len = 4000, .max_len = 9014 }, 200, 9000);
}

struct rt_frame_check {
	const struct rt_frame *frame;
	u32 count;
};

static void rt_check_frame(const struct ringcap_slot *slot, const u8 *packet, void *arg)
{
	struct rt_frame_check *check = arg;

	if (slot->caplen != check->frame->len || memcmp(packet, check->frame->data, slot->caplen))
		return;
	check->count++;
}

/* Frames of types that nothing here knows, and lengths instead of types. */
RT_CASE(inline_types)
{
	static const u16 types[] = { 0x0806, 0x88cc, 0x0026, 0x86dd, 0x8863, 0x8847, 0x9000, 0xffff, 0x0800 };
	struct rt_line line = { .hung_ms = 60000 };
	struct rt_frame_check check = {};
	static struct rt_frame frame;
	struct rt_queue queue;
	size_t i;

	rt_line_open(&line);
	rt_queue_open(&queue, line.cluster, 0);
	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		rt_frame_begin(&frame, (u32)i, 50);
		rt_frame_push_ethernet(&frame, types[i]);
		check = (struct rt_frame_check){ .frame = &frame };
		rt_frame_send(line.a.sender, &frame);
		RT_EVENTUALLY(rt_line_judge(&queue, NULL, NULL), 10000);
		RT_EVENTUALLY((rt_queue_read(&line.b.queue, rt_check_frame, &check), check.count), 10000);
		RT_EQUAL(check.count, 1);
	}
	rt_queue_close(&queue);
	rt_line_close(&line);
}

/* ---- a stack at each end ---- */

struct rt_judge_thread {
	struct rt_queue *queue;
	rt_judge_fn judge;
	void *arg;
	int stop;
	pthread_t thread;
};

static void *rt_judge_run(void *arg)
{
	struct rt_judge_thread *thread = arg;

	while (!__atomic_load_n(&thread->stop, __ATOMIC_RELAXED)) {
		rt_queue_poll(thread->queue, 10);
		rt_line_judge(thread->queue, thread->judge, thread->arg);
	}
	return NULL;
}

static void rt_judge_start(struct rt_judge_thread *thread, struct rt_queue *queue, rt_judge_fn judge, void *arg)
{
	*thread = (struct rt_judge_thread){ .queue = queue, .judge = judge, .arg = arg };
	RT_CHECK(!pthread_create(&thread->thread, NULL, rt_judge_run, thread), "no thread");
}

static void rt_judge_stop(struct rt_judge_thread *thread)
{
	__atomic_store_n(&thread->stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread->thread, NULL);
}

static u8 rt_judge_merged(const struct ringcap_slot *slot, const u8 *packet, struct ringcap_verdict *verdict, void *arg)
{
	u64 *merged = arg;

	(void)packet;
	(void)verdict;
	merged[0] += !!(slot->flags & RINGCAP_SLOT_MERGED);
	merged[1] += !!(slot->flags & RINGCAP_SLOT_CSUM_PARTIAL);
	return RINGCAP_VERDICT_PASS;
}

RT_CASE(inline_tcp)
{
	struct rt_line line = { .hung_ms = 60000 };
	u64 before[RINGCAP_INLINE_STATS], stats[RINGCAP_INLINE_STATS], merged[2] = {};
	struct rt_judge_thread judge;
	struct rt_tcp tcp;
	struct rt_queue queue;

	rt_line_open(&line);
	rt_queue_open(&queue, line.cluster, 0);
	rt_judge_start(&judge, &queue, rt_judge_merged, merged);
	rt_tcp_open(&tcp, "a0", "b0");
	/* While the ends moved, hosts sent packets that had no receiver, or came before the queues worked again. */
	rt_line_stats(&line, NULL, before);
	rt_tcp_run(&tcp);
	rt_judge_stop(&judge);
	rt_line_stats(&line, NULL, stats);
	printf("# %llu passed, %llu merged, %llu with partial checksums\n", (unsigned long long)stats[RINGCAP_INLINE_PASSED],
	       (unsigned long long)merged[0], (unsigned long long)merged[1]);
	RT_CHECK(merged[0] && merged[1], "nothing was merged");
	RT_EQUAL(rt_line_lost(stats), rt_line_lost(before));
	RT_EQUAL(stats[RINGCAP_INLINE_BLOCKED], 0);
	rt_tcp_close(&tcp);
	rt_queue_close(&queue);
	rt_line_close(&line);
}

/* ---- verdicts ---- */

struct rt_dice {
	u64 seed;
	u64 counts[4];
	u8 bytes[64];
};

static u8 rt_judge_dice(const struct ringcap_slot *slot, const u8 *packet, struct ringcap_verdict *verdict, void *arg)
{
	struct rt_dice *dice = arg;
	u8 kind = rt_random(&dice->seed) % 4;

	(void)slot;
	(void)packet;
	dice->counts[kind]++;
	if (kind == RINGCAP_VERDICT_REPLACE) {
		verdict->data = (u64)(uintptr_t)dice->bytes;
		verdict->len = sizeof(dice->bytes);
	}
	return kind;
}

static void rt_count_kinds(const struct ringcap_slot *slot, const u8 *packet, void *arg)
{
	u64 *kinds = arg;

	kinds[slot->caplen == 64 && packet[12] == 0x88 && packet[13] == 0xb5]++;
}

/* PASS, BLOCK, REPLACE, or no answer at all, at random: exact accounts, and what arrives is what they say. */
RT_CASE(inline_random)
{
	struct rt_line line = { .hung_ms = 60000, .lane_size = RINGCAP_LANE_SIZE_MIN, .queues = 2 };
	struct rt_traffic traffic = { .flows = 20, .min_len = 65, .max_len = 400 };
	struct rt_dice dice = { .seed = 5, .bytes = { 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5 } };
	u64 stats[RINGCAP_INLINE_STATS], kinds[2] = {};
	const u32 count = rt_scaled(4000);
	struct rt_queue queues[2];
	u32 sent, i;

	rt_line_open(&line);
	for (i = 0; i < 2; i++)
		rt_queue_open(&queues[i], line.cluster, i);
	for (sent = 0; sent < count; sent += 50) {
		rt_send(line.a.sender, &traffic, sent, 50);
		rt_ring_wait(line.ring, sent + 50);
		rt_line_judge(&queues[0], rt_judge_dice, &dice);
		rt_line_judge(&queues[1], rt_judge_dice, &dice);
		rt_settle();
		rt_queue_read(&line.b.queue, rt_count_kinds, kinds);
	}
	rt_line_check(&line, count, stats);
	RT_EQUAL(dice.counts[0], stats[RINGCAP_INLINE_UNANSWERED] + stats[RINGCAP_INLINE_HELD]);
	RT_CHECK(stats[RINGCAP_INLINE_UNANSWERED] > 0, "the place of no packet was needed");
	RT_EQUAL(dice.counts[RINGCAP_VERDICT_PASS], stats[RINGCAP_INLINE_PASSED]);
	RT_EQUAL(dice.counts[RINGCAP_VERDICT_BLOCK], stats[RINGCAP_INLINE_BLOCKED]);
	RT_EQUAL(dice.counts[RINGCAP_VERDICT_REPLACE], stats[RINGCAP_INLINE_REPLACED]);
	rt_ring_wait(line.b.ring, stats[RINGCAP_INLINE_PASSED] + stats[RINGCAP_INLINE_REPLACED]);
	rt_queue_read(&line.b.queue, rt_count_kinds, kinds);
	RT_EQUAL(kinds[0], stats[RINGCAP_INLINE_PASSED]);
	RT_EQUAL(kinds[1], stats[RINGCAP_INLINE_REPLACED]);
	/* What waits is dropped when its consumer goes. */
	rt_queue_close(&queues[0]);
	rt_queue_close(&queues[1]);
	rt_line_check(&line, count, stats);
	RT_EQUAL(stats[RINGCAP_INLINE_HELD], 0);
	RT_EQUAL(dice.counts[0], stats[RINGCAP_INLINE_UNANSWERED] + stats[RINGCAP_INLINE_BLOCK_UNATTENDED]);
	rt_line_close(&line);
}

/* Of three verdicts, the end of the last is not in memory: the others are taken. */
static void rt_verdicts_cut(int fd)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	u8 *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ringcap_verdict *verdicts = (void *)(pages + page - 2 * sizeof(*verdicts) - 16);
	u32 missed;

	RT_CHECK(pages != MAP_FAILED && !munmap(pages + page, page), "%m");
	verdicts[0] = verdicts[1] = (struct ringcap_verdict){ .verdict = RINGCAP_VERDICT_PASS, .position = 8 };
	RT_EQUAL(rt_verdicts(fd, verdicts, 3, &missed), 2);
	RT_EQUAL(missed, 2);
	RT_EQUAL(rt_verdicts(fd, verdicts + 2, 1, NULL), -EFAULT);
	munmap(pages, page);
}

/* Late, twice, in any order, for nothing. */
RT_CASE(inline_wrong_answers)
{
	struct rt_line line = { .hung_ms = 60000 };
	struct rt_traffic traffic = { .flows = 1 };
	struct ringcap_verdict verdicts[12];
	u64 stats[RINGCAP_INLINE_STATS];
	struct rt_queue queue;
	u32 missed, i;

	rt_line_open(&line);
	rt_queue_open(&queue, line.cluster, 0);
	rt_send(line.a.sender, &traffic, 0, 10);
	rt_ring_wait(line.ring, 10);
	/* Slots of 48 + 60 bytes. */
	for (i = 0; i < 12; i++)
		verdicts[i] = (struct ringcap_verdict){ .position = (11 - i) * 112ULL, .verdict = RINGCAP_VERDICT_PASS };
	RT_EQUAL(rt_queue_read(&queue, NULL, NULL), 10);
	RT_EQUAL(queue.position[0], 1120);
	RT_EQUAL(rt_verdicts(queue.fd, verdicts, 12, &missed), 12);
	RT_EQUAL(missed, 2);
	RT_EQUAL(rt_verdicts(queue.fd, verdicts, 12, &missed), 12);
	RT_EQUAL(missed, 12);
	for (i = 0; i < 12; i++)
		verdicts[i].position++;
	RT_EQUAL(rt_verdicts(queue.fd, verdicts, 12, &missed), 12);
	RT_EQUAL(missed, 12);
	rt_line_check(&line, 10, stats);
	RT_EQUAL(stats[RINGCAP_INLINE_PASSED], 10);
	RT_EQUAL(stats[RINGCAP_INLINE_UNKNOWN], 26);
	rt_ring_wait(line.b.ring, 10);

	verdicts[1].verdict = 0;
	RT_EQUAL(rt_verdicts(queue.fd, verdicts, 2, NULL), 1);
	RT_EQUAL(rt_verdicts(queue.fd, verdicts + 1, 1, NULL), -EINVAL);
	verdicts[1] = (struct ringcap_verdict){ .verdict = RINGCAP_VERDICT_PASS, .lane = 1 };
	RT_EQUAL(rt_verdicts(queue.fd, verdicts + 1, 1, NULL), -EINVAL);
	verdicts[1] = (struct ringcap_verdict){ .verdict = RINGCAP_VERDICT_PASS, .flags = 1 };
	RT_EQUAL(rt_verdicts(queue.fd, verdicts + 1, 1, NULL), -EINVAL);
	verdicts[1] = (struct ringcap_verdict){ .verdict = RINGCAP_VERDICT_REPLACE, .len = 13 };
	RT_EQUAL(rt_verdicts(queue.fd, verdicts + 1, 1, NULL), -EINVAL);
	verdicts[1] = (struct ringcap_verdict){ .verdict = RINGCAP_VERDICT_REPLACE, .len = 65536 };
	RT_EQUAL(rt_verdicts(queue.fd, verdicts + 1, 1, NULL), -EINVAL);
	verdicts[1] = (struct ringcap_verdict){ .verdict = RINGCAP_VERDICT_REPLACE, .len = 100, .data = 8 };
	RT_EQUAL(rt_verdicts(queue.fd, verdicts + 1, 1, NULL), -EFAULT);
	RT_EQUAL(rt_verdicts(queue.fd, (void *)8, 1, NULL), -EFAULT);
	RT_EQUAL(rt_verdicts(queue.fd, NULL, 0, NULL), 0);
	rt_verdicts_cut(queue.fd);
	/* Of a queue that is not in line. */
	RT_EQUAL(rt_verdicts(line.a.queue.fd, verdicts, 1, NULL), -EPERM);
	rt_queue_close(&queue);
	rt_line_close(&line);
}

/* The transmit queue is chosen by the flow. Packets wait longer than the interface that they came by lives. */
RT_CASE(inline_tx_queues)
{
	static const u8 bytes[64] = { 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, [23] = 17 };
	struct rt_line line = { .hung_ms = 60000, .tx_queues = 2 };
	struct rt_traffic traffic = { .flows = 4 };
	struct ringcap_verdict verdicts[20];
	u64 stats[RINGCAP_INLINE_STATS];
	struct rt_queue queue;
	u32 i;

	rt_line_open(&line);
	rt_queue_open(&queue, line.cluster, 0);
	rt_send(line.a.sender, &traffic, 0, 20);
	rt_ring_wait(line.ring, 20);
	rt_link_delete("a1");
	for (i = 0; i < 20; i++)
		verdicts[i] = (struct ringcap_verdict){
			.position = i * 112ULL,
			.verdict = i % 2 ? RINGCAP_VERDICT_PASS : RINGCAP_VERDICT_REPLACE,
			.data = (u64)(uintptr_t)bytes,
			.len = sizeof(bytes),
		};
	RT_EQUAL(rt_verdicts(queue.fd, verdicts, 20, NULL), 20);
	rt_line_check(&line, 20, stats);
	RT_EQUAL(stats[RINGCAP_INLINE_PASSED], 10);
	RT_EQUAL(stats[RINGCAP_INLINE_REPLACED], 10);
	rt_ring_wait(line.b.ring, 20);
	rt_queue_close(&queue);
	rt_line_close(&line);
}

#define RT_QUEUE_CUT 100
#define RT_TX_FLOWS 16

/* A socket that gets the IPv4 packets that @interface sends, each cut to RT_QUEUE_CUT bytes + its transmit queue. */
static int rt_tx_queue_socket(const char *interface)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 12),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_IP, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (u32)(SKF_AD_OFF + SKF_AD_QUEUE)),
		BPF_STMT(BPF_ALU | BPF_ADD | BPF_K, RT_QUEUE_CUT),
		BPF_STMT(BPF_RET | BPF_A, 0),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog filter = { .len = 6, .filter = code };
	struct sockaddr_ll address = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL),
				       .sll_ifindex = (int)rt_ifindex(interface) };
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	RT_CHECK(fd >= 0 && !setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)), "%m");
	RT_CHECK(!bind(fd, (struct sockaddr *)&address, sizeof(address)), "%m");
	return fd;
}

/* The next packet that leaves: returns its transmit queue, and sets @sport to its source port. */
static u32 rt_tx_queue_next(int fd, u16 *sport)
{
	struct sockaddr_ll from;
	socklen_t size;
	u8 bytes[256];
	ssize_t len;

	do {
		size = sizeof(from);
		RT_EVENTUALLY((len = recvfrom(fd, bytes, sizeof(bytes), 0, (struct sockaddr *)&from, &size)) > 0, 10000);
	} while (from.sll_pkttype != PACKET_OUTGOING);
	*sport = (u16)(bytes[34] << 8 | bytes[35]);
	return (u32)len - RT_QUEUE_CUT;
}

/* Replaces every second packet by its own bytes. */
static u8 rt_replace_some(const struct ringcap_slot *slot, const u8 *packet, struct ringcap_verdict *verdict, void *arg)
{
	u32 *count = arg;

	verdict->data = (u64)(uintptr_t)packet;
	verdict->len = slot->caplen;
	return (*count)++ / RT_TX_FLOWS % 2 ? RINGCAP_VERDICT_REPLACE : RINGCAP_VERDICT_PASS;
}

/* A packet that is replaced leaves by the transmit queue of its flow, or it could overtake others of the flow. */
RT_CASE(inline_replace_tx_queue)
{
	struct rt_line line = { .hung_ms = 60000, .tx_queues = 4, .sender_queues = 4 };
	struct rt_traffic traffic = { .flows = RT_TX_FLOWS, .min_len = 200 };
	u32 queue_of[RT_TX_FLOWS], i, judged = 0, queue_nr, flow, used = 0;
	u64 stats[RINGCAP_INLINE_STATS];
	struct rt_queue queue;
	u16 sport;
	int fd;

	rt_line_open(&line);
	rt_queue_open(&queue, line.cluster, 0);
	fd = rt_tx_queue_socket("b1");
	rt_send(line.a.sender, &traffic, 0, 4 * RT_TX_FLOWS);
	rt_ring_wait(line.ring, 4 * RT_TX_FLOWS);
	RT_EQUAL(rt_line_judge(&queue, rt_replace_some, &judged), 4 * RT_TX_FLOWS);
	for (i = 0; i < 4 * RT_TX_FLOWS; i++) {
		queue_nr = rt_tx_queue_next(fd, &sport);
		flow = i % RT_TX_FLOWS;
		RT_EQUAL(sport, RT_CLIENT_PORT + flow);
		RT_CHECK(i == flow || queue_nr == queue_of[flow], "packet %u of flow %u left by queue %u, not %u", i, flow,
			 queue_nr, queue_of[flow]);
		queue_of[flow] = queue_nr;
		used |= 1U << queue_nr;
	}
	/* More than one, or there was nothing to see. */
	RT_CHECK(used & (used - 1), "queues used: %x", used);
	rt_line_check(&line, 4 * RT_TX_FLOWS, stats);
	RT_EQUAL(stats[RINGCAP_INLINE_REPLACED], 2 * RT_TX_FLOWS);
	close(fd);
	rt_queue_close(&queue);
	rt_line_close(&line);
}

/* Packets of which only the beginning is in the lane: those that wait take no more than a page for 64 bytes of lane. */
RT_CASE(inline_memory)
{
	struct rt_line line = { .hung_ms = 60000, .lane_size = RINGCAP_LANE_SIZE_MIN, .snaplen = 64 };
	const u64 bound = RINGCAP_LANE_SIZE_MIN / 64 * 4096;
	struct rt_traffic traffic = { .flows = 5, .min_len = 9000 };
	u64 stats[RINGCAP_INLINE_STATS];
	const u32 count = 1100;
	struct rt_queue queue;

	rt_line_open(&line);
	rt_ip("link set a0 mtu 9000");
	rt_ip("link set a1 mtu 9000");
	rt_ip("link set b0 mtu 9000");
	rt_ip("link set b1 mtu 9000");
	rt_queue_open(&queue, line.cluster, 0);
	rt_send(line.a.sender, &traffic, 0, count);
	rt_line_check(&line, count, stats);
	RT_CHECK(stats[RINGCAP_INLINE_HELD] * 9000 <= bound, "too many wait");
	RT_EQUAL(stats[RINGCAP_INLINE_BLOCK_FULL], count - stats[RINGCAP_INLINE_HELD]);
	RT_EQUAL(rt_line_judge(&queue, NULL, NULL), stats[RINGCAP_INLINE_HELD]);
	rt_send(line.a.sender, &traffic, count, 100);
	rt_line_check(&line, count + 100, stats);
	RT_EQUAL(stats[RINGCAP_INLINE_HELD], 100);
	rt_queue_close(&queue);
	rt_line_close(&line);
}

/* ---- packets of the consumer's own ---- */

static const u8 rt_own_bytes[2000] = { 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5 };

static int rt_inject(const struct rt_queue *queue, u64 position, u8 kind, u32 len, u32 *missed)
{
	struct ringcap_verdict verdict = {
		.position = position, .verdict = kind, .data = (u64)(uintptr_t)rt_own_bytes, .len = len
	};

	return rt_verdicts(queue->fd, &verdict, 1, missed);
}

/* What an end has got so far, in @kinds: [0] others' packets, [1] the consumer's own. */
static void rt_count_end(struct rt_end *end, u64 *kinds, u64 total, u64 own)
{
	rt_ring_wait(end->ring, total);
	rt_queue_read(&end->queue, rt_count_kinds, kinds);
	RT_EQUAL(kinds[1], own);
	RT_EQUAL(kinds[0], total - own);
}

/* While a packet waits, its consumer may send the way that it goes, and back. */
RT_CASE(inline_inject)
{
	const u8 forward = RINGCAP_VERDICT_INJECT_FORWARD, reverse = RINGCAP_VERDICT_INJECT_REVERSE;
	struct ringcap_verdict pass = { .verdict = RINGCAP_VERDICT_PASS };
	struct rt_line line = { .hung_ms = 60000 };
	struct rt_traffic traffic = { .flows = 1, .min_len = 65 };
	u64 stats[RINGCAP_INLINE_STATS], at_a[2] = {}, at_b[2] = {};
	struct rt_queue queue;
	u32 missed, i;

	rt_line_open(&line);
	rt_queue_open(&queue, line.cluster, 0);
	RT_EQUAL(rt_inject(&queue, 0, forward, 64, &missed), 1);
	RT_EQUAL(missed, 1);
	rt_send(line.a.sender, &traffic, 0, 2);
	rt_ring_wait(line.ring, 2);
	for (i = 0; i < 3; i++)
		RT_EQUAL(rt_inject(&queue, 0, forward, 64, &missed) + (int)missed, 1);
	for (i = 0; i < 5; i++)
		RT_EQUAL(rt_inject(&queue, 0, reverse, 64, &missed) + (int)missed, 1);
	RT_EQUAL(rt_inject(&queue, 0, forward, 2000, &missed) + (int)missed, 1);
	RT_EQUAL(rt_inject(&queue, 0, reverse, 2000, &missed) + (int)missed, 1);
	RT_EQUAL(rt_inject(&queue, 0, forward, 13, NULL), -EINVAL);
	RT_EQUAL(rt_inject(&queue, 0, reverse, 65536, NULL), -EINVAL);
	rt_line_check(&line, 2, stats);
	RT_EQUAL(stats[RINGCAP_INLINE_HELD], 2);
	RT_EQUAL(stats[RINGCAP_INLINE_INJECTED], 8);
	RT_EQUAL(stats[RINGCAP_INLINE_NOT_INJECTED], 2);
	RT_EQUAL(rt_verdicts(queue.fd, &pass, 1, NULL), 1);
	/* It waits no longer. */
	RT_EQUAL(rt_inject(&queue, 0, reverse, 64, &missed), 1);
	RT_EQUAL(missed, 1);
	rt_count_end(&line.b, at_b, 4, 3);
	rt_count_end(&line.a, at_a, 5, 5);

	/* The interface that the other one came in by goes. */
	RT_EQUAL(rt_queue_read(&queue, NULL, NULL), 2);
	pass.position = queue.position[0] / 2;
	rt_link_delete("a1");
	RT_EQUAL(rt_inject(&queue, pass.position, reverse, 64, &missed) + (int)missed, 1);
	RT_EQUAL(rt_inject(&queue, pass.position, forward, 64, &missed) + (int)missed, 1);
	RT_EQUAL(rt_verdicts(queue.fd, &pass, 1, NULL), 1);
	rt_count_end(&line.b, at_b, 6, 4);
	rt_line_check(&line, 2, stats);
	RT_EQUAL(stats[RINGCAP_INLINE_PASSED], 2);
	RT_EQUAL(stats[RINGCAP_INLINE_UNKNOWN], 2);
	RT_EQUAL(stats[RINGCAP_INLINE_INJECTED], 9);
	RT_EQUAL(stats[RINGCAP_INLINE_NOT_INJECTED], 3);
	rt_queue_close(&queue);
	rt_line_close(&line);
}

/* ---- what does not get through ---- */

RT_CASE(inline_losses)
{
	struct rt_traffic small = { .flows = 5 }, large = { .flows = 5, .min_len = 3000 };
	struct rt_line line = { .open = RT_OPEN_ALL, .hung_ms = 60000 };
	u64 stats[RINGCAP_INLINE_STATS], ring[RINGCAP_INLINE_STATS];
	struct rt_queue queue;

	rt_line_open(&line);
	rt_ip("link set a0 mtu 9000");
	rt_ip("link set a1 mtu 9000");
	rt_send(line.a.sender, &large, 0, 10);
	rt_line_check(&line, 10, stats);
	RT_EQUAL(stats[RINGCAP_INLINE_TOO_LONG], 10);
	RT_EQUAL(rt_link_set_up("b1", false), 0);
	rt_send(line.a.sender, &small, 0, 10);
	rt_line_check(&line, 20, stats);
	RT_EQUAL(stats[RINGCAP_INLINE_DOWN], 10);
	RT_EQUAL(rt_link_set_up("b1", true), 0);
	RT_EVENTUALLY(rt_link_is_ready("b1"), 30000);
	rt_send(line.a.sender, &small, 0, 10);
	rt_line_check(&line, 30, stats);
	RT_EQUAL(stats[RINGCAP_INLINE_BYPASS_UNATTENDED], 10);
	rt_ring_wait(line.b.ring, 10);

	/* The peer goes while packets wait that are to leave by it. */
	rt_queue_open(&queue, line.cluster, 0);
	rt_send(line.a.sender, &small, 0, 10);
	rt_ring_wait(line.ring, 40);
	rt_link_delete("b1");
	rt_line_check(&line, 40, stats);
	RT_EQUAL(stats[RINGCAP_INLINE_HELD], 0);
	RT_EQUAL(stats[RINGCAP_INLINE_DOWN], 20);
	rt_send(line.a.sender, &small, 0, 10);
	rt_line_check(&line, 50, stats);
	rt_line_stats(&line, ring, NULL);
	RT_EQUAL(ring[RINGCAP_INLINE_DOWN], 10);
	rt_queue_close(&queue);
	rt_line_close(&line);
}

/* UDP from port 10000 + an odd number is for the consumer, the rest passes at once. */
RT_CASE(inline_filter)
{
	static const struct sock_filter odd[] = {
		{ 0x28, 0, 0, 34 }, { 0x54, 0, 0, 1 }, { 0x15, 0, 1, 1 }, { 6, 0, 0, 65535 }, { 6, 0, 0, 0 },
	};
	struct rt_line line = { .open = 0, .hung_ms = 60000, .filter = odd, .filter_len = 5 };
	struct rt_traffic traffic = { .flows = 2, .max_len = 500 };
	u64 stats[RINGCAP_INLINE_STATS], ring[RINGCAP_INLINE_STATS];
	struct rt_receiver receiver;
	struct rt_queue queue;

	rt_line_open(&line);
	rt_queue_open(&queue, line.cluster, 0);
	rt_receiver_init(&receiver, &traffic, line.b.ifindex, 400);
	rt_send(line.a.sender, &traffic, 0, 400);
	rt_line_check(&line, 400, stats);
	rt_line_stats(&line, ring, NULL);
	RT_EQUAL(ring[RINGCAP_INLINE_BRIDGED], 200);
	RT_EQUAL(stats[RINGCAP_INLINE_HELD], 200);
	rt_ring_wait(line.b.ring, 200);
	RT_EQUAL(rt_line_judge(&queue, NULL, NULL), 200);
	rt_ring_wait(line.b.ring, 400);
	rt_queue_read(&line.b.queue, rt_receive, &receiver);
	RT_EQUAL(receiver.count, 400);
	rt_queue_close(&queue);
	rt_line_close(&line);
}

/* ---- consumers that sleep ---- */

enum { RT_LONE_ROUNDS = 2000, RT_LONE_MAX = 3 };

struct rt_lone {
	struct rt_line line;
	u32 rounds;
	u32 answered;	/* rounds */
};

static u32 rt_lone_count(u32 round)
{
	return 1 + round % RT_LONE_MAX;
}

/* Sends a few packets when those of the last round were answered: at about the time at which the consumer goes to sleep. */
static void *rt_send_lone(void *arg)
{
	const struct rt_traffic traffic = { .flows = 1 };
	struct rt_lone *lone = arg;
	u32 round, sent = 0;
	u64 seed = 1, until;

	for (round = 0; round < lone->rounds; round++) {
		while (__atomic_load_n(&lone->answered, __ATOMIC_ACQUIRE) < round)
			usleep(10);
		for (until = rt_now() + rt_random(&seed) % 50000; rt_now() < until;)
			;
		rt_send(lone->line.a.sender, &traffic, sent, rt_lone_count(round));
		sent += rt_lone_count(round);
	}
	return NULL;
}

/* A packet of which nobody tells the consumer would never be answered: nothing else is sent, and no timer runs. */
static void rt_lone_answer(struct rt_lone *lone, struct rt_queue *queue, int set)
{
	struct epoll_event event;
	u32 round, got;

	for (round = 0; round < lone->rounds; round++) {
		for (got = 0; got < rt_lone_count(round); got += rt_line_judge(queue, NULL, NULL)) {
			int woken = set < 0 ? !!rt_queue_poll(queue, RT_PATIENCE_MS) : epoll_wait(set, &event, 1, RT_PATIENCE_MS);

			RT_CHECK(woken == 1, "round %u: nobody tells of packet %u", round, got + 1);
		}
		RT_EQUAL(got, rt_lone_count(round));
		__atomic_store_n(&lone->answered, round + 1, __ATOMIC_RELEASE);
	}
}

/* @events: how the consumer waits by epoll, 0 = by poll. */
static void rt_lone_run(u32 events)
{
	struct rt_lone lone = { .line = { .hung_ms = 60000, .at_once = true }, .rounds = rt_scaled(RT_LONE_ROUNDS) };
	struct epoll_event event = { .events = EPOLLIN | events };
	u64 stats[RINGCAP_INLINE_STATS];
	u32 round, count = 0;
	struct rt_queue queue;
	pthread_t sender;
	int set = -1;

	rt_line_open(&lone.line);
	rt_queue_open(&queue, lone.line.cluster, 0);
	if (events) {
		set = epoll_create1(EPOLL_CLOEXEC);
		RT_CHECK(set >= 0 && !epoll_ctl(set, EPOLL_CTL_ADD, queue.fd, &event), "%m");
	}
	RT_CHECK(!pthread_create(&sender, NULL, rt_send_lone, &lone), "no thread");
	rt_lone_answer(&lone, &queue, set);
	pthread_join(sender, NULL);
	for (round = 0; round < lone.rounds; round++)
		count += rt_lone_count(round);
	rt_line_check(&lone.line, count, stats);
	RT_EQUAL(stats[RINGCAP_INLINE_PASSED], count);
	close(set);
	rt_queue_close(&queue);
	rt_line_close(&lone.line);
}

RT_CASE(inline_lone_poll)
{
	rt_lone_run(0);
}

RT_CASE(inline_lone_level)
{
	rt_lone_run(EPOLLIN);
}

RT_CASE(inline_lone_edge)
{
	rt_lone_run(EPOLLET);
}

/* A consumer by edges that asked before it released what it was told of has still asked: the next packet wakes it. */
RT_CASE(inline_edge_in_parts)
{
	struct rt_line line = { .hung_ms = 60000, .at_once = true };
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	const struct rt_traffic traffic = { .flows = 1 };
	u64 stats[RINGCAP_INLINE_STATS];
	struct rt_queue queue;
	int set;

	rt_line_open(&line);
	rt_queue_open(&queue, line.cluster, 0);
	set = epoll_create1(EPOLL_CLOEXEC);
	RT_CHECK(set >= 0 && !epoll_ctl(set, EPOLL_CTL_ADD, queue.fd, &event), "%m");
	rt_send(line.a.sender, &traffic, 0, 1);
	RT_EQUAL(epoll_wait(set, &event, 1, RT_PATIENCE_MS), 1);
	rt_send(line.a.sender, &traffic, 1, 1);
	RT_EQUAL(epoll_wait(set, &event, 1, RT_PATIENCE_MS), 1);
	RT_EQUAL(rt_line_judge(&queue, NULL, NULL), 2);
	rt_send(line.a.sender, &traffic, 2, 1);
	RT_EQUAL(epoll_wait(set, &event, 1, RT_PATIENCE_MS), 1);
	RT_EQUAL(rt_line_judge(&queue, NULL, NULL), 1);
	rt_line_check(&line, 3, stats);
	RT_EQUAL(stats[RINGCAP_INLINE_PASSED], 3);
	close(set);
	rt_queue_close(&queue);
	rt_line_close(&line);
}

/* ---- events under traffic ---- */

struct rt_stream {
	int sender;
	u32 first, count;
	u32 pause_us;
	pthread_t thread;
};

static const struct rt_traffic rt_streams = { .flows = 2 };

/* Sends every second number, which is one flow, from one processor. */
static void *rt_stream_run(void *arg)
{
	const struct rt_stream *stream = arg;
	u32 n;

	rt_pin(stream->first);
	for (n = 0; n < stream->count; n++) {
		rt_send(stream->sender, &rt_streams, stream->first + 2 * n, 1);
		if (n % 20 == 19)
			usleep(stream->pause_us);
	}
	return NULL;
}

struct rt_order {
	struct rt_receiver receiver;
	u32 next[2];
};

static void rt_receive_in_order(const struct ringcap_slot *slot, const u8 *packet, void *arg)
{
	struct rt_order *order = arg;
	u32 number = rt_packet_number(packet, slot->caplen);

	rt_receive(slot, packet, &order->receiver);
	RT_CHECK(number >= order->next[number % 2], "packet %u came after %u of its flow", number,
		 order->next[number % 2] - 1);
	order->next[number % 2] = number + 1;
}

/* A consumer in a process of its own: it reads and passes everything, with a pause in between. */
static pid_t rt_consumer_start(const struct rt_line *line, u32 pause_us)
{
	pid_t pid = fork();
	struct rt_queue queue;

	RT_CHECK(pid >= 0, "%m");
	if (pid)
		return pid;
	/* It ends with the case. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	rt_queue_open(&queue, line->cluster, 0);
	for (;;) {
		if (pause_us)
			usleep(pause_us);
		else
			rt_queue_poll(&queue, 100);
		rt_line_judge(&queue, NULL, NULL);
	}
}

static void rt_consumer_kill(pid_t pid)
{
	RT_CHECK(!kill(pid, SIGKILL) && waitpid(pid, NULL, 0) == pid, "%m");
}

static bool rt_line_is_attached(const struct rt_line *line)
{
	struct rt_queue_counts counts;

	rt_queue_counts(line->cluster, 0, &counts);
	return counts.attached;
}

static u64 rt_line_stat(const struct rt_line *line, u32 stat)
{
	u64 stats[RINGCAP_INLINE_STATS];

	rt_line_stats(line, NULL, stats);
	return stats[stat];
}

/* What disturbs the consumer while two streams run; it returns when it has done so often enough. */
typedef void (*rt_disturb_fn)(const struct rt_line *line);

static void rt_line_disturbed(struct rt_line *line, rt_disturb_fn disturb, u32 count, u64 *stats)
{
	struct rt_stream streams[2];
	struct rt_order order = {};
	u64 arrived;
	u32 i;

	rt_line_open(line);
	rt_receiver_init(&order.receiver, &rt_streams, line->b.ifindex, 2 * count);
	for (i = 0; i < 2; i++) {
		streams[i] = (struct rt_stream){ .sender = rt_sender_open("a0"), .first = i, .count = count, .pause_us = 3000 };
		RT_CHECK(!pthread_create(&streams[i].thread, NULL, rt_stream_run, &streams[i]), "no thread");
	}
	disturb(line);
	for (i = 0; i < 2; i++)
		pthread_join(streams[i].thread, NULL);
	rt_ring_wait(line->ring, 2 * count);
	/* Nobody is left who could give a verdict. */
	RT_EVENTUALLY(!rt_line_is_attached(line), 10000);
	rt_line_check(line, 2 * count, stats);
	RT_EQUAL(stats[RINGCAP_INLINE_HELD], 0);
	arrived = stats[RINGCAP_INLINE_PASSED] + stats[RINGCAP_INLINE_BYPASS_UNATTENDED] +
		  stats[RINGCAP_INLINE_BYPASS_FULL] + stats[RINGCAP_INLINE_BYPASS_HUNG];
	rt_ring_wait(line->b.ring, arrived);
	rt_queue_read(&line->b.queue, rt_receive_in_order, &order);
	RT_EQUAL(order.receiver.count, arrived);
	RT_EQUAL(stats[RINGCAP_INLINE_UNKNOWN] + stats[RINGCAP_INLINE_REFUSED], 0);
	rt_line_close(line);
}

/* Consumers come and are killed. */
static void rt_disturb_kill(const struct rt_line *line)
{
	u32 round;
	pid_t pid;

	for (round = 0; round < 6; round++) {
		u64 passed = rt_line_stat(line, RINGCAP_INLINE_PASSED);

		pid = rt_consumer_start(line, 0);
		RT_EVENTUALLY(rt_line_stat(line, RINGCAP_INLINE_PASSED) > passed + 20, 30000);
		usleep(20000);
		rt_consumer_kill(pid);
		usleep(20000);
	}
}

#define RT_STREAM_PACKETS 3000

RT_CASE(inline_unattended_open)
{
	struct rt_line line = { .open = RINGCAP_OPEN_UNATTENDED, .hung_ms = 60000 };
	const u32 count = RT_STREAM_PACKETS;
	u64 stats[RINGCAP_INLINE_STATS];

	rt_line_disturbed(&line, rt_disturb_kill, count, stats);
	RT_CHECK(stats[RINGCAP_INLINE_BYPASS_UNATTENDED] && stats[RINGCAP_INLINE_PASSED], "no event");
	RT_EQUAL(stats[RINGCAP_INLINE_BYPASS_UNATTENDED] + stats[RINGCAP_INLINE_PASSED], 2 * count);
}

RT_CASE(inline_unattended_closed)
{
	struct rt_line line = { .open = RINGCAP_OPEN_FULL | RINGCAP_OPEN_HUNG, .hung_ms = 60000 };
	const u32 count = RT_STREAM_PACKETS;
	u64 stats[RINGCAP_INLINE_STATS];

	rt_line_disturbed(&line, rt_disturb_kill, count, stats);
	RT_CHECK(stats[RINGCAP_INLINE_BLOCK_UNATTENDED] && stats[RINGCAP_INLINE_PASSED], "no event");
	RT_EQUAL(stats[RINGCAP_INLINE_BLOCK_UNATTENDED] + stats[RINGCAP_INLINE_PASSED], 2 * count);
}

/* A consumer is stopped for longer than a packet may wait, and goes on. */
static void rt_disturb_stop(const struct rt_line *line)
{
	u32 stat = line->open & RINGCAP_OPEN_HUNG ? RINGCAP_INLINE_BYPASS_HUNG : RINGCAP_INLINE_BLOCK_HUNG, round;
	pid_t pid = rt_consumer_start(line, 0);

	for (round = 0; round < 4; round++) {
		u64 passed = rt_line_stat(line, RINGCAP_INLINE_PASSED), hung = rt_line_stat(line, stat);

		RT_EVENTUALLY(rt_line_stat(line, RINGCAP_INLINE_PASSED) > passed + 20, 30000);
		RT_CHECK(!kill(pid, SIGSTOP), "%m");
		RT_EVENTUALLY(rt_line_stat(line, stat) > hung + 20, 30000);
		RT_CHECK(!kill(pid, SIGCONT), "%m");
	}
	/* Until the streams have ended. */
	rt_ring_wait(line->ring, 2 * RT_STREAM_PACKETS);
	RT_EVENTUALLY(!rt_line_stat(line, RINGCAP_INLINE_HELD), 30000);
	rt_consumer_kill(pid);
}

RT_CASE(inline_hung_open)
{
	struct rt_line line = { .open = RINGCAP_OPEN_HUNG, .hung_ms = 50 };
	const u32 count = RT_STREAM_PACKETS;
	u64 stats[RINGCAP_INLINE_STATS];

	rt_line_disturbed(&line, rt_disturb_stop, count, stats);
	RT_CHECK(stats[RINGCAP_INLINE_LATE], "no late verdict");
	RT_EQUAL(stats[RINGCAP_INLINE_BYPASS_HUNG] + stats[RINGCAP_INLINE_PASSED] +
		 stats[RINGCAP_INLINE_BLOCK_UNATTENDED], 2 * count);
}

RT_CASE(inline_hung_closed)
{
	struct rt_line line = { .open = RINGCAP_OPEN_UNATTENDED | RINGCAP_OPEN_FULL, .hung_ms = 50 };
	const u32 count = RT_STREAM_PACKETS;
	u64 stats[RINGCAP_INLINE_STATS];

	rt_line_disturbed(&line, rt_disturb_stop, count, stats);
	RT_EQUAL(stats[RINGCAP_INLINE_BLOCK_HUNG] + stats[RINGCAP_INLINE_PASSED] +
		 stats[RINGCAP_INLINE_BYPASS_UNATTENDED], 2 * count);
}

#define RT_HUNG_LONG 60000	/* milliseconds */

/* When RINGCAP_A_HUNG_MS becomes shorter, that is so for packets that wait already, too. */
RT_CASE(inline_hung_sooner)
{
	struct rt_line line = { .open = RINGCAP_OPEN_HUNG, .hung_ms = RT_HUNG_LONG };
	const struct rt_traffic traffic = { .flows = 1 };
	u64 stats[RINGCAP_INLINE_STATS], began;
	struct rt_queue queue;

	rt_line_open(&line);
	rt_queue_open(&queue, line.cluster, 0);
	began = rt_now();
	rt_send(line.a.sender, &traffic, 0, 10);
	rt_line_check(&line, 10, stats);
	RT_EQUAL(stats[RINGCAP_INLINE_HELD], 10);
	line.hung_ms = 100;
	RT_EQUAL(rt_line_set_cluster(&line), 0);
	RT_EVENTUALLY(rt_line_stat(&line, RINGCAP_INLINE_BYPASS_HUNG) == 10, 5000);
	RT_CHECK(rt_now() - began < RT_HUNG_LONG * 1000000ULL, "only when the former time was over");
	rt_queue_close(&queue);
	rt_line_close(&line);
}

/* A consumer that is too slow for its small lane. */
static void rt_disturb_slow(const struct rt_line *line)
{
	u32 stat = line->open & RINGCAP_OPEN_FULL ? RINGCAP_INLINE_BYPASS_FULL : RINGCAP_INLINE_BLOCK_FULL, round;
	pid_t pid = rt_consumer_start(line, 0);

	for (round = 0; round < 3; round++) {
		u64 passed = rt_line_stat(line, RINGCAP_INLINE_PASSED), full = rt_line_stat(line, stat);

		RT_EVENTUALLY(rt_line_stat(line, RINGCAP_INLINE_PASSED) > passed + 20, 30000);
		RT_CHECK(!kill(pid, SIGSTOP), "%m");
		RT_EVENTUALLY(rt_line_stat(line, stat) > full, 60000);
		RT_CHECK(!kill(pid, SIGCONT), "%m");
	}
	rt_ring_wait(line->ring, 2 * 4000);
	RT_EVENTUALLY(!rt_line_stat(line, RINGCAP_INLINE_HELD), 30000);
	rt_consumer_kill(pid);
}

RT_CASE(inline_full_open)
{
	struct rt_line line = { .open = RINGCAP_OPEN_FULL, .hung_ms = 60000, .lane_size = RINGCAP_LANE_SIZE_MIN };
	u64 stats[RINGCAP_INLINE_STATS];

	rt_line_disturbed(&line, rt_disturb_slow, 4000, stats);
	RT_EQUAL(stats[RINGCAP_INLINE_BYPASS_FULL] + stats[RINGCAP_INLINE_PASSED] +
		 stats[RINGCAP_INLINE_BLOCK_UNATTENDED], 2 * 4000);
}

RT_CASE(inline_full_closed)
{
	struct rt_line line = { .open = 0, .hung_ms = 60000, .lane_size = RINGCAP_LANE_SIZE_MIN };
	u64 stats[RINGCAP_INLINE_STATS];

	rt_line_disturbed(&line, rt_disturb_slow, 4000, stats);
	RT_EQUAL(stats[RINGCAP_INLINE_BLOCK_FULL] + stats[RINGCAP_INLINE_PASSED] +
		 stats[RINGCAP_INLINE_BLOCK_UNATTENDED], 2 * 4000);
}

RT_CASE(inline_events)
{
	struct rt_line line = { .open = RT_OPEN_ALL };
	struct rt_traffic traffic = { .flows = 1 };
	struct rt_queue queue;

	rt_line_open(&line);
	rt_events_open();
	rt_send(line.a.sender, &traffic, 0, 5);
	RT_CHECK(rt_events_wait(RINGCAP_EVENT_PAST, line.cluster, RT_PATIENCE_MS), "nobody was told");
	rt_queue_open(&queue, line.cluster, 0);
	RT_CHECK(rt_events_wait(RINGCAP_EVENT_BACK, line.cluster, RT_PATIENCE_MS), "nobody was told");
	/* Nobody answers for it. */
	rt_send(line.a.sender, &traffic, 5, 1);
	RT_CHECK(rt_events_wait(RINGCAP_EVENT_PAST, line.cluster, RT_PATIENCE_MS), "nobody was told");
	RT_EQUAL(rt_line_stat(&line, RINGCAP_INLINE_BYPASS_HUNG), 1);
	RT_EQUAL(rt_queue_read(&queue, NULL, NULL), 1);
	rt_send(line.a.sender, &traffic, 6, 1);
	RT_CHECK(rt_events_wait(RINGCAP_EVENT_BACK, line.cluster, RT_PATIENCE_MS), "nobody was told");
	rt_queue_close(&queue);
	rt_line_close(&line);
}

/* A queue that is taken back lets its packets go, and its successor goes on with its counts. */
RT_CASE(inline_revoke)
{
	struct rt_line line = { .open = RINGCAP_OPEN_UNATTENDED, .hung_ms = 60000 };
	struct ringcap_verdict verdict = { .verdict = RINGCAP_VERDICT_PASS };
	struct rt_traffic traffic = { .flows = 1 };
	u64 stats[RINGCAP_INLINE_STATS];
	struct rt_queue queue, next;

	rt_line_open(&line);
	rt_queue_open(&queue, line.cluster, 0);
	rt_send(line.a.sender, &traffic, 0, 20);
	rt_ring_wait(line.ring, 20);
	RT_EQUAL(rt_verdicts(queue.fd, &verdict, 1, NULL), 1);
	RT_EQUAL(rt_queue_revoke(line.cluster, 0, 0), 0);
	RT_EQUAL(rt_verdicts(queue.fd, &verdict, 1, NULL), -ENODEV);
	rt_line_check(&line, 20, stats);
	RT_EQUAL(stats[RINGCAP_INLINE_PASSED], 1);
	RT_EQUAL(stats[RINGCAP_INLINE_BYPASS_UNATTENDED], 19);
	rt_queue_open(&next, line.cluster, 0);
	rt_send(line.a.sender, &traffic, 20, 5);
	rt_ring_wait(line.ring, 25);
	RT_EQUAL(rt_line_judge(&next, NULL, NULL), 5);
	rt_line_check(&line, 25, stats);
	RT_EQUAL(stats[RINGCAP_INLINE_PASSED], 6);
	rt_ring_wait(line.b.ring, 25);
	rt_queue_close(&next);
	rt_queue_close(&queue);
	rt_line_close(&line);
}

/* ---- hostile consumers ---- */

struct rt_hostile {
	int fd;
	u64 seed;
	u32 steps;
	pthread_t thread;
};

static void rt_hostile_verdict(u64 *seed, struct ringcap_verdict *verdict, const u8 *bytes)
{
	static const u64 addresses[] = { 0, 8, ~0ULL, 1ULL << 47, 0xffff888000000000ULL };

	*verdict = (struct ringcap_verdict){
		.position = rt_random(seed) % 20000 / 8 * 8,
		.verdict = rt_random(seed) % 8 ? 1 + rt_random(seed) % 5 : (u8)rt_random(seed),
		.len = rt_random(seed) % 4 ? 60 : rt_random(seed),
		.data = rt_random(seed) % 4 ? (u64)(uintptr_t)bytes : addresses[rt_random(seed) % 5],
		.lane = rt_random(seed) % 50 ? 0 : (u16)rt_random(seed),
		.flags = rt_random(seed) % 50 ? 0 : (u8)rt_random(seed),
	};
}

/* Two threads give verdicts on anything, from anywhere. */
static void *rt_hostile_run(void *arg)
{
	static const u8 bytes[64] = { 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5 };
	struct rt_hostile *hostile = arg;
	struct ringcap_verdict verdicts[100];
	u32 step, i;

	for (step = 0; step < hostile->steps; step++) {
		for (i = 0; i < 100; i++)
			rt_hostile_verdict(&hostile->seed, &verdicts[i], bytes);
		rt_verdicts(hostile->fd, verdicts, 1 + rt_random(&hostile->seed) % 100, NULL);
		if (step % 16 == 0)
			rt_verdicts(hostile->fd, (void *)(uintptr_t)(rt_random(&hostile->seed) * 4096ULL), 1000, NULL);
		if (step % 16 == 8)
			rt_verdicts(hostile->fd, verdicts, UINT32_MAX, NULL);
	}
	return NULL;
}

/* Its process ends in the middle of it all. */
static void rt_hostile_consumer(const struct rt_line *line, u64 seed)
{
	struct rt_hostile hostile[2];
	struct rt_queue queue;
	u64 random = seed;
	u32 i;

	rt_queue_open(&queue, line->cluster, 0);
	for (i = 0; i < 2; i++) {
		hostile[i] = (struct rt_hostile){ .fd = queue.fd, .seed = seed + i, .steps = rt_scaled(200) };
		RT_CHECK(!pthread_create(&hostile[i].thread, NULL, rt_hostile_run, &hostile[i]), "no thread");
	}
	for (i = 0; i < 200; i++) {
		queue.consumer[0].released = rt_random(&random) % 3 ? queue.kernel[0].producer : (u64)rt_random(&random) << 20;
		usleep(200);
	}
	close(queue.fd);
	pthread_join(hostile[seed % 2].thread, NULL);
	_exit(0);
}

RT_CASE(inline_hostile)
{
	struct rt_line line = { .open = RT_OPEN_ALL, .hung_ms = 20, .lane_size = RINGCAP_LANE_SIZE_MIN };
	u64 stats[RINGCAP_INLINE_STATS];
	struct rt_stream stream;
	const u32 count = 3000;
	u32 round;
	pid_t pid;

	rt_line_open(&line);
	stream = (struct rt_stream){ .sender = rt_sender_open("a0"), .count = count, .pause_us = 2000 };
	RT_CHECK(!pthread_create(&stream.thread, NULL, rt_stream_run, &stream), "no thread");
	for (round = 0; round < 6; round++) {
		pid = fork();
		RT_CHECK(pid >= 0, "%m");
		if (!pid)
			rt_hostile_consumer(&line, round);
		RT_CHECK(waitpid(pid, NULL, 0) == pid, "%m");
		RT_EVENTUALLY(!rt_line_is_attached(&line), 10000);
	}
	pthread_join(stream.thread, NULL);
	rt_line_check(&line, count, stats);
	RT_EQUAL(stats[RINGCAP_INLINE_HELD], 0);
	rt_line_close(&line);
}

/* ---- a ring gets pairs, and loses them ---- */

static volatile int rt_no_more;

static void *rt_send_on(void *arg)
{
	struct rt_traffic traffic = { .flows = 7, .max_len = 300 };
	u32 number = 0;

	while (!rt_no_more) {
		rt_send(*(int *)arg, &traffic, number, 5);
		number += 5;
		usleep(300);
	}
	return NULL;
}

/* Nothing comes into the lane that does not wait for a verdict. */
RT_CASE(inline_convert)
{
	struct rt_cluster plain = { .name = "plain", .lane_size = RINGCAP_LANE_SIZE_MIN };
	struct rt_line line = { .hung_ms = 60000 };
	struct rt_ring ring = { .outputs = { "plain" } };
	u64 stats[RINGCAP_INLINE_STATS];
	struct rt_queue_counts counts;
	const u32 rounds = rt_scaled(100);
	struct rt_queue queue;
	pthread_t thread;
	u32 round;

	rt_line_open(&line);
	RT_EQUAL(rt_cluster_set(&plain), 0);
	ring.name = line.ring;
	ring.taps[0] = (struct rt_tap){ .ifindex = line.a1, .direction = RINGCAP_DIRECTION_RX };
	rt_queue_open(&queue, line.cluster, 0);
	RT_CHECK(!pthread_create(&thread, NULL, rt_send_on, &line.a.sender), "no thread");
	for (round = 0; round < rounds; round++) {
		RT_EQUAL(rt_ring_set(&ring), 0);
		usleep(2000);
		RT_CHECK(!rt_line_set_ring(&line), "%s", rt_reason);
		rt_line_judge(&queue, NULL, NULL);
	}
	rt_no_more = 1;
	pthread_join(thread, NULL);
	rt_settle();
	rt_line_judge(&queue, NULL, NULL);
	rt_line_stats(&line, NULL, stats);
	rt_cluster_counts(line.cluster, &counts);
	RT_EQUAL(stats[RINGCAP_INLINE_UNKNOWN], 0);
	RT_CHECK(stats[RINGCAP_INLINE_PASSED], "nothing passed");
	RT_EQUAL(counts.delivered, stats[RINGCAP_INLINE_PASSED] + stats[RINGCAP_INLINE_REFUSED]);
	rt_queue_close(&queue);
	rt_line_close(&line);
}

/* ---- everything goes, under traffic ---- */

/* The ring, the cluster, the interfaces and the consumer come and go, in any order, while packets wait. */
RT_CASE(inline_churn)
{
	struct rt_line line = { .open = RT_OPEN_ALL, .hung_ms = 30 };
	const u32 rounds = rt_rounds(200, 40);
	pthread_t thread;
	u64 seed = 9;
	u32 round;
	pid_t pid;

	rt_line_open(&line);
	RT_CHECK(!pthread_create(&thread, NULL, rt_send_on, &line.a.sender), "no thread");
	for (round = 0; round < rounds; round++) {
		pid = round % 2 ? rt_consumer_start(&line, 0) : 0;
		usleep(rt_random(&seed) % 20000);
		line.open = rt_random(&seed) % 8;
		line.queues = 1;
		rt_line_set_cluster(&line);
		switch (rt_random(&seed) % 5) {
		case 0:
			RT_EQUAL(rt_delete(RINGCAP_CMD_RING_DEL, line.ring), 0);
			break;
		case 1:
			RT_EQUAL(rt_delete(RINGCAP_CMD_RING_DEL, line.ring), 0);
			if (pid)
				rt_consumer_kill(pid);
			pid = 0;
			RT_EVENTUALLY(!rt_delete(RINGCAP_CMD_CLUSTER_DEL, line.cluster), 10000);
			RT_EQUAL(rt_line_set_cluster(&line), 0);
			break;
		case 2:
			rt_link_delete("b1");
			rt_ip("link add b1 type veth peer name b0");
			rt_ip("link set b1 up");
			rt_ip("link set b0 up");
			line.b1 = rt_ifindex("b1");
			break;
		case 3:
			rt_queue_revoke(line.cluster, 0, 0);
			break;
		default:
			line.queues = 2;
			rt_line_set_cluster(&line);
			line.queues = 1;
			rt_line_set_cluster(&line);
		}
		if (pid)
			rt_consumer_kill(pid);
		RT_CHECK(!rt_line_set_ring(&line), "%s", rt_reason);
	}
	rt_no_more = 1;
	pthread_join(thread, NULL);
	/* The last ring and cluster go with the namespace, while packets wait for a consumer. */
	rt_consumer_start(&line, 1000000);
	RT_EVENTUALLY(rt_line_is_attached(&line), 10000);
	rt_send(line.a.sender, &rt_streams, 0, 100);
	rt_line_close(&line);
}

/* ---- refusals ---- */

struct rt_wrong_ring {
	u32 ifindex[3], peer[3], direction;
	u32 snaplen, defrag, sample, transparent, addressed, rx_queues, follows;
	const char *output[2];
};

static void rt_refused_ring(const char *name, const struct rt_wrong_ring *wrong, int err, const char *reason)
{
	u64 before = rt_control_digest(), all = 1;
	static struct rt_message message;
	u32 i, nest;
	int got;

	rt_message_init(&message, RINGCAP_CMD_RING_SET, 0);
	rt_message_put_name(&message, RINGCAP_A_NAME, name);
	for (i = 0; i < 2 && wrong->output[i]; i++)
		rt_message_put_name(&message, RINGCAP_A_OUTPUT, wrong->output[i]);
	for (i = 0; i < 3 && wrong->ifindex[i]; i++) {
		nest = rt_message_nest(&message, RINGCAP_A_TAP);
		rt_message_put_u32(&message, RINGCAP_A_TAP_IFINDEX, wrong->ifindex[i]);
		if (wrong->peer[i])
			rt_message_put_u32(&message, RINGCAP_A_TAP_PEER, wrong->peer[i]);
		if (wrong->direction)
			rt_message_put_u32(&message, RINGCAP_A_TAP_DIRECTION, wrong->direction);
		if (wrong->rx_queues)
			rt_message_put(&message, RINGCAP_A_TAP_RX_QUEUES, &all, sizeof(all));
		if (wrong->follows)
			rt_message_put_u32(&message, RINGCAP_A_TAP_FOLLOWS, 1);
		rt_message_nest_end(&message, nest);
	}
	if (wrong->snaplen)
		rt_message_put_u32(&message, RINGCAP_A_SNAPLEN, wrong->snaplen);
	if (wrong->defrag)
		rt_message_put_u32(&message, RINGCAP_A_DEFRAG, 1);
	if (wrong->sample)
		rt_message_put_u32(&message, RINGCAP_A_SAMPLE, wrong->sample);
	if (wrong->addressed)
		rt_message_put_u32(&message, RINGCAP_A_ADDRESSED, wrong->addressed);
	if (wrong->transparent)
		rt_message_put_u32(&message, RINGCAP_A_TRANSPARENT, wrong->transparent);
	got = rt_call(&message, NULL, NULL);
	RT_CHECK(got == err && strstr(rt_reason, reason), "%d (%s), not %d (%s)", got, rt_reason, err, reason);
	RT_CHECK(rt_control_digest() == before, "%s: and yet something has changed", reason);
}

RT_CASE(inline_refused_rings)
{
	struct rt_line line = { .open = RT_OPEN_ALL };
	struct rt_cluster plain = { .name = "plain", .lane_size = RINGCAP_LANE_SIZE_MIN };
	const char *in_line = line.cluster;
	struct rt_wrong_ring unfed;
	u32 a, b, c, d, lo;

	rt_line_open(&line);
	rt_veth_create("c0", "c1");
	rt_veth_create("d0", "d1");
	a = rt_ifindex("c0");
	b = rt_ifindex("d0");
	c = rt_ifindex("c1");
	d = rt_ifindex("d1");
	lo = rt_ifindex("lo");
	RT_EQUAL(rt_cluster_set(&plain), 0);
#define RT_REFUSED(err, reason, ...) rt_refused_ring("new", &(struct rt_wrong_ring){ __VA_ARGS__ }, -(err), reason)
#define RT_PAIR .ifindex = { a, b }, .peer = { b, a }, .output = { in_line }
	RT_REFUSED(EINVAL, "its own peer", .ifindex = { a, b }, .peer = { a, b }, .output = { in_line });
	RT_REFUSED(EINVAL, "all taps of a ring have a peer", .ifindex = { b, a }, .peer = { 0, b }, .output = { in_line });
	RT_REFUSED(EINVAL, "whose peer is this interface", .ifindex = { a }, .peer = { b }, .output = { in_line });
	RT_REFUSED(EINVAL, "whose peer is this interface", .ifindex = { a, b, d }, .peer = { b, d, a }, .output = { in_line });
	RT_REFUSED(EINVAL, "takes everything that is received", RT_PAIR, .direction = RINGCAP_DIRECTION_BOTH);
	RT_REFUSED(EINVAL, "takes everything that is received", RT_PAIR, .rx_queues = 1);
	RT_REFUSED(EINVAL, "takes everything that is received", RT_PAIR, .follows = 1);
	RT_REFUSED(EINVAL, "at least 64 bytes", RT_PAIR, .snaplen = 63);
	RT_REFUSED(EINVAL, "fragments on as they are", RT_PAIR, .defrag = 1);
	RT_REFUSED(EINVAL, "does not sample", RT_PAIR, .sample = 2);
	RT_REFUSED(EINVAL, "0 or 1", RT_PAIR, .addressed = 2);
	RT_REFUSED(EINVAL, "goes with RINGCAP_A_TAP_PEER", .ifindex = { a }, .addressed = 1, .output = { "plain" });
	RT_REFUSED(EINVAL, "needs an in-line cluster", .ifindex = { a, b }, .peer = { b, a }, .output = { "plain" });
	RT_REFUSED(EINVAL, "fed only by rings whose taps have peers", .ifindex = { a, b }, .output = { in_line });
	RT_REFUSED(EOPNOTSUPP, "Ethernet", .ifindex = { a, lo }, .peer = { lo, a }, .output = { in_line });
	RT_REFUSED(ENODEV, "no interface", .ifindex = { a, 99999 }, .peer = { 99999, a }, .output = { in_line });
	RT_REFUSED(ELOOP, "round for ever", .ifindex = { a, c }, .peer = { c, a }, .output = { in_line });
	RT_REFUSED(EBUSY, "another ring", .ifindex = { a, line.a1 }, .peer = { line.a1, a }, .output = { in_line });
	rt_ip("address add 10.8.0.1/24 dev d0");
	RT_REFUSED(EADDRINUSE, "has an IP address", RT_PAIR);
	rt_ip("address flush dev d0");
	/* Where the kernel has IPv6. */
	if (rt_write_file("/proc/sys/net/ipv6/conf/d0/disable_ipv6", "0")) {
		rt_ip("address add fd00::1/64 dev d0");
		RT_REFUSED(EADDRINUSE, "has an IP address", RT_PAIR);
		rt_ip("address flush dev d0");
	}
	RT_EQUAL(rt_link_add_vlan("d0", "d0.5", 5, 1), 0);
	RT_REFUSED(EBUSY, "VLAN interfaces", RT_PAIR);
	RT_EQUAL(rt_link_remove("d0.5"), 0);
	/* Nor later. */
	RT_EQUAL(rt_link_add_vlan("a1", "a1.5", 5, 1), -EBUSY);
	unfed = (struct rt_wrong_ring){ .ifindex = { line.a1, line.b1 }, .peer = { line.b1, line.a1 }, .output = { "plain" } };
	rt_refused_ring(line.ring, &unfed, -EINVAL, "needs an in-line cluster");
	rt_line_close(&line);
}

static void rt_refused_number_of(const char *name, u32 open, int type, u32 value, int err, const char *reason)
{
	u64 before = rt_control_digest();
	static struct rt_message message;
	int got;

	rt_message_init(&message, RINGCAP_CMD_CLUSTER_SET, 0);
	rt_message_put_name(&message, RINGCAP_A_NAME, name);
	if (type != RINGCAP_A_INLINE && open != UINT32_MAX)
		rt_message_put_u32(&message, RINGCAP_A_INLINE, open);
	rt_message_put_u32(&message, type, value);
	got = rt_call(&message, NULL, NULL);
	RT_CHECK(got == err && strstr(rt_reason, reason), "%d (%s), not %d (%s)", got, rt_reason, err, reason);
	RT_CHECK(rt_control_digest() == before, "%s: and yet something has changed", reason);
}

RT_CASE(inline_refused_clusters)
{
	struct rt_line line = { .open = RT_OPEN_ALL };
	const char *names[2] = { "new" };
	struct rt_queue queue;
	u32 i;

	rt_line_open(&line);
	names[1] = line.cluster;
	for (i = 0; i < 2; i++) {
		rt_refused_number_of(names[i], 0, RINGCAP_A_INLINE, 8, -EINVAL, "RINGCAP_A_INLINE: the events");
		rt_refused_number_of(names[i], 0, RINGCAP_A_HUNG_MS, 0, -EINVAL, "1 to 60000 milliseconds");
		rt_refused_number_of(names[i], 0, RINGCAP_A_HUNG_MS, 60001, -EINVAL, "1 to 60000 milliseconds");
		rt_refused_number_of(names[i], UINT32_MAX, RINGCAP_A_HUNG_MS, 5, -EINVAL, "goes with RINGCAP_A_INLINE");
		rt_refused_number_of(names[i], 0, RINGCAP_A_LANES, 2, -EINVAL, "has one lane");
		rt_refused_number_of(names[i], 0, RINGCAP_A_LANE_SIZE, 8U << 20, -EINVAL, "at most 4194304 bytes");
		rt_refused_number_of(names[i], 0, RINGCAP_A_BALANCE, RINGCAP_BALANCE_ROUND_ROBIN, -EINVAL, "stays in its queue");
		rt_refused_number_of(names[i], 0, RINGCAP_A_BALANCE, RINGCAP_BALANCE_BOTH_ENDS, -EINVAL, "stays in its queue");
		rt_refused_number_of(names[i], 0, RINGCAP_A_WHEN_FULL, 1, -EINVAL, "what happens then");
		rt_refused_number_of(names[i], 0, RINGCAP_A_WHEN_UNATTENDED, 1, -EINVAL, "what happens then");
	}
	rt_refused_number_of(line.cluster, UINT32_MAX, RINGCAP_A_QUEUES, 1, -EOPNOTSUPP, "when it is made");
	rt_refused_number_of(line.a.cluster, 0, RINGCAP_A_INLINE, 0, -EOPNOTSUPP, "when it is made");
	rt_queue_open(&queue, line.cluster, 0);
	/* Flows would move to other queues while their packets wait. */
	rt_refused_number_of(line.cluster, 0, RINGCAP_A_BALANCE, RINGCAP_BALANCE_TWO_TUPLE, -EBUSY, "how packets are balanced");
	rt_queue_close(&queue);
	rt_line_close(&line);
}
