// SPDX-License-Identifier: GPL-2.0-only
/*
 * The first of a worker's modules: reads its queue. Suricata inspects packets in the queue's memory. Before the worker
 * takes the next packet, it has done all of a packet's work, and Suricata has copied what it keeps (segments,
 * fragments). So the packets of a run are given back together, when the next run is read. In line it inspects copies.
 */
#include "capture.h"

#include "packet.h"
#include "suricata.h"
#include "tm-modules.h"
#include "tmqh-packetpool.h"

#define WAIT_MS		100	/* the longest sleep: flows may have ended, counters may be asked for */
#define NSEC_PER_SEC	1000000000ULL

static TmEcode init_thread(ThreadVars *tv, const void *initdata, void **data)
{
	struct reader *reader = (struct reader *)(uintptr_t)initdata;

	reader->tv = tv;
	stats_register(reader);
	*data = reader;
	return TM_ECODE_OK;
}

static TmEcode deinit_thread(ThreadVars *tv, void *data)
{
	struct reader *reader = data;

	(void)tv;
	ringcap_close(reader->queue);
	pcap_freecode(&reader->filter);
	SCFree(reader);
	return TM_ECODE_OK;
}

static void print_stats(ThreadVars *tv, void *data)
{
	struct reader *reader = data;

	SCLogPerf("(%s) ringcap: %s@%u (%s): read %" PRIu64 ", filtered %" PRIu64, tv->name, reader->about.name,
		  reader->about.queue, reader->about.engine, reader->read, reader->filtered);
	if (reader->in_line)
		inline_print(reader);
}

/* Called by the main thread. */
static TmEcode wake(ThreadVars *tv, void *data)
{
	struct reader *reader = data;

	(void)tv;
	ringcap_wakeup(reader->queue);
	return TM_ECODE_OK;
}

static TmEcode out_of_memory(const struct reader *reader)
{
	SCLogError("ringcap: %s@%u: out of memory", reader->about.name, reader->about.queue);
	return TM_ECODE_FAILED;
}

static bool take(struct reader *reader, Packet *p, const struct ringcap_slot *slot)
{
	if (reader->in_line)
		return inline_take(reader, p, slot);
	PacketSetData(p, ringcap_data(slot), slot->caplen);
	return true;
}

static TmEcode process(struct reader *reader, const struct ringcap_slot *slot)
{
	struct timeval time = { .tv_sec = (time_t)(slot->ts_ns / NSEC_PER_SEC),
				.tv_usec = (suseconds_t)(slot->ts_ns % NSEC_PER_SEC / 1000) };
	Packet *p;

	PacketPoolWait();
	p = PacketGetFromQueueOrAlloc();
	if (!p)
		return out_of_memory(reader);
	PKT_SET_SRC(p, PKT_SRC_WIRE);
	p->ts = SCTIME_FROM_TIMEVAL(&time);
	p->datalink = LINKTYPE_ETHERNET;
	p->livedev = reader->device;
	if (!reader->checksums || slot->flags & (RINGCAP_SLOT_CSUM_PARTIAL | RINGCAP_SLOT_MERGED))
		p->flags |= PKT_IGNORE_CHECKSUM;
	if (!take(reader, p, slot)) {
		PacketFreeOrRelease(p);
		return out_of_memory(reader);
	}
	bypass_offer(reader, p);
	return TmThreadsSlotProcessPkt(reader->tv, reader->rest, p);
}

/* What Suricata does not get to before it ends stays in the queue. */
static TmEcode process_run(struct reader *reader, struct ringcap_run *run)
{
	const struct ringcap_slot *slot;
	TmEcode code = TM_ECODE_OK;

	while (code == TM_ECODE_OK && !suricata_ctl_flags && (slot = ringcap_next(run)) != NULL) {
		if (filter_passes(reader, slot)) {
			reader->read++;
			code = process(reader, slot);
		} else {
			reader->filtered++;
			if (reader->in_line)
				inline_pass(reader, slot);
		}
	}
	return code;
}

/* Suricata writes what it knows of flows, and ends: a sensor without its packets must not look healthy. */
static TmEcode end(const struct reader *reader, int err)
{
	SCLogError("ringcap: %s@%u: %s; Suricata ends", reader->about.name, reader->about.queue,
		   err == -ENODEV ? "the queue was deleted, or taken back from this consumer" :
		   err == -EBADMSG ? "the queue's memory is corrupt" : strerror(-err));
	EngineStop();
	return TM_ECODE_DONE;
}

static void tell_each_second(struct reader *reader)
{
	time_t now = time(NULL);

	if (now != reader->told) {
		shunts_read_ended(&reader->shunts, reader->queue, true);
		stats_tell(reader);
	}
	reader->told = now;
	StatsSyncCountersIfSignalled(reader->tv);
}

static TmEcode receive(struct reader *reader, struct ringcap_run *run)
{
	TmEcode code = TM_ECODE_OK;

	while (code == TM_ECODE_OK && !suricata_ctl_flags) {
		int n;

		if (reader->in_line)
			inline_flush(reader);
		n = ringcap_read(reader->queue, run, WAIT_MS);
		if (n > 0)
			code = process_run(reader, run);
		else if (!n)
			TmThreadsCaptureHandleTimeout(reader->tv, NULL);
		else if (n != -EINTR)
			code = end(reader, n);
		tell_each_second(reader);
	}
	return code;
}

static TmEcode loop(ThreadVars *tv, void *data, void *slot)
{
	struct reader *reader = data;
	struct ringcap_run run = { 0 };
	TmEcode code;

	reader->rest = ((TmSlot *)slot)->slot_next;
	bypass_enter(reader);
	TmThreadsSetFlag(tv, THV_RUNNING);
	code = receive(reader, &run);
	if (reader->in_line)
		inline_flush(reader);
	ringcap_done(reader->queue, &run);
	stats_tell(reader);
	return code;
}

void receive_register(int slot)
{
	tmm_modules[slot] = (TmModule){
		.name = "ReceiveRingcap",
		.Init = replace_enable,
		.ThreadInit = init_thread,
		.ThreadDeinit = deinit_thread,
		.PktAcqLoop = loop,
		.PktAcqBreakLoop = wake,
		.ThreadExitPrintStats = print_stats,
		.flags = TM_FLAG_RECEIVE_TM,
	};
}
