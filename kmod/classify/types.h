/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the classifier needs from its environment: fixed-width types, forced inlining, unaligned loads and byte order.
 * It is for the kernel, for BPF (clang -target bpf, without vmlinux.h) and for user space.
 */
#ifndef RC_TYPES_H
#define RC_TYPES_H

#include <linux/types.h>

typedef __u8 rc_u8;
typedef __u16 rc_u16;
typedef __u32 rc_u32;
typedef __u64 rc_u64;

#ifdef __KERNEL__
#define rc_inline __always_inline
#else
#define rc_inline inline __attribute__((always_inline))
#endif

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define rc_be16(x) ((rc_u16)__builtin_bswap16(x))
#define rc_be32(x) ((rc_u32)__builtin_bswap32(x))
#define rc_le64(x) ((rc_u64)(x))
#else
#define rc_be16(x) ((rc_u16)(x))
#define rc_be32(x) ((rc_u32)(x))
#define rc_le64(x) ((rc_u64)__builtin_bswap64(x))
#endif

/* rc_be32(x), 16 bits to the left in 64. Compilers for x86 clear the upper half between a swap of 32 bits and a shift. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ && !defined(__bpf__)
#define rc_be32_by_16(x) (__builtin_bswap64((rc_u64)(rc_u32)(x)) >> 16)
#else
#define rc_be32_by_16(x) ((rc_u64)rc_be32(x) << 16)
#endif

/*
 * Loads from any address. For BPF they are plain loads. clang would break a copy from an unaligned address into bytes.
 * The verifier accepts unaligned loads from maps on every machine that has them.
 */
#ifdef __bpf__
static rc_inline rc_u16 rc_load16(const rc_u8 *p)
{
	return *(const rc_u16 *)p;
}

static rc_inline rc_u32 rc_load32(const rc_u8 *p)
{
	return *(const rc_u32 *)p;
}
#else
static rc_inline rc_u16 rc_load16(const rc_u8 *p)
{
	rc_u16 v;

	__builtin_memcpy(&v, p, sizeof(v));
	return v;
}

static rc_inline rc_u32 rc_load32(const rc_u8 *p)
{
	rc_u32 v;

	__builtin_memcpy(&v, p, sizeof(v));
	return v;
}
#endif

/* Big-endian fields, in host order. */
static rc_inline rc_u16 rc_get16(const rc_u8 *p)
{
	return rc_be16(rc_load16(p));
}

static rc_inline rc_u32 rc_get32(const rc_u8 *p)
{
	return rc_be32(rc_load32(p));
}

#endif /* RC_TYPES_H */
