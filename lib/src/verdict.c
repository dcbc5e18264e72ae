// SPDX-License-Identifier: BSD-2-Clause
#include "internal.h"

#include <errno.h>
#include <limits.h>
#include <sys/ioctl.h>

RINGCAP_API uint64_t ringcap_position(const struct ringcap *h, const struct ringcap_slot *slot)
{
	/* The queue of an in-line cluster has one lane. */
	const struct lane *lane = &h->lanes->lane[0];
	uint64_t offset = (uint64_t)((const uint8_t *)slot - lane->data);

	return lane->released + ((offset - lane->released) & (h->lanes->lane_size - 1));
}

RINGCAP_API int ringcap_is_inline(const struct ringcap *h)
{
	struct ringcap_verdicts none = { 0 };

	return h->engine == &engine_kmod && !ioctl(h->kmod.fd, RINGCAP_IOC_VERDICT, &none);
}

RINGCAP_API int ringcap_verdicts(struct ringcap *h, const struct ringcap_verdict *verdicts, unsigned int n,
				 unsigned int *missed)
{
	unsigned int done = 0, unused;

	missed = missed ? missed : &unused;
	*missed = 0;
	if (h->engine != &engine_kmod)
		return -ENOTSUP;
	if (n > INT_MAX)
		return -EINVAL;
	while (done < n) {
		struct ringcap_verdicts argument = { .verdicts = (uint64_t)(uintptr_t)(verdicts + done), .nr = n - done };
		int taken = ioctl(h->kmod.fd, RINGCAP_IOC_VERDICT, &argument);

		if (taken < 0 && errno == EINTR)
			continue;
		if (taken <= 0)
			return done ? (int)done : taken < 0 ? -errno : -EPROTO;
		done += (unsigned int)taken;
		*missed += argument.missed;
	}
	return (int)done;
}
