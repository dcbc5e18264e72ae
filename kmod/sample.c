// SPDX-License-Identifier: GPL-2.0-only

#include "sample.h"

#include <net/netlink.h>

#include "net.h"

static DEFINE_MUTEX(rc_sample_lock);	/* taken last */
static u64 rc_sample_key[2];	/* both 0 until the first sample; under rc_sample_lock */

int rc_sample_init(struct rc_sample *sample, const struct nlattr *n, const struct nlattr *by,
		   struct netlink_ext_ack *extack)
{
	sample->n = n ? nla_get_u32(n) : 0;
	sample->by = by ? nla_get_u32(by) : RINGCAP_SAMPLE_RANDOM;
	if (sample->by > RINGCAP_SAMPLE_FLOW) {
		NL_SET_ERR_MSG_ATTR(extack, by, "RINGCAP_A_SAMPLE_BY: 0 (each packet for itself) or 1 (by flow)");
		return -EINVAL;
	}
	if (by && sample->n < 2) {
		NL_SET_ERR_MSG_ATTR(extack, by,
				    "RINGCAP_A_SAMPLE_BY: there is no sample without a RINGCAP_A_SAMPLE of at least 2");
		return -EINVAL;
	}
	mutex_lock(&rc_sample_lock);
	while (!rc_sample_key[0])
		get_random_bytes(rc_sample_key, sizeof(rc_sample_key));
	memcpy(sample->key, rc_sample_key, sizeof(sample->key));
	mutex_unlock(&rc_sample_lock);
	return 0;
}
