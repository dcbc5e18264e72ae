/* SPDX-License-Identifier: BSD-2-Clause */
/* Choice of the interface version that two sides use with each other; see RINGCAP_ABI in linux/ringcap.h. */
#ifndef RINGCAP_ABI_H
#define RINGCAP_ABI_H

#include <linux/ringcap.h>

/* The range of versions that a side speaks. */
struct abi {
	__u32 oldest, newest;
};

static const struct abi abi_ours = { RINGCAP_ABI_MIN, RINGCAP_ABI };
static const struct abi abi_handover = { RINGCAP_HANDOVER_ABI_MIN, RINGCAP_ABI };

/* Returns the newest version that both sides speak, 0 = none. */
static inline __u32 abi_common(struct abi a, struct abi b)
{
	__u32 newest = a.newest < b.newest ? a.newest : b.newest, oldest = a.oldest > b.oldest ? a.oldest : b.oldest;

	return newest >= oldest ? newest : 0;
}

/* Returns which side to update when the two have no version in common. */
static inline const char *abi_older(struct abi ours, struct abi theirs, const char *them)
{
	return theirs.newest < ours.oldest ? them : "libringcap";
}

#endif
