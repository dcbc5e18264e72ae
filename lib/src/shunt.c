// SPDX-License-Identifier: BSD-2-Clause
#include "internal.h"

#include <errno.h>
#include <limits.h>
#include <sys/ioctl.h>

/* One ioctl. A signal before the first element is no error for the caller. */
static int ask(const struct ringcap *h, unsigned long request, struct ringcap_shunts *argument)
{
	int done;

	do
		done = ioctl(h->kmod.fd, request, argument);
	while (done < 0 && errno == EINTR);
	if (done >= 0)
		return done;
	return errno == ENOTTY ? -ENOTSUP : -errno;
}

/* A signal may end an ioctl early: goes on behind the elements that are done. @size: bytes of an element. */
static int ask_all(const struct ringcap *h, unsigned long request, const void *flows, unsigned int n, size_t size)
{
	unsigned int done = 0;

	if (h->engine != &engine_kmod)
		return -ENOTSUP;
	if (n > INT_MAX)
		return -EINVAL;
	while (done < n) {
		struct ringcap_shunts argument = { .flows = (uint64_t)(uintptr_t)flows + done * size, .nr = n - done };
		int taken = ask(h, request, &argument);

		if (taken <= 0)
			return done ? (int)done : taken;
		done += (unsigned int)taken;
	}
	return (int)done;
}

RINGCAP_API int ringcap_shunt(struct ringcap *h, const struct ringcap_exact *flows, unsigned int n)
{
	return ask_all(h, RINGCAP_IOC_SHUNT, flows, n, sizeof(*flows));
}

RINGCAP_API int ringcap_unshunt(struct ringcap *h, const struct ringcap_exact *flows, unsigned int n)
{
	return ask_all(h, RINGCAP_IOC_UNSHUNT, flows, n, sizeof(*flows));
}

RINGCAP_API int ringcap_shunt_read(const struct ringcap *h, struct ringcap_exact_state *states, unsigned int n)
{
	return ask_all(h, RINGCAP_IOC_SHUNT_READ, states, n, sizeof(*states));
}

RINGCAP_API int ringcap_shunt_ended(struct ringcap *h, struct ringcap_exact_state *states, unsigned int n, uint64_t *lost)
{
	struct ringcap_shunts argument = { .flows = (uint64_t)(uintptr_t)states, .nr = n };
	int done;

	if (h->engine != &engine_kmod)
		return -ENOTSUP;
	done = ask(h, RINGCAP_IOC_SHUNT_ENDED, &argument);
	if (done >= 0 && lost)
		*lost = argument.lost;
	return done;
}

RINGCAP_API int ringcap_shunt_stats(const struct ringcap *h, struct ringcap_shunt_stats *stats)
{
	struct ringcap_shunts argument = { 0 };
	int done;

	if (h->engine != &engine_kmod)
		return -ENOTSUP;
	done = ask(h, RINGCAP_IOC_SHUNT_READ, &argument);
	if (done < 0)
		return done;
	*stats = (struct ringcap_shunt_stats){ argument.shunted, argument.shunted_bytes };
	return 0;
}
