/* SPDX-License-Identifier: GPL-2.0-only */
/* Suricata's capture plugin "ringcap": what its files have in common. */
#ifndef CAPTURE_H
#define CAPTURE_H

#include <pcap/pcap.h>
#include <ringcap/ringcap.h>

#include "compat.h"
#include "shunts.h"
#include "verdicts.h"

#define CAPTURE_NAME	"ringcap"

/* A ring or cluster, or one queue of it, as the configuration names it. */
struct input {
	const char *name;	/* also the name of Suricata's device */
	const char *filter;	/* a BPF expression; NULL = everything passes */
	unsigned int threads;	/* one for each queue; 0 = as many as this container was given queues */
	bool checksums;		/* check them, but not those that are not final */
	bool in_line;		/* its packets wait for verdicts */
	bool bypass;		/* shunt flows that Suricata bypasses */
	uint32_t bypass_idle_s;	/* seconds without a packet after which they come again */
	struct input *next;
};

/* A queue and its worker thread. The main thread opens it. Then only the worker uses it, but any thread may wake it. */
struct reader {
	struct ringcap *queue;
	struct ringcap_queue about;
	struct bpf_program filter;	/* no instructions = everything passes */
	uint64_t metadata;		/* last given to the filter, see metadata.h */
	const char *name;		/* the input's */
	bool checksums;
	LiveDevice *device;
	ThreadVars *tv;
	TmSlot *rest;			/* of the worker's modules: what follows receiving */
	uint64_t read, filtered;	/* packets */
	struct ringcap_stats start;	/* the queue's counters when it was opened */
	uint64_t told_read, told_drops;	/* what Suricata's device was told */
	time_t told;			/* when Suricata was told the counters, in seconds */
	bool in_line;
	struct verdicts verdicts;	/* in line: on their way to the kernel */
	uint64_t passed, blocked, replaced, injected, not_injected;	/* in line: packets, by what became of them */
	uint64_t cut;			/* in line: of those blocked, not replaced because the ring has cut them */
	struct shunts shunts;
	uint16_t counters[9];		/* Suricata's numbers of them, see stats.c */
};

/* config.c: reads the inputs. Ends the program if they make no sense. args: --capture-plugin-args, or NULL. */
struct input *config_read(const char *args);

/* fit.c: tell if this plugin was built for the running program, else log why not. */
bool fit_program(void);
bool fit_packet(void);
bool fit_thread(const ThreadVars *tv, const char *name);

/* runmode.c */
void runmode_register(int plugin_slot, struct input *inputs);

/* receive.c, decode.c */
void receive_register(int slot);
void decode_register(int slot);

/* inline.c: takes a packet that waits in the kernel. Suricata's release gives the verdict. False: no memory. */
bool inline_take(struct reader *reader, Packet *p, const struct ringcap_slot *slot);
void inline_pass(struct reader *reader, const struct ringcap_slot *slot);
/* Gives the verdicts so far, so that no packet waits for a verdict while the worker waits for a packet. */
void inline_flush(struct reader *reader);
/* Logs what became of the worker's packets. */
void inline_print(const struct reader *reader);

/* reject.c: answers a packet for a rule that says so, and counts what was injected. position: the packet's. */
void reject_answer(struct reader *reader, const Packet *p, uint64_t position);

/* replace.c: lets rules replace content, if Suricata is in IPS mode. */
TmEcode replace_enable(void);

/* bypass.c: of a new reader; in its worker, before the first packet; of each packet. */
void bypass_init(struct reader *reader, const struct input *input);
void bypass_enter(struct reader *reader);
void bypass_offer(const struct reader *reader, Packet *p);

/* filter.c: sets the reader's filter. Returns NULL, or why not; the text is valid until the next call. */
const char *filter_set(struct reader *reader, const char *expression);
bool filter_passes(struct reader *reader, const struct ringcap_slot *slot);

/* stats.c */
void stats_register(struct reader *reader);
void stats_tell(struct reader *reader);

#endif
