// SPDX-License-Identifier: GPL-2.0-only
/*
 * Does the plugin fit the running program? Suricata's structures change between releases and with the choices at its
 * build, and nothing else keeps a plugin from using the wrong places.
 */
#include "capture.h"

#include "packet.h"
#include "suricata.h"
#include "tm-modules.h"

#define BUILT_FOR PACKAGE_VERSION " RELEASE"

bool fit_version(void)
{
	const char *running = GetProgramVersion();

	if (!strcmp(running, BUILT_FOR))
		return true;
	SCLogError("ringcap: this plugin was built for Suricata %s, and this is %s: build it for this one (make -C lib suricata)",
		   BUILT_FOR, running);
	return false;
}

/* Functions of the program write into a packet; the plugin must find it where its headers say. */
static bool packet_fits(void)
{
	static const uint8_t data[64];
	Packet *p = PacketGetFromAlloc();
	bool fits;

	if (!p)
		return false;
	PacketSetData(p, data, sizeof(data));
	fits = p->ReleasePacket == PacketFree && p->ext_pkt == data && p->pktlen == sizeof(data) &&
	       p->flags & PKT_ZERO_COPY && !p->livedev && !p->pool;
	PacketFree(p);
	return fits;
}

static bool modules_fit(void)
{
	const TmModule *worker = TmModuleGetByName("FlowWorker");

	return worker == &tmm_modules[TMM_FLOWWORKER] && worker->Func && worker->ThreadBusy && !worker->PktAcqLoop;
}

bool fit_structures(void)
{
	if (packet_fits() && modules_fit())
		return true;
	SCLogError("ringcap: this plugin was built for a Suricata %s with other choices at its build: build it for this one "
		   "(make -C lib suricata)", PACKAGE_VERSION);
	return false;
}
