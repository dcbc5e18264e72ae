// SPDX-License-Identifier: GPL-2.0-only
/*
 * The section ringcap of suricata.yaml:
 *
 *     ringcap:
 *       - interface: ids         a ring or cluster, or one queue of it (ids@2)
 *         threads: auto          or a number
 *         bpf-filter: tcp        a filter on Suricata's command line replaces it
 *         checksum-checks: yes   or no
 *         inline: no             or yes: a ring in line, whose packets wait for Suricata's verdicts
 *         bypass: yes            or no: shunt flows that Suricata bypasses, where the ring or cluster allows it
 *         bypass-idle: 180       seconds without a packet after which they come again
 *
 * Without names on the command line and here, everything that this container was given is read.
 */
#include "capture.h"

#include "suricata.h"
#include "util-bpf.h"
#include "util-conf.h"

#include "device.h"
#include "number.h"

static unsigned int threads_of(const char *name, const char *value)
{
	double n;

	if (!strcmp(value, "auto"))
		return 0;
	if (!parse_number(value, RINGCAP_QUEUES_MAX, &n) || n < 1 || n != (unsigned int)n)
		FatalError("ringcap: %s: threads: %s: not a number from 1 to %d, and not auto", name, value,
			   RINGCAP_QUEUES_MAX);
	return (unsigned int)n;
}

static uint32_t seconds_of(const char *name, const char *value)
{
	double n;

	if (!parse_number(value, SHUNTS_IDLE_MAX_S, &n) || n < 1 || n != (uint32_t)n)
		FatalError("ringcap: %s: bypass-idle: %s: not a number of seconds from 1 to %d", name, value, SHUNTS_IDLE_MAX_S);
	return (uint32_t)n;
}

static bool truth_of(const char *name, const char *key, const char *value)
{
	if (!strcmp(value, "yes") || !strcmp(value, "true"))
		return true;
	if (strcmp(value, "no") && strcmp(value, "false"))
		FatalError("ringcap: %s: %s: %s: neither yes nor no", name, key, value);
	return false;
}

static void set(struct input *input, const SCConfNode *setting)
{
	const char *value = setting->val ? setting->val : "";

	if (!strcmp(setting->name, "threads"))
		input->threads = threads_of(input->name, value);
	else if (!strcmp(setting->name, "checksum-checks"))
		input->checksums = truth_of(input->name, setting->name, value);
	else if (!strcmp(setting->name, "inline"))
		input->in_line = truth_of(input->name, setting->name, value);
	else if (!strcmp(setting->name, "bypass"))
		input->bypass = truth_of(input->name, setting->name, value);
	else if (!strcmp(setting->name, "bypass-idle"))
		input->bypass_idle_s = seconds_of(input->name, value);
	else if (strcmp(setting->name, "interface") && strcmp(setting->name, "bpf-filter"))
		FatalError("ringcap: %s: unknown setting '%s': there are interface, threads, bpf-filter, "
			   "checksum-checks, inline, bypass and bypass-idle", input->name, setting->name);
}

static const char *interface_of(const SCConfNode *entry)
{
	const SCConfNode *setting;

	TAILQ_FOREACH(setting, &entry->head, next)
		if (!strcmp(setting->name, "interface") && setting->val && *setting->val)
			return setting->val;
	FatalError("ringcap: an entry of the section ringcap names no interface: a ring or cluster");
}

/* Returns the name's own entry, else the one for names without one, else NULL. */
static SCConfNode *entry_of(const char *name)
{
	SCConfNode *section = SCConfGetNode(CAPTURE_NAME), *entry;

	if (!section)
		return NULL;
	entry = ConfFindDeviceConfig(section, name);
	return entry ? entry : ConfFindDeviceConfig(section, "default");
}

static struct input *make(const char *name)
{
	SCConfNode *entry = entry_of(name), *setting;
	struct input *input = SCCalloc(1, sizeof(*input));

	if (!input || !(input->name = SCStrdup(name)))
		FatalError("ringcap: out of memory");
	input->checksums = true;
	input->bypass = true;
	input->bypass_idle_s = SHUNTS_IDLE_S;
	if (entry)
		TAILQ_FOREACH(setting, &entry->head, next)
			set(input, setting);
	ConfSetBPFFilter(entry, NULL, name, &input->filter);
	if (input->filter && !*input->filter)
		input->filter = NULL;
	return input;
}

/* Adds a name at the end of the list. */
static void add(struct input **inputs, const char *name)
{
	for (; *inputs; inputs = &(*inputs)->next)
		if (!strcmp((*inputs)->name, name))
			FatalError("ringcap: %s is named twice", name);
	*inputs = make(name);
}

static void add_named(struct input **inputs, const char *args)
{
	char *list = SCStrdup(args), *rest = list, *name;

	if (!list)
		FatalError("ringcap: out of memory");
	while ((name = strsep(&rest, ",")) != NULL) {
		if (!*name)
			FatalError("ringcap: --capture-plugin-args '%s': a name is missing: it is NAME or NAME,NAME",
				   args);
		add(inputs, name);
	}
	SCFree(list);
}

static void add_section(struct input **inputs)
{
	SCConfNode *section = SCConfGetNode(CAPTURE_NAME), *entry;

	if (!section)
		return;
	TAILQ_FOREACH(entry, &section->head, next)
		if (strcmp(interface_of(entry), "default"))
			add(inputs, interface_of(entry));
}

/* Queues of one name follow each other in the list. */
static void add_given(struct input **inputs)
{
	struct ringcap_device *devices;
	int n = ringcap_list(NULL, 0), got;

	if (n <= 0)
		return;
	devices = SCCalloc((size_t)n, sizeof(*devices));
	if (!devices)
		FatalError("ringcap: out of memory");
	got = ringcap_list(devices, (size_t)n);
	for (int i = 0; i < (got < n ? got : n); i++)
		if (!i || strcmp(devices[i].name, devices[i - 1].name))
			add(inputs, devices[i].name);
	SCFree(devices);
}

struct input *config_read(const char *args)
{
	struct input *inputs = NULL;

	if (args)
		add_named(&inputs, args);
	else
		add_section(&inputs);
	if (!inputs)
		add_given(&inputs);
	if (!inputs)
		FatalError("ringcap: nothing to read: this container was given no queue (a pod gets queues by a limit "
			   "such as ringcap.io/NAME), and neither --capture-plugin-args nor the section ringcap names "
			   "one");
	return inputs;
}
