// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The patterns' fuzzer. The first byte is the greatest number of states with rows, the second the number of patterns.
 * Each pattern is its length, flags and bytes. Flags: 1 = nocase, 2 = an offset byte follows, 4 = a depth byte follows.
 * The rest is the stream.
 */
#include "patterns.h"

int LLVMFuzzerTestOneInput(const rc_u8 *data, size_t size);

static rc_u8 take(const rc_u8 **data, size_t *size)
{
	if (!*size)
		return 0;
	--*size;
	return *(*data)++;
}

int LLVMFuzzerTestOneInput(const rc_u8 *data, size_t size)
{
	rc_u32 dense = take(&data, &size), wanted = take(&data, &size), nr = 0, want, got;
	struct rc_pattern patterns[256];
	struct built built;

	while (nr < wanted && size > 2) {
		struct rc_pattern *p = &patterns[nr];
		rc_u8 flags;

		*p = (struct rc_pattern){ .len = take(&data, &size) };
		flags = take(&data, &size);
		p->nocase = flags & 1;
		p->offset = flags & 2 ? take(&data, &size) : 0;
		p->depth = flags & 4 ? take(&data, &size) : 0;
		if (!p->len || p->len > size)
			break;
		p->bytes = data;
		data += p->len;
		size -= p->len;
		nr++;
	}
	built_make(&built, patterns, nr, dense);
	want = naive_find(patterns, nr, data, (rc_u32)size);
	got = built_find(&built, data, (rc_u32)size, 1 + dense);
	CHECK(got == want, "%u patterns, %zu bytes: found %u, not %u", nr, size, got, want);
	built_free(&built);
	return 0;
}
