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
	SCLogError("ringcap: this plugin was built for Suricata %s, and this is %s: build it for this one", BUILT_FOR,
		   running);
	return false;
}

/* Functions of the program write into a packet; the plugin must find it where its headers say. */
static bool packet_fits(void)
{
	static const uint8_t data[64];
	Packet *p = PacketGetFromAlloc();
	bool right;

	if (!p)
		return false;
	PacketSetData(p, data, sizeof(data));
	right = p->ReleasePacket == PacketFree && p->ext_pkt == data && p->pktlen == sizeof(data) &&
		p->flags & PKT_ZERO_COPY && !p->livedev && !p->pool;
	PacketFree(p);
	return right;
}

/* The first module, and one of the last. */
static bool modules_fit(void)
{
	const TmModule *worker = TmModuleGetByName("FlowWorker"), *manager = TmModuleGetByName("FlowManager");

	return worker == &tmm_modules[TMM_FLOWWORKER] && worker->Func && worker->ThreadBusy && !worker->PktAcqLoop &&
	       manager == &tmm_modules[TMM_FLOWMANAGER] && manager->Management && !manager->Func &&
	       manager->flags == TM_FLAG_MANAGEMENT_TM;
}

static bool fits(bool fitting)
{
	if (fitting)
		return true;
	SCLogError("ringcap: this plugin was built for a Suricata %s with other choices at its build: build it for "
		   "this one", PACKAGE_VERSION);
	return false;
}

bool fit_structures(void)
{
	return fits(packet_fits() && modules_fit());
}

/* A thread that Suricata made with this name, for packets that go back to the packet pool. */
bool fit_thread(const ThreadVars *tv, const char *name)
{
	return fits(!strcmp(tv->name, name) && tv->type == TVT_PPT && tv->tmqh_out == TmqhOutputPacketpool &&
		    !tv->flow_queue);
}
