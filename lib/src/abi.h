/* SPDX-License-Identifier: BSD-2-Clause */
/* Which version of the interface two sides speak with each other; see RINGCAP_ABI in linux/ringcap.h. */
#ifndef RINGCAP_ABI_H
#define RINGCAP_ABI_H

#include <linux/ringcap.h>

/* The versions that a side speaks. */
struct abi {
	__u32 oldest, newest;
};

static const struct abi abi_ours = { RINGCAP_ABI_MIN, RINGCAP_ABI };
static const struct abi abi_handover = { RINGCAP_HANDOVER_ABI_MIN, RINGCAP_ABI };

/* The newest that both speak, 0 = none. */
static inline __u32 abi_common(struct abi a, struct abi b)
{
	__u32 newest = a.newest < b.newest ? a.newest : b.newest, oldest = a.oldest > b.oldest ? a.oldest : b.oldest;

	return newest >= oldest ? newest : 0;
}

/* Of two sides that have none in common, the one to update. */
static inline const char *abi_older(struct abi ours, struct abi theirs, const char *them)
{
	return theirs.newest < ours.oldest ? them : "libringcap";
}

#endif
