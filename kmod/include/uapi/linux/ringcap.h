/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR BSD-2-Clause */
/*
 * ringcap: the contract between the capture engines and the programs that read packets from them.
 *
 * OBJECTS
 *
 * A ring is a named capture: taps (a device and a direction), filters, a snap length, and the clusters that it feeds.
 * A cluster is a named set of queues with a balance type. Each packet of its rings goes to one of its queues, or to two
 * with RINGCAP_BALANCE_BOTH_ENDS. A queue is one mapped memory area with one consumer at a time. A ring's own queues
 * are a cluster with the ring's name. Ring and cluster names share one name space per network namespace.
 *
 * THE WAY OF A PACKET
 *
 *   tap (direction, RX queues) -> classic BPF -> the ring's VLANs -> defragmentation -> exact rules ->
 *   wildcard rules -> payload patterns -> plugins -> sampling -> for each cluster: balance -> queue
 *
 * Work that no later stage needs is not done: a packet for a single queue without rules is not even parsed.
 *
 * TRANSPARENT MODES
 *
 * The mode decides where a tap gets the packets that its device receives. In every mode, sent packets come from the
 * stack.
 *
 *   0  from the stack, on any device: after GRO, like other users of the stack
 *   1  from the device's driver, which must be capture-aware; the stack also gets the packet, unchanged
 *   2  from the driver; the stack never sees the packets that the tap takes by its direction and RX queues, whether
 *      they pass or are filtered. The stack gets all other packets. If the driver can avoid it, no skb is made
 *
 * With several rings on a device, each tap of mode 1 or 2 has its own packets and counters. Taps of mode 0 do not see
 * the packets that a tap of mode 2 takes. A tap that changes between modes 1 and 2 misses nothing. A tap that changes
 * to or from mode 0 misses the packets that come during the change, and gets no packet twice. XDP programs of the
 * device run where its driver runs them: after the hook for frames, before the one for skbs.
 *
 * A ring that asks for mode 1 or 2 is refused (EOPNOTSUPP) on a device with a driver that is not aware. With
 * RINGCAP_A_TRANSPARENT_FALLBACK the ring has mode 0 there instead. RINGCAP_CMD_DEVICE_GET tells what a driver offers.
 * RING_GET reports the active mode of each tap.
 *
 * TAPS THAT FOLLOW
 *
 * A tap is removed when its device leaves the ring's network namespace. With RINGCAP_A_TAP_FOLLOWS 1 it stays with the
 * device in every namespace. An example is a virtual function that is moved to a container and comes back. The tap
 * keeps the index that the device had here. While the device is away, RING_SET names the tap by that index, and an
 * answer has 2 instead of 1. The tap is removed when the device is unregistered or comes back with another index.
 * Taps can follow in transparent mode 0 only. The sender and the opener of the netlink socket need CAP_PERFMON in the
 * initial user namespace (EPERM).
 *
 * ACCOUNTS (every counter is 64 bits wide, monotonic, and starts at 0 when its object is created)
 *
 *   ring:     seen = filtered + sampled_out + reflected + absorbed + directed + passed
 *   cluster:  the sum of passed over its rings + what rules directed to its queues + duplicated
 *             = the sum over its queues of (delivered + shunted + dropped by reason)
 *
 * delivered counts the packets that were put where the queue's consumer can read them. truncated counts those of them
 * that a snap length shortened. Their bytes on the wire are delivered_bytes + truncated_bytes.
 *
 * THE SLOT
 *
 * A packet in a queue is a struct ringcap_slot and the packet's data. The data starts hdr_len bytes after the slot's
 * start and has caplen bytes. It is the packet as it was on the wire: a VLAN tag that the device removed is back in its
 * place. All engines use the same slot. Slots start at multiples of 8 bytes. A short slot, hdr_len =
 * RINGCAP_SLOT_SHORT, ends before l3_off. The module writes short slots unless the cluster has RINGCAP_A_METADATA.
 *
 * A QUEUE OF THE KERNEL MODULE: /dev/ringcap/<name>/<queue>
 *
 * open(2) attaches (EBUSY while another consumer is attached, EPERM without O_RDWR); the last close detaches. Packets
 * that are not released by then stay for the next consumer, until RINGCAP_CMD_QUEUE_RESET empties and zeroes the queue.
 * mmap(2) takes these offsets. Each mapping is MAP_SHARED and has exactly the length that the info page gives:
 *
 *   RINGCAP_MMAP_INFO      PROT_READ             one page, struct ringcap_queue_info; only revoked changes
 *   RINGCAP_MMAP_KERNEL    PROT_READ             nr_lanes * sizeof(struct ringcap_lane_kernel), whole pages
 *   RINGCAP_MMAP_CONSUMER  PROT_READ|PROT_WRITE  nr_lanes * sizeof(struct ringcap_lane_consumer), whole pages
 *   RINGCAP_MMAP_DATA + L  PROT_READ             lane L's data, twice in a row (2 * lane_size bytes), so that a slot
 *                                                never wraps; L is shifted by RINGCAP_MMAP_LANE_SHIFT
 *
 * Each lane is a byte ring with one producer and one consumer. A CPU that produces gets its own lane. It may lose the
 * lane to another CPU when it no longer produces and everything in the lane was released. CPUs without their own lane
 * take turns with the first lane. Positions count bytes since the lane was made and never wrap (64 bits). The offset of
 * a position in the data is position & (lane_size - 1).
 *
 *   producer (kernel)                          consumer
 *
 *   if (full by the private index)             prod = load_acquire(&kernel[L].producer)        (B) pairs with (A)
 *     load_acquire(&consumer[L].released) (D)  read the slots in [released, prod)
 *   write the slot and the packet              store_release(&consumer[L].released, position)  (C) pairs with (D)
 *   store_release(&kernel[L].producer)  (A)
 *
 * A slot of the module occupies RINGCAP_SLOT_SIZE(hdr_len, caplen) bytes. The kernel clamps what it reads from
 * consumer[] into [its own last value, producer], and trusts nothing else there. A consumer that writes invalid values
 * harms only its own queue. A consumer that wants the packets of several lanes in time order merges them by ts_ns.
 *
 * When a CPU moves from the shared lane to its own lane, its packets in the shared lane are published first. So a
 * consumer that reads producer of the first lane last never sees the CPU's later packets without the earlier ones.
 * Times are not in the order of arrival when a clock is set back. The same is true when only some packets have their
 * device's time (RINGCAP_A_HWTSTAMP).
 *
 * A LANE HAS MEMORY once a CPU has wanted it for itself. The first lane always has memory. The other lanes can be
 * mapped before they have any. A read in a lane where nothing was published yet makes the kernel allocate the lane's
 * memory; if there is none, the reader gets SIGBUS. In a queue that was deleted or taken back, the reader gets zeroes.
 * So RINGCAP_CMD_CLUSTER_SET needs memory for the first lanes only. If there is no memory for another lane later, the
 * CPU continues with the first lane: RINGCAP_A_SHARED grows, and the kernel's log reports it.
 *
 * poll(2) reports EPOLLIN once the unread bytes of any lane reach the watermark, or the watermark timeout has passed
 * since the oldest unread packet. The end of the timeout may be reported late, by an eighth of it and by a millisecond at
 * most, and by what the machine's timers take. Once reported, EPOLLIN stays until the consumer has released all that
 * was unread then: it may release in parts. poll(2) reports EPOLLHUP|EPOLLERR when the queue was deleted or taken back.
 *
 * A CONSUMER'S OWN TIMEOUT is timeout_us of its first lane, in both engines. If it is not 0, it replaces the cluster's
 * timeout for this consumer, and may be longer or shorter. Engines use the nearest value between
 * RINGCAP_OWN_TIMEOUT_US_MIN and RINGCAP_OWN_TIMEOUT_US_MAX. The watermark wakes as before. A cluster with the timeout 0
 * wakes for each packet, and the consumer's own has no effect there. The consumer may write it at any time; a sleep over
 * unread packets that has begun keeps its timeout. Attaching sets it to 0.
 *
 * A QUEUE THAT IS TAKEN BACK by RINGCAP_CMD_QUEUE_REVOKE is empty and free for the next consumer when the command
 * returns. Its device node has another number: opening the old one fails (ENXIO). The old consumer keeps its file, but
 * the file is dead: poll(2) reports EPOLLHUP|EPOLLERR, RINGCAP_IOC_TX and mmap(2) fail (ENODEV). Nothing more is
 * written to the memory that it has mapped: the data reads as zeroes, and revoked is set in the info page. That memory
 * is freed with its last mapping. The queue has other memory from then on. The queue's counters continue. Packets that
 * were not read count as delivered, as when a consumer detaches.
 *
 * With ATTACHMENT, the queue is taken from the consumer of that attachment. With ATTACHED_PID, it is taken from that
 * process. The command fails (ESRCH) when another consumer, or none, is attached. ENOMEM means that there is no memory
 * for the new queue. The consumer has lost the queue even then, and the queue has no other memory: open(2) fails
 * (ENXIO) and packets are dropped and counted as unattended. This ends when the command, without ATTACHMENT and
 * ATTACHED_PID, finds memory, or finds that the old consumer has gone.
 *
 * TRANSMITTING from a queue of the module needs RINGCAP_A_INJECT in its cluster. The queue then has two more areas:
 *
 *   RINGCAP_MMAP_TX_INDEX  PROT_READ|PROT_WRITE  one page, struct ringcap_tx_index
 *   RINGCAP_MMAP_TX_DATA   PROT_READ|PROT_WRITE  tx_size bytes; see struct ringcap_tx_slot
 *
 * The consumer writes slots after produced, advances produced (release), and calls ioctl RINGCAP_IOC_TX. The ioctl
 * sends the slots in order and returns how many it took. It copies each slot before it checks it. The kernel's own
 * position is private. The consumer only reads sent and failed in the index page.
 *
 * IN LINE (kernel module, transparent mode 0). A ring whose taps have a peer (RINGCAP_A_TAP_PEER) stands between two
 * interfaces: each of them names the other as its peer. The ring takes all packets that they receive. The stack never
 * sees them, and each leaves by the peer, or is dropped and counted by reason. Both interfaces are promiscuous
 * meanwhile. Such a ring has no other taps. It feeds one in-line cluster (RINGCAP_A_INLINE), and any others, which get
 * copies.
 *
 * What the ring's filter, VLANs, rules, patterns or plugins do not pass to the clusters leaves by the peer at once.
 * What they pass goes to the in-line cluster. There the packet waits while its copy is in the lane, until the consumer
 * gives its verdict (RINGCAP_IOC_VERDICT): in any order, also after it has released the slot. PASS sends the packet
 * itself, whole, even if the snap length has shortened the copy. Once the slot's place in the lane is written again, a
 * packet without a verdict is dropped (unanswered).
 *
 * INJECT_FORWARD and INJECT_REVERSE send a packet of the consumer's own, as often as it likes, by the two interfaces of
 * a packet that waits and by no others. They are no verdict: the packet goes on waiting. Own packets are not in the
 * account below.
 *
 * A queue of an in-line cluster has one lane, so that all of its packets are in one order, whichever CPU they come by.
 * Packets leave in the order of their verdicts. Slots have the long header.
 *
 * THREE EVENTS keep a consumer from deciding. UNATTENDED: none is attached; the last one closed the queue or was
 * killed, or the queue was taken back. FULL: the lane has no room for a packet, or with it those that wait would take
 * more than 64 times the lane's memory. HUNG: a packet has waited for RINGCAP_A_HUNG_MS. Each is open if its bit is set
 * in RINGCAP_A_INLINE. At an open event, all packets that wait leave in their order, and so do those that come, until a
 * consumer is attached and has released everything in the lane. Verdicts on them come too late. If UNATTENDED or HUNG
 * is not open, these packets are dropped instead. If FULL is not open, only packets without room are dropped, and the
 * others go on waiting. RINGCAP_EVENT_PAST and RINGCAP_EVENT_BACK report it. Going there and back, the module loses no
 * packet, sends none twice, and lets none overtake another.
 *
 * ACCOUNT of a pair's packets: seen of the ring = bridged and lost of the ring's RINGCAP_A_INLINE_STATS + passed of the
 * ring. passed = the sum over the cluster's queues of held, passed, replaced, blocked, unanswered, bypass-*, block-*,
 * shunt-* and the lost: too-long, refused, nomem, down. In the queue's other counters, a packet that waited was
 * delivered, and one that went past the consumer or was blocked at once was dropped.
 *
 * SHUNTED FLOWS. A consumer that needs no more of a flow shunts it, by RINGCAP_IOC_SHUNT or, with the eBPF engine, by
 * struct ringcap_shunt_message: the flow's packets, in both directions, do not come to its queue any more. Other queues
 * and clusters go on getting theirs. The packets are counted in the queue's shunted, and in the flow. The right to it
 * is the cluster's RINGCAP_A_SHUNT_QUOTA, the number of flows that each of its consumers may have shunted at a time.
 * While it is 0, shunted flows have no effect.
 *
 * A flow is addresses, ports, protocol and outermost VLAN id, as in an exact rule. That is the packet's own flow, not
 * that of a packet in a tunnel. A fragment has no ports, so it is never shunted. Packets of the flow that are in the
 * queue already stay there.
 *
 * In line, the flow's packets are dropped (RINGCAP_ACTION_DROP), or leave by the peer without waiting (_PASS). They do
 * not overtake: as long as a packet waits that came before the flow was shunted, or a later one of the flow, its packets
 * go on waiting for verdicts. In a queue that is not in line, DROP is the only action.
 *
 * A shunted flow ends by RINGCAP_IOC_UNSHUNT, or when no packet of it has come for its idle time. The latter may be
 * noticed half a second late, or a quarter of the shortest idle time. Then its packets come to the queue again. Its
 * final counters are kept until the consumer reads them (RINGCAP_IOC_SHUNT_ENDED). As many are kept as the quota says;
 * beyond that, the oldest is lost, and counted. All flows end, and what was not read is lost, when the consumer
 * detaches, or the queue is deleted or taken back.
 *
 * A QUEUE OF THE EBPF ENGINE has the same lanes and slots in BPF maps. Their descriptors are handed over as described
 * at struct ringcap_handover_reply:
 *
 *   data       BPF_F_MMAPABLE array with one element, frozen (BPF_MAP_FREEZE): its holder can only read it. It starts
 *              with struct ringcap_lane_kernel for each lane and the programs' private data. The lanes start at
 *              head_size. Each has lane_size bytes and RINGCAP_LANE_TAIL more bytes, for a slot that starts before
 *              the lane's end. So a slot never wraps here either, and its offset is position & (lane_size - 1)
 *   consumer   BPF_F_MMAPABLE array with one element, struct ringcap_consumer_page, which the consumer writes
 *   doorbell   BPF_MAP_TYPE_RINGBUF of one page: readable when the sleeping consumer must check its lanes
 *
 * All CPUs that have no lane of their own take turns with lane 0. Each other lane has one producer. Barriers (A) to (D)
 * are as above.
 *
 * The doorbell rings at most once in a sleep. A consumer that finds its lanes empty and wants to sleep writes a number
 * to sleep. The number is not 0, and the consumer has not used it before. Then it checks its lanes once more, and waits
 * for the doorbell only if they are still empty. The producer of a packet then reads sleep:
 *
 *   producer (program)                         consumer
 *
 *   atomic_xchg(&kernel[L].producer) (A) (E)   sleep = number
 *   if (sleep is set, and new)           (E)   full barrier                       (E)
 *     ring the doorbell at the watermark,      if (a lane is not empty) sleep = 0, go on
 *     else when the timeout has passed         else wait, then sleep = 0, and empty the doorbell
 *
 * Either the producer sees sleep or the consumer sees the packet. The doorbell's records mean nothing else. The timeout
 * counts from a sleep's first packet. It rings only in the sleep for which it was started. A consumer's own timeout is
 * as above.
 */
#ifndef _UAPI_LINUX_RINGCAP_H
#define _UAPI_LINUX_RINGCAP_H

/* The text in the braces of enumerations is generated: change netlink/ringcap.yaml, and run "make generate". */

#include <linux/ioctl.h>
#include <linux/types.h>

/*
 * The version of this contract. Each side speaks the versions [RINGCAP_ABI_MIN, RINGCAP_ABI] of its own header. Two
 * sides use the newest version that both speak. The module gives its range in the info page and in the answer to
 * INFO_GET, and the reader decides. Between a consumer and an agent, the agent decides. Without a common version, the
 * deciding side refuses.
 */
#define RINGCAP_ABI		3
#define RINGCAP_ABI_MIN		2
#define RINGCAP_HANDOVER_ABI_MIN 3	/* of the eBPF engine's hand-over: up to 2, a queue was a BPF ring buffer */

#define RINGCAP_NAME_MAX	63	/* bytes of a ring's or cluster's name: [a-z0-9]([-.a-z0-9]*[a-z0-9])? */
#define RINGCAP_QUEUES_MAX	256	/* queues of a cluster */
#define RINGCAP_TAPS_MAX	64	/* taps of a ring */
#define RINGCAP_OUTPUTS_MAX	8	/* clusters fed by one ring */
#define RINGCAP_LANES_MAX	64	/* lanes of a queue */
#define RINGCAP_SNAPLEN_MAX	65535	/* bytes */
#define RINGCAP_FILTER_MAX	4096	/* classic BPF instructions */
#define RINGCAP_LANE_SIZE_MIN	(128U << 10)	/* bytes; a power of two */
#define RINGCAP_LANE_SIZE_MAX	(1U << 30)	/* bytes */
#define RINGCAP_KEY_LEN		16	/* bytes of a flow hash key */
#define RINGCAP_RX_QUEUES_MAX	1024	/* RX queues of a device that a tap can tell apart */
#define RINGCAP_EXACT_MAX	1048576	/* exact rules of a ring, learnt ones included */
#define RINGCAP_RULES_MAX	65536	/* wildcard rules of a ring */
#define RINGCAP_SHAPES_MAX	256	/* mask shapes of a ring's wildcard rules */
#define RINGCAP_PATTERNS_MAX	65536	/* payload patterns of a ring */
#define RINGCAP_PATTERN_LEN_MAX	255	/* bytes of a pattern */
#define RINGCAP_PATTERN_ENDS_MAX 64	/* patterns that may end at one place: see PAYLOAD PATTERNS */
#define RINGCAP_PATTERN_BYTES_MAX (4U << 20)	/* bytes of all patterns of a ring; they take up to 20 times as much memory */
#define RINGCAP_PLUGINS_MAX	8	/* plugins of a ring */
#define RINGCAP_PLUGIN_NAME_MAX	31	/* bytes of a plugin's name */
#define RINGCAP_PLUGIN_CONFIG_MAX 32768	/* bytes of a plugin's configuration */
#define RINGCAP_TARGETS_MAX	256	/* targets that the rules of a ring name */
#define RINGCAP_INJECT_MAX	16	/* interfaces that a cluster's consumers may send out of */
#define RINGCAP_TX_SIZE		(1U << 20)	/* bytes of a queue's transmit area */

/* ------------------------------------------------------------------ the slot */

#define RINGCAP_SLOT_OUTGOING	(1U << 0)	/* sent by the tapped device, not received */
#define RINGCAP_SLOT_VLAN	(1U << 1)	/* vlan_tpid and vlan_tci are the outermost tag, which is in the data too */
#define RINGCAP_SLOT_HWTSTAMP	(1U << 2)	/* ts_ns was taken by the device */
#define RINGCAP_SLOT_FRAGMENT	(1U << 3)	/* an IP fragment; l4_off is 0 unless it is the first; see @hdr_len */
#define RINGCAP_SLOT_HASHED	(1U << 4)	/* hash is valid */
/*
 * Packets that differ from those on the wire, mostly from or to virtual interfaces. CSUM_PARTIAL: the transport
 * header's checksum is not final, because a device will compute it. Do not check it. The eBPF engine does not know
 * this. MERGED: several segments of a flow in one packet, merged by GRO or for a device to split. The packet is longer
 * than the MTU, and the checksum is not that of the segments.
 */
#define RINGCAP_SLOT_CSUM_PARTIAL (1U << 5)
#define RINGCAP_SLOT_MERGED	(1U << 6)

#define RINGCAP_SLOT_SHORT	32	/* hdr_len of a slot that ends before l3_off */

/* Bytes from one slot of a module's lane to the next. */
#define RINGCAP_SLOT_SIZE(hdr_len, caplen)	(((hdr_len) + (caplen) + 7) & ~7U)

/**
 * struct ringcap_slot - the metadata of a captured packet
 * @ts_ns: time of capture, nanoseconds since the Unix epoch
 * @len: length on the wire, bytes, without FCS
 * @caplen: bytes captured, at most @len and the ring's snap length
 * @hash: the cluster's keyed, symmetric flow hash, with RINGCAP_SLOT_HASHED. It chose the queue if the balance type is
 *	a hash. 0 if nothing needed it
 * @ifindex: tapped interface, in the ring's network namespace
 * @vlan_tci: outermost VLAN tag's control information, host order; valid with RINGCAP_SLOT_VLAN. A short slot has the
 *	tags that the device removed. It may lack tags that were in the data
 * @vlan_tpid: outermost VLAN tag's protocol (0x8100, 0x88a8 or 0x9100), host order
 * @rx_queue: the device's receive queue, 0 where it is not recorded
 * @flags: RINGCAP_SLOT_*
 * @hdr_len: offset of the packet from the start of this structure, a multiple of 8. Readers use it instead of sizeof.
 *	With RINGCAP_SLOT_SHORT the following fields are absent, and flags may lack RINGCAP_SLOT_FRAGMENT
 * @l3_off: offset of the outermost IPv4 or IPv6 header in the packet, 0 = none found
 * @l4_off: offset of the transport header, 0 = none found
 * @l3_proto: ethertype after all tags, host order
 * @l4_proto: IP protocol after IPv6 extension headers, 0 where @l3_off is 0
 * @rule: id of the wildcard rule that decided on the packet, 0 = none
 */
struct ringcap_slot {
	__u64	ts_ns;
	__u32	len;
	__u32	caplen;
	__u32	hash;
	__u32	ifindex;
	__u16	vlan_tci;
	__u16	vlan_tpid;
	__u16	rx_queue;
	__u8	flags;
	__u8	hdr_len;
	__u16	l3_off;
	__u16	l4_off;
	__u16	l3_proto;
	__u8	l4_proto;
	__u8	resv;
	__u32	rule;
	__u32	resv2;
};

/* ------------------------------------------------------------------ counters */

#define RINGCAP_DROP_REASONS	4	/* elements in structures; unused ones are 0 */

/* Why a packet that a ring passed was not delivered to its queue. */
enum ringcap_drop {
	RINGCAP_DROP_FULL,		/* the consumer was too slow: no room in the lane */
	RINGCAP_DROP_UNATTENDED,	/* no consumer was attached */
	RINGCAP_DROP_NOMEM,		/* memory for handling the packet could not be had, or it could not be read */
	RINGCAP_DROP_HUNG,		/* in line: the consumer let a packet wait for too long, and has not caught up yet */
};

/**
 * struct ringcap_lane_stats - a lane's part of its queue's counters; the queue's are the sums over its lanes
 * @delivered: packets
 * @delivered_bytes: captured bytes of these packets, the sum of caplen
 * @dropped: packets by enum ringcap_drop
 * @truncated: delivered packets that the snap length shortened: caplen is less than len
 * @truncated_bytes: bytes that these packets lost, the sum of len - caplen
 *
 * 64 bytes, so that lanes do not share cache lines. A module's queue counts unattended packets elsewhere: its first
 * lane has those from before the consumer attached.
 */
struct ringcap_lane_stats {
	__u64	delivered;
	__u64	delivered_bytes;
	__u64	dropped[RINGCAP_DROP_REASONS];
	__u64	truncated;
	__u64	truncated_bytes;
};

/* ------------------------------------------------------------------ a module queue's memory */

#define RINGCAP_MMAP_INFO	0x000000000ULL
#define RINGCAP_MMAP_KERNEL	0x010000000ULL
#define RINGCAP_MMAP_CONSUMER	0x020000000ULL
#define RINGCAP_MMAP_TX_INDEX	0x030000000ULL
#define RINGCAP_MMAP_TX_DATA	0x040000000ULL
#define RINGCAP_MMAP_DATA	0x100000000ULL
#define RINGCAP_MMAP_LANE_SHIFT	32	/* lane L's data is at RINGCAP_MMAP_DATA + ((__u64)L << 32) */

#define RINGCAP_MAGIC		0x70616372	/* "rcap" */

/**
 * struct ringcap_queue_info - the info page
 * @magic: RINGCAP_MAGIC
 * @abi: the module's RINGCAP_ABI
 * @abi_min: the oldest version that it serves
 * @nr_lanes: lanes of this queue
 * @lane_size: bytes of a lane's data, a power of two
 * @queue: this queue's number in its cluster
 * @nr_queues: queues of the cluster
 * @snaplen: greatest caplen to expect, bytes: the greatest snap length of the rings that fed the cluster when the
 *	consumer attached, 65535 if none did. This consumer never gets more, even if a ring's snap length is raised
 * @watermark: unread bytes at which a sleeping consumer is woken
 * @timeout_us: microseconds after which it is woken for fewer
 * @name: the cluster's name, NUL-terminated
 * @tx_size: bytes of the transmit area, 0 = this cluster's consumers may not send
 * @revoked: 1 once the queue was taken back from this consumer
 */
struct ringcap_queue_info {
	__u32	magic;
	__u32	abi;
	__u32	abi_min;
	__u32	nr_lanes;
	__u32	lane_size;
	__u32	queue;
	__u32	nr_queues;
	__u32	snaplen;
	__u32	watermark;
	__u32	timeout_us;
	char	name[RINGCAP_NAME_MAX + 1];
	__u32	tx_size;
	__u32	revoked;
	__u32	resv[14];
};

/* The kernel's data about a lane, read-only for the consumer. 128 bytes. */
struct ringcap_lane_kernel {
	__u64	producer;		/* bytes published since the lane was made; see (A) */
	__u64	resv[7];		/* the engine's own */
	struct ringcap_lane_stats stats;
};

#define RINGCAP_OWN_TIMEOUT_US_MIN	1000U
#define RINGCAP_OWN_TIMEOUT_US_MAX	10000000U

/* A consumer's data about a lane, which the kernel reads. 64 bytes. */
struct ringcap_lane_consumer {
	__u64	released;		/* bytes given back since the lane was made; see (C) */
	__u64	left;			/* producer when the consumer attached; earlier consumers' packets end here */
	__u64	timeout_us;		/* lane 0 only, see A CONSUMER'S OWN TIMEOUT; 0 = the cluster's */
	__u64	resv[5];
};

/**
 * struct ringcap_consumer_page - a consumer's data, which the eBPF engine reads
 * @lane: the data about each lane
 * @sleep: 0 = the consumer is awake; else the number of this sleep, see A QUEUE OF THE EBPF ENGINE
 * @noted: the engine's own, which consumers do not write: what it knows to have done for a sleep
 */
struct ringcap_consumer_page {
	struct ringcap_lane_consumer lane[RINGCAP_LANES_MAX];
	__u64	sleep;
	__u64	noted;
	__u64	resv[6];
};

#define RINGCAP_LANE_TAIL	(68U << 10)	/* bytes after a lane of the eBPF engine: the longest slot fits in */

/**
 * struct ringcap_tx_index - the transmit area's index page
 * @produced: bytes that the consumer has written since it attached; its offset in the data is modulo tx_size
 * @consumed: bytes that the kernel has taken; the kernel writes it and does not read it back
 * @sent, @failed: packets since the consumer attached: handed to the device, or refused (too short, too long, an
 *	interface that is not granted or is down, no memory, the device's queue full)
 */
struct ringcap_tx_index {
	__u64	produced;
	__u64	resv[7];
	__u64	consumed;
	__u64	sent;
	__u64	failed;
	__u64	resv2[5];
};

/**
 * struct ringcap_tx_slot - a packet to be sent; the packet follows, the next slot is at the next multiple of 8 bytes
 * @len: bytes of the packet, 14 up to the device's MTU and headers; 20 at least if the EtherType is that of a VLAN tag,
 *	or the receiving stack would drop it unseen. RINGCAP_TX_WRAP: the next slot is at the beginning
 *	of the data, because a slot never wraps
 * @ifindex: the egress interface: one that the cluster's RINGCAP_A_INJECT names, or 0 = the only one that it names
 */
struct ringcap_tx_slot {
	__u32	len;
	__u32	ifindex;
};

#define RINGCAP_TX_WRAP		0xffffffffU

/*
 * Sends the produced packets, at most arg of them (0 = all). Returns how many slots were taken. EPERM: the cluster has
 * no RINGCAP_A_INJECT. EINVAL: a slot or position is invalid; the slots before it were taken, and it is not skipped.
 * When packets that are being sent take too much memory, the ioctl waits. With O_NONBLOCK it fails with EAGAIN instead.
 */
#define RINGCAP_IOC_TX		_IOW('R', 1, __u32)

/* ------------------------------------------------------------------ in line */

#define RINGCAP_INLINE_STATS	24	/* elements in RINGCAP_A_INLINE_STATS; unused ones are 0 */

/* What a consumer decides on a packet that waits for it. */
enum ringcap_judgement {
	RINGCAP_VERDICT_PASS = 1,	/* the packet leaves as it is */
	RINGCAP_VERDICT_BLOCK,		/* it does not leave */
	RINGCAP_VERDICT_REPLACE,	/* the verdict's data leave in its place */
	RINGCAP_VERDICT_INJECT_FORWARD,	/* the verdict's data leave by the peer, and the packet goes on waiting */
	RINGCAP_VERDICT_INJECT_REVERSE,	/* they leave by the interface that the packet came in by, and it goes on waiting */
};

/**
 * struct ringcap_verdict - what becomes of a packet
 * @position: of its slot, as the consumer counts positions in the lane
 * @data: with RINGCAP_VERDICT_REPLACE, the address of the packet that leaves instead; with _INJECT_*, of one that leaves
 *	as well. It begins with the Ethernet header, and its checksums are final
 * @len: its bytes: 14 to 65535. It is lost if the MTU is less, also where the packet that it replaces was MERGED
 * @lane: 0
 * @verdict: enum ringcap_judgement
 * @flags: 0
 */
struct ringcap_verdict {
	__u64	position;
	__u64	data;
	__u32	len;
	__u16	lane;
	__u8	verdict;
	__u8	flags;
};

/**
 * struct ringcap_verdicts - the argument of RINGCAP_IOC_VERDICT
 * @verdicts: address of an array of struct ringcap_verdict
 * @nr: how many it has
 * @missed: set to the number of verdicts that found no packet: it never waited, had its verdict, or an event took it
 */
struct ringcap_verdicts {
	__u64	verdicts;
	__u32	nr;
	__u32	missed;
};

/*
 * Gives verdicts, in the order of the array. Returns how many it took, including those that found no packet. EPERM: the
 * cluster is not in line. ENODEV: the queue was deleted or taken back. EINVAL: a verdict is invalid. EFAULT: an address
 * is. ENOMEM: there is no memory for its packet. The verdicts before such a one are taken. If there are any, the ioctl returns
 * their number instead of the error.
 */
#define RINGCAP_IOC_VERDICT	_IOWR('R', 2, struct ringcap_verdicts)

/* ------------------------------------------------------------------ shunted flows */

#define RINGCAP_SHUNTS_MAX	1048576	/* flows that a consumer can have shunted */

/**
 * struct ringcap_shunts - the argument of the ioctls below
 * @flows: address of an array, of struct ringcap_exact or struct ringcap_exact_state
 * @nr: how many elements it has
 * @missed: set by SHUNT to the number of flows that were shunted before; they have the new action and idle time. Set by
 *	UNSHUNT and SHUNT_READ to the number of flows that were not shunted
 * @lost: set by SHUNT_ENDED to the number of flows since the consumer attached whose end was not read in time
 * @shunted, @shunted_bytes: set by SHUNT_READ to the queue's counters, as RINGCAP_A_SHUNTED and _SHUNTED_BYTES
 */
struct ringcap_shunts {
	__u64	flows;
	__u32	nr;
	__u32	missed;
	__u64	lost;
	__u64	shunted;
	__u64	shunted_bytes;
};

/*
 * They return how many elements were taken or filled in. If there is an error after the first element, they return the
 * number of elements before it. EINVAL: a flow is invalid. ENODEV: the queue was deleted or taken back. ENOMEM: no
 * memory, which is charged to the caller. EFAULT: an address is invalid.
 *
 * SHUNT: EPERM: the cluster has no RINGCAP_A_SHUNT_QUOTA. EDQUOT: the quota is reached. A flow's action is DROP or, in
 * line, PASS; its target is 0, and its idle time as in an exact rule.
 *
 * SHUNT_READ reads each element's flow, and fills in its rule and counts. Where the flow is not shunted, it sets counts
 * to zeroes. SHUNT_ENDED fills in flows that have ended, each once, the oldest end first: their packets, bytes, and the
 * time since the last packet; it returns 0 when there is none.
 */
#define RINGCAP_IOC_SHUNT	_IOWR('R', 3, struct ringcap_shunts)	/* struct ringcap_exact[] */
#define RINGCAP_IOC_UNSHUNT	_IOWR('R', 4, struct ringcap_shunts)	/* struct ringcap_exact[] */
#define RINGCAP_IOC_SHUNT_READ	_IOWR('R', 5, struct ringcap_shunts)	/* struct ringcap_exact_state[] */
#define RINGCAP_IOC_SHUNT_ENDED	_IOWR('R', 6, struct ringcap_shunts)	/* struct ringcap_exact_state[] */

/* ------------------------------------------------------------------ rules */

/* What happens to a packet. */
enum ringcap_action {
	RINGCAP_ACTION_PASS,		/* on to payload patterns, plugins, sampling and the clusters */
	RINGCAP_ACTION_DROP,		/* filtered */
	RINGCAP_ACTION_LEARN,		/* pass, and pass this flow by an exact rule from now on */
	RINGCAP_ACTION_QUEUE,		/* to the target queue instead of the clusters, after patterns, plugins and sampling */
	RINGCAP_ACTION_REFLECT,		/* out of the target interface, and nowhere else */
	__RINGCAP_ACTION_MAX
};

/**
 * struct ringcap_exact - an exact rule: one flow in both directions
 * @saddr, @daddr: an IPv4 address is the first 4 bytes, the rest is 0
 * @sport, @dport: host order; 0 where the protocol has none
 * @l3_proto: 0x0800 or 0x86dd
 * @vlan_id: of the outermost tag, 0 = untagged
 * @l4_proto: IP protocol
 * @action: enum ringcap_action, except RINGCAP_ACTION_LEARN
 * @target: number of the set's target, for QUEUE and REFLECT
 * @idle_s: seconds without a packet after which the kernel removes the rule, 0 = never, at most 1000000
 */
struct ringcap_exact {
	__u8	saddr[16];
	__u8	daddr[16];
	__u16	sport;
	__u16	dport;
	__u16	l3_proto;
	__u16	vlan_id;
	__u8	l4_proto;
	__u8	action;
	__u16	target;
	__u32	idle_s;
};

/* The fields of a wildcard rule with which a packet is compared. A packet that lacks one of them does not match. */
#define RINGCAP_MATCH_SMAC		(1U << 0)
#define RINGCAP_MATCH_DMAC		(1U << 1)
#define RINGCAP_MATCH_ETHERTYPE		(1U << 2)	/* after all tags */
#define RINGCAP_MATCH_VLAN		(1U << 3)	/* outermost id; 0 = untagged */
#define RINGCAP_MATCH_INNER_VLAN	(1U << 4)	/* second id; 0 = no second tag */
#define RINGCAP_MATCH_PROTO		(1U << 5)
#define RINGCAP_MATCH_SADDR		(1U << 6)	/* splen bits, of the family that family names */
#define RINGCAP_MATCH_DADDR		(1U << 7)
#define RINGCAP_MATCH_SPORT		(1U << 8)
#define RINGCAP_MATCH_DPORT		(1U << 9)
#define RINGCAP_MATCH_TCP_FLAGS		(1U << 10)
#define RINGCAP_MATCH_TUNNEL_ID		(1U << 11)	/* VXLAN and Geneve VNI, GRE key, ERSPAN session, GTP-U TEID */
#define RINGCAP_MATCH_INNER_SADDR	(1U << 12)
#define RINGCAP_MATCH_INNER_DADDR	(1U << 13)
#define RINGCAP_MATCH_ALL		((1U << 14) - 1)

#define RINGCAP_RULE_BOTH		(1U << 0)	/* also with source and destination exchanged */

/**
 * struct ringcap_rule - a wildcard rule
 * @id: chosen by the configurer, unique in the set, not 0
 * @priority: the matching rule with the greatest priority wins; among equals, the one with the smallest id
 * @fields: RINGCAP_MATCH_*
 * @idle_s: as in struct ringcap_exact. With LEARN it applies to the learnt rules, and the wildcard rule itself stays
 * @target: number of the set's target, for QUEUE and REFLECT
 * @action: enum ringcap_action
 * @flags: RINGCAP_RULE_*
 * @family, @inner_family: 4 or 6, of the addresses
 * @splen, @dplen, @inner_splen, @inner_dplen: prefix lengths, 0 .. 32 or 128
 * @sport, @dport: least and greatest, both included, host order
 * @tcp_flags, @tcp_mask: (flags byte of the TCP header & tcp_mask) == tcp_flags
 */
struct ringcap_rule {
	__u32	id;
	__u32	priority;
	__u32	fields;
	__u32	idle_s;
	__u16	target;
	__u8	action;
	__u8	flags;
	__u8	family;
	__u8	splen;
	__u8	dplen;
	__u8	l4_proto;
	__u8	inner_family;
	__u8	inner_splen;
	__u8	inner_dplen;
	__u8	tcp_flags;
	__u8	tcp_mask;
	__u8	resv[3];
	__u8	smac[6];
	__u8	dmac[6];
	__u16	ethertype;
	__u16	vlan_id;
	__u16	inner_vlan_id;
	__u16	sport[2];
	__u16	dport[2];
	__u16	resv2;
	__u32	tunnel_id;
	__u8	saddr[16];
	__u8	daddr[16];
	__u8	inner_saddr[16];
	__u8	inner_daddr[16];
	__u32	resv3[2];
};

/* The counters of a rule, as a dump shows them. */
struct ringcap_rule_counts {
	__u64	packets;
	__u64	bytes;
	__u32	idle_ms;	/* since the last packet, or since the rule was made */
	__u32	flags;		/* RINGCAP_COUNTS_* */
};

#define RINGCAP_COUNTS_LEARNT	(1U << 0)
#define RINGCAP_COUNTS_SHUNTED	(1U << 1)	/* of a flow that is shunted, or was until it ended */

struct ringcap_exact_state {
	struct ringcap_exact		rule;
	struct ringcap_rule_counts	counts;
};

struct ringcap_rule_state {
	struct ringcap_rule		rule;
	struct ringcap_rule_counts	counts;
};

/*
 * PAYLOAD PATTERNS are searched for in a packet's payload. The payload starts after the header of TCP, UDP, UDP-Lite,
 * SCTP, ICMP or ICMPv6. For other protocols and later fragments, it starts after the IP header. For packets that are
 * not IP, it starts after the ethertype. It ends where the packet ends by IP's length: padding is not payload. The
 * content of a tunnel is payload.
 *
 * The first pattern that is found decides, and the search stops there. This is the pattern that ends first in the
 * payload. Of several that end at the same place, the longest decides. Of equal ones, one without
 * RINGCAP_PATTERN_NOCASE decides, then the one that was added first. RINGCAP_A_PATTERN_MATCHES counts, for each
 * pattern, the packets on which it decided. The sum is the number of packets in which any pattern was found.
 *
 * Patterns that end at the same place of the payload are compared in this order until one decides, because their case,
 * offset and depth may differ. RULES_COMMIT refuses (E2BIG) a set that may need more than RINGCAP_PATTERN_ENDS_MAX
 * comparisons at one place. A pattern does not count here if it never decides. That is so when a preferred pattern is
 * found wherever it is found.
 */
#define RINGCAP_PATTERN_NOCASE	(1U << 0)	/* ASCII letters of either case */

/* ------------------------------------------------------------------ the eBPF engine's hand-over */

/*
 * A container that was given queue Q of cluster N has the folder RINGCAP_RUN_DIR/N/Q with a SOCK_SEQPACKET socket
 * "handover" in it. The consumer connects and sends struct ringcap_handover_request. The agent checks by SO_PEERCRED
 * which pod asks, and answers with struct ringcap_handover_reply. If error is 0, file descriptors come with it as
 * SCM_RIGHTS: the maps data, consumer and doorbell, and a socket for shunted flows, in this order. As in the module,
 * the unread packets of earlier consumers end in each lane at left. The consumer is attached as long as it keeps the
 * connection.
 *
 * When the agent restarts, the connection breaks but the maps continue to exist. A consumer continues to read, and
 * reconnects with map_id set to the data map that it still has. The reply then carries only the socket. ESTALE means
 * that this queue was taken from the consumer.
 */
#define RINGCAP_RUN_DIR		"/run/ringcap"
#define RINGCAP_HANDOVER_SOCKET	"handover"

struct ringcap_handover_request {
	__u32	magic;			/* RINGCAP_MAGIC */
	__u32	abi;			/* the consumer's RINGCAP_ABI */
	__u32	map_id;			/* id of the data map that the consumer already has, 0 = none */
	__u32	abi_min;		/* the consumer's RINGCAP_ABI_MIN, 0 = only abi */
};

struct ringcap_handover_reply {
	__u32	magic;			/* RINGCAP_MAGIC */
	__u32	abi;			/* the newest version that both speak; with EPROTO the agent's RINGCAP_ABI */
	__u32	error;			/* an errno: EACCES another pod's queue, EBUSY already attached, ESTALE, EPROTO */
	__u32	map_id;			/* id of the data map */
	__u32	lane_size;		/* bytes of a lane, a power of two */
	__u32	nr_lanes;		/* 1 .. RINGCAP_LANES_MAX */
	__u32	queue;
	__u32	nr_queues;
	__u32	snaplen;
	__u32	watermark;
	__u32	timeout_us;
	__u32	head_size;		/* bytes before the first lane, a multiple of 64 */
	char	name[RINGCAP_NAME_MAX + 1];
	char	reason[128];		/* a message for people, NUL-terminated; empty when error is 0 */
};

/*
 * SHUNTED FLOWS OF THE EBPF ENGINE. With its answer the agent hands over one more descriptor, behind the others: a
 * socket, SOCK_SEQPACKET. A consumer that comes back gets this one alone. Both sides take more descriptors than they
 * know of, and close them. An agent without it does not know of shunted flows.
 *
 * The consumer sends struct ringcap_shunt_message and, behind it, nr elements, of struct ringcap_exact to add and
 * remove, of struct ringcap_exact_state to read. The agent answers with the same struct. Behind it are the elements
 * that were read or have ended, as many as result says. Requests mean what the ioctls do, with the same errors. The
 * agent handles them in their order, and takes its time if there are many.
 */
#define RINGCAP_SHUNT_ADD	3	/* the numbers of the ioctls */
#define RINGCAP_SHUNT_REMOVE	4
#define RINGCAP_SHUNT_READ	5
#define RINGCAP_SHUNT_ENDED	6

#define RINGCAP_SHUNT_BATCH	256	/* elements of a message */

/**
 * struct ringcap_shunt_message - a request, and its answer
 * @magic: RINGCAP_MAGIC
 * @verb: RINGCAP_SHUNT_ADD, _REMOVE, _READ or _ENDED
 * @number: the consumer's; the answer repeats it
 * @nr: elements of the request; for ENDED as many as the consumer has room for
 * @result: what the ioctl returns, or a negative errno
 * @missed, @lost, @shunted, @shunted_bytes: as in struct ringcap_shunts
 */
struct ringcap_shunt_message {
	__u32	magic;
	__u32	verb;
	__u32	number;
	__u32	nr;
	__s32	result;
	__u32	missed;
	__u64	lost;
	__u64	shunted;
	__u64	shunted_bytes;
};

/* ------------------------------------------------------------------ generic netlink */

#define RINGCAP_GENL_NAME	"ringcap"
#define RINGCAP_GENL_VERSION	1
#define RINGCAP_GENL_MCGRP	"events"

/*
 * All commands except the GETs need CAP_NET_ADMIN in the user namespace that owns the network namespace. RULES_GET
 * needs it too, because it shows flows and search patterns. CLUSTER_SET and QUEUE_REVOKE need it in the initial user
 * namespace, because all namespaces share the device nodes and queues take memory. The other GETs, and events, show
 * names, sizes and sums to any process of the network namespace, as /proc/net/ringcap does. Consumers find their queues
 * by them. Errors come with an extended acknowledgement that names the attribute and the reason.
 *
 * SETs are create-or-replace. If an object of that name exists, a SET makes it as described in one step, or fails and
 * changes nothing. An attribute that is left out has its default. A cluster's shape is QUEUES, LANES and LANE_SIZE. If
 * the shape changes, the cluster gets new queues with counters that start at 0.
 *
 * A cluster or ring with OWNED = 1 belongs to the netlink socket that made it. It is deleted when the socket is closed,
 * even if consumers are attached. No other socket can SET it (EBUSY). OWNED never changes. Only rings of the same
 * socket can feed an owned cluster.
 */
enum ringcap_cmd {
	RINGCAP_CMD_UNSPEC,
	RINGCAP_CMD_INFO_GET,		/* -> ABI, ABI_MIN, VERSION: the versions of the module and of the contract */
	RINGCAP_CMD_CLUSTER_SET,	/* the clusters' attributes: makes it so or changes nothing; EBUSY when its shape changes under a consumer */
	RINGCAP_CMD_CLUSTER_DEL,	/* NAME; EBUSY while a ring feeds it, a rule names it or a consumer is attached */
	RINGCAP_CMD_CLUSTER_GET,	/* NAME, or a dump: the clusters' attributes, one cluster a message */
	RINGCAP_CMD_RING_SET,		/* the rings' attributes; its clusters must exist. EDQUOT: max_rings_netns, ENOSPC: max_rings */
	RINGCAP_CMD_RING_DEL,		/* NAME: deletes it */
	RINGCAP_CMD_RING_GET,		/* NAME, or a dump, with counters */
	RINGCAP_CMD_QUEUE_GET,		/* a dump of NAME's queues, or of all clusters', with counters, and PAST, PAST_PACKETS and PAST_MS until BACK */
	RINGCAP_CMD_QUEUE_RESET,	/* NAME, QUEUE: empties and zeroes it; EBUSY while a consumer is attached */
	RINGCAP_CMD_EVENT,		/* multicast: EVENT and what it is about */

	/*
	 * A ring's rule set is built aside and replaces the one before it in one step: BEGIN, any number of ADDs,
	 * COMMIT, from one socket. It is forgotten by ABORT, by another BEGIN of that socket, for any ring, and when
	 * the socket is closed. RING_SET leaves rule sets alone.
	 */
	RINGCAP_CMD_RULES_BEGIN,	/* NAME, GENERATION, DEFAULT_ACTION, TARGETs, PATTERN_ACTION */
	RINGCAP_CMD_RULES_ADD,		/* NAME; EXACT, RULE, PATTERNs */
	RINGCAP_CMD_RULES_COMMIT,	/* NAME; a set without rules and patterns that passes everything takes the rules away */
	RINGCAP_CMD_RULES_ABORT,	/* NAME: forgets what BEGIN began */
	RINGCAP_CMD_RULES_GET,		/* a dump of NAME's rules: EXACT_STATE, RULE_STATE, PATTERN with PATTERN_MATCHES */
	RINGCAP_CMD_RULE_NEW,		/* NAME; EXACT, RULE: into the committed set; replaces one of that flow or id; all or none */
	RINGCAP_CMD_RULE_DEL,		/* NAME; EXACT, RULE (by id): out of it; ENOENT when one is not there: then none goes */
	RINGCAP_CMD_DEVICE_GET,		/* TAP_IFINDEX -> that and OFFERS */
	RINGCAP_CMD_QUEUE_REVOKE,	/* NAME, QUEUE, ATTACHED_PID, ATTACHMENT: see A QUEUE THAT IS TAKEN BACK */
	__RINGCAP_CMD_MAX
};
#define RINGCAP_CMD_MAX (__RINGCAP_CMD_MAX - 1)

enum ringcap_attr {
	RINGCAP_A_UNSPEC,
	RINGCAP_A_PAD,
	RINGCAP_A_ABI,			/* u32 */
	RINGCAP_A_ABI_MIN,		/* u32 */
	RINGCAP_A_VERSION,		/* string: the module's version */
	RINGCAP_A_NAME,			/* string: a ring's or cluster's name */
	RINGCAP_A_GENERATION,		/* u64: the configurer's own mark, kept and returned */

	/* clusters */
	RINGCAP_A_QUEUES,		/* u32: 1 .. RINGCAP_QUEUES_MAX, 1 by default */
	RINGCAP_A_LANES,		/* u32: the most lanes of a queue; 0 = one for each possible CPU and one that is shared, at most 16 */
	RINGCAP_A_LANE_SIZE,		/* u32: bytes of a lane, power of two, 1 MiB by default */
	RINGCAP_A_BALANCE,		/* u32: enum ringcap_balance */
	RINGCAP_A_KEY,			/* binary: RINGCAP_KEY_LEN bytes; by default stays as it is, random at first */
	RINGCAP_A_WATERMARK,		/* u32: bytes, at most half of LANE_SIZE; 0 = a quarter of it */
	RINGCAP_A_TIMEOUT_US,		/* u32: 0 = wakes for each packet .. 1000000; 10000 by default */
	RINGCAP_A_MODE,			/* u32: the device nodes' permission bits, 0600 by default; never changes */
	RINGCAP_A_METADATA,		/* u32: 1 = slots carry what the parser found, and a hash */
	RINGCAP_A_INNER,		/* u32: 1 = hash by the innermost header of tunnels that is there */
	RINGCAP_A_FRAGMENTS,		/* u32: enum ringcap_fragments */
	RINGCAP_A_WHEN_FULL,		/* u32: enum ringcap_policy */
	RINGCAP_A_WHEN_UNATTENDED,	/* u32: enum ringcap_policy */
	RINGCAP_A_INJECT,		/* u32, repeated: ifindex that the consumers may send out of; by default none */
	RINGCAP_A_OWNED,		/* u32: 1 = goes when the socket that made it is closed; see below */
	RINGCAP_A_DUPLICATED,		/* u64: second copies, see RINGCAP_BALANCE_BOTH_ENDS */
	RINGCAP_A_SPREAD,		/* u64: packets that went to another queue by WHEN_FULL or WHEN_UNATTENDED */

	/* rings */
	RINGCAP_A_TAP,			/* nest, repeated: TAP_IFINDEX, TAP_DIRECTION, TAP_RX_QUEUES, TAP_FOLLOWS */
	RINGCAP_A_TAP_IFINDEX,		/* u32 */
	RINGCAP_A_TAP_DIRECTION,	/* u32: enum ringcap_direction, receive by default */
	RINGCAP_A_OUTPUT,		/* string, repeated: a cluster's name */
	RINGCAP_A_SNAPLEN,		/* u32: 1 .. RINGCAP_SNAPLEN_MAX, which is the default */
	RINGCAP_A_FILTER,		/* binary: struct sock_filter[]; absent = everything passes, returned 0 = does not */
	RINGCAP_A_PROMISC,		/* u32: 1 = the tapped devices receive what is not addressed to them */
	RINGCAP_A_TAP_RX_QUEUES,	/* binary: __u64[], bit N of them is RX queue N; absent = all. Received packets only */
	RINGCAP_A_TRANSPARENT,		/* u32: transparent mode 0, 1 or 2, see TRANSPARENT MODES; in a TAP's answer, the active one */
	RINGCAP_A_QUICK,		/* u32: 0 or 1, without effect: each ring takes the shortest path that it can */
	RINGCAP_A_VLANS,		/* binary: __u16[] of outermost VLAN ids that pass, 0 = untagged; absent = all */
	RINGCAP_A_SAMPLE,		/* u32: 1 in so many passes, 0 and 1 = all */
	RINGCAP_A_SAMPLE_BY,		/* u32: enum ringcap_sample */
	RINGCAP_A_DEFRAG,		/* u32: 1 = IPv4 fragments come as one reassembled packet, where there is memory for that */
	RINGCAP_A_HWTSTAMP,		/* u32: 1 = the device's time where it took one */
	RINGCAP_A_PLUGIN,		/* nest, repeated: PLUGIN_NAME or PLUGIN_FD, PLUGIN_CONFIG; in order */
	RINGCAP_A_PLUGIN_NAME,		/* string: a registered plugin's */
	RINGCAP_A_PLUGIN_FD,		/* u32: descriptor of a BPF_PROG_TYPE_SOCKET_FILTER program, in the configurer; returned 0 = does not pass */
	RINGCAP_A_PLUGIN_CONFIG,	/* binary: the plugin's own */
	RINGCAP_A_PLUGIN_FILTERED,	/* u64: packets that it did not let pass, since the last RING_SET */

	/* rule sets */
	RINGCAP_A_DEFAULT_ACTION,	/* u32: enum ringcap_action where no rule matches: PASS (default), DROP or REFLECT to target 0 */
	RINGCAP_A_TARGET,		/* nest, repeated: OUTPUT and QUEUE, or TAP_IFINDEX; numbered from 0 */
	RINGCAP_A_PATTERN_ACTION,	/* u32: PASS = only what matches a pattern passes (default), DROP = only what matches none */
	RINGCAP_A_EXACT,		/* binary: struct ringcap_exact[] */
	RINGCAP_A_RULE,			/* binary: struct ringcap_rule[] */
	RINGCAP_A_PATTERN,		/* nest, repeated: PATTERN_BYTES, _FLAGS, _OFFSET, _DEPTH */
	RINGCAP_A_PATTERN_BYTES,	/* binary: 1 .. RINGCAP_PATTERN_LEN_MAX bytes */
	RINGCAP_A_PATTERN_FLAGS,	/* u32: RINGCAP_PATTERN_* */
	RINGCAP_A_PATTERN_OFFSET,	/* u32: least place in the payload where it may begin, 0 by default */
	RINGCAP_A_PATTERN_DEPTH,	/* u32: bytes from OFFSET on in which it must lie, 0 = to the end */
	RINGCAP_A_PATTERN_MATCHES,	/* u64: packets that it decided on: see PAYLOAD PATTERNS */
	RINGCAP_A_EXACT_STATE,		/* binary: struct ringcap_exact_state[] */
	RINGCAP_A_RULE_STATE,		/* binary: struct ringcap_rule_state[] */
	RINGCAP_A_RULES_GENERATION,	/* u64: of the active rule set */
	RINGCAP_A_NR_EXACT,		/* u32 */
	RINGCAP_A_NR_RULES,		/* u32 */
	RINGCAP_A_NR_SHAPES,		/* u32: mask shapes of the wildcard rules: what they cost */
	RINGCAP_A_NR_PATTERNS,		/* u32 */
	RINGCAP_A_EXPIRED,		/* u64: rules that the kernel removed for idleness */
	RINGCAP_A_NOT_LEARNT,		/* u64: flows to be learnt when there was no room or memory, or a limit was reached */

	/* counters */
	RINGCAP_A_SEEN,			/* u64 */
	RINGCAP_A_SEEN_BYTES,		/* u64 */
	RINGCAP_A_FILTERED,		/* u64 */
	RINGCAP_A_SAMPLED_OUT,		/* u64 */
	RINGCAP_A_PASSED,		/* u64 */
	RINGCAP_A_REFLECTED,		/* u64: sent out of another interface, or refused by it: see REFLECT_FAILED */
	RINGCAP_A_REFLECT_FAILED,	/* u64: of those */
	RINGCAP_A_ABSORBED,		/* u64: fragments that went into another packet, or are waiting to */
	RINGCAP_A_DIRECTED,		/* u64: sent to a queue that a rule names */
	RINGCAP_A_TX_SENT,		/* u64: packets that consumers of the queue have injected */
	RINGCAP_A_TX_FAILED,		/* u64: and that could not be sent */
	RINGCAP_A_QUEUE,		/* u32: a queue's number */
	RINGCAP_A_ATTACHED,		/* u32: 1 = a consumer is attached */
	RINGCAP_A_ATTACHED_PID,		/* u32: the process that opened it, in the reader's pid namespace; 0 = not visible */
	RINGCAP_A_DELIVERED,		/* u64 */
	RINGCAP_A_DELIVERED_BYTES,	/* u64: without TRUNCATED_BYTES */
	RINGCAP_A_DROPPED,		/* binary: __u64[RINGCAP_DROP_REASONS], by enum ringcap_drop */
	RINGCAP_A_UNREAD_BYTES,		/* u64: published and not released, over all lanes */
	RINGCAP_A_MEMORY,		/* u64: bytes that the object's memory takes */
	RINGCAP_A_DEV,			/* string: the queue's device node, e.g. "ringcap/mirror/0" */
	RINGCAP_A_DEVT,			/* u32: its major << 20 | minor */

	/* events */
	RINGCAP_A_EVENT,		/* u32: enum ringcap_event */

	/* added later */
	RINGCAP_A_PLUGIN_PROG_ID,	/* u32: in answers, the id of the program that PLUGIN_FD named */
	RINGCAP_A_TRANSPARENT_FALLBACK,	/* u32: 1 = where a tap's driver is not aware, its mode is 0 */
	RINGCAP_A_OFFERS,		/* u32: of a device's driver: 0 = it is not aware, 1 = skbs, 3 = also frames before there is an skb */
	RINGCAP_A_TAP_FOLLOWS,		/* u32: see TAPS THAT FOLLOW; absent = 0 */
	RINGCAP_A_ATTACHMENT,		/* u64: this time that a consumer attached: no other has the number while the module is loaded */
	RINGCAP_A_TRUNCATED,		/* u64: packets of those delivered that the snap length has shortened */
	RINGCAP_A_TRUNCATED_BYTES,	/* u64: bytes that they lack */
	RINGCAP_A_SHARED,		/* u64: packets of those delivered that took a lock, because their CPU had no lane of its own */
	RINGCAP_A_LANES_TAKEN,		/* u32: lanes of a queue that have memory by now */
	RINGCAP_A_FULLEST_LANE,		/* u64: of UNREAD_BYTES, those in the fullest lane */
	RINGCAP_A_INLINE,		/* u32: RINGCAP_OPEN_*: the cluster is in line, and these events let packets pass it by; absent = not in line */
	RINGCAP_A_HUNG_MS,		/* u32: 1 .. 60000: how long a packet of an in-line cluster may wait; 250 by default */
	RINGCAP_A_TAP_PEER,		/* u32: ifindex of the interface that packets leave by: see IN LINE; absent = none */
	RINGCAP_A_ADDRESSED,		/* u32: 1 = interfaces of pairs may have IP addresses, which cannot be reached then */
	RINGCAP_A_INLINE_STATS,		/* binary: __u64[RINGCAP_INLINE_STATS], by enum ringcap_inline_stat */
	RINGCAP_A_PAST,			/* u32: enum ringcap_past */
	RINGCAP_A_PAST_PACKETS,		/* u64: packets that the consumer did not get meanwhile, or that its verdict came too late for */
	RINGCAP_A_PAST_MS,		/* u64 */
	RINGCAP_A_SHUNT_QUOTA,		/* u32: 0 .. RINGCAP_SHUNTS_MAX: flows that each consumer of the cluster may shunt; 0 by default */
	RINGCAP_A_SHUNTS,		/* u32: flows that the queue's consumer has shunted now */
	RINGCAP_A_SHUNTED,		/* u64: packets of shunted flows, which were not delivered */
	RINGCAP_A_SHUNTED_BYTES,	/* u64: on the wire */
	RINGCAP_A_SHUNTS_LOST,		/* u64: shunted flows whose end no consumer was told of */
	__RINGCAP_A_MAX
};
#define RINGCAP_A_MAX (__RINGCAP_A_MAX - 1)

/* How a cluster chooses a packet's queue. Hashes are symmetric: both directions of a flow go to the same queue. */
enum ringcap_balance {
	RINGCAP_BALANCE_FLOW,		/* addresses, ports, protocol, VLAN */
	RINGCAP_BALANCE_FIVE_TUPLE,	/* addresses, ports, protocol */
	RINGCAP_BALANCE_FOUR_TUPLE,	/* addresses, ports */
	RINGCAP_BALANCE_TWO_TUPLE,	/* addresses */
	RINGCAP_BALANCE_ROUND_ROBIN,	/* each to the next queue */
	RINGCAP_BALANCE_TCP_FIVE_TUPLE,	/* TCP by addresses, ports, protocol; the rest by addresses */
	RINGCAP_BALANCE_BOTH_ENDS,	/* to the queue of the source address and to that of the destination address */
	RINGCAP_BALANCE_RX_QUEUE,	/* by the device's receive queue: queue N gets those of N, N + queues, ... */
	__RINGCAP_BALANCE_MAX
};

enum ringcap_fragments {
	RINGCAP_FRAGMENTS_TOGETHER,	/* all fragments of a datagram to one queue, which need not be its flow's */
	RINGCAP_FRAGMENTS_WITH_FLOW,	/* with the rest of their flow, as long as the first comes first */
};

/* What happens to packets for a queue that cannot take them. */
enum ringcap_policy {
	RINGCAP_POLICY_DROP,		/* they are dropped and counted there */
	RINGCAP_POLICY_SPREAD,		/* they go to other attended queues; flows of other queues don't move */
};

enum ringcap_sample {
	RINGCAP_SAMPLE_RANDOM,		/* each packet for itself */
	RINGCAP_SAMPLE_FLOW,		/* all packets of a flow or none, by a hash of addresses, ports and protocol */
};

enum ringcap_direction {
	RINGCAP_DIRECTION_RX = 1,
	RINGCAP_DIRECTION_TX,
	RINGCAP_DIRECTION_BOTH,
};

/* What keeps a consumer from deciding on packets: see IN LINE. Bit N of RINGCAP_A_INLINE is for event N. */
enum ringcap_past {
	RINGCAP_PAST_UNATTENDED,	/* no consumer is attached */
	RINGCAP_PAST_FULL,		/* no room in the queue */
	RINGCAP_PAST_HUNG,		/* a packet has waited for HUNG_MS */
};

#define RINGCAP_OPEN_UNATTENDED	(1U << 0)	/* while no consumer is attached */
#define RINGCAP_OPEN_FULL	(1U << 1)	/* when there is no room in the queue, until it is empty */
#define RINGCAP_OPEN_HUNG	(1U << 2)	/* when a packet has waited for HUNG_MS, until the queue is empty */

/* Elements of RINGCAP_A_INLINE_STATS; see the account in IN LINE. */
enum ringcap_inline_stat {
	RINGCAP_INLINE_BRIDGED,		/* rings: left at once, for the ring did not pass them to its clusters */
	RINGCAP_INLINE_HELD,		/* waiting for a verdict now */
	RINGCAP_INLINE_PASSED,		/* left by a verdict, unchanged */
	RINGCAP_INLINE_REPLACED,	/* left by a verdict, with other bytes */
	RINGCAP_INLINE_BLOCKED,		/* did not leave, by a verdict */
	RINGCAP_INLINE_UNANSWERED,	/* did not leave: released without a verdict, and their place was needed */
	RINGCAP_INLINE_BYPASS_UNATTENDED,	/* left without a verdict at this event */
	RINGCAP_INLINE_BYPASS_FULL,
	RINGCAP_INLINE_BYPASS_HUNG,
	RINGCAP_INLINE_BLOCK_UNATTENDED,	/* did not leave at this event, which is not open */
	RINGCAP_INLINE_BLOCK_FULL,
	RINGCAP_INLINE_BLOCK_HUNG,
	RINGCAP_INLINE_TOO_LONG,	/* lost: longer than the peer's MTU */
	RINGCAP_INLINE_REFUSED,		/* lost: the peer did not take them, as when its queue was full, or they came out of it */
	RINGCAP_INLINE_NOMEM,		/* lost: no memory, or they could not be read */
	RINGCAP_INLINE_DOWN,		/* lost: the peer was down, without carrier, or gone */
	RINGCAP_INLINE_LATE,		/* verdicts on packets that an event had taken */
	RINGCAP_INLINE_UNKNOWN,		/* verdicts on what never waited, or was answered before */
	RINGCAP_INLINE_BYPASSES,	/* how often the queue's packets began to go past its consumer */
	RINGCAP_INLINE_BYPASS_MS,	/* milliseconds that they did, up to the last time that they came back */
	RINGCAP_INLINE_INJECTED,	/* packets of the consumer's own that left */
	RINGCAP_INLINE_NOT_INJECTED,	/* and that did not: too long, refused, or the interface was down or gone */
	RINGCAP_INLINE_SHUNT_PASSED,	/* of shunted flows, left without being asked about */
	RINGCAP_INLINE_SHUNT_BLOCKED,	/* of shunted flows, did not leave */
};

enum ringcap_event {
	RINGCAP_EVENT_ATTACHED = 1,	/* NAME, QUEUE, ATTACHED_PID (in the initial pid namespace) */
	RINGCAP_EVENT_DETACHED,		/* NAME, QUEUE */
	RINGCAP_EVENT_TAP_GONE,		/* NAME of the ring, TAP_IFINDEX: the device was unregistered or, see TAPS THAT FOLLOW, left the namespace */
	RINGCAP_EVENT_OVERFLOW,		/* NAME, QUEUE, DROPPED: a queue has begun to drop; at most one a second a queue */
	RINGCAP_EVENT_PAST,		/* NAME, QUEUE, PAST: packets of an in-line queue go past its consumer, or are blocked, from now on */
	RINGCAP_EVENT_BACK,		/* NAME, QUEUE, PAST, PAST_PACKETS, PAST_MS: it gets them again */
};

/* Former names, for programs that were written with them. */
#define RINGCAP_CHANNELS_MAX	RINGCAP_RX_QUEUES_MAX
#define RINGCAP_A_TAP_CHANNELS	RINGCAP_A_TAP_RX_QUEUES

#endif /* _UAPI_LINUX_RINGCAP_H */
