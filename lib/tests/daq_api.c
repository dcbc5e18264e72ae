// SPDX-License-Identifier: BSD-2-Clause
/*
 * Tests what programs do with libdaq's module, as uid 65534, on a queue of the stand-in for the agent. The module is
 * linked in, with ASan and UBSan. Needs root; 77 = skipped.
 */
#include "check.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include <daq.h>
#include <daq_dlt.h>
#include <daq_module_api.h>

#include "asked.h"

#define WINDOW 65536

extern const DAQ_ModuleAPI_t DAQ_MODULE_DATA;

/* Of an instance; what is 0 is not set. */
struct how {
	const char *input, *variable, *value, *flag;	/* flag: another variable, which has no value */
	DAQ_Mode mode;
	unsigned timeout, pool, total, id;
	int snaplen;
};

static int instantiate(const struct how *how, DAQ_Instance_h *instance, char *errbuf)
{
	DAQ_ModuleConfig_h module;
	DAQ_Config_h config;
	int err;

	CHECK_EQ(daq_config_new(&config), 0);
	CHECK_EQ(daq_module_config_new(&module, daq_find_module("ringcap")), 0);
	daq_module_config_set_mode(module, how->mode ? how->mode : DAQ_MODE_PASSIVE);	/* whose result programs ignore, too */
	if (how->variable)
		CHECK_EQ(daq_module_config_set_variable(module, how->variable, how->value), 0);
	if (how->flag)
		CHECK_EQ(daq_module_config_set_variable(module, how->flag, NULL), 0);
	CHECK_EQ(daq_config_push_module_config(config, module), 0);
	if (how->input)
		CHECK_EQ(daq_config_set_input(config, how->input), 0);
	CHECK_EQ(daq_config_set_snaplen(config, how->snaplen), 0);
	CHECK_EQ(daq_config_set_timeout(config, how->timeout), 0);
	CHECK_EQ(daq_config_set_msg_pool_size(config, how->pool), 0);
	if (how->total)
		CHECK_EQ(daq_config_set_total_instances(config, how->total), 0);
	if (how->id)
		CHECK_EQ(daq_config_set_instance_id(config, how->id), 0);
	*instance = NULL;
	err = daq_instance_instantiate(config, instance, errbuf, 256);
	daq_config_destroy(config);
	return err;
}

static DAQ_Instance_h open_with(const struct how *how)
{
	DAQ_Instance_h instance;
	char errbuf[256];

	if (instantiate(how, &instance, errbuf)) {
		fprintf(stderr, "%s\n", errbuf);
		exit(1);
	}
	CHECK_EQ(daq_instance_start(instance), 0);
	return instance;
}

static DAQ_Instance_h open_mirror(void)
{
	return open_with(&(struct how){ .input = "rc-mirror", .timeout = 50, .pool = 64 });
}

static void close_instance(DAQ_Instance_h instance)
{
	CHECK_EQ(daq_instance_stop(instance), 0);
	CHECK_EQ(daq_instance_destroy(instance), 0);
}

static void refuse(const struct how *how, int want, const char *text)
{
	DAQ_Instance_h instance;
	char errbuf[256] = "";

	CHECK_EQ(instantiate(how, &instance, errbuf), want);
	CHECK(!instance);
	if (!strstr(errbuf, text)) {
		fprintf(stderr, "no '%s' in: %s\n", text, errbuf);
		exit(1);
	}
}

static void test_refused(void)
{
	DAQ_Instance_h instance = open_mirror();

	refuse(&(struct how){ .input = "mirror", .mode = DAQ_MODE_INLINE }, DAQ_ERROR, "another consumer is attached");
	refuse(&(struct how){ .input = "mirror", .mode = DAQ_MODE_READ_FILE }, DAQ_ERROR_NOTSUP, "the modes are passive and inline");
	refuse(&(struct how){ .input = "mirror", .variable = "fanout_type", .value = "hash" }, DAQ_ERROR_INVAL,
	       "unknown variable 'fanout_type': there are report, readonly, no_shunt and shunt_idle");
	refuse(&(struct how){ .input = "mirror", .variable = "report", .value = "yes" }, DAQ_ERROR_INVAL, "it takes no value");
	refuse(&(struct how){ .input = "mirror", .variable = "no_shunt", .value = "1" }, DAQ_ERROR_INVAL, "it takes no value");
	refuse(&(struct how){ .input = "mirror", .variable = "shunt_idle", .value = "9", .flag = "no_shunt" }, DAQ_ERROR_INVAL,
	       "variables no_shunt and shunt_idle");
	refuse(&(struct how){ .input = NULL }, DAQ_ERROR_INVAL, "no input");
	refuse(&(struct how){ .input = "" }, DAQ_ERROR_INVAL, "no input");
	refuse(&(struct how){ .input = "rc-other" }, DAQ_ERROR_NODEV, "ringcap.io/other");
	refuse(&(struct how){ .input = "mirror@1" }, DAQ_ERROR_NODEV, "no queue mirror@1 here");
	refuse(&(struct how){ .input = "mirror@x" }, DAQ_ERROR, "what follows '@' is a queue's number");
	refuse(&(struct how){ .input = "NO" }, DAQ_ERROR, "a name is");
	refuse(&(struct how){ .input = "mirror", .total = 2, .id = 2 }, DAQ_ERROR, "instance 2 of 2: ");
	refuse(&(struct how){ .input = "mirror" }, DAQ_ERROR, "another consumer is attached");
	refuse(&(struct how){ .input = "mirror@0,mirror@1" }, DAQ_ERROR_INVAL,
	       "inputs in mirror@0,mirror@1: 2, instances: 1: name one for each (Snort: -z 2)");
	refuse(&(struct how){ .input = "mirror,mirror", .total = 3, .id = 1 }, DAQ_ERROR_INVAL,
	       "inputs in mirror,mirror: 2, instances: 3");
	refuse(&(struct how){ .input = "mirror,mirror", .total = 2, .id = 3 }, DAQ_ERROR_INVAL, "invalid instance ID");
	refuse(&(struct how){ .input = "mirror@0,", .total = 2, .id = 2 }, DAQ_ERROR, "instance 2 of 2: ");
	refuse(&(struct how){ .input = ",", .total = 2, .id = 1 }, DAQ_ERROR, "instance 1 of 2: ");
	close_instance(instance);
}

static void test_refused_idle(void)
{
	static const char *const values[] = { NULL, "", "0", "1000001", "-1", "2.5", "1s", "nan", "forever" };
	char text[64];

	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
		snprintf(text, sizeof(text), "shunt_idle=%s: it is a number of seconds from 1 to 1000000", values[i] ? values[i] : "");
		refuse(&(struct how){ .input = "mirror", .variable = "shunt_idle", .value = values[i] }, DAQ_ERROR_INVAL, text);
	}
	close_instance(open_with(&(struct how){ .input = "mirror", .variable = "shunt_idle", .value = "1" }));
	close_instance(open_with(&(struct how){ .input = "mirror", .variable = "shunt_idle", .value = "1000000" }));
	close_instance(open_with(&(struct how){ .input = "mirror", .flag = "no_shunt" }));
}

static void test_names(void)
{
	static const char *const names[] = { "mirror", "mirror@0", "rc-mirror", "rc-mirror@0", "ringcap:mirror", "ringcap:mirror@0" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		close_instance(open_with(&(struct how){ .input = names[i] }));
}

/* Each instance opens the name that is its own, and only that one. */
static void test_list(void)
{
	const struct how first = { .input = "rc-mirror@0,other,mirror@7", .total = 3, .id = 1 };
	struct how another = first;

	close_instance(open_with(&first));
	another.id = 2;
	refuse(&another, DAQ_ERROR_NODEV, "ringcap.io/other");
	another.id = 3;
	refuse(&another, DAQ_ERROR_NODEV, "no queue mirror@7 here");
	close_instance(open_with(&(struct how){ .input = "other,ringcap:mirror", .total = 2, .id = 2 }));
}

static void test_properties(void)
{
	DAQ_Instance_h instance = open_with(&(struct how){ .input = "mirror", .snaplen = 1518 });
	DAQ_MsgPoolInfo_t pool;

	CHECK_EQ(daq_instance_get_capabilities(instance), DAQ_CAPA_UNPRIV_START | DAQ_CAPA_INTERRUPT | DAQ_CAPA_BPF |
		 DAQ_CAPA_DEVICE_INDEX | DAQ_CAPA_INJECT);
	CHECK_EQ(daq_instance_get_datalink_type(instance), DLT_EN10MB);
	CHECK_EQ(daq_instance_get_snaplen(instance), 1518);
	CHECK_EQ(daq_instance_get_msg_pool_info(instance, &pool), 0);
	CHECK_EQ(pool.size, 256);
	CHECK_EQ(pool.available, 256);
	CHECK(pool.mem_size > 0);
	CHECK_EQ(daq_instance_inject(instance, DAQ_MSG_TYPE_PACKET, "", (const uint8_t *)"", 1), DAQ_ERROR_NOTSUP);
	close_instance(instance);
	instance = open_with(&(struct how){ .input = "mirror" });
	CHECK_EQ(daq_instance_get_snaplen(instance), 65535);
	close_instance(instance);
}

/* Whether the address is of a mapping of BPF's that nobody can write to. */
static bool in_queue(const void *address)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long from, to;
	char line[512], rights[8];
	bool found = false;

	CHECK(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%lx %7s", &from, &to, rights) == 3 && (uintptr_t)address >= from && (uintptr_t)address < to)
			found = !strncmp(rights, "r--s", 4) && strstr(line, "bpf-map");
	fclose(f);
	return found;
}

static void check_message(DAQ_Msg_h msg, unsigned int i)
{
	const DAQ_PktHdr_t *h = daq_msg_get_hdr(msg);

	CHECK_EQ(daq_msg_get_type(msg), DAQ_MSG_TYPE_PACKET);
	CHECK_EQ(daq_msg_get_hdr_len(msg), sizeof(*h));
	CHECK_EQ(daq_msg_get_data_len(msg), 60 + i % 40);
	CHECK_EQ(h->pktlen, 100 + i);
	CHECK_EQ(h->ts.tv_sec, 1);
	CHECK_EQ(h->ts.tv_usec, i);
	CHECK_EQ(h->ingress_index, 3 + i % 2);
	CHECK_EQ(h->egress_index, DAQ_PKTHDR_UNKNOWN);
	CHECK_EQ(h->flags, DAQ_PKT_FLAG_NOT_FORWARDING);
	for (uint32_t k = 0; k < daq_msg_get_data_len(msg); k++)
		CHECK_EQ(daq_msg_get_data(msg)[k], (uint8_t)i);
}

/* Receives exactly n messages. */
static void receive(DAQ_Instance_h instance, unsigned n, DAQ_Msg_h *msgs)
{
	DAQ_RecvStatus status;

	while (n) {
		unsigned got = daq_instance_msg_receive(instance, n, msgs, &status);

		CHECK_EQ(status, got == n ? DAQ_RSTAT_OK : DAQ_RSTAT_WOULD_BLOCK);
		n -= got;
		msgs += got;
	}
}

static void nothing_more(DAQ_Instance_h instance, DAQ_RecvStatus want)
{
	DAQ_RecvStatus status;
	DAQ_Msg_h msg;

	CHECK_EQ(daq_instance_msg_receive(instance, 1, &msg, &status), 0);
	CHECK_EQ(status, want);
}

static void finalize(DAQ_Instance_h instance, DAQ_Msg_h msg)
{
	CHECK_EQ(daq_instance_msg_finalize(instance, msg, DAQ_VERDICT_PASS), 0);
}

static DAQ_Stats_t stats_of(DAQ_Instance_h instance)
{
	DAQ_Stats_t stats;

	CHECK_EQ(daq_instance_get_stats(instance, &stats), 0);
	return stats;
}

static void test_receive(void)
{
	DAQ_Instance_h instance = open_mirror();
	DAQ_Stats_t stats;
	DAQ_Msg_h msg;

	nothing_more(instance, DAQ_RSTAT_TIMEOUT);
	asked_put(200);
	for (unsigned int i = 0; i < 200; i++) {
		receive(instance, 1, &msg);
		check_message(msg, i);
		CHECK(in_queue(daq_msg_get_data(msg)));
		CHECK_EQ(daq_instance_msg_finalize(instance, msg, i % 7), 0);	/* 6 is no verdict */
	}
	nothing_more(instance, DAQ_RSTAT_TIMEOUT);
	stats = stats_of(instance);
	CHECK_EQ(stats.hw_packets_received, 200);
	CHECK_EQ(stats.hw_packets_dropped, 0);
	CHECK_EQ(stats.packets_received, 200);
	CHECK_EQ(stats.packets_filtered, 0);
	CHECK_EQ(stats.packets_outstanding, 0);
	CHECK_EQ(stats.verdicts[DAQ_VERDICT_PASS], 29 + 28);
	CHECK_EQ(stats.verdicts[DAQ_VERDICT_BLOCK], 29);
	CHECK_EQ(stats.verdicts[DAQ_VERDICT_IGNORE], 28);
	daq_instance_reset_stats(instance);
	stats = stats_of(instance);
	CHECK_EQ(stats.hw_packets_received, 0);
	CHECK_EQ(stats.verdicts[DAQ_VERDICT_PASS], 0);
	close_instance(instance);
}

/* The stand-in for the agent does not shunt: verdicts on flows are on their packets alone. tests/daq reads what is printed. */
static void test_verdicts_on_flows(void)
{
	DAQ_Instance_h instance = open_with(&(struct how){ .input = "mirror", .timeout = 50, .variable = "report" });
	DAQ_Stats_t stats;
	DAQ_Msg_h msg;

	for (int i = 0; i < 6; i++) {	/* three have no flow */
		asked_put(i % 2 ? ASKED_UDP : 1);
		receive(instance, 1, &msg);
		CHECK_EQ(daq_instance_msg_finalize(instance, msg, DAQ_VERDICT_WHITELIST + i % 3), 0);
	}
	nothing_more(instance, DAQ_RSTAT_TIMEOUT);
	stats = stats_of(instance);
	CHECK_EQ(stats.verdicts[DAQ_VERDICT_WHITELIST], 2);
	CHECK_EQ(stats.verdicts[DAQ_VERDICT_BLACKLIST], 2);
	CHECK_EQ(stats.verdicts[DAQ_VERDICT_IGNORE], 2);
	CHECK_EQ(stats.hw_packets_received, 6);
	CHECK_EQ(stats.packets_filtered, 0);
	close_instance(instance);
}

static uint32_t available(DAQ_Instance_h instance)
{
	DAQ_MsgPoolInfo_t pool;

	CHECK_EQ(daq_instance_get_msg_pool_info(instance, &pool), 0);
	return pool.available;
}

/* All of the pool, finalised in an order of its own each time; what is still out stays as it was. */
static void test_any_order(void)
{
	DAQ_Instance_h instance = open_mirror();
	DAQ_Msg_h msgs[64];
	uint64_t seed = 3;

	for (unsigned int round = 0; round < 200; round++) {
		unsigned int left = 64;
		unsigned int number[64];

		asked_put(64);
		receive(instance, 64, msgs);
		CHECK_EQ(available(instance), 0);
		nothing_more(instance, DAQ_RSTAT_NOBUF);
		for (unsigned int i = 0; i < 64; i++)
			number[i] = i;
		while (left) {
			unsigned int i = (unsigned int)(noise(&seed) % left--);

			check_message(msgs[i], number[i]);
			finalize(instance, msgs[i]);
			msgs[i] = msgs[left];
			number[i] = number[left];
		}
		CHECK_EQ(available(instance), 64);
	}
	CHECK_EQ(stats_of(instance).packets_received, 200 * 64);
	close_instance(instance);
}

/* One message stays with the program: others go on, until the queue is full of them. */
static void test_late(void)
{
	DAQ_Instance_h instance = open_mirror();
	DAQ_Msg_h late, msg;
	DAQ_RecvStatus status;
	DAQ_Stats_t stats;
	uint64_t got = 1;

	asked_put(2);
	receive(instance, 1, &late);
	receive(instance, 1, &msg);
	finalize(instance, msg);
	asked_put(ASKED_FLOOD);
	while (daq_instance_msg_receive(instance, 1, &msg, &status)) {
		check_message(msg, (unsigned int)got - 1);
		finalize(instance, msg);
		got++;
	}
	CHECK_EQ(status, DAQ_RSTAT_TIMEOUT);
	CHECK(got > 1000);
	stats = stats_of(instance);
	CHECK_EQ(stats.packets_outstanding, 1);
	CHECK_EQ(stats.packets_received, got + 1);
	CHECK_EQ(stats.hw_packets_received, ASKED_FLOOD_PACKETS + 2);
	CHECK_EQ(stats.hw_packets_dropped, ASKED_FLOOD_PACKETS + 2 - stats.packets_received);
	check_message(late, 0);
	finalize(instance, late);
	nothing_more(instance, DAQ_RSTAT_TIMEOUT);
	asked_put(200);	/* for which there is room again */
	for (unsigned int i = 0; i < 200; i++) {
		receive(instance, 1, &msg);
		check_message(msg, i);
		finalize(instance, msg);
	}
	close_instance(instance);
}

/* With a queue that holds them: as many packets as the window has come after one that stays. */
static void test_window(void)
{
	DAQ_Instance_h instance = open_mirror();
	DAQ_Msg_h late, msg;

	for (unsigned int i = 0; i <= WINDOW / ASKED_FLOOD_PACKETS; i++)
		asked_put(ASKED_FLOOD);
	receive(instance, 1, &late);
	for (unsigned int i = 1; i < WINDOW; i++) {
		receive(instance, 1, &msg);
		finalize(instance, msg);
	}
	nothing_more(instance, DAQ_RSTAT_NOBUF);
	check_message(late, 0);
	finalize(instance, late);
	for (unsigned int i = 0; i < ASKED_FLOOD_PACKETS - WINDOW % ASKED_FLOOD_PACKETS; i++) {
		receive(instance, 1, &msg);
		check_message(msg, WINDOW % ASKED_FLOOD_PACKETS + i);
		finalize(instance, msg);
	}
	nothing_more(instance, DAQ_RSTAT_TIMEOUT);
	CHECK_EQ(stats_of(instance).hw_packets_dropped, 0);
	close_instance(instance);
}

static void test_wrong_messages(void)
{
	DAQ_Instance_h instance = open_mirror();
	DAQ_Msg_t foreign;
	DAQ_Msg_h msg;

	asked_put(2);
	receive(instance, 1, &msg);
	foreign = *msg;
	CHECK_EQ(daq_instance_msg_finalize(instance, &foreign, DAQ_VERDICT_PASS), DAQ_ERROR_INVAL);
	foreign.priv = NULL;
	CHECK_EQ(daq_instance_msg_finalize(instance, &foreign, DAQ_VERDICT_PASS), DAQ_ERROR_INVAL);
	finalize(instance, msg);
	CHECK_EQ(daq_instance_msg_finalize(instance, msg, DAQ_VERDICT_PASS), DAQ_ERROR_INVAL);
	CHECK(strstr(daq_instance_get_error(instance), "finalised before"));
	CHECK_EQ(available(instance), 64);
	CHECK_EQ(stats_of(instance).verdicts[DAQ_VERDICT_PASS], 1);
	receive(instance, 1, &msg);
	check_message(msg, 1);
	finalize(instance, msg);
	close_instance(instance);
}

static void test_filter(void)
{
	DAQ_Instance_h instance = open_mirror();
	DAQ_Stats_t stats;
	DAQ_Msg_h msg;

	CHECK_EQ(daq_instance_set_filter(instance, "no such thing"), DAQ_ERROR_INVAL);
	CHECK(strstr(daq_instance_get_error(instance), "filter 'no such thing': "));
	CHECK_EQ(daq_instance_set_filter(instance, "ether[5] = 7"), 0);
	CHECK_EQ(daq_instance_set_filter(instance, "ether[5] = 11 or len = 109"), 0);	/* instead of that */
	for (unsigned int round = 0; round < 20; round++) {	/* more than lie in the queue at a time */
		asked_put(200);
		for (unsigned int i = 9; i <= 11; i += 2) {
			receive(instance, 1, &msg);
			check_message(msg, i);
			finalize(instance, msg);
		}
		nothing_more(instance, DAQ_RSTAT_TIMEOUT);
	}
	stats = stats_of(instance);
	CHECK_EQ(stats.packets_received, 40);
	CHECK_EQ(stats.packets_filtered, 20 * 198);
	CHECK_EQ(stats.hw_packets_received, 20 * 200);
	CHECK_EQ(stats.hw_packets_dropped, 0);
	CHECK_EQ(daq_instance_set_filter(instance, "outbound and not ifindex 3"), 0);
	asked_put(10);
	for (unsigned int i = 3; i <= 9; i += 6) {
		receive(instance, 1, &msg);
		check_message(msg, i);
		finalize(instance, msg);
	}
	nothing_more(instance, DAQ_RSTAT_TIMEOUT);
	close_instance(instance);
}

/* Each time when the last ones were read. */
static void *put_much(void *instance)
{
	for (uint64_t sent = 200; sent <= 4000; sent += 200) {
		asked_put(200);
		while (stats_of(instance).packets_filtered < sent)
			usleep(1000);
	}
	CHECK_EQ(daq_instance_interrupt(instance), 0);
	return NULL;
}

/* More than the queue holds while the program waits: none of it passes, and all of it is given back. */
static void test_filter_rejects_all(void)
{
	DAQ_Instance_h instance = open_with(&(struct how){ .input = "mirror" });
	pthread_t thread;

	CHECK_EQ(daq_instance_set_filter(instance, "ether[5] = 255"), 0);
	CHECK(!pthread_create(&thread, NULL, put_much, instance));
	nothing_more(instance, DAQ_RSTAT_INTERRUPTED);
	pthread_join(thread, NULL);
	CHECK_EQ(stats_of(instance).packets_filtered, 4000);
	CHECK_EQ(stats_of(instance).hw_packets_dropped, 0);
	close_instance(instance);
}

static void test_snaplen(void)
{
	DAQ_Instance_h instance = open_with(&(struct how){ .input = "mirror", .snaplen = 70 });
	DAQ_Msg_h msgs[40];

	asked_put(40);
	receive(instance, 40, msgs);
	for (unsigned int i = 0; i < 40; i++) {
		const DAQ_PktHdr_t *h = daq_msg_get_hdr(msgs[i]);

		CHECK_EQ(daq_msg_get_data_len(msgs[i]), i < 10 ? 60 + i : 70);
		CHECK_EQ(h->pktlen, 100 + i);
		finalize(instance, msgs[i]);
	}
	close_instance(instance);
}

static void *interrupt_later(void *instance)
{
	usleep(50000);
	CHECK_EQ(daq_instance_interrupt(instance), 0);
	return NULL;
}

static void test_interrupt(void)
{
	DAQ_Instance_h instance = open_with(&(struct how){ .input = "mirror" });	/* waits for ever */
	pthread_t thread;
	DAQ_Msg_h msg;

	CHECK_EQ(daq_instance_interrupt(instance), 0);
	nothing_more(instance, DAQ_RSTAT_INTERRUPTED);
	CHECK(!pthread_create(&thread, NULL, interrupt_later, instance));
	nothing_more(instance, DAQ_RSTAT_INTERRUPTED);
	pthread_join(thread, NULL);
	asked_put(1);
	receive(instance, 1, &msg);
	CHECK(!pthread_create(&thread, NULL, interrupt_later, instance));
	nothing_more(instance, DAQ_RSTAT_INTERRUPTED);	/* with a message out */
	pthread_join(thread, NULL);
	finalize(instance, msg);
	CHECK_EQ(daq_instance_stop(instance), 0);
	CHECK_EQ(daq_instance_interrupt(instance), 0);
	CHECK_EQ(daq_instance_destroy(instance), 0);
}

/* Messages outlive the instance's stop, and the account the queue. */
static void test_stop(void)
{
	DAQ_Instance_h instance = open_mirror(), next;
	DAQ_Msg_h msgs[5];

	asked_put(2);
	receive(instance, 2, msgs);
	CHECK_EQ(daq_instance_stop(instance), 0);
	check_message(msgs[0], 0);
	finalize(instance, msgs[1]);
	check_message(msgs[0], 0);
	CHECK_EQ(daq_instance_destroy(instance), 0);
	instance = open_with(&(struct how){ .input = "mirror", .timeout = 50, .variable = "report" });
	receive(instance, 2, msgs);	/* that were not given back */
	check_message(msgs[1], 1);
	finalize(instance, msgs[1]);
	finalize(instance, msgs[0]);
	CHECK_EQ(daq_instance_stop(instance), 0);
	next = open_mirror();	/* the queue is free */
	asked_put(5);
	receive(next, 5, msgs);
	for (unsigned int i = 0; i < 5; i++)
		finalize(next, msgs[i]);
	CHECK_EQ(stats_of(instance).hw_packets_received, 2);
	nothing_more(instance, DAQ_RSTAT_INVALID);
	close_instance(next);
	CHECK_EQ(daq_instance_destroy(instance), 0);
}

static void test_loss(void)
{
	DAQ_Instance_h instance = open_mirror();
	DAQ_RecvStatus status;
	DAQ_Stats_t stats;
	DAQ_Msg_h msg;

	asked_put(ASKED_FLOOD);
	while (daq_instance_msg_receive(instance, 1, &msg, &status))
		finalize(instance, msg);
	stats = stats_of(instance);
	CHECK(stats.hw_packets_dropped > 0);
	CHECK_EQ(stats.hw_packets_received, ASKED_FLOOD_PACKETS);
	CHECK_EQ(stats.packets_received + stats.hw_packets_dropped, ASKED_FLOOD_PACKETS);
	close_instance(instance);
}

/* The agent deletes the queue. Snort ends a thread that gets an error. What the program has stays as it was. */
static void test_deleted(void)
{
	DAQ_Instance_h instance = open_with(&(struct how){ .input = "mirror" });	/* waits for ever */
	DAQ_Msg_h msgs[3];

	asked_put(3);
	receive(instance, 3, msgs);
	finalize(instance, msgs[1]);
	asked_put(ASKED_DELETE);
	nothing_more(instance, DAQ_RSTAT_ERROR);
	CHECK(strstr(daq_instance_get_error(instance), "mirror@0: the queue was deleted, or taken back from this consumer"));
	nothing_more(instance, DAQ_RSTAT_ERROR);
	check_message(msgs[0], 0);
	check_message(msgs[2], 2);
	CHECK_EQ(stats_of(instance).hw_packets_received, 3);
	CHECK_EQ(stats_of(instance).packets_outstanding, 2);
	finalize(instance, msgs[2]);
	finalize(instance, msgs[0]);
	refuse(&(struct how){ .input = "mirror" }, DAQ_ERROR_NODEV, "no queue mirror here");
	close_instance(instance);
}

static void consume(void)
{
	RUN(test_refused);
	RUN(test_refused_idle);
	RUN(test_names);
	RUN(test_list);
	RUN(test_properties);
	RUN(test_receive);
	RUN(test_verdicts_on_flows);
	RUN(test_any_order);
	RUN(test_late);
	RUN(test_wrong_messages);
	RUN(test_filter);
	RUN(test_filter_rejects_all);
	RUN(test_snaplen);
	RUN(test_interrupt);
	RUN(test_stop);
	RUN(test_loss);
	RUN(test_deleted);
}

static void consume_much(void)
{
	RUN(test_window);
}

int main(void)
{
	const DAQ_ModuleAPI_t *modules[] = { &DAQ_MODULE_DATA, NULL };
	int status;

	CHECK_EQ(daq_load_static_modules(modules), 1);
	status = asked_run("daq_api", 1u << 18, consume);
	return status ? status : asked_run("daq_api", 1u << 24, consume_much);
}
