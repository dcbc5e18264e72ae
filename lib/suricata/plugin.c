// SPDX-License-Identifier: GPL-2.0-only
/*
 * Suricata's capture plugin "ringcap": reads queues, one in each worker thread. See README.md.
 *
 *     suricata --capture-plugin ringcap
 *
 * Suricata calls SCPluginRegister when it loads the file, then init_plugin, and init_capture if the plugin was chosen.
 */
#include "capture.h"

static void init_capture(const char *args, int plugin_slot, int receive_slot, int decode_slot)
{
	struct input *inputs = config_read(args);

	for (struct input *input = inputs; input; input = input->next)
		if (LiveRegisterDeviceName(input->name))
			FatalError("ringcap: %s: out of memory", input->name);
	runmode_register(plugin_slot, inputs);
	receive_register(receive_slot);
	decode_register(decode_slot);
}

static const char *default_mode(void)
{
	return "workers";
}

static void init_plugin(void)
{
	static SCCapturePlugin capture = {
		.name = (char *)CAPTURE_NAME,
		.Init = init_capture,
		.GetDefaultMode = default_mode,
	};

	if (fit_program())
		SCPluginRegisterCapture(&capture);
}

__attribute__((visibility("default"))) SCPlugin *SCPluginRegister(void);

SCPlugin *SCPluginRegister(void)
{
	static SCPlugin plugin = {
#if SURICATA_MAJOR >= 8
		.version = SC_API_VERSION,
		.suricata_version = SC_PACKAGE_VERSION,
		.plugin_version = RINGCAP_VERSION,
#endif
		.name = "ringcap-capture",
		.license = "GPL-2.0-only",
		.author = "ringcap",
		.Init = init_plugin,
	};

	return &plugin;
}
