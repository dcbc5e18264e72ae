/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Accounts. One CPU at a time writes a counter, with bottom halves disabled. Any CPU may read it. The 64-bit additions
 * take no lock, and readers never see a torn value. Sums over CPUs are exact while no packet is being processed.
 */
#ifndef RC_ACCOUNT_H
#define RC_ACCOUNT_H

#include <asm/barrier.h>
#include <linux/compiler.h>
#include <linux/jiffies.h>
#include <linux/percpu.h>

/* The fate of a packet that a ring saw. Each packet has exactly one. See ACCOUNTS in linux/ringcap.h. */
enum rc_fate {
	RC_FATE_PASSED,
	RC_FATE_FILTERED,
	RC_FATE_SAMPLED_OUT,
	RC_FATE_REFLECTED,
	RC_FATE_ABSORBED,
	RC_FATE_DIRECTED,
	RC_FATES
};

#define RC_ACCOUNT_LOSSES 4	/* RINGCAP_INLINE_TOO_LONG .. RINGCAP_INLINE_DOWN */

/*
 * One CPU's share of a ring's account. @reflect_failed: part of RC_FATE_REFLECTED. @not_learnt: see
 * RINGCAP_A_NOT_LEARNT. @bridged, @lost: of a pair's packets that did not pass, from RINGCAP_INLINE_TOO_LONG on.
 */
struct rc_account {
	u64 seen_bytes;
	u64 fates[RC_FATES];
	u64 reflect_failed;
	u64 not_learnt;
	u64 bridged;
	u64 lost[RC_ACCOUNT_LOSSES];
};

/* The sum over all CPUs. @seen: the sum of the fates, so that an account always adds up. */
struct rc_account_sum {
	u64 seen;
	u64 seen_bytes;
	u64 fates[RC_FATES];
	u64 reflect_failed;
	u64 not_learnt;
	u64 bridged;
	u64 lost[RC_ACCOUNT_LOSSES];
};

/*
 * Jiffies since @stamp. Any CPU may be writing jiffies to @stamp. The stamp is read first: if jiffies were read first,
 * they could be earlier than the stamp, and the difference would be huge.
 */
static inline u32 rc_account_idle(const u32 *stamp)
{
	u32 then = READ_ONCE(*stamp);

	smp_rmb();
	return (u32)jiffies - then;
}

#define rc_account_add(counter, n) WRITE_ONCE(counter, (counter) + (n))

/* One instruction per counter where the machine has one. */
static __always_inline void rc_account_packet(struct rc_account __percpu *account, enum rc_fate fate, u32 bytes)
{
	__this_cpu_add(account->seen_bytes, bytes);
	__this_cpu_inc(account->fates[fate]);
}

static inline void rc_account_sum(const struct rc_account __percpu *account, struct rc_account_sum *sum)
{
	unsigned int cpu, fate, loss;

	*sum = (struct rc_account_sum){};
	for_each_possible_cpu(cpu) {
		const struct rc_account *a = per_cpu_ptr(account, cpu);

		sum->seen_bytes += READ_ONCE(a->seen_bytes);
		for (fate = 0; fate < RC_FATES; fate++)
			sum->fates[fate] += READ_ONCE(a->fates[fate]);
		sum->reflect_failed += READ_ONCE(a->reflect_failed);
		sum->not_learnt += READ_ONCE(a->not_learnt);
		sum->bridged += READ_ONCE(a->bridged);
		for (loss = 0; loss < RC_ACCOUNT_LOSSES; loss++)
			sum->lost[loss] += READ_ONCE(a->lost[loss]);
	}
	for (fate = 0; fate < RC_FATES; fate++)
		sum->seen += sum->fates[fate];
}

#endif /* RC_ACCOUNT_H */
