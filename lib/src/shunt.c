// SPDX-License-Identifier: BSD-2-Clause
#include "internal.h"

#include <errno.h>
#include <limits.h>

/* One request. It may be handled in part. */
static int ask(const struct ringcap *h, unsigned int verb, struct ringcap_shunts *argument)
{
	struct ringcap *own = (struct ringcap *)(uintptr_t)h;	/* const only for the caller */

	return h->gone ? h->gone : h->engine->shunt(own, verb, argument);
}

/* Goes on behind the elements that a request has handled. @size: bytes of an element. */
static int ask_all(const struct ringcap *h, unsigned int verb, const void *flows, unsigned int n, size_t size,
		   uint64_t *lost)
{
	unsigned int done = 0;

	if (n > INT_MAX)
		return -EINVAL;
	while (done < n) {
		struct ringcap_shunts argument = { .flows = (uint64_t)(uintptr_t)flows + done * size, .nr = n - done };
		int taken = ask(h, verb, &argument);

		if (taken >= 0 && lost)
			*lost = argument.lost;
		if (taken <= 0)
			return done ? (int)done : taken;
		done += (unsigned int)taken;
	}
	return (int)done;
}

RINGCAP_API int ringcap_shunt(struct ringcap *h, const struct ringcap_exact *flows, unsigned int n)
{
	return ask_all(h, RINGCAP_SHUNT_ADD, flows, n, sizeof(*flows), NULL);
}

RINGCAP_API int ringcap_unshunt(struct ringcap *h, const struct ringcap_exact *flows, unsigned int n)
{
	return ask_all(h, RINGCAP_SHUNT_REMOVE, flows, n, sizeof(*flows), NULL);
}

RINGCAP_API int ringcap_shunt_read(const struct ringcap *h, struct ringcap_exact_state *states, unsigned int n)
{
	return ask_all(h, RINGCAP_SHUNT_READ, states, n, sizeof(*states), NULL);
}

RINGCAP_API int ringcap_shunt_ended(struct ringcap *h, struct ringcap_exact_state *states, unsigned int n, uint64_t *lost)
{
	struct ringcap_shunts argument = { 0 };
	int err = 0;

	if (!n) {	/* for what is lost */
		err = ask(h, RINGCAP_SHUNT_ENDED, &argument);
		if (!err && lost)
			*lost = argument.lost;
	}
	return err ? err : ask_all(h, RINGCAP_SHUNT_ENDED, states, n, sizeof(*states), lost);
}

RINGCAP_API int ringcap_shunt_stats(const struct ringcap *h, struct ringcap_shunt_stats *stats)
{
	struct ringcap_shunts argument = { 0 };
	int err = ask(h, RINGCAP_SHUNT_READ, &argument);

	if (err < 0)
		return err;
	*stats = (struct ringcap_shunt_stats){ argument.shunted, argument.shunted_bytes };
	return 0;
}
