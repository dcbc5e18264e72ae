// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The fuzzer: the first four bytes are the tag held elsewhere (0 = none), the rest is the packet. */
#include "check.h"

int LLVMFuzzerTestOneInput(const rc_u8 *data, size_t size);

int LLVMFuzzerTestOneInput(const rc_u8 *data, size_t size)
{
	if (size < 4 || size - 4 > FRAME_MAX)
		return 0;
	check_invariants(data + 4, (rc_u32)(size - 4), rc_get16(data), rc_get16(data + 2));
	return 0;
}
