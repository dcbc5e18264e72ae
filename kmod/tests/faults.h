/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Failing allocations, by the kernel's fault injection, which only the debug kernel has. A case that uses it begins
 * with rt_faults_open.
 */
#ifndef RT_FAULTS_H
#define RT_FAULTS_H

#include "fixture.h"
#include "test.h"

/* Skips the case if the kernel cannot inject faults. */
void rt_faults_open(void);

/* Makes the @n'th allocation of this thread from now on fail, outside of interrupts; 0 makes none fail. */
void rt_fail_nth(u32 n);

/* Whether the requested failure has happened. */
bool rt_has_failed(void);

/*
 * From now on @percent of the allocations that may not wait fail, on all CPUs. This affects only the caches that
 * kmod/tests/run marks: exact rules, heads of packets, and datagrams in reassembly.
 */
void rt_fail_atomic(u32 percent);

/*
 * Lets the first allocation of @change fail, then the second and so on, until @change succeeds. It must make more than
 * @least allocations. A failure changes no ring or cluster. @change: returns 0 or a negative errno.
 */
void rt_try_failures(const char *what, int (*change)(const struct rt_fixture *),
		     const struct rt_fixture *fixture, u32 least);

#endif /* RT_FAULTS_H */
