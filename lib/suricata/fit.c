// SPDX-License-Identifier: GPL-2.0-only
/*
 * Does the plugin fit the running program? Suricata's structures change between releases and with the choices at its
 * build, and nothing else keeps a plugin from using the wrong places.
 */
#include "capture.h"

#include <dlfcn.h>
#include <link.h>

#include "packet.h"
#include "suricata.h"
#include "tm-modules.h"

#define BUILT_FOR PACKAGE_VERSION " RELEASE"

static bool version_fits(void)
{
	const char *running = GetProgramVersion();

	if (!strcmp(running, BUILT_FOR))
		return true;
	SCLogError("ringcap: this plugin was built for Suricata %s, and this is %s: build it for this one", BUILT_FOR,
		   running);
	return false;
}

static bool fits(bool fitting)
{
	if (fitting)
		return true;
	SCLogError("ringcap: this plugin was built for a Suricata %s with other choices at its build: build it for "
		   "this one", PACKAGE_VERSION);
	return false;
}

/* The program's table of modules, which the plugin writes into, has the size that its headers say. */
static bool modules_fit(void)
{
	const ElfW(Sym) *symbol = NULL;
	Dl_info about;

	return dladdr1(tmm_modules, &about, (void **)&symbol, RTLD_DL_SYMENT) && symbol &&
	       about.dli_saddr == (void *)tmm_modules && symbol->st_size == sizeof(tmm_modules);
}

bool fit_program(void)
{
	return version_fits() && fits(modules_fit());
}

/* Functions of the program write into a packet; the plugin must find it where its headers say. */
bool fit_packet(void)
{
	static const uint8_t data[64];
	Packet *p = PacketGetFromAlloc();
	bool right;

	if (!p)
		return fits(false);
	PacketSetData(p, data, sizeof(data));
	right = p->ReleasePacket == PacketFree && p->ext_pkt == data && p->pktlen == sizeof(data) &&
		p->flags & PKT_ZERO_COPY && !p->livedev && !p->pool && !p->BypassPacketsFlow;
	PacketFree(p);
	return fits(right);
}

/* A thread that Suricata made with this name, for packets that go back to the packet pool. */
bool fit_thread(const ThreadVars *tv, const char *name)
{
	return fits(!strcmp(tv->name, name) && tv->type == TVT_PPT && tv->tmqh_out == TmqhOutputPacketpool &&
		    !tv->flow_queue);
}
