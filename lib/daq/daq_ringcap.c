// SPDX-License-Identifier: GPL-2.0-only
/*
 * libdaq's module "ringcap". Snort 3 and other programs on libdaq 3 read queues with it, one queue per instance. In
 * passive mode verdicts are counted. In inline mode, on a queue of an in-line cluster, each packet waits in the kernel
 * for the verdict on its message. In both modes verdicts on flows shunt them (shunts.h). See daq-ringcap(7).
 *
 * Messages point into the queue's memory. Programs finalise them in any order. A queue takes packets back only in the
 * order in which it gave them. So for each packet that it has not given back, the instance notes whether it is done:
 *
 *       first                            next
 *         | done | done |      | done |   |
 *         '--- given back at --'
 *              the next receive
 *
 * So a message that the program keeps also keeps the later packets in the queue. But the program can still receive: it
 * may have as many messages as the pool has, and at most WINDOW packets lie in the queue.
 *
 * Programs change messages in place to replace a packet, and the queue's memory is read-only. So in inline mode each
 * message has a copy, unless the program does without (variable readonly).
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <daq_dlt.h>
#include <daq_module_api.h>
#include <pcap/pcap.h>
#include <ringcap/ringcap.h>

#include "device.h"
#include "metadata.h"
#include "number.h"
#include "shunts.h"
#include "verdicts.h"

#define MODULE_VERSION	3
#define POOL_DEFAULT	256U
#define WINDOW		65536U	/* the number of packets that libringcap lends; a power of two */
#define NSEC_PER_SEC	1000000000ULL
#define COPY_STRIDE	(65536U + 192)	/* from one copy to the next; not a power of two, or they share cache sets */
#define INLINE_TIMEOUT_US 1000U		/* sleeping over unread packets; the least that libringcap has */

struct message {
	DAQ_Msg_t msg;
	DAQ_PktHdr_t header;
	struct message *next_free;
	DAQ_PktDecodeData_t decoded;
	uint64_t position;	/* in line: by which a verdict names the packet */
	const uint8_t *captured;	/* in the queue, as the program cannot change it */
	uint32_t caplen;
	uint32_t packet;	/* its number, see window */
	bool lent;		/* the program has it */
};

/* Packets that were received and not given back. Packet numbers increase and wrap around. */
struct window {
	bool done[WINDOW];
	uint32_t first, next;
};

struct instance {
	DAQ_ModuleInstance_h modinst;
	struct ringcap *queue;		/* NULL once it was closed */
	pthread_mutex_t closing;	/* protects closing the queue, because other threads may interrupt meanwhile */
	struct ringcap_queue about;
	uint32_t snaplen;
	int timeout_ms;			/* -1 = no limit */
	bool report;
	bool in_line;
	bool readonly;			/* in line: no copies, and nothing is replaced */
	uint8_t *copies;		/* one for each message, or NULL */
	struct verdicts verdicts;
	struct shunts shunts;
	bool no_shunt;
	uint64_t cut;			/* in line: blocked instead of replaced, because the ring has cut them */
	struct bpf_program filter;	/* no instructions = everything passes */
	uint64_t metadata;		/* last given to the filter, see metadata.h */
	struct message *messages;
	struct message *free;
	DAQ_MsgPoolInfo_t pool;
	struct ringcap_pkt *packets;	/* as many as messages */
	struct window window;
	DAQ_Stats_t stats;		/* the instance's own counters */
	struct ringcap_stats start;	/* the queue's counters at the start or reset */
	struct ringcap_stats end;	/* the queue's counters when it was closed */
};

static DAQ_BaseAPI_t daq;

enum { REPORT, READONLY, NO_SHUNT, SHUNT_IDLE, VARIABLES };

static const DAQ_VariableDesc_t variables[VARIABLES] = {
	[REPORT] = { "report", "At the end, print the queue's account on standard error: what was lost, and why",
		     DAQ_VAR_DESC_FORBIDS_ARGUMENT },
	[READONLY] = { "readonly", "In line, do not copy packets, and do not replace any", DAQ_VAR_DESC_FORBIDS_ARGUMENT },
	[NO_SHUNT] = { "no_shunt", "Verdicts on flows are on their packets alone, and shunt nothing", DAQ_VAR_DESC_FORBIDS_ARGUMENT },
	[SHUNT_IDLE] = { "shunt_idle", "Seconds without a packet after which a shunted flow comes again, 1 to 1000000 (180)",
			 DAQ_VAR_DESC_REQUIRES_ARGUMENT },
};

/* ---------------------------------------------------------------- the command line */

static int load(const DAQ_BaseAPI_t *base)
{
	if (base->api_version != DAQ_BASE_API_VERSION || base->api_size != sizeof(DAQ_BaseAPI_t))
		return DAQ_ERROR;
	daq = *base;
	return DAQ_SUCCESS;
}

static int unload(void)
{
	memset(&daq, 0, sizeof(daq));
	return DAQ_SUCCESS;
}

static int get_variable_descs(const DAQ_VariableDesc_t **table)
{
	*table = variables;
	return sizeof(variables) / sizeof(*variables);
}

/* libdaq does not report the requested mode if the module's type does not have it. */
static int check_mode(struct instance *in, DAQ_ModuleConfig_h config)
{
	DAQ_Mode mode = daq.config_get_mode(config);

	in->in_line = mode == DAQ_MODE_INLINE;
	if (in->in_line || mode == DAQ_MODE_PASSIVE)
		return DAQ_SUCCESS;
	daq.set_errbuf(in->modinst, "ringcap: the modes are passive and inline; the module pcap reads files (read-file)");
	return DAQ_ERROR_NOTSUP;
}

/* A reader without verdicts would stop the packets of an in-line queue. */
static int check_queue(struct instance *in)
{
	const struct ringcap_queue *q = &in->about;

	if (ringcap_is_inline(in->queue) == in->in_line)
		return DAQ_SUCCESS;
	if (in->in_line)
		daq.set_errbuf(in->modinst, "ringcap: %s@%u is not in line: its packets have gone their way already. Read it in "
			       "passive mode, or name a ring with a pair of interfaces", q->name, q->queue);
	else
		daq.set_errbuf(in->modinst, "ringcap: %s@%u is in line: its packets wait for verdicts, which passive mode does not "
			       "give. Use inline mode (Snort: -Q)", q->name, q->queue);
	return DAQ_ERROR_NOTSUP;
}

static int number_of(const char *key)
{
	int i = 0;

	while (i < VARIABLES && strcmp(key, variables[i].name))
		i++;
	return i;
}

static int set_idle(struct instance *in, const char *value)
{
	double seconds;

	if (!value || !parse_number(value, SHUNTS_IDLE_MAX_S, &seconds) || seconds < 1 || seconds != (uint32_t)seconds) {
		daq.set_errbuf(in->modinst, "ringcap: variable shunt_idle=%s: it is a number of seconds from 1 to %d",
			       value ? value : "", SHUNTS_IDLE_MAX_S);
		return DAQ_ERROR_INVAL;
	}
	in->shunts.idle_s = (uint32_t)seconds;
	return DAQ_SUCCESS;
}

static int set_variable(struct instance *in, const char *key, const char *value)
{
	int number = number_of(key);

	if (number == VARIABLES) {
		daq.set_errbuf(in->modinst, "ringcap: unknown variable '%s': there are report, readonly, no_shunt and shunt_idle", key);
		return DAQ_ERROR_INVAL;
	}
	if (number == SHUNT_IDLE)
		return set_idle(in, value);
	if (value) {
		daq.set_errbuf(in->modinst, "ringcap: variable %s=%s: it takes no value", key, value);
		return DAQ_ERROR_INVAL;
	}
	in->report |= number == REPORT;
	in->readonly |= number == READONLY;
	in->no_shunt |= number == NO_SHUNT;
	return DAQ_SUCCESS;
}

static int read_variables(struct instance *in, DAQ_ModuleConfig_h config)
{
	const char *key = NULL, *value = NULL;

	for (daq.config_first_variable(config, &key, &value); key; daq.config_next_variable(config, &key, &value)) {
		int err = set_variable(in, key, value);

		if (err)
			return err;
	}
	if (in->no_shunt && in->shunts.idle_s) {
		daq.set_errbuf(in->modinst, "ringcap: variables no_shunt and shunt_idle: nothing is shunted, so nothing can be idle");
		return DAQ_ERROR_INVAL;
	}
	if (!in->no_shunt && !in->shunts.idle_s)
		in->shunts.idle_s = SHUNTS_IDLE_S;
	return DAQ_SUCCESS;
}

static void read_config(struct instance *in, DAQ_ModuleConfig_h config)
{
	int snaplen = daq.config_get_snaplen(config);
	unsigned timeout = daq.config_get_timeout(config);

	in->snaplen = snaplen > 0 && snaplen < RINGCAP_SNAPLEN_MAX ? (uint32_t)snaplen : RINGCAP_SNAPLEN_MAX;
	in->timeout_ms = !timeout ? -1 : timeout < INT_MAX ? (int)timeout : INT_MAX;
	in->pool.size = daq.config_get_msg_pool_size(config);
	if (!in->pool.size)
		in->pool.size = POOL_DEFAULT;
}

/* ---------------------------------------------------------------- making and ending */

static void close_queue(struct instance *in)
{
	pthread_mutex_lock(&in->closing);
	if (in->queue) {
		ringcap_stats(in->queue, &in->end);
		shunts_stats(&in->shunts, in->queue);
		ringcap_close(in->queue);
	}
	in->queue = NULL;
	pthread_mutex_unlock(&in->closing);
}

static void destroy(void *handle)
{
	struct instance *in = handle;

	close_queue(in);
	pthread_mutex_destroy(&in->closing);
	pcap_freecode(&in->filter);
	free(in->messages);
	free(in->copies);
	free(in->packets);
	free(in);
}

/* For packets that a virtual interface gave us before the checksum was computed, or whose segments were merged. */
static const DAQ_PktDecodeData_t checksum_not_final = {
	.flags.bits = { .l4 = 1, .l4_checksum = 1, .tcp = 1, .udp = 1 },
	.l2_offset = DAQ_PKT_DECODE_OFFSET_INVALID,
	.l3_offset = DAQ_PKT_DECODE_OFFSET_INVALID,
	.l4_offset = DAQ_PKT_DECODE_OFFSET_INVALID,
	.payload_offset = DAQ_PKT_DECODE_OFFSET_INVALID,
	.checksum_offset = DAQ_PKT_DECODE_OFFSET_INVALID,
};

static int make_pool(struct instance *in)
{
	in->messages = calloc(in->pool.size, sizeof(*in->messages));
	in->packets = calloc(in->pool.size, sizeof(*in->packets));
	if (in->in_line && !in->readonly)
		in->copies = malloc((size_t)in->pool.size * COPY_STRIDE);
	if (!in->messages || !in->packets || (in->in_line && !in->readonly && !in->copies)) {
		daq.set_errbuf(in->modinst, "ringcap: out of memory for %u messages", in->pool.size);
		return DAQ_ERROR_NOMEM;
	}
	for (uint32_t i = 0; i < in->pool.size; i++) {
		struct message *m = &in->messages[i];

		/* The kernel clears memory when it is first used. The first packets must not wait for that. */
		if (in->copies)
			in->copies[(size_t)i * COPY_STRIDE] = 0;
		m->msg = (DAQ_Msg_t){ .hdr = &m->header, .hdr_len = sizeof(m->header), .type = DAQ_MSG_TYPE_PACKET,
				      .owner = in->modinst, .priv = m };
		m->header = (DAQ_PktHdr_t){ .egress_index = DAQ_PKTHDR_UNKNOWN, .ingress_group = DAQ_PKTHDR_UNKNOWN,
					    .egress_group = DAQ_PKTHDR_UNKNOWN,
					    .flags = in->in_line ? 0 : DAQ_PKT_FLAG_NOT_FORWARDING };
		m->decoded = checksum_not_final;
		m->next_free = in->free;
		in->free = m;
	}
	in->pool.available = in->pool.size;
	in->pool.mem_size = in->pool.size * (sizeof(*in->messages) + sizeof(*in->packets) + (in->copies ? COPY_STRIDE : 0)) +
			    sizeof(in->window);
	return DAQ_SUCCESS;
}

static unsigned count_names(const char *list)
{
	unsigned n = 1;

	while ((list = strchr(list, ',')) != NULL) {
		list++;
		n++;
	}
	return n;
}

/* Returns the n-th name, from 0, of a list that has it. The caller frees it. NULL = out of memory. */
static char *copy_name(const char *list, unsigned n)
{
	while (n--)
		list = strchr(list, ',') + 1;
	return strndup(list, strcspn(list, ","));
}

/*
 * Sets the name of the instance's own queue or ring; the caller frees it. A list has a name for each instance. With one
 * name each instance takes a free queue, so instances with the same name each get their own.
 */
static int choose_input(struct instance *in, DAQ_ModuleConfig_h config, char **name)
{
	unsigned total = daq.config_get_total_instances(config), id = daq.config_get_instance_id(config), names;
	const char *input = daq.config_get_input(config);

	if (!input || !*input) {
		daq.set_errbuf(in->modinst, "ringcap: no input: name a ring or cluster (Snort: -i NAME)");
		return DAQ_ERROR_INVAL;
	}
	total = total ? total : 1;
	names = count_names(input);
	if (names > 1 && names != total) {
		daq.set_errbuf(in->modinst, "ringcap: inputs in %s: %u, instances: %u: name one for each (Snort: -z %u)",
			       input, names, total, names);
		return DAQ_ERROR_INVAL;
	}
	/* libdaq refuses a number above the total, so the list has a name for this instance. */
	*name = copy_name(input, names > 1 && id ? id - 1 : 0);
	return *name ? DAQ_SUCCESS : DAQ_ERROR_NOMEM;
}

static int refuse_input(struct instance *in, DAQ_ModuleConfig_h config, const char *reason)
{
	int err = errno == ENOENT || errno == ENODEV ? DAQ_ERROR_NODEV : DAQ_ERROR;
	unsigned total = daq.config_get_total_instances(config);

	if (total > 1)
		daq.set_errbuf(in->modinst, "ringcap: instance %u of %u: %s",
			       daq.config_get_instance_id(config), total, reason);
	else
		daq.set_errbuf(in->modinst, "ringcap: %s", reason);
	return err;
}

static void say_not_shunted(const struct shunts *s, const char *why)
{
	fprintf(stderr, "ringcap: %s@%u: not every flow with a verdict is shunted: %s. Such verdicts are on their packets alone\n",
		s->about->name, s->about->queue, why);
}

static int open_queue(struct instance *in, DAQ_ModuleConfig_h config)
{
	char reason[RINGCAP_ERRBUF_SIZE], *name = NULL;
	int err = choose_input(in, config, &name);

	if (err)
		return err;
	in->queue = ringcap_open(device_queue(name), 0, reason);
	if (!in->queue)
		err = refuse_input(in, config, reason);
	free(name);
	if (err)
		return err;
	ringcap_queue(in->queue, &in->about);
	in->shunts.about = &in->about;
	in->shunts.say = say_not_shunted;
	ringcap_stats(in->queue, &in->start);
	if (in->in_line)
		ringcap_set_timeout(in->queue, INLINE_TIMEOUT_US);
	return check_queue(in);
}

/*
 * Opens the queue too. So a program with more instances than queues reports that before it starts any instance.
 * Packets that arrive before the start stay in the queue.
 */
static int instantiate(const DAQ_ModuleConfig_h config, DAQ_ModuleInstance_h modinst, void **handle)
{
	struct instance *in = calloc(1, sizeof(*in));
	int err;

	if (!in) {
		daq.set_errbuf(modinst, "ringcap: out of memory");
		return DAQ_ERROR_NOMEM;
	}
	in->modinst = modinst;
	pthread_mutex_init(&in->closing, NULL);
	read_config(in, config);
	err = check_mode(in, config);
	if (!err)
		err = read_variables(in, config);
	if (!err)
		err = make_pool(in);
	if (!err)
		err = open_queue(in, config);
	if (err)
		destroy(in);
	else
		*handle = in;
	return err;
}

/* Wrapping modules, such as dump, call this function without checking whether it exists. */
static int start(void *handle)
{
	(void)handle;
	return DAQ_SUCCESS;
}

static int set_filter(void *handle, const char *expression)
{
	struct instance *in = handle;
	pcap_t *dead = pcap_open_dead(DLT_EN10MB, RINGCAP_SNAPLEN_MAX);
	struct bpf_program program = { 0 };
	int err = DAQ_SUCCESS;

	if (!dead || pcap_compile(dead, &program, expression, 1, PCAP_NETMASK_UNKNOWN)) {
		daq.set_errbuf(in->modinst, "ringcap: filter '%s': %s", expression, dead ? pcap_geterr(dead) : "out of memory");
		err = DAQ_ERROR_INVAL;
	} else {
		pcap_freecode(&in->filter);
		in->filter = program;
		metadata_mark(&in->filter, &in->metadata);
	}
	if (dead)
		pcap_close(dead);
	return err;
}

/* ---------------------------------------------------------------- receiving */

/* Gives back the packets before the first one that is not done. */
static void give_back(struct instance *in)
{
	struct window *w = &in->window;
	uint32_t first = w->first;

	while (w->first != w->next && w->done[w->first % WINDOW])
		w->first++;
	if (w->first != first)
		ringcap_release(in->queue, w->first - first);
}

/* Also the bytes after the program's snap length, which leave with the rest. */
static uint8_t *copy_packet(struct instance *in, const struct message *m, const struct ringcap_pkt *pkt)
{
	uint8_t *copy = in->copies + (size_t)(m - in->messages) * COPY_STRIDE;

	memcpy(copy, pkt->data, pkt->slot->caplen);
	return copy;
}

static const DAQ_Msg_t *lend(struct instance *in, const struct ringcap_pkt *pkt)
{
	const struct ringcap_slot *slot = pkt->slot;
	struct message *m = in->free;

	in->free = m->next_free;
	m->packet = in->window.next;
	m->lent = true;
	m->caplen = slot->caplen;
	m->captured = pkt->data;
	if (in->in_line)
		m->position = ringcap_position(in->queue, slot);
	/* Without a copy it is read-only, as the capabilities tell programs. */
	m->msg.data = in->copies ? copy_packet(in, m, pkt) : (uint8_t *)(uintptr_t)pkt->data;
	m->msg.meta[DAQ_PKT_META_DECODE_DATA] =
		slot->flags & (RINGCAP_SLOT_CSUM_PARTIAL | RINGCAP_SLOT_MERGED) ? &m->decoded : NULL;
	m->msg.data_len = slot->caplen < in->snaplen ? slot->caplen : in->snaplen;
	m->header.ts.tv_sec = (time_t)(slot->ts_ns / NSEC_PER_SEC);
	m->header.ts.tv_usec = (suseconds_t)(slot->ts_ns % NSEC_PER_SEC / 1000);
	m->header.pktlen = slot->len;
	m->header.ingress_index = (int32_t)slot->ifindex;
	return &m->msg;
}

static bool passes(struct instance *in, const struct ringcap_pkt *pkt)
{
	if (!in->filter.bf_insns)
		return true;
	metadata_tell(&in->filter, &in->metadata, pkt->slot);
	return bpf_filter(in->filter.bf_insns, pkt->data, pkt->slot->len, pkt->slot->caplen);
}

/* In line, the filter chooses what the program sees, and the rest goes on. */
static void reject(struct instance *in, const struct ringcap_pkt *pkt)
{
	struct ringcap_verdict pass = { .verdict = RINGCAP_VERDICT_PASS };

	if (!in->in_line)
		return;
	pass.position = ringcap_position(in->queue, pkt->slot);
	verdicts_add(&in->verdicts, in->queue, &pass);
}

/* Takes n received packets into the window. Returns how many became messages. */
static unsigned lend_all(struct instance *in, unsigned n, const DAQ_Msg_t *msgs[])
{
	unsigned lent = 0;

	for (unsigned i = 0; i < n; i++) {
		bool passed = passes(in, &in->packets[i]);

		in->window.done[in->window.next % WINDOW] = !passed;
		if (passed)
			msgs[lent++] = lend(in, &in->packets[i]);
		else
			reject(in, &in->packets[i]);
		in->window.next++;
	}
	in->pool.available -= lent;
	in->stats.packets_received += lent;
	in->stats.packets_filtered += n - lent;
	return lent;
}

static DAQ_RecvStatus failed(struct instance *in, int err)
{
	if (err == -EINTR)
		return DAQ_RSTAT_INTERRUPTED;
	daq.set_errbuf(in->modinst, "ringcap: %s@%u: %s", in->about.name, in->about.queue,
		       err == -ENODEV ? "the queue was deleted, or taken back from this consumer" :
		       err == -EBADMSG ? "the queue's memory is corrupt" : strerror(-err));
	return DAQ_RSTAT_ERROR;
}

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Receives until a packet passes the filter. *rstat tells if something else ended it. */
static unsigned receive(struct instance *in, unsigned max, const DAQ_Msg_t *msgs[], DAQ_RecvStatus *rstat)
{
	int64_t end = in->timeout_ms > 0 ? now_ms() + in->timeout_ms : 0;
	int left = in->timeout_ms;

	for (;;) {
		uint32_t room = WINDOW - (in->window.next - in->window.first);
		unsigned want = max < room ? max : room, lent;
		int n;

		*rstat = DAQ_RSTAT_NOBUF;
		/* No packet waits for a verdict while the program waits for a packet. */
		verdicts_give(&in->verdicts, in->queue);
		shunts_give(&in->shunts, in->queue);
		shunts_read_ended(&in->shunts, in->queue, false);
		if (!want)
			return 0;
		n = ringcap_recv(in->queue, in->packets, want, left);
		*rstat = n < 0 ? failed(in, n) : DAQ_RSTAT_TIMEOUT;
		if (n <= 0)
			return 0;
		lent = lend_all(in, (unsigned)n, msgs);
		*rstat = lent == max ? DAQ_RSTAT_OK : DAQ_RSTAT_WOULD_BLOCK;
		if (lent)
			return lent;
		give_back(in);
		if (in->timeout_ms > 0) {
			int64_t rest = end - now_ms();

			left = rest > 0 ? (int)rest : 0;
		}
		*rstat = DAQ_RSTAT_TIMEOUT;
		if (!left)
			return 0;
	}
}

static unsigned msg_receive(void *handle, const unsigned max, const DAQ_Msg_t *msgs[], DAQ_RecvStatus *rstat)
{
	struct instance *in = handle;

	*rstat = DAQ_RSTAT_INVALID;
	if (!in->queue)
		return 0;
	give_back(in);
	return receive(in, max < in->pool.available ? max : in->pool.available, msgs, rstat);
}

static bool is_lent(const struct instance *in, const DAQ_Msg_t *msg)
{
	const struct message *m = msg->priv;

	return m >= in->messages && m < in->messages + in->pool.size && &m->msg == msg && m->lent;
}

/*
 * On the packet itself. Its flow is shunted besides, if it can be; the program remembers its verdict for the packets
 * that come to it all the same.
 */
static const uint8_t kernel_verdict[MAX_DAQ_VERDICT] = {
	[DAQ_VERDICT_PASS] = RINGCAP_VERDICT_PASS,
	[DAQ_VERDICT_BLOCK] = RINGCAP_VERDICT_BLOCK,
	[DAQ_VERDICT_REPLACE] = RINGCAP_VERDICT_REPLACE,
	[DAQ_VERDICT_WHITELIST] = RINGCAP_VERDICT_PASS,
	[DAQ_VERDICT_BLACKLIST] = RINGCAP_VERDICT_BLOCK,
	[DAQ_VERDICT_IGNORE] = RINGCAP_VERDICT_PASS,
};

/* What the ring has cut off cannot leave with the bytes that replace the rest. */
static void replace(struct instance *in, const struct message *m, struct ringcap_verdict *verdict)
{
	if (!in->copies) {	/* so nothing has changed */
		verdict->verdict = RINGCAP_VERDICT_PASS;
	} else if (m->caplen < m->header.pktlen) {
		verdict->verdict = RINGCAP_VERDICT_BLOCK;
		in->cut++;
	} else {
		verdict->data = (uint64_t)(uintptr_t)m->msg.data;
		verdict->len = m->caplen;
	}
}

static void decide(struct instance *in, const struct message *m, DAQ_Verdict daq_verdict)
{
	struct ringcap_verdict verdict = { .position = m->position, .verdict = kernel_verdict[daq_verdict] };

	if (!in->in_line || !in->queue)
		return;
	if (verdict.verdict == RINGCAP_VERDICT_REPLACE)
		replace(in, m, &verdict);
	verdicts_add(&in->verdicts, in->queue, &verdict);
	if (in->pool.available == in->pool.size)
		verdicts_give(&in->verdicts, in->queue);
}

/* Not the program's bytes, but those by which the kernel knows the flow. Passive programs want no more of it. */
static void shunt(struct instance *in, const struct message *m, DAQ_Verdict verdict)
{
	bool on_flow = verdict == DAQ_VERDICT_WHITELIST || verdict == DAQ_VERDICT_BLACKLIST || verdict == DAQ_VERDICT_IGNORE;
	bool passes = in->in_line && verdict != DAQ_VERDICT_BLACKLIST;

	if (on_flow && in->queue)
		shunts_add(&in->shunts, in->queue, m->captured, m->caplen, passes ? RINGCAP_ACTION_PASS : RINGCAP_ACTION_DROP);
}

static int msg_finalize(void *handle, const DAQ_Msg_t *msg, DAQ_Verdict verdict)
{
	struct instance *in = handle;
	struct message *m;

	if (!is_lent(in, msg)) {
		daq.set_errbuf(in->modinst, "ringcap: this message was finalised before, or is another instance's");
		return DAQ_ERROR_INVAL;
	}
	m = msg->priv;
	if (verdict >= MAX_DAQ_VERDICT)
		verdict = DAQ_VERDICT_PASS;
	m->lent = false;
	m->next_free = in->free;
	in->free = m;
	in->pool.available++;
	in->window.done[m->packet % WINDOW] = true;
	in->stats.verdicts[verdict]++;
	decide(in, m, verdict);
	shunt(in, m, verdict);
	return DAQ_SUCCESS;
}

/* ---------------------------------------------------------------- packets of the program's own */

static int inject_by(struct instance *in, const struct message *m, uint8_t kind, const uint8_t *data, uint32_t len)
{
	struct ringcap_verdict packet = { .position = m->position, .verdict = kind, .data = (uint64_t)(uintptr_t)data, .len = len };
	int err = verdicts_inject(&in->verdicts, in->queue, &packet);

	if (!err) {
		in->stats.packets_injected++;
		return DAQ_SUCCESS;
	}
	daq.set_errbuf(in->modinst, "ringcap: a packet of %u bytes cannot be injected: %s", len, err == -ESRCH ?
		       "the one that it answers waits no longer, because it went past the program" :
		       err == -EINVAL ? "it has 14 to 65535 bytes, and the module may be too old" : strerror(-err));
	return err == -EINVAL ? DAQ_ERROR_INVAL : DAQ_ERROR;
}

static int check_inject(struct instance *in)
{
	if (in->in_line && in->queue)
		return DAQ_SUCCESS;
	daq.set_errbuf(in->modinst, "ringcap: nothing can be injected in passive mode");
	return DAQ_ERROR_NOTSUP;
}

static int inject_relative(void *handle, const DAQ_Msg_t *msg, const uint8_t *data, uint32_t len, int reverse)
{
	struct instance *in = handle;
	int err = check_inject(in);

	if (err)
		return err;
	if (!is_lent(in, msg)) {
		daq.set_errbuf(in->modinst, "ringcap: the message to inject for was finalised, or is another instance's");
		return DAQ_ERROR_INVAL;
	}
	return inject_by(in, msg->priv, reverse ? RINGCAP_VERDICT_INJECT_REVERSE : RINGCAP_VERDICT_INJECT_FORWARD, data, len);
}

/* Out of the interface ingress_index. The right to send there comes with a packet that has come in by it. */
static int inject(void *handle, DAQ_MsgType type, const void *hdr, const uint8_t *data, uint32_t len)
{
	struct instance *in = handle;
	const DAQ_PktHdr_t *header = hdr;
	int err = type == DAQ_MSG_TYPE_PACKET ? check_inject(in) : DAQ_ERROR_NOTSUP;

	for (uint32_t i = 0; !err && i < in->pool.size; i++) {
		const struct message *m = &in->messages[i];

		if (m->lent && m->header.ingress_index == header->ingress_index)
			return inject_by(in, m, RINGCAP_VERDICT_INJECT_REVERSE, data, len);
	}
	if (!err)
		daq.set_errbuf(in->modinst, "ringcap: the program has no message from interface %d, by which to send there",
			       header->ingress_index);
	return err ? err : DAQ_ERROR_AGAIN;
}

/* May be called from any thread, also when the instance has been stopped. */
static int interrupt(void *handle)
{
	struct instance *in = handle;

	pthread_mutex_lock(&in->closing);
	if (in->queue)
		ringcap_wakeup(in->queue);
	pthread_mutex_unlock(&in->closing);
	return DAQ_SUCCESS;
}

/* ---------------------------------------------------------------- what became of the packets */

static uint64_t lost(const struct ringcap_stats *from, const struct ringcap_stats *to)
{
	uint64_t n = 0;

	for (int i = 0; i < RINGCAP_DROP_REASONS; i++)
		n += to->dropped[i] - from->dropped[i];
	return n;
}

static void account(struct instance *in, struct ringcap_stats *now)
{
	if (in->queue)
		ringcap_stats(in->queue, now);
	else
		*now = in->end;
}

static int get_stats(void *handle, DAQ_Stats_t *stats)
{
	struct instance *in = handle;
	uint64_t arrived, read = in->stats.packets_received + in->stats.packets_filtered;
	struct ringcap_shunt_stats shunted = shunts_stats(&in->shunts, in->queue);
	struct ringcap_stats now;

	account(in, &now);
	arrived = now.delivered - in->start.delivered;
	*stats = in->stats;
	stats->packets_outstanding = in->pool.size - in->pool.available;
	stats->hw_packets_dropped = lost(&in->start, &now);
	/*
	 * More packets were read than arrived if an earlier consumer had left some, or if some arrived before the
	 * counters were read at the start. Lost packets are in both counters, as in other modules.
	 */
	stats->hw_packets_received = (arrived > read ? arrived : read) + stats->hw_packets_dropped + shunted.shunted;
	/* They were for the program, and it asked not to get them, as with its filter. */
	stats->packets_filtered += shunted.shunted;
	return DAQ_SUCCESS;
}

static void reset_stats(void *handle)
{
	struct instance *in = handle;

	memset(&in->stats, 0, sizeof(in->stats));
	account(in, &in->start);
	shunts_reset(&in->shunts, in->queue);
}

static void report_in_line(const struct instance *in)
{
	const uint64_t *v = in->stats.verdicts;

	fprintf(stderr, "ringcap: %s@%u in line: passed %" PRIu64 ", blocked %" PRIu64 ", replaced %" PRIu64 ", injected %" PRIu64
		"; verdicts %" PRIu64 ", too late %" PRIu64 "; blocked instead of replaced %" PRIu64 "\n", in->about.name,
		in->about.queue, v[DAQ_VERDICT_PASS] + v[DAQ_VERDICT_WHITELIST] + v[DAQ_VERDICT_IGNORE] + in->stats.packets_filtered,
		v[DAQ_VERDICT_BLOCK] + v[DAQ_VERDICT_BLACKLIST], v[DAQ_VERDICT_REPLACE], in->stats.packets_injected,
		in->verdicts.given, in->verdicts.missed, in->cut + in->verdicts.unreplaced);
}

/* libdaq has one number for lost packets. */
static void report(struct instance *in)
{
	const struct ringcap_stats *from = &in->start;
	struct ringcap_stats now;
	DAQ_Stats_t stats;

	account(in, &now);
	get_stats(in, &stats);
	fprintf(stderr, "ringcap: %s@%u (%s): of %" PRIu64 " packets received %" PRIu64 ", filtered %" PRIu64 "; lost: full %" PRIu64
		", unattended %" PRIu64 ", nomem %" PRIu64 "\n", in->about.name, in->about.queue, in->about.engine,
		stats.hw_packets_received, stats.packets_received, stats.packets_filtered,
		now.dropped[RINGCAP_DROP_FULL] - from->dropped[RINGCAP_DROP_FULL],
		now.dropped[RINGCAP_DROP_UNATTENDED] - from->dropped[RINGCAP_DROP_UNATTENDED],
		now.dropped[RINGCAP_DROP_NOMEM] - from->dropped[RINGCAP_DROP_NOMEM]);
	if (in->in_line)
		report_in_line(in);
	shunts_report(&in->shunts, in->queue, stderr);
}

/* While the program has messages, which point into the queue, the queue stays open until the instance is closed. */
static int stop(void *handle)
{
	struct instance *in = handle;

	if (in->queue) {
		verdicts_give(&in->verdicts, in->queue);
		shunts_give(&in->shunts, in->queue);
		shunts_read_ended(&in->shunts, in->queue, true);
	}
	give_back(in);
	if (in->report)
		report(in);
	if (in->pool.available == in->pool.size)
		close_queue(in);
	return DAQ_SUCCESS;
}

static int get_snaplen(void *handle)
{
	const struct instance *in = handle;

	return (int)in->snaplen;
}

/*
 * In passive mode the module cannot inject, and it refuses each attempt. But a Snort that has a rule with an answer
 * (reject) opens a raw socket if the module cannot inject, and exits if it may not open one.
 */
static uint32_t get_capabilities(void *handle)
{
	const struct instance *in = handle;

	return (in->in_line ? DAQ_CAPA_BLOCK : 0) | (in->copies ? DAQ_CAPA_REPLACE : 0) |
	       DAQ_CAPA_UNPRIV_START | DAQ_CAPA_INTERRUPT | DAQ_CAPA_BPF | DAQ_CAPA_DEVICE_INDEX | DAQ_CAPA_INJECT;
}

static int get_datalink_type(void *handle)
{
	(void)handle;
	return DLT_EN10MB;
}

static int get_msg_pool_info(void *handle, DAQ_MsgPoolInfo_t *info)
{
	const struct instance *in = handle;

	*info = in->pool;
	return DAQ_SUCCESS;
}

__attribute__((visibility("default"))) extern const DAQ_ModuleAPI_t DAQ_MODULE_DATA;

const DAQ_ModuleAPI_t DAQ_MODULE_DATA = {
	.api_version = DAQ_MODULE_API_VERSION,
	.api_size = sizeof(DAQ_ModuleAPI_t),
	.module_version = MODULE_VERSION,
	.name = "ringcap",
	.type = DAQ_TYPE_INTF_CAPABLE | DAQ_TYPE_INLINE_CAPABLE | DAQ_TYPE_MULTI_INSTANCE,
	.load = load,
	.unload = unload,
	.get_variable_descs = get_variable_descs,
	.instantiate = instantiate,
	.destroy = destroy,
	.set_filter = set_filter,
	.start = start,
	.inject = inject,
	.inject_relative = inject_relative,
	.interrupt = interrupt,
	.stop = stop,
	.get_stats = get_stats,
	.reset_stats = reset_stats,
	.get_snaplen = get_snaplen,
	.get_capabilities = get_capabilities,
	.get_datalink_type = get_datalink_type,
	.msg_receive = msg_receive,
	.msg_finalize = msg_finalize,
	.get_msg_pool_info = get_msg_pool_info,
};
