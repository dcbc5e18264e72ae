/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A small harness: cases register themselves. Each runs in a process and a network namespace of its own, and a failed
 * check ends the case with a message. Output is TAP.
 */
#ifndef RT_TEST_H
#define RT_TEST_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RT_SKIP 77

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;

struct rt_case {
	const char *name;
	void (*run)(void);
	struct rt_case *next;
};

void rt_register(struct rt_case *test);

/* Ends the running case. */
void rt_fail(const char *file, int line, const char *what, const char *format, ...)
	__attribute__((noreturn, format(printf, 4, 5)));
void rt_skip(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* Runs @body in a child process and returns its exit status, 256 + N when signal N ended it. */
int rt_child(void (*body)(void *arg), void *arg);

/* Writes @value to a file of /proc or /sys; false when that is refused. */
bool rt_write_file(const char *path, const char *value);

/* A number after @word at the start of a line of a file of /proc. */
u64 rt_proc_number(const char *path, const char *word);

/* KiB that programs can still have. */
u64 rt_available(void);

/* This namespace's /sys, in a mount namespace that is ours. */
bool rt_mount_sysfs(void);

/* Keeps this thread on one CPU, so that what it sends arrives in order. */
void rt_pin(u32 cpu);

/*
 * Returns when each CPU is done with its current packet, and with its deferred work, such as publishing packets to
 * consumers. After that, the counts so far do not change while nothing is sent.
 */
void rt_settle(void);

/* How many of @count packets or rounds are enough on a slow kernel: divided by RT_DIVISOR of the environment. */
u32 rt_scaled(u32 count);

/* @full of them with RT_FULL in the environment, which takes long; else @usual, scaled. */
u32 rt_rounds(u32 full, u32 usual);

/* Nanoseconds and milliseconds that an expected event may take at most, on any machine. */
#define RT_PATIENCE_NS 120000000000ULL
#define RT_PATIENCE_MS 120000

/* Nanoseconds of CLOCK_MONOTONIC and of CLOCK_REALTIME. */
u64 rt_now(void);
u64 rt_wall(void);

/* A deterministic generator; the same seed gives the same numbers. */
u32 rt_random(u64 *seed);

#define RT_CASE(fn)							\
	static void fn(void);						\
	static struct rt_case rt_case_##fn = { .name = #fn, .run = fn };	\
	__attribute__((constructor)) static void rt_register_##fn(void)	\
	{								\
		rt_register(&rt_case_##fn);				\
	}								\
	static void fn(void)

#define RT_CHECK(condition, ...)					\
	do {								\
		if (!(condition))					\
			rt_fail(__FILE__, __LINE__, #condition, " " __VA_ARGS__);	\
	} while (0)

#define RT_EQUAL(got, want)						\
	do {								\
		long long rt_got = (long long)(got), rt_want = (long long)(want);	\
		if (rt_got != rt_want)					\
			rt_fail(__FILE__, __LINE__, #got, "is %lld, not %s = %lld", rt_got, #want, rt_want);	\
	} while (0)

/*
 * Waits until @condition holds, and checks it often. It is for things that the kernel does with a delay. It waits up to
 * @milliseconds on a machine that has nothing else to do, and six times as long on any.
 */
#define RT_EVENTUALLY(condition, milliseconds)				\
	do {								\
		u64 rt_deadline = rt_now() + (milliseconds) * 6000000ULL;	\
		while (!(condition)) {					\
			if (rt_now() > rt_deadline)			\
				rt_fail(__FILE__, __LINE__, #condition, "is not so after %u ms", 6 * (u32)(milliseconds));	\
			sched_yield();					\
		}							\
	} while (0)

#endif /* RT_TEST_H */
