// SPDX-License-Identifier: Apache-2.0
/*
 * pass MODULE INPUT passive|inline INSTANCES [NAME=VALUE...]
 *
 * A sensor that only looks at packets, on libdaq's public interface: as Snort does, it has a thread for each instance,
 * receives up to 64 messages at once, and finalises each with the verdict "pass". The NAMEs are variables of the module.
 * With SIGTERM it ends, and prints for each instance "instance N received R dropped D". When all have started, it makes
 * the file /tmp/started. libdaq's own daqtest is not used, because its main thread wakes up each millisecond.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <daq.h>

#define BATCH		64U	/* Snort's default */
#define SNAPLEN		1518	/* and libdaq's, which Snort takes */
#define INSTANCES_MAX	16U
#define STARTED		"/tmp/started"

struct sensor {
	DAQ_Instance_h daq;
	pthread_t thread;
	volatile bool ending;
	uint64_t touched, bytes;
};

static struct sensor sensors[INSTANCES_MAX];

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "pass: %s: %s\n", what, why);
	exit(1);
}

static void look(struct sensor *s, DAQ_Msg_h msg)
{
	s->touched += daq_msg_get_data(msg)[12];
	s->bytes += daq_msg_get_data_len(msg);
}

static void *run(void *arg)
{
	DAQ_Msg_h messages[BATCH];
	struct sensor *s = arg;
	DAQ_RecvStatus status;
	unsigned int i, n;

	while (!s->ending) {
		n = daq_instance_msg_receive(s->daq, BATCH, messages, &status);
		for (i = 0; i < n; i++) {
			look(s, messages[i]);
			daq_instance_msg_finalize(s->daq, messages[i], DAQ_VERDICT_PASS);
		}
		if (status == DAQ_RSTAT_ERROR)
			fail("receiving", daq_instance_get_error(s->daq));
	}
	return NULL;
}

/* Puts the variables NAME=VALUE into a configuration of the module. */
static DAQ_ModuleConfig_h configure_module(DAQ_Module_h module, const char *mode, char **variables)
{
	DAQ_ModuleConfig_h config;
	char *value;

	if (daq_module_config_new(&config, module))
		fail("libdaq", "no configuration of the module");
	daq_module_config_set_mode(config, strcmp(mode, "inline") ? DAQ_MODE_PASSIVE : DAQ_MODE_INLINE);
	for (; *variables; variables++) {
		value = strchr(*variables, '=');
		if (value)
			*value++ = '\0';
		if (daq_module_config_set_variable(config, *variables, value))
			fail(*variables, "not set");
	}
	return config;
}

static DAQ_Config_h configure(char **argv, unsigned int instances)
{
	static const char *folders[] = { "/modules", NULL };
	DAQ_Module_h module;
	DAQ_Config_h config;

	daq_load_dynamic_modules(folders);
	module = daq_find_module(argv[1]);
	if (!module)
		fail(argv[1], "no such module");
	if (daq_config_new(&config) || daq_config_set_input(config, argv[2]) || daq_config_set_snaplen(config, SNAPLEN) ||
	    daq_config_set_total_instances(config, instances) ||
	    daq_config_push_module_config(config, configure_module(module, argv[3], argv + 5)))
		fail("libdaq", "the configuration is refused");
	return config;
}

static void start(DAQ_Config_h config, unsigned int instances)
{
	char reason[256];
	unsigned int i;

	for (i = 0; i < instances; i++) {
		daq_config_set_instance_id(config, i + 1);
		if (daq_instance_instantiate(config, &sensors[i].daq, reason, sizeof(reason)))
			fail("an instance", reason);
	}
	for (i = 0; i < instances; i++) {
		if (daq_instance_start(sensors[i].daq))
			fail("starting", daq_instance_get_error(sensors[i].daq));
		if (pthread_create(&sensors[i].thread, NULL, run, &sensors[i]))
			fail("a thread", "not created");
	}
}

static void end(unsigned int n)
{
	struct sensor *s = &sensors[n];
	DAQ_Stats_t stats;

	s->ending = true;
	daq_instance_interrupt(s->daq);
	pthread_join(s->thread, NULL);
	daq_instance_get_stats(s->daq, &stats);
	printf("instance %u received %" PRIu64 " dropped %" PRIu64 "\n", n, stats.packets_received, stats.hw_packets_dropped);
	daq_instance_stop(s->daq);
	daq_instance_destroy(s->daq);
}

int main(int argc, char **argv)
{
	unsigned int instances = argc > 4 ? (unsigned int)strtoul(argv[4], NULL, 10) : 0, i;
	sigset_t ending;
	int signal;

	if (!instances || instances > INSTANCES_MAX)
		fail("usage", "pass MODULE INPUT passive|inline INSTANCES [NAME=VALUE...]");
	sigemptyset(&ending);
	sigaddset(&ending, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &ending, NULL);
	start(configure(argv, instances), instances);
	if (!fopen(STARTED, "w"))
		fail(STARTED, "not made");
	sigwait(&ending, &signal);
	for (i = 0; i < instances; i++)
		end(i);
	return 0;
}
