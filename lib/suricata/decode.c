// SPDX-License-Identifier: GPL-2.0-only
/* The second of a worker's modules: hands a packet to Suricata's decoders. VLAN tags are in it, as on the wire. */
#include "capture.h"

#include "decode.h"
#include "tm-modules.h"

static TmEcode init_thread(ThreadVars *tv, const void *initdata, void **data)
{
	DecodeThreadVars *vars = DecodeThreadVarsAlloc(tv);

	(void)initdata;
	if (!vars)
		return TM_ECODE_FAILED;
	DecodeRegisterPerfCounters(vars, tv);
	*data = vars;
	return TM_ECODE_OK;
}

static TmEcode deinit_thread(ThreadVars *tv, void *data)
{
	if (data)
		DecodeThreadVarsFree(tv, data);
	return TM_ECODE_OK;
}

static TmEcode decode(ThreadVars *tv, Packet *p, void *data)
{
	DecodeUpdatePacketCounters(tv, data, p);
	DecodeEthernet(tv, data, p, GET_PKT_DATA(p), GET_PKT_LEN(p));
	PacketDecodeFinalize(tv, data, p);
	return TM_ECODE_OK;
}

void decode_register(int slot)
{
	tmm_modules[slot] = (TmModule){
		.name = "DecodeRingcap",
		.ThreadInit = init_thread,
		.ThreadDeinit = deinit_thread,
		.Func = decode,
		.flags = TM_FLAG_DECODE_TM,
	};
}
