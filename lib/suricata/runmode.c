// SPDX-License-Identifier: GPL-2.0-only
/*
 * Suricata's run modes for queues. All queues are opened before the first thread starts. So a Suricata that cannot have
 * one of them ends with the reason, and leaves the packets of the others where they are.
 */
#include "capture.h"

#include "runmodes.h"
#include "suricata.h"
#include "tm-modules.h"
#include "util-affinity.h"

#include "device.h"

#define INLINE_TIMEOUT_US 1000	/* sleeping over unread packets; the least that libringcap has */

static struct input *inputs;

/* Without verdicts the packets of a queue in line would stop, and verdicts on others change nothing. */
static void check_mode(struct reader *reader)
{
	const struct ringcap_queue *q = &reader->about;

	reader->in_line = ringcap_is_inline(reader->queue);
	if (reader->in_line && !EngineModeIsIPS())
		FatalError("ringcap: %s@%u is in line: its packets wait for verdicts, which Suricata gives in IPS "
			   "mode: set 'inline: yes' for it in the section ringcap", q->name, q->queue);
	if (!reader->in_line && EngineModeIsIPS())
		FatalError("ringcap: %s@%u is not in line, so packets cannot be held up or changed: IPS mode needs a "
			   "ring with spec.inline", q->name, q->queue);
	if (reader->in_line)
		ringcap_set_timeout(reader->queue, INLINE_TIMEOUT_US);
}

static struct reader *open_reader(const struct input *input, unsigned int thread, unsigned int threads)
{
	char reason[RINGCAP_ERRBUF_SIZE];
	struct reader *reader = SCCalloc(1, sizeof(*reader));
	const char *wrong;

	if (!reader)
		FatalError("ringcap: out of memory");
	reader->queue = ringcap_open(device_queue(input->name), 0, reason);
	if (!reader->queue)
		FatalError("ringcap: thread %u of %u: %s", thread + 1, threads, reason);
	ringcap_queue(reader->queue, &reader->about);
	check_mode(reader);
	ringcap_stats(reader->queue, &reader->start);
	wrong = input->filter ? filter_set(reader, input->filter) : NULL;
	if (wrong)
		FatalError("ringcap: %s: filter '%s': %s", input->name, input->filter, wrong);
	reader->name = input->name;
	reader->checksums = input->checksums;
	bypass_init(reader, input);
	reader->device = LiveGetDevice(input->name);
	if (!reader->device)
		FatalError("ringcap: %s: Suricata has no device of this name", input->name);
	return reader;
}

static void append(ThreadVars *tv, const char *module, const void *data)
{
	TmModule *found = TmModuleGetByName(module);

	if (!found)
		FatalError("ringcap: Suricata has no module %s", module);
	TmSlotSetFuncAppend(tv, found, data);
}

static void start_worker(struct reader *reader, const char *kind, unsigned int number)
{
	const char *name = reader->name;
	char label[TM_THREAD_NAME_MAX], full[TM_THREAD_NAME_MAX + RINGCAP_NAME_MAX];
	ThreadVars *tv;

	snprintf(label, sizeof(label), "%s#%02u-%s", kind, number, LiveGetShortName(name));
	snprintf(full, sizeof(full), "%s#%02u-%s", kind, number, name);
	tv = TmThreadCreatePacketHandler(label, "packetpool", "packetpool", "packetpool", "packetpool", "pktacqloop");
	if (!tv)
		FatalError("ringcap: Suricata makes no thread %s", label);
	if (!fit_thread(tv, label))
		FatalError("ringcap: this plugin does not fit this Suricata (see above)");
	tv->printable_name = SCStrdup(full);
	compat_set_interface(tv, name);
	append(tv, "ReceiveRingcap", reader);
	append(tv, "DecodeRingcap", NULL);
	append(tv, "FlowWorker", NULL);
	/* In line, answers leave by the ring's pair (reject.c), not by a raw socket. */
	if (!reader->in_line)
		append(tv, "RespondReject", NULL);
	TmThreadSetCPU(tv, WORKER_CPU_SET);
	if (TmThreadSpawn(tv) != TM_ECODE_OK)
		FatalError("ringcap: thread %s does not start", label);
}

static unsigned int threads_of(const struct input *input)
{
	const char *queue = device_queue(input->name);
	int given;

	if (strchr(queue, '@')) {
		if (input->threads > 1)
			FatalError("ringcap: %s is one queue: threads: %u", input->name, input->threads);
		return 1;
	}
	given = device_given(queue);
	return input->threads ? input->threads : given > 0 ? (unsigned int)given : 1;
}

/* Opens an input's queues into the list, which has room. Returns how many. */
static unsigned int open_input(const struct input *input, unsigned int threads, struct reader **readers)
{
	SCLogInfo("ringcap: %s: %u thread%s", input->name, threads, threads > 1 ? "s" : "");
	for (unsigned int i = 0; i < threads; i++)
		readers[i] = open_reader(input, i, threads);
	return threads;
}

/* Ends the program if something keeps it from reading. */
static void check_program(void)
{
	if (!fit_packet())
		FatalError("ringcap: this plugin does not fit this Suricata (see above)");
}

static int run_workers(void)
{
	struct reader **readers;
	unsigned int total = 0, opened = 0;

	check_program();
	for (struct input *input = inputs; input; input = input->next)
		total += threads_of(input);
	readers = SCCalloc(total, sizeof(*readers));
	if (!readers)
		FatalError("ringcap: out of memory");
	for (struct input *input = inputs; input; input = input->next)
		opened += open_input(input, threads_of(input), readers + opened);
	for (unsigned int i = 0; i < opened; i++)
		start_worker(readers[i], thread_name_workers, i + 1);
	SCFree(readers);
	return 0;
}

static int run_single(void)
{
	struct reader *reader;

	check_program();
	if (inputs->next)
		FatalError("ringcap: run mode single reads one queue, but there are several names: use workers");
	if (inputs->threads > 1)
		FatalError("ringcap: %s: run mode single has one thread, not %u: use workers", inputs->name,
			   inputs->threads);
	open_input(inputs, 1, &reader);
	start_worker(reader, thread_name_single, 1);
	return 0;
}

/* It passes packets on to other threads. */
static int refuse_autofp(void)
{
	FatalError("ringcap: run mode autofp does not work: packets would be used after the queue has them back. Use "
		   "workers");
	return -1;
}

/* Suricata asks before it reads the rules, as whether they can drop depends on it. */
static COMPAT_IPS enable_ips(void)
{
	for (struct input *input = inputs; input; input = input->next)
		if (input->in_line != inputs->in_line)
			FatalError("ringcap: %s is in line, and %s is not: Suricata is in IPS mode for all or none",
				   input->in_line ? input->name : inputs->name,
				   input->in_line ? inputs->name : input->name);
	if (inputs->in_line)
		EngineModeSetIPS();
	return COMPAT_IPS_IS(inputs->in_line);
}

void runmode_register(int plugin_slot, struct input *list)
{
	inputs = list;
	RunModeRegisterNewRunMode(plugin_slot, "workers", "A thread for each queue does all of a packet's work",
				  run_workers, enable_ips);
	RunModeRegisterNewRunMode(plugin_slot, "single", "One thread reads one queue", run_single, enable_ips);
	RunModeRegisterNewRunMode(plugin_slot, "autofp", "Refused: use workers", refuse_autofp, NULL);
}
