// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include "faults.h"

#include <fcntl.h>
#include <unistd.h>

#include "control.h"

static int rt_nth = -1;

static void rt_fault_set(const char *file, const char *value)
{
	char path[96];

	snprintf(path, sizeof(path), "/sys/kernel/debug/%s", file);
	RT_CHECK(rt_write_file(path, value), "%s: %m", path);
}

void rt_faults_open(void)
{
	rt_nth = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	if (rt_nth < 0)
		rt_skip("this kernel has no fault injection");
	rt_fault_set("failslab/probability", "0");
	rt_fault_set("failslab/cache-filter", "0");
	rt_fault_set("failslab/ignore-gfp-wait", "0");
	rt_fault_set("failslab/verbose", "0");
	rt_fault_set("fail_page_alloc/ignore-gfp-wait", "0");
	rt_fault_set("fail_page_alloc/min-order", "0");
	rt_fault_set("fail_page_alloc/verbose", "0");
}

void rt_fail_nth(u32 n)
{
	char value[16];
	int len = snprintf(value, sizeof(value), "%u", n);

	RT_CHECK(pwrite(rt_nth, value, (size_t)len, 0) == len, "fail-nth: %m");
}

bool rt_has_failed(void)
{
	char value[16] = "";

	RT_CHECK(pread(rt_nth, value, sizeof(value) - 1, 0) > 0, "fail-nth: %m");
	return atoi(value) == 0;
}

void rt_fail_atomic(u32 percent)
{
	char value[16];

	/* Without these all allocations of all processes would fail. */
	rt_fault_set("failslab/probability", "0");
	rt_fault_set("failslab/cache-filter", percent ? "1" : "0");
	rt_fault_set("failslab/ignore-gfp-wait", percent ? "1" : "0");
	rt_fault_set("failslab/times", "-1");
	snprintf(value, sizeof(value), "%u", percent);
	rt_fault_set("failslab/probability", value);
}

void rt_try_failures(const char *what, int (*change)(const struct rt_fixture *),
		     const struct rt_fixture *fixture, u32 least)
{
	bool failed = true;
	u64 before;
	int err;
	u32 n;

	for (n = 1; failed; n++) {
		before = rt_control_digest();
		rt_fail_nth(n);
		err = change(fixture);
		failed = rt_has_failed();
		rt_fail_nth(0);
		RT_CHECK(err >= 0 || rt_control_digest() == before, "%s, allocation %u: %s, but something changed", what, n,
			 strerror(-err));
		RT_CHECK(n < 2000, "%s never succeeds", what);
	}
	RT_EQUAL(err, 0);
	RT_CHECK(n > least, "%s had only %u allocations", what, n);
}
