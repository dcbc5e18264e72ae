// SPDX-License-Identifier: BSD-2-Clause
/*
 * libpcap's capture source "ringcap". Stock programs read ringcap queues by the device names ringcap:NAME,
 * ringcap:NAME@Q, rc-NAME and rc-NAME@Q. This file is added to libpcap's source and uses its internal interfaces.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>
#include <limits.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <ringcap/ringcap.h>

#include "device.h"
#include "metadata.h"
#include "pcap-int.h"
#include "pcap-ringcap.h"

/* Internal names changed in libpcap 1.10.5. The build defines which names exist. */
#ifdef RINGCAP_PCAPINT
#define add_dev				pcapint_add_dev
#define install_bpf_program		pcapint_install_bpf_program
#define pcap_breakloop_common		pcapint_breakloop_common
#define pcap_cleanup_live_common	pcapint_cleanup_live_common
#define pcap_filter			pcapint_filter
#define pcap_filter_with_aux_data	pcapint_filter_with_aux_data
#endif

#define BATCH		64	/* packets after which control returns to the program */
#define ALIAS_ENV	"RINGCAP_PCAP_ALIAS"
#define COPY_ENV	"RINGCAP_PCAP_COPY"
#define NSEC_PER_SEC	1000000000ULL

/* Our private data in the pcap_t. */
struct pcap_ringcap {
	struct ringcap *queue;
	int nonblock;		/* private: the descriptor itself never blocks */
	struct ringcap_run run;	/* may go on in the next read, which also releases what the program may still use */
	int failed;		/* -errno that the next read reports */
	uint64_t received;	/* before the filter */
	struct ringcap_stats start;
	u_char *untagged;	/* ad hoc: buffer for a packet without its VLAN tag, for the filter; else NULL */
	uint64_t filtered_from;	/* number of the first received packet that the kernel has filtered */
	u_char *copy;		/* buffer with a copy of each packet, for programs that write into it; else NULL */
	int odd;		/* there is a direction, filter or copy: one check, as most programs have none */
	uint64_t metadata;	/* last given to the filter, see metadata.h */
	time_t second;		/* of the last packet */
	uint64_t second_ns;	/* the same in nanoseconds */
	char name[RINGCAP_NAME_MAX + 8];
};

/* ---------------------------------------------------------------- names */

int ringcap_is_name(const char *device)
{
	const char *name = device_after_prefix(device);

	if (!name)
		return 0;
	/* Any interface may have a name that starts with rc-. */
	return device[2] != '-' || device_given(name) || !if_nametoindex(device);
}

/*
 * Looks device up in RINGCAP_PCAP_ALIAS ("eth0=mirror,eth1=mirror@1"), for programs that accept only the name of an
 * existing interface. Writes the queue's name. Returns 0 if there is no such entry.
 */
static int from_alias(const char *device, char *name, size_t size)
{
	const char *entry = secure_getenv(ALIAS_ENV);
	size_t len = strlen(device);

	while (entry && *entry) {
		size_t n = strcspn(entry, ",");

		if (n > len + 1 && n - len - 1 < size && !strncmp(entry, device, len) && entry[len] == '=') {
			memcpy(name, entry + len + 1, n - len - 1);
			name[n - len - 1] = '\0';
			return 1;
		}
		entry += n + (entry[n] == ',');
	}
	return 0;
}

/*
 * For a device "N", finds the queue that is the Nth of "tcpdump -D". tcpdump searches that list only if no device "N"
 * exists. Without privileges, the kernel does not tell whether it exists. Returns 0 if the Nth is not our queue.
 */
static int from_list(const char *device, char *name, size_t size)
{
	unsigned long n = strtoul(device, NULL, 10);
	char errbuf[PCAP_ERRBUF_SIZE];
	const char *found = NULL;
	pcap_if_t *list, *entry;

	if (!n || strspn(device, "0123456789") != strlen(device) || if_nametoindex(device) || pcap_findalldevs(&list, errbuf))
		return 0;
	for (entry = list; entry && --n; entry = entry->next)
		;
	if (entry && (found = device_after_prefix(entry->name)))
		snprintf(name, size, "%s", found);
	pcap_freealldevs(list);
	return found != NULL;
}

/* ---------------------------------------------------------------- reading */

/* tcpdump sets the filter of an empty expression, which is one instruction. */
static int accepts_all(const struct bpf_program *filter)
{
	return filter->bf_len == 1 && filter->bf_insns->code == (BPF_RET | BPF_K) && filter->bf_insns->k;
}

static void note_odd(pcap_t *p)
{
	struct pcap_ringcap *rc = p->priv;

	rc->odd = p->direction != PCAP_D_INOUT || rc->copy || (p->fcode.bf_insns && !accepts_all(&p->fcode));
}

/* Outside the loop, which is shorter without them: most programs use neither. */
static __attribute__((noinline)) int right_direction(const pcap_t *p, const struct ringcap_slot *slot)
{
	return (p->direction == PCAP_D_OUT) == !!(slot->flags & RINGCAP_SLOT_OUTGOING);
}

/* Filters a packet as the kernel sees it: without the VLAN tag in its data. */
static int passes_untagged(const pcap_t *p, const struct ringcap_slot *slot)
{
	enum { MACS = 12, TAG = 4 };
	const struct pcap_ringcap *rc = p->priv;
	struct pcap_bpf_aux_data aux = { .vlan_tag_present = 1, .vlan_tag = slot->vlan_tci };
	const uint8_t *data = ringcap_data(slot);

	if (!(slot->flags & RINGCAP_SLOT_VLAN) || slot->caplen < MACS + TAG) {
		aux.vlan_tag_present = 0;
		return pcap_filter_with_aux_data(p->fcode.bf_insns, data, slot->len, slot->caplen, &aux) != 0;
	}
	memcpy(rc->untagged, data, MACS);
	memcpy(rc->untagged + MACS, data + MACS + TAG, slot->caplen - MACS - TAG);
	return pcap_filter_with_aux_data(p->fcode.bf_insns, rc->untagged, slot->len - TAG, slot->caplen - TAG, &aux) != 0;
}

static __attribute__((noinline)) int filter_passes(const pcap_t *p, const struct ringcap_slot *slot)
{
	struct pcap_ringcap *rc = p->priv;

	metadata_tell(&p->fcode, &rc->metadata, slot);
	if (rc->untagged)
		return passes_untagged(p, slot);
	return pcap_filter(p->fcode.bf_insns, ringcap_data(slot), slot->len, slot->caplen) != 0;
}

static int wanted(const pcap_t *p, const struct ringcap_slot *slot)
{
	return (p->direction == PCAP_D_INOUT || right_direction(p, slot)) && (!p->fcode.bf_insns || filter_passes(p, slot));
}

static void deliver(pcap_t *p, struct pcap_ringcap *rc, const struct ringcap_slot *slot, int odd, pcap_handler callback, u_char *user)
{
	const u_char *data = ringcap_data(slot);
	uint64_t ns = slot->ts_ns - rc->second_ns;
	struct pcap_pkthdr header;

	header.caplen = slot->caplen;
	if (__builtin_expect(header.caplen > (bpf_u_int32)p->snapshot, 0))
		header.caplen = (bpf_u_int32)p->snapshot;
	if (__builtin_expect(ns >= NSEC_PER_SEC, 0)) {
		ns = slot->ts_ns % NSEC_PER_SEC;
		rc->second_ns = slot->ts_ns - ns;
		rc->second = (time_t)(slot->ts_ns / NSEC_PER_SEC);
	}
	if (p->opt.tstamp_precision != PCAP_TSTAMP_PRECISION_NANO)
		ns = (uint32_t)ns / 1000;
	header.ts.tv_sec = rc->second;
	header.ts.tv_usec = (suseconds_t)ns;
	header.len = slot->len;
	if (odd && rc->copy)
		data = memcpy(rc->copy, data, header.caplen);
	callback(user, &header, data);
}

/* Hands on the packets of the run, at most count, until the program breaks the loop. */
static int drain(pcap_t *p, struct pcap_ringcap *rc, int count, pcap_handler callback, u_char *user)
{
	struct ringcap_run run = rc->run;	/* a local copy stays in registers */
	const struct ringcap_slot *slot;
	uint64_t rejected = 0;
	int passed = 0;

	while (passed < count && !p->break_loop && (slot = ringcap_next(&run))) {
		int odd = rc->odd;

		if (__builtin_expect(odd, 0) && !wanted(p, slot)) {
			rejected++;
			continue;
		}
		passed++;
		deliver(p, rc, slot, odd, callback, user);
	}
	rc->run = run;
	rc->received += (uint64_t)passed + rejected;
	return passed;
}

static int has_more(const struct ringcap_run *run)
{
	struct ringcap_run ahead = *run;

	return ringcap_next(&ahead) != NULL;
}

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/*
 * Returns how many milliseconds may still be waited: 0 = none, -1 = no limit. The first call sets *start, which is 0. So
 * a program that takes packets one by one reads no clock while they are there.
 */
static int time_left(pcap_t *p, int64_t *start)
{
	struct pcap_ringcap *rc = p->priv;
	int64_t left, now;

	if (rc->nonblock)
		return 0;
	if (p->opt.timeout <= 0)
		return -1;
	now = now_ms();
	if (!*start)
		*start = now;
	left = *start + p->opt.timeout - now;
	return left > 0 ? (int)left : 0;
}

static int receive_failed(pcap_t *p, int err)
{
	struct pcap_ringcap *rc = p->priv;

	if (err == -ENODEV)
		snprintf(p->errbuf, sizeof(p->errbuf), "%s: the queue was deleted, or taken back from this consumer", rc->name);
	else if (err == -EBADMSG)
		snprintf(p->errbuf, sizeof(p->errbuf), "%s: the queue's memory is corrupt", rc->name);
	else
		snprintf(p->errbuf, sizeof(p->errbuf), "%s: receiving: %s", rc->name, strerror(-err));
	return PCAP_ERROR;
}

/*
 * Hands on up to count packets, run by run. Stops after BATCH packets, or when it would have to wait for more.
 * Sets *err to the error that ended it, 0 = none.
 */
static int read_runs(pcap_t *p, int count, pcap_handler callback, u_char *user, int *err)
{
	struct pcap_ringcap *rc = p->priv;
	int64_t start = 0;
	int passed = 0;

	*err = 0;
	for (;;) {
		passed += drain(p, rc, count - passed, callback, user);
		if (passed >= count || passed >= BATCH || p->break_loop)
			return passed;
		*err = ringcap_read(rc->queue, &rc->run, passed ? 0 : time_left(p, &start));
		if (*err <= 0)
			return passed;
	}
}

/* Packets from now on have passed the filter in the kernel. */
static void forget_filter(pcap_t *p)
{
	struct pcap_ringcap *rc = p->priv;

	pcap_freecode(&p->fcode);
	note_odd(p);
	rc->filtered_from = UINT64_MAX;
}

static int ringcap_pcap_read(pcap_t *p, int count, pcap_handler callback, u_char *user)
{
	struct pcap_ringcap *rc = p->priv;
	int n, err = rc->failed;

	rc->failed = 0;
	if (err)
		return receive_failed(p, err);
	if (rc->received >= rc->filtered_from)
		forget_filter(p);
	do {
		if (p->break_loop) {
			p->break_loop = 0;
			return PCAP_ERROR_BREAK;
		}
		n = read_runs(p, PACKET_COUNT_IS_UNLIMITED(count) ? INT_MAX : count, callback, user, &err);
	} while (!n && (p->break_loop || err == -EINTR));
	/*
	 * A run that has more packets goes on in the next call: some programs take packets one by one. pcap_next and
	 * pcap_next_ex return a pointer that is valid until the next call.
	 */
	if (n && callback != p->oneshot_callback && !has_more(&rc->run))
		ringcap_done(rc->queue, &rc->run);
	if (err < 0 && err != -EINTR) {
		if (!n)
			return receive_failed(p, err);
		rc->failed = err;	/* reported after the packets that were handed on */
	}
	return n;
}

/* ---------------------------------------------------------------- the other methods */

static void ringcap_breakloop(pcap_t *p)
{
	struct pcap_ringcap *rc = p->priv;

	pcap_breakloop_common(p);
	if (rc->queue)
		ringcap_wakeup(rc->queue);	/* wakes the reader, in any thread */
}

static int ringcap_getnonblock(pcap_t *p)
{
	struct pcap_ringcap *rc = p->priv;

	return rc->nonblock;
}

static int ringcap_setnonblock(pcap_t *p, int nonblock)
{
	struct pcap_ringcap *rc = p->priv;

	rc->nonblock = nonblock != 0;
	return 0;
}

static int ringcap_setfilter(pcap_t *p, struct bpf_program *program)
{
	struct pcap_ringcap *rc = p->priv;

	if (install_bpf_program(p, program) < 0)
		return -1;
	metadata_mark(&p->fcode, &rc->metadata);
	note_odd(p);
	return 0;
}

/*
 * The kernel filters, but we filter the packets that were already in the queue. If the kernel does not accept the
 * program, we filter all packets.
 */
static int adhoc_setfilter(pcap_t *p, struct bpf_program *program)
{
	struct pcap_ringcap *rc = p->priv;
	uint64_t before;

	if (ringcap_setfilter(p, program) < 0)
		return -1;
	rc->filtered_from = UINT64_MAX;
	if (!ringcap_set_filter(rc->queue, program->bf_insns, program->bf_len, &before))
		rc->filtered_from = before;
	return 0;
}

static int ringcap_setdirection(pcap_t *p, pcap_direction_t direction)
{
	p->direction = direction;
	note_odd(p);
	return 0;
}

/* Returns 0 or -errno. -ENXIO: the packet was taken but not sent. */
static int send_now(struct ringcap *queue, const void *data, size_t size)
{
	struct ringcap_inject_stats before, now;
	int err;

	ringcap_inject_stats(queue, &before);
	err = ringcap_inject(queue, 0, data, size);
	if (err)
		return err;
	err = ringcap_inject_flush(queue);
	if (err < 0)
		return err;
	ringcap_inject_stats(queue, &now);
	return now.failed != before.failed ? -ENXIO : 0;
}

static int ringcap_pcap_inject(pcap_t *p, const void *data, int size)
{
	struct pcap_ringcap *rc = p->priv;
	char reason[RINGCAP_ERRBUF_SIZE];
	int err = ringcap_may_inject(rc->queue, reason);

	if (err) {
		snprintf(p->errbuf, sizeof(p->errbuf), "%s", reason);
		return PCAP_ERROR;
	}
	/* pcap_inject has no argument for the interface. We use the only interface that the queue may send from. */
	err = send_now(rc->queue, data, (size_t)size);
	if (!err)
		return size;
	snprintf(p->errbuf, sizeof(p->errbuf), "%s: sending: %s", rc->name, err == -ENXIO ?
		 "refused: the queue may send out of none or several interfaces, or it is down, gone or full, or takes no packet of this length" :
		 strerror(-err));
	return PCAP_ERROR;
}

/* Counts since the handle was opened. By libpcap's interface, the counters have 32 bits and wrap, like its others. */
static int ringcap_pcap_stats(pcap_t *p, struct pcap_stat *stat)
{
	struct pcap_ringcap *rc = p->priv;
	struct ringcap_stats now;
	uint64_t arrived, lost = 0;
	int err = ringcap_stats(rc->queue, &now);

	if (err) {
		snprintf(p->errbuf, sizeof(p->errbuf), "%s: reading the counters: %s", rc->name, strerror(-err));
		return PCAP_ERROR;
	}
	for (int i = 0; i < RINGCAP_DROP_REASONS; i++)
		if (i != RINGCAP_DROP_UNATTENDED)
			lost += now.dropped[i] - rc->start.dropped[i];
	arrived = now.delivered - rc->start.delivered;
	/*
	 * More packets were read than arrived if an earlier consumer had left some. Lost packets are in both counters,
	 * as in libpcap on Linux: programs take ps_recv - ps_drop for the packets that they got.
	 */
	stat->ps_recv = (u_int)((arrived > rc->received ? arrived : rc->received) + lost);
	stat->ps_drop = (u_int)lost;
	stat->ps_ifdrop = (u_int)(now.dropped[RINGCAP_DROP_UNATTENDED] - rc->start.dropped[RINGCAP_DROP_UNATTENDED]);
	return 0;
}

static void free_buffers(struct pcap_ringcap *rc)
{
	free(rc->untagged);
	free(rc->copy);
	rc->untagged = rc->copy = NULL;
}

static void ringcap_cleanup(pcap_t *p)
{
	struct pcap_ringcap *rc = p->priv;
	struct ringcap *queue = rc->queue;

	/* First, because a signal handler may break the loop of a handle that is being closed, as tcpdump's does. */
	rc->queue = NULL;
	atomic_signal_fence(memory_order_seq_cst);
	ringcap_done(queue, &rc->run);
	ringcap_close(queue);
	free_buffers(rc);
	p->fd = -1;	/* it was the queue's and is closed */
	p->selectable_fd = -1;
	pcap_cleanup_live_common(p);
}

/* ---------------------------------------------------------------- opening */

static int open_failed(pcap_t *p, int err, const char *reason)
{
	struct pcap_ringcap *rc = p->priv;

	snprintf(p->errbuf, sizeof(p->errbuf), "%s", reason);
	free_buffers(rc);
	pcap_cleanup_live_common(p);
	switch (err) {
	case ENODEV:
	case ENOENT:
		return PCAP_ERROR_NO_SUCH_DEVICE;
	case EACCES:
	case EPERM:
		return PCAP_ERROR_PERM_DENIED;
	}
	return PCAP_ERROR;
}

/* Filter programs for the kernel read a removed VLAN tag from the kernel's metadata, not from the packet. */
static struct ringcap *open_adhoc(pcap_t *p, char *reason)
{
	struct pcap_ringcap *rc = p->priv;
	struct ringcap_capture how = {
		.direction = RINGCAP_DIRECTION_BOTH,
		.snaplen = p->snapshot > 0 && p->snapshot < RINGCAP_SNAPLEN_MAX ? (uint32_t)p->snapshot : 0,
		.flags = RINGCAP_CAPTURE_INJECT | (p->opt.promisc ? RINGCAP_CAPTURE_PROMISC : 0) |
			 (p->opt.immediate ? RINGCAP_CAPTURE_IMMEDIATE : 0),
		.buffer_size = p->opt.buffer_size > 0 ? (uint32_t)p->opt.buffer_size : 0,
		.timeout_us = p->opt.timeout > 0 && p->opt.timeout < 1000 ? (uint32_t)p->opt.timeout * 1000 : 1000000,
	};

	rc->untagged = malloc(RINGCAP_SNAPLEN_MAX);
	if (!rc->untagged) {
		snprintf(reason, RINGCAP_ERRBUF_SIZE, "out of memory");
		errno = ENOMEM;
		return NULL;
	}
	p->bpf_codegen_flags |= BPF_SPECIAL_VLAN_HANDLING;
	return ringcap_open_interface(rc->name, &how, reason);
}

/*
 * The program's name. The kernel's is of this thread, and programs can change it; argv[0] some overwrite, to show in ps
 * what they do.
 */
static int is_called(const char *name)
{
	char comm[16] = "";

	return !strcmp(program_invocation_short_name, name) || (!prctl(PR_GET_NAME, comm) && !strcmp(comm, name));
}

/*
 * Returns true if this program writes into packets. A queue's memory is read-only, so the write would kill the program.
 * arpwatch swaps the bytes of ARP packets in place. pmacctd, which overwrites argv[0], moves headers.
 */
static int writes_into_packets(void)
{
	const char *asked = secure_getenv(COPY_ENV);

	return asked && *asked ? strcmp(asked, "0") != 0 : is_called("arpwatch") || is_called("pmacctd");
}

/*
 * The program's timeout is also how long it sleeps over packets that are there, as in libpcap on Linux: two per cent
 * less, because dumpcap waits for the descriptor that long by itself. The queue's time starts with the first packet, a
 * little after the program's. So it would wake too early, and a moment later again. Without a timeout, and in immediate
 * mode, the ring decides.
 */
static void sleep_as_asked(pcap_t *p)
{
	enum { US_OF_A_MS = 980, MOST_MS = RINGCAP_OWN_TIMEOUT_US_MAX / US_OF_A_MS };
	struct pcap_ringcap *rc = p->priv;
	uint32_t us;

	if (p->opt.timeout <= 0 || p->opt.immediate)
		return;
	us = p->opt.timeout > MOST_MS ? RINGCAP_OWN_TIMEOUT_US_MAX : (uint32_t)p->opt.timeout * US_OF_A_MS;
	ringcap_set_timeout(rc->queue, us < RINGCAP_OWN_TIMEOUT_US_MIN ? RINGCAP_OWN_TIMEOUT_US_MIN : us);
}

static int ringcap_activate(pcap_t *p)
{
	struct pcap_ringcap *rc = p->priv;
	char reason[RINGCAP_ERRBUF_SIZE];

	if (p->opt.rfmon) {
		pcap_cleanup_live_common(p);
		return PCAP_ERROR_RFMON_NOTSUP;
	}
	rc->filtered_from = UINT64_MAX;
	if (!device_given(rc->name) && if_nametoindex(rc->name))
		rc->queue = open_adhoc(p, reason);
	else
		rc->queue = ringcap_open(rc->name, 0, reason);
	if (!rc->queue)
		return open_failed(p, errno, reason);
	if (ringcap_is_inline(rc->queue)) {
		ringcap_close(rc->queue);
		return open_failed(p, ENOTSUP, "the queue is in line: its packets wait for verdicts, which programs on libpcap do not give");
	}
	if (writes_into_packets() && !(rc->copy = malloc(RINGCAP_SNAPLEN_MAX))) {
		ringcap_close(rc->queue);
		return open_failed(p, ENOMEM, "out of memory");
	}
	note_odd(p);
	sleep_as_asked(p);
	ringcap_stats(rc->queue, &rc->start);
	if (p->snapshot <= 0 || p->snapshot > MAXIMUM_SNAPLEN)
		p->snapshot = MAXIMUM_SNAPLEN;
	p->linktype = DLT_EN10MB;
	p->fd = ringcap_fd(rc->queue);	/* some programs poll this one */
	p->selectable_fd = p->fd;	/* most this one */
	p->read_op = ringcap_pcap_read;
	p->inject_op = ringcap_pcap_inject;
	p->setfilter_op = rc->untagged ? adhoc_setfilter : ringcap_setfilter;
	p->setdirection_op = ringcap_setdirection;
	p->set_datalink_op = NULL;
	p->getnonblock_op = ringcap_getnonblock;
	p->setnonblock_op = ringcap_setnonblock;
	p->stats_op = ringcap_pcap_stats;
	p->breakloop_op = ringcap_breakloop;
	p->cleanup_op = ringcap_cleanup;
	return 0;
}

/* Offers both time stamp precisions. pcap_close frees the list. */
static int offer_precisions(pcap_t *p)
{
	p->tstamp_precision_list = malloc(2 * sizeof(u_int));
	if (!p->tstamp_precision_list)
		return -1;
	p->tstamp_precision_list[0] = PCAP_TSTAMP_PRECISION_MICRO;
	p->tstamp_precision_list[1] = PCAP_TSTAMP_PRECISION_NANO;
	p->tstamp_precision_count = 2;
	return 0;
}

pcap_t *ringcap_create(const char *device, char *errbuf, int *is_ours)
{
	char name[sizeof(((struct pcap_ringcap *)0)->name)] = "";
	struct pcap_ringcap *rc;
	pcap_t *p;

	*is_ours = from_alias(device, name, sizeof(name)) || from_list(device, name, sizeof(name)) || ringcap_is_name(device);
	if (!*is_ours)
		return NULL;
	p = PCAP_CREATE_COMMON(errbuf, struct pcap_ringcap);
	if (!p)
		return NULL;
	rc = p->priv;
	snprintf(rc->name, sizeof(rc->name), "%s", name[0] ? name : device_after_prefix(device));
	p->activate_op = ringcap_activate;
	if (offer_precisions(p)) {
		snprintf(errbuf, PCAP_ERRBUF_SIZE, "out of memory");
		pcap_close(p);
		return NULL;
	}
	return p;
}

static int can_be_captured(int fd, const char *interface)
{
	struct ifreq request = { 0 };

	memcpy(request.ifr_name, interface, strnlen(interface, sizeof(request.ifr_name) - 1));
	return !ioctl(fd, SIOCGIFHWADDR, &request) &&
	       (request.ifr_hwaddr.sa_family == ARPHRD_ETHER || request.ifr_hwaddr.sa_family == ARPHRD_LOOPBACK);
}

/* Adds the interfaces that can be captured ad hoc, if the process has the rights for that. */
static int find_interfaces(pcap_if_list_t *list, char *errbuf)
{
	struct if_nameindex *interfaces = ringcap_may_capture(NULL) ? NULL : if_nameindex();
	int fd = interfaces ? socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0) : -1, err = 0;
	char name[IF_NAMESIZE + 16], text[IF_NAMESIZE + 64];

	for (struct if_nameindex *i = interfaces; fd >= 0 && i && i->if_index && !err; i++) {
		if (!can_be_captured(fd, i->if_name))
			continue;
		snprintf(name, sizeof(name), "ringcap:%s", i->if_name);
		snprintf(text, sizeof(text), "ringcap: interface %s, ad hoc", i->if_name);
		if (!add_dev(list, name, PCAP_IF_UP | PCAP_IF_RUNNING | PCAP_IF_CONNECTION_STATUS_UNKNOWN, text, errbuf))
			err = -1;
	}
	if (fd >= 0)
		close(fd);
	if (interfaces)
		if_freenameindex(interfaces);
	return err;
}

int ringcap_findalldevs(pcap_if_list_t *list, char *errbuf)
{
	struct ringcap_device *devices;
	char name[RINGCAP_NAME_MAX + 16], text[RINGCAP_NAME_MAX + 64];
	int n = ringcap_list(NULL, 0), listed, err = find_interfaces(list, errbuf);

	if (err || n <= 0)
		return err;
	devices = calloc((size_t)n, sizeof(*devices));
	if (!devices) {
		snprintf(errbuf, PCAP_ERRBUF_SIZE, "out of memory");
		return -1;
	}
	listed = ringcap_list(devices, (size_t)n);
	for (int i = 0; i < n && i < listed && !err; i++) {
		snprintf(name, sizeof(name), "rc-%s@%u", devices[i].name, devices[i].queue);
		snprintf(text, sizeof(text), "ringcap: queue %u of %s", devices[i].queue, devices[i].name);
		if (!add_dev(list, name, PCAP_IF_UP | PCAP_IF_RUNNING | PCAP_IF_CONNECTION_STATUS_NOT_APPLICABLE, text,
			     errbuf))
			err = -1;
	}
	free(devices);
	return err;
}
