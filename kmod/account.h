/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Accounts. A counter is written by one CPU at a time, with bottom halves disabled, and read by anyone: plain 64-bit
 * additions that readers cannot see torn. Sums over CPUs are exact when no packet is under way.
 */
#ifndef RC_ACCOUNT_H
#define RC_ACCOUNT_H

#include <linux/compiler.h>
#include <linux/percpu.h>

/* One CPU's share of a ring's account: seen = filtered + sampled_out + passed. */
struct rc_account {
	u64 seen;
	u64 seen_bytes;
	u64 filtered;
	u64 sampled_out;
	u64 passed;
};

#define rc_account_add(counter, n) WRITE_ONCE(counter, (counter) + (n))

static inline void rc_account_sum(const struct rc_account __percpu *account, struct rc_account *sum)
{
	unsigned int cpu;

	*sum = (struct rc_account){};
	for_each_possible_cpu(cpu) {
		const struct rc_account *a = per_cpu_ptr(account, cpu);

		sum->seen += READ_ONCE(a->seen);
		sum->seen_bytes += READ_ONCE(a->seen_bytes);
		sum->filtered += READ_ONCE(a->filtered);
		sum->sampled_out += READ_ONCE(a->sampled_out);
		sum->passed += READ_ONCE(a->passed);
	}
}

#endif /* RC_ACCOUNT_H */
