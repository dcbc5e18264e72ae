// SPDX-License-Identifier: GPL-2.0-only
/*
 * In line: the keyword `replace`. Suricata takes it only in the run modes of NFQUEUE and IPFW, and ignores it in others
 * with a warning, although nothing else of it depends on the run mode. So in line each use of the keyword is read as in
 * the run mode of NFQUEUE. Suricata's own tests of the keyword do the same.
 */
#include "capture.h"

#include <pthread.h>

#include "detect.h"
#include "runmodes.h"
#include "suricata.h"

static int (*read_keyword)(DetectEngineCtx *, Signature *, const char *);

/* Several threads may read the rules of tenants at once. */
static int read_in_line(DetectEngineCtx *engine, Signature *rule, const char *value)
{
	static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
	int result;

	pthread_mutex_lock(&one);
	compat_set_runmode(RUNMODE_NFQ);
	result = read_keyword(engine, rule, value);
	compat_set_runmode(RUNMODE_PLUGIN);
	pthread_mutex_unlock(&one);
	return result;
}

/* Called by Suricata once, when it knows its keywords and has not yet read the rules. */
TmEcode replace_enable(void)
{
	SigTableElmt *keyword = &sigmatch_table[DETECT_REPLACE];

	if (!EngineModeIsIPS())
		return TM_ECODE_OK;
	if (!keyword->name || strcmp(keyword->name, "replace") || !keyword->Setup)
		FatalError("ringcap: this Suricata has no keyword replace where the plugin looks for it");
	read_keyword = keyword->Setup;
	keyword->Setup = read_in_line;
	return TM_ECODE_OK;
}
