/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Failing allocations, by the kernel's fault injection, which the debug kernel has and others have not. A case
 * that uses it begins with rt_faults_open.
 */
#ifndef RT_FAULTS_H
#define RT_FAULTS_H

#include "fixture.h"
#include "test.h"

/* Skips the case where the kernel cannot inject faults. */
void rt_faults_open(void);

/* Orders the @n'th allocation of this thread from now on to fail, outside of interrupts; 0 orders none. */
void rt_fail_nth(u32 n);

/* Whether the failure that was ordered has happened. */
bool rt_has_failed(void);

/*
 * Of allocations that may not wait, @percent fail from now on, on all processors: those from the caches that
 * kmod/tests/run marks, which are exact rules, heads of packets, and datagrams in reassembly.
 */
void rt_fail_atomic(u32 percent);

/*
 * Fails the first allocation of @change, then the second and so on until it succeeds, which takes more than @least of
 * them. A failure changes nothing of rings and clusters. @change: 0 or a negative errno.
 */
void rt_try_failures(const char *what, int (*change)(const struct rt_fixture *),
		     const struct rt_fixture *fixture, u32 least);

#endif /* RT_FAULTS_H */
