/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Markers by which the workload in the guest tells the counting plugin in QEMU where a measurement starts and ends.
 * A marker is an 8-byte NOP with these bytes in its displacement, which the CPU ignores.
 */
#ifndef RB_MARKER_H
#define RB_MARKER_H

#define RB_MARKER_BEGIN	0x01
#define RB_MARKER_END	0x02

/* 0f 1f 84 00 <what> 52 43 42: nopl 0x424352xx(%rax,%rax,1) */
#define RB_MARKER_BYTES(what) { 0x0f, 0x1f, 0x84, 0x00, (what), 0x52, 0x43, 0x42 }
#define RB_MARKER_LEN	8

#ifdef __x86_64__
#define RB_MARK(what) __asm__ volatile(".byte 0x0f,0x1f,0x84,0x00,%c0,0x52,0x43,0x42" : : "i"(what) : "memory")
#endif

#endif /* RB_MARKER_H */
