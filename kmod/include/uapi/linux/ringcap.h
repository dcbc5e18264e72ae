/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR BSD-2-Clause */
/*
 * ringcap: the contract between the capture engines and everything that reads packets from them.
 *
 * OBJECTS
 *
 * A ring is a named capture: taps (a device and a direction), a classic BPF filter, a snap length, and the clusters
 * that it feeds. A cluster is a named set of queues and a balance type; each of its rings' packets goes to exactly one
 * of its queues. A queue is one mapped memory area with one consumer at a time. A ring's own queues are a cluster of
 * the ring's name. Ring and cluster names share one name space per network namespace.
 *
 * ACCOUNTS (every counter is 64 bits wide, monotonic, and starts at 0 when its object is created)
 *
 *   ring:     seen = filtered + sampled_out + passed
 *   cluster:  the sum of passed over its rings = the sum over its queues of (delivered + dropped by reason)
 *
 * delivered counts the packets that were put where the queue's consumer can read them.
 *
 * THE SLOT
 *
 * A packet in a queue is a struct ringcap_slot followed, hdr_len bytes after the slot's own start, by caplen bytes of
 * the packet as it was on the wire: a VLAN tag that the device took off is back in its place. The slot is the same in
 * every engine. Slots begin at multiples of 8 bytes.
 *
 * A QUEUE OF THE KERNEL MODULE: /dev/ringcap/<name>/<queue>
 *
 * open(2) attaches (EBUSY while another consumer is attached, EPERM without O_RDWR); the last close detaches. What was
 * not released by then stays for the next consumer, until RINGCAP_CMD_QUEUE_RESET empties and zeroes the queue.
 * mmap(2) with these offsets, each MAP_SHARED and of exactly the length that the info page names:
 *
 *   RINGCAP_MMAP_INFO      PROT_READ             one page, struct ringcap_queue_info, constant while attached
 *   RINGCAP_MMAP_KERNEL    PROT_READ             nr_lanes * sizeof(struct ringcap_lane_kernel), whole pages
 *   RINGCAP_MMAP_CONSUMER  PROT_READ|PROT_WRITE  nr_lanes * sizeof(struct ringcap_lane_consumer), whole pages
 *   RINGCAP_MMAP_DATA + L  PROT_READ             lane L's data, twice in a row (2 * lane_size bytes), so that a slot
 *                                                never wraps; L is shifted by RINGCAP_MMAP_LANE_SHIFT
 *
 * A queue has one lane for each CPU that may produce into it, up to nr_lanes; each lane is a byte ring with one
 * producer and one consumer. Positions count bytes since the lane was made and never wrap (64 bits); a position's place
 * in the data is position & (lane_size - 1).
 *
 *   producer (kernel)                          consumer
 *
 *   if (full by the private index)             prod = load_acquire(&kernel[L].producer)        (B) pairs with (A)
 *     load_acquire(&consumer[L].released) (D)  read the slots in [released, prod)
 *   write the slot and the packet              store_release(&consumer[L].released, position)  (C) pairs with (D)
 *   store_release(&kernel[L].producer)  (A)
 *
 * A slot of the module occupies slot->size bytes. The kernel clamps what it reads from consumer[] into
 * [its own last value, producer] and believes nothing else there; a consumer that writes nonsense harms its own queue
 * only. Consumers that want the packets of several lanes in order of time merge them by ts_ns.
 *
 * poll(2) reports EPOLLIN once the unread bytes of any lane reach the watermark, or the watermark timeout has passed
 * since the oldest unread packet; EPOLLHUP|EPOLLERR when the queue was deleted.
 *
 * A QUEUE OF THE EBPF ENGINE is a BPF_MAP_TYPE_RINGBUF (see the kernel's Documentation/bpf/ringbuf.rst) whose records
 * are slots, and a BPF_F_MMAPABLE array of struct ringcap_lane_stats, one per possible CPU. Both file descriptors are
 * handed over as described at struct ringcap_handover_reply.
 */
#ifndef _UAPI_LINUX_RINGCAP_H
#define _UAPI_LINUX_RINGCAP_H

#include <linux/types.h>

/*
 * The version of this contract. A module serves consumers and agents whose version lies in
 * [RINGCAP_ABI_MIN, RINGCAP_ABI]; they in turn check the range that the other side names.
 */
#define RINGCAP_ABI		1
#define RINGCAP_ABI_MIN		1

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

/* ------------------------------------------------------------------ the slot */

#define RINGCAP_SLOT_OUTGOING	(1U << 0)	/* sent by the tapped device, not received */
#define RINGCAP_SLOT_VLAN	(1U << 1)	/* vlan_tpid and vlan_tci are the outermost tag, which is in the data too */
#define RINGCAP_SLOT_HWTSTAMP	(1U << 2)	/* ts_ns was taken by the device */
#define RINGCAP_SLOT_FRAGMENT	(1U << 3)	/* an IP fragment; l4_off is 0 unless it is the first */

/**
 * struct ringcap_slot - what is known of a captured packet
 * @ts_ns: time of capture, nanoseconds since the Unix epoch
 * @len: length on the wire, bytes, without FCS
 * @caplen: bytes captured, at most @len and the ring's snap length
 * @hash: the cluster's keyed, symmetric flow hash; what chose the queue when the balance type is a hash
 * @ifindex: tapped interface, in the ring's network namespace
 * @vlan_tci: outermost VLAN tag's control information, host order; valid with RINGCAP_SLOT_VLAN
 * @vlan_tpid: outermost VLAN tag's protocol (0x8100, 0x88a8 or 0x9100), host order
 * @rx_queue: the device's receive queue, 0 where it is not recorded
 * @flags: RINGCAP_SLOT_*
 * @hdr_len: offset of the packet from the start of this structure; readers use it, not sizeof
 * @l3_off: offset of the outermost IPv4 or IPv6 header in the packet, 0 = none found
 * @l4_off: offset of the transport header, 0 = none found
 * @l3_proto: ethertype after all tags, host order
 * @l4_proto: IP protocol after IPv6 extension headers, 0 where @l3_off is 0
 * @size: bytes from this slot to the next in a lane of the module, a multiple of 8; 0 in the eBPF engine,
 *	whose ring buffer's record header has the length
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
	__u32	size;
	__u32	resv2;
};

/* ------------------------------------------------------------------ counters */

/* Why a packet that a ring passed was not delivered to its queue. */
enum ringcap_drop {
	RINGCAP_DROP_FULL,		/* the consumer was too slow: no room in the lane or ring buffer */
	RINGCAP_DROP_UNATTENDED,	/* no consumer was attached */
	RINGCAP_DROP_NOMEM,		/* memory for handling the packet could not be had, or it could not be read */
	RINGCAP_DROP_REASONS = 4	/* room in the structure; unused ones are 0 */
};

/**
 * struct ringcap_lane_stats - a lane's share of its queue's account; the queue's is the sum over its lanes
 * @delivered: packets
 * @delivered_bytes: bytes on the wire of those
 * @dropped: packets by enum ringcap_drop
 *
 * 64 bytes, so that lanes do not share cache lines.
 */
struct ringcap_lane_stats {
	__u64	delivered;
	__u64	delivered_bytes;
	__u64	dropped[RINGCAP_DROP_REASONS];
	__u64	resv[2];
};

/* ------------------------------------------------------------------ a module queue's memory */

#define RINGCAP_MMAP_INFO	0x000000000ULL
#define RINGCAP_MMAP_KERNEL	0x010000000ULL
#define RINGCAP_MMAP_CONSUMER	0x020000000ULL
#define RINGCAP_MMAP_DATA	0x100000000ULL
#define RINGCAP_MMAP_LANE_SHIFT	32	/* lane L's data is at RINGCAP_MMAP_DATA + ((__u64)L << 32) */

#define RINGCAP_MAGIC		0x70616372	/* "rcap" */

/**
 * struct ringcap_queue_info - the info page
 * @magic: RINGCAP_MAGIC
 * @abi: the module's RINGCAP_ABI
 * @abi_min: the oldest that it serves
 * @nr_lanes: lanes of this queue
 * @lane_size: bytes of a lane's data, a power of two
 * @queue: this queue's number in its cluster
 * @nr_queues: queues of the cluster
 * @snaplen: greatest caplen to expect, bytes: the greatest snap length of the rings that fed the cluster when the
 *	consumer attached, 65535 where none did; more is not captured for this consumer, even if a ring's is raised
 * @watermark: unread bytes at which a sleeping consumer is woken
 * @timeout_us: microseconds after which it is woken for fewer
 * @name: the cluster's name, NUL-terminated
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
	__u64	resv[8];
};

/* What the kernel tells a consumer of a lane; read-only for the consumer. 128 bytes. */
struct ringcap_lane_kernel {
	__u64	producer;		/* bytes published since the lane was made; see (A) */
	__u64	resv[7];
	struct ringcap_lane_stats stats;
};

/* What a consumer tells the kernel of a lane. 64 bytes. */
struct ringcap_lane_consumer {
	__u64	released;		/* bytes given back since the lane was made; see (C) */
	__u64	resv[7];
};

/* ------------------------------------------------------------------ the eBPF engine's hand-over */

/*
 * A container that was given queue Q of cluster N has the folder RINGCAP_RUN_DIR/N/Q with a SOCK_SEQPACKET socket
 * "handover" in it. The consumer connects and sends struct ringcap_handover_request; the agent, after checking by
 * SO_PEERCRED which pod asks, answers struct ringcap_handover_reply with, when error is 0, two file descriptors as
 * SCM_RIGHTS: the ring buffer map and the statistics map. The latter is frozen (BPF_MAP_FREEZE) so that its holder can
 * only read it; a descriptor opened with BPF_F_RDONLY cannot be mapped, and bpf(2) is not to be had under the default
 * seccomp profile of container runtimes. The consumer is attached for as long as it
 * keeps the connection. When the agent restarts, the connection breaks but the maps live on: a consumer goes on
 * reading, and reconnects with map_id set to say which ring buffer it still has; the reply then carries no descriptors.
 * ESTALE means that this ring buffer was taken from it.
 */
#define RINGCAP_RUN_DIR		"/run/ringcap"
#define RINGCAP_HANDOVER_SOCKET	"handover"

struct ringcap_handover_request {
	__u32	magic;			/* RINGCAP_MAGIC */
	__u32	abi;			/* the consumer's RINGCAP_ABI */
	__u32	map_id;			/* of the ring buffer that the consumer already has, 0 = none */
	__u32	resv;
};

struct ringcap_handover_reply {
	__u32	magic;			/* RINGCAP_MAGIC */
	__u32	abi;			/* the agent's RINGCAP_ABI */
	__u32	error;			/* an errno: EACCES another pod's queue, EBUSY already attached, ESTALE, EPROTO */
	__u32	map_id;			/* of the ring buffer */
	__u32	data_size;		/* bytes of the ring buffer, a power of two */
	__u32	nr_stats;		/* elements of the statistics map: struct ringcap_lane_stats each */
	__u32	queue;
	__u32	nr_queues;
	__u32	snaplen;
	__u32	watermark;
	__u32	timeout_us;
	__u32	resv;
	char	name[RINGCAP_NAME_MAX + 1];
	char	reason[128];		/* for people, NUL-terminated; empty when error is 0 */
};

/* ------------------------------------------------------------------ generic netlink */

#define RINGCAP_GENL_NAME	"ringcap"
#define RINGCAP_GENL_VERSION	1
#define RINGCAP_GENL_MCGRP	"events"

/*
 * All commands but the GETs need CAP_NET_ADMIN in the user namespace that owns the network namespace; CLUSTER_SET needs
 * it in the initial user namespace, since device nodes are common to all and queues take memory. Errors come with an
 * extended acknowledgement that names the attribute and the reason. SETs are create-or-replace: with an object of that
 * name there, they make it as described in one step, or fail and change nothing. What is left out has its default. A
 * cluster's shape is QUEUES, LANES and LANE_SIZE: with another shape it gets new queues, whose accounts begin at 0.
 */
enum ringcap_cmd {
	RINGCAP_CMD_UNSPEC,
	RINGCAP_CMD_INFO_GET,		/* -> RINGCAP_A_ABI, _ABI_MIN, _VERSION */
	RINGCAP_CMD_CLUSTER_SET,	/* the clusters' attributes; EBUSY when its shape changes under a consumer */
	RINGCAP_CMD_CLUSTER_DEL,	/* NAME; EBUSY while a ring feeds it or a consumer is attached */
	RINGCAP_CMD_CLUSTER_GET,	/* NAME, or a dump: the clusters' attributes, one cluster a message */
	RINGCAP_CMD_RING_SET,		/* the rings' attributes; its clusters must exist */
	RINGCAP_CMD_RING_DEL,		/* NAME */
	RINGCAP_CMD_RING_GET,		/* NAME, or a dump, with counters */
	RINGCAP_CMD_QUEUE_GET,		/* a dump of NAME's queues, or of all clusters', with counters */
	RINGCAP_CMD_QUEUE_RESET,	/* NAME, QUEUE: empties and zeroes it; EBUSY while a consumer is attached */
	RINGCAP_CMD_EVENT,		/* multicast: RINGCAP_A_EVENT and what it is about */
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
	RINGCAP_A_LANES,		/* u32: lanes a queue; 0 = one for each possible CPU, at most 4 */
	RINGCAP_A_LANE_SIZE,		/* u32: bytes of a lane, power of two, 1 MiB by default */
	RINGCAP_A_BALANCE,		/* u32: enum ringcap_balance */
	RINGCAP_A_KEY,			/* binary, RINGCAP_KEY_LEN; by default stays as it is, random at first */
	RINGCAP_A_WATERMARK,		/* u32: bytes, at most half of LANE_SIZE; 0 = a quarter of it */
	RINGCAP_A_TIMEOUT_US,		/* u32: 0 = wakes for each packet .. 1000000; 10000 by default */
	RINGCAP_A_MODE,			/* u32: the device nodes' permission bits, 0600 by default; never changes */

	/* rings */
	RINGCAP_A_TAP,			/* nest, repeated: TAP_IFINDEX, TAP_DIRECTION */
	RINGCAP_A_TAP_IFINDEX,		/* u32 */
	RINGCAP_A_TAP_DIRECTION,	/* u32: enum ringcap_direction, receive by default */
	RINGCAP_A_OUTPUT,		/* string, repeated: a cluster's name */
	RINGCAP_A_SNAPLEN,		/* u32: 1 .. RINGCAP_SNAPLEN_MAX, which is the default */
	RINGCAP_A_FILTER,		/* binary: struct sock_filter[]; absent = everything passes, returned 0 = does not */
	RINGCAP_A_PROMISC,		/* u32: 1 = the tapped devices receive what is not addressed to them */

	/* counters */
	RINGCAP_A_SEEN,			/* u64 */
	RINGCAP_A_SEEN_BYTES,		/* u64 */
	RINGCAP_A_FILTERED,		/* u64 */
	RINGCAP_A_SAMPLED_OUT,		/* u64 */
	RINGCAP_A_PASSED,		/* u64 */
	RINGCAP_A_QUEUE,		/* u32: a queue's number */
	RINGCAP_A_ATTACHED,		/* u32: 1 = a consumer is attached */
	RINGCAP_A_ATTACHED_PID,		/* u32: its process, in the reader's pid namespace; 0 = not visible */
	RINGCAP_A_DELIVERED,		/* u64 */
	RINGCAP_A_DELIVERED_BYTES,	/* u64 */
	RINGCAP_A_DROPPED,		/* binary: __u64[RINGCAP_DROP_REASONS], by enum ringcap_drop */
	RINGCAP_A_UNREAD_BYTES,		/* u64: published and not released, over all lanes */
	RINGCAP_A_MEMORY,		/* u64: bytes that the object's memory takes */
	RINGCAP_A_DEV,			/* string: the queue's device node, e.g. "ringcap/mirror/0" */
	RINGCAP_A_DEVT,			/* u32: its major << 20 | minor */

	/* events */
	RINGCAP_A_EVENT,		/* u32: enum ringcap_event */
	__RINGCAP_A_MAX
};
#define RINGCAP_A_MAX (__RINGCAP_A_MAX - 1)

/* How a cluster chooses a packet's queue. Hashes are symmetric: both directions of a flow go to one queue. */
enum ringcap_balance {
	RINGCAP_BALANCE_FLOW,		/* addresses, ports, protocol, VLAN */
	RINGCAP_BALANCE_FIVE_TUPLE,	/* addresses, ports, protocol */
	RINGCAP_BALANCE_FOUR_TUPLE,	/* addresses, ports */
	RINGCAP_BALANCE_TWO_TUPLE,	/* addresses */
	RINGCAP_BALANCE_ROUND_ROBIN,	/* each to the next queue */
	__RINGCAP_BALANCE_MAX
};

enum ringcap_direction {
	RINGCAP_DIRECTION_RX = 1,
	RINGCAP_DIRECTION_TX = 2,
	RINGCAP_DIRECTION_BOTH = 3,
};

enum ringcap_event {
	RINGCAP_EVENT_ATTACHED = 1,	/* NAME, QUEUE, ATTACHED_PID (in the initial pid namespace) */
	RINGCAP_EVENT_DETACHED,		/* NAME, QUEUE */
	RINGCAP_EVENT_TAP_GONE,		/* NAME of the ring, TAP_IFINDEX: the device was unregistered or left the namespace */
};

#endif /* _UAPI_LINUX_RINGCAP_H */
