// SPDX-License-Identifier: GPL-2.0-only

#include "pattern.h"

#include <linux/ringcap.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <net/netlink.h>

#define rc_pause() cond_resched()
#include "account.h"
#include "classify/pattern.h"
#include "compat/compat.h"
#include "packet.h"
#include "view.h"

/**
 * struct rc_patterns - a set of patterns
 * @nr: number of patterns in @list
 * @room: number of patterns that fit into @list
 * @bytes: total length of all patterns
 * @action: RINGCAP_ACTION_PASS or _DROP, for payload that contains a pattern
 * @stride: counters in @matches for each possible CPU; only that CPU writes them
 * @list: in the order in which they were added, each with its own copy of its bytes
 * @automaton: in @order and @block, once it is compiled
 * @order: see classify/pattern.h
 * @block: see classify/pattern.h
 * @size: bytes of @block
 * @matches: packets that each pattern decided on
 */
struct rc_patterns {
	u32 nr;
	u32 room;
	u32 bytes;
	u32 action;
	u32 stride;
	struct rc_pattern *list;
	struct rc_automaton automaton;
	u32 *order;
	void *block;
	u64 size;
	u64 *matches;
};

static const struct nla_policy rc_pattern_policy[RINGCAP_A_MAX + 1] = {
	[RINGCAP_A_PATTERN_BYTES] = { .type = NLA_BINARY, .len = RINGCAP_PATTERN_LEN_MAX },
	[RINGCAP_A_PATTERN_FLAGS] = { .type = NLA_U32 },
	[RINGCAP_A_PATTERN_OFFSET] = { .type = NLA_U32 },
	[RINGCAP_A_PATTERN_DEPTH] = { .type = NLA_U32 },
};

struct rc_patterns *rc_patterns_create(u32 action)
{
	struct rc_patterns *patterns = kzalloc(sizeof(*patterns), GFP_KERNEL_ACCOUNT);

	if (patterns)
		patterns->action = action;
	return patterns;
}

void rc_patterns_truncate(struct rc_patterns *patterns, u32 nr)
{
	while (patterns->nr > nr) {
		const struct rc_pattern *last = &patterns->list[--patterns->nr];

		patterns->bytes -= last->len;
		kfree(last->bytes);
		cond_resched();
	}
}

static void rc_patterns_decompile(struct rc_patterns *patterns)
{
	kvfree(patterns->order);
	kvfree(patterns->block);
	kvfree(patterns->matches);
	patterns->order = NULL;
	patterns->block = NULL;
	patterns->matches = NULL;
	patterns->size = 0;
	patterns->stride = 0;
}

void rc_patterns_free(struct rc_patterns *patterns)
{
	if (!patterns)
		return;
	rc_patterns_truncate(patterns, 0);
	rc_patterns_decompile(patterns);
	kvfree(patterns->list);
	kfree(patterns);
}

u32 rc_patterns_count(const struct rc_patterns *patterns)
{
	return patterns ? patterns->nr : 0;
}

u64 rc_patterns_memory(const struct rc_patterns *patterns)
{
	if (!patterns)
		return 0;
	return sizeof(*patterns) + (u64)patterns->room * sizeof(*patterns->list) + patterns->bytes +
	       (u64)patterns->nr * sizeof(*patterns->order) + patterns->size +
	       (u64)patterns->stride * nr_cpu_ids * sizeof(*patterns->matches);
}

/* ---- under construction ---- */

/* Makes room for one more. */
static int rc_patterns_grow(struct rc_patterns *patterns)
{
	u32 room = max(16U, 2 * patterns->room);
	struct rc_pattern *list;

	if (patterns->nr < patterns->room)
		return 0;
	list = kvmalloc_array(room, sizeof(*list), GFP_KERNEL_ACCOUNT);
	if (!list)
		return -ENOMEM;
	if (patterns->nr)
		memcpy(list, patterns->list, patterns->nr * sizeof(*list));
	kvfree(patterns->list);
	patterns->list = list;
	patterns->room = room;
	return 0;
}

static int rc_pattern_refuse(struct netlink_ext_ack *extack, const struct nlattr *attr, int err, const char *message)
{
	/* The macro requires a literal; these are literals. */
	if (extack) {
		extack->_msg = message;
		extack->bad_attr = attr;
	}
	return err;
}

/*
 * Checks a nest's attributes, and sets in @pattern the values that are kept; @pattern->bytes still points into the
 * request.
 */
static int rc_pattern_read(struct nlattr *const *in, const struct nlattr *nest, struct rc_pattern *pattern,
			   struct netlink_ext_ack *extack)
{
	const struct nlattr *bytes = in[RINGCAP_A_PATTERN_BYTES], *offset = in[RINGCAP_A_PATTERN_OFFSET];
	const struct nlattr *depth = in[RINGCAP_A_PATTERN_DEPTH], *flags = in[RINGCAP_A_PATTERN_FLAGS];

	if (!bytes || !nla_len(bytes))
		return rc_pattern_refuse(extack, bytes ?: nest, -EINVAL,
					 "RINGCAP_A_PATTERN_BYTES: a pattern is 1 to 255 bytes");
	if (flags && nla_get_u32(flags) & ~RINGCAP_PATTERN_NOCASE)
		return rc_pattern_refuse(extack, flags, -EINVAL,
					 "RINGCAP_A_PATTERN_FLAGS: RINGCAP_PATTERN_NOCASE is the only flag");
	pattern->bytes = nla_data(bytes);
	pattern->len = nla_len(bytes);
	pattern->nocase = flags && nla_get_u32(flags) & RINGCAP_PATTERN_NOCASE;
	pattern->offset = offset ? nla_get_u32(offset) : 0;
	pattern->depth = depth ? nla_get_u32(depth) : 0;
	if (pattern->depth && pattern->depth < pattern->len)
		return rc_pattern_refuse(extack, depth, -EINVAL,
					 "RINGCAP_A_PATTERN_DEPTH: the pattern is longer than that, it could never be found");
	return 0;
}

static int rc_pattern_keep(struct rc_patterns *patterns, const struct rc_pattern *pattern, const struct nlattr *nest,
			   struct netlink_ext_ack *extack)
{
	struct rc_pattern *kept;
	int err;

	if (patterns->nr == RINGCAP_PATTERNS_MAX)
		return rc_pattern_refuse(extack, nest, -E2BIG, "RINGCAP_A_PATTERN: a ring has at most 65536 patterns");
	if (patterns->bytes + pattern->len > RINGCAP_PATTERN_BYTES_MAX)
		return rc_pattern_refuse(extack, nest, -E2BIG,
					 "RINGCAP_A_PATTERN: a ring's patterns have at most 4194304 bytes together");
	err = rc_patterns_grow(patterns);
	if (err)
		return err;
	kept = &patterns->list[patterns->nr];
	*kept = *pattern;
	kept->bytes = kmemdup(pattern->bytes, pattern->len, GFP_KERNEL_ACCOUNT);
	if (!kept->bytes)
		return -ENOMEM;
	patterns->nr++;
	patterns->bytes += pattern->len;
	return 0;
}

int rc_patterns_add(struct rc_patterns *patterns, const struct nlattr *nest, struct netlink_ext_ack *extack)
{
	struct rc_pattern pattern;
	struct nlattr **in;
	int err;

	/* Too large for the stack. */
	in = kcalloc(RINGCAP_A_MAX + 1, sizeof(*in), GFP_KERNEL);
	if (!in)
		return -ENOMEM;
	err = nla_parse_nested(in, RINGCAP_A_MAX, nest, rc_pattern_policy, extack) ?:
	      rc_pattern_read(in, nest, &pattern, extack) ?: rc_pattern_keep(patterns, &pattern, nest, extack);
	kfree(in);
	return err;
}

static int rc_patterns_try_compile(struct rc_patterns *patterns)
{
	patterns->order = kvmalloc_array(patterns->nr, sizeof(*patterns->order), GFP_KERNEL_ACCOUNT);
	/* No two CPUs write to one cache line. */
	patterns->stride = round_up(patterns->nr, SMP_CACHE_BYTES / sizeof(u64));
	patterns->matches = kvcalloc(nr_cpu_ids, patterns->stride * sizeof(u64), GFP_KERNEL_ACCOUNT);
	if (!patterns->order || !patterns->matches)
		return -ENOMEM;
	rc_automaton_sort(&patterns->automaton, patterns->list, patterns->nr, patterns->order);
	patterns->size = rc_automaton_size(&patterns->automaton);
	patterns->block = kvmalloc(patterns->size, GFP_KERNEL_ACCOUNT);
	if (!patterns->block)
		return -ENOMEM;
	rc_automaton_build(&patterns->automaton, patterns->block);
	return 0;
}

/* Rejects a set in which one byte of payload could take unbounded time. */
static int rc_patterns_check_ends(const struct rc_patterns *patterns, struct netlink_ext_ack *extack)
{
	u32 crowded = rc_automaton_crowded(&patterns->automaton);
	char reason[80];

	BUILD_BUG_ON(RC_ENDS_MAX != RINGCAP_PATTERN_ENDS_MAX);
	if (!crowded)
		return 0;
	snprintf(reason, sizeof(reason), "pattern %u: over %u can end with it: merge those of one end",
		 crowded - 1, RC_ENDS_MAX);
	rc_compat_set_err_msg(extack, reason);
	return -E2BIG;
}

int rc_patterns_compile(struct rc_patterns *patterns, struct netlink_ext_ack *extack)
{
	int err = patterns ? rc_patterns_try_compile(patterns) ?: rc_patterns_check_ends(patterns, extack) : 0;

	if (err)
		rc_patterns_decompile(patterns);
	return err;
}

/* ---- packets ---- */

/* Payload in pieces; bytes that cannot be read are treated as absent. */
static void rc_patterns_search_pieces(const struct rc_automaton *automaton, struct rc_search *search,
				      struct sk_buff *skb, u32 from, u32 to)
{
	struct skb_seq_state state;
	unsigned int done = 0, len;
	const u8 *data;

	skb_prepare_seq_read(skb, from, to, &state);
	while ((len = skb_seq_read(done, &data, &state))) {
		/* The last piece may extend beyond the payload. */
		len = min(len, to - from - done);
		if (rc_search_piece(automaton, search, data, len, done + len < to - from)) {
			skb_abort_seq_read(&state);
			return;
		}
		done += len;
	}
}

/* The index plus 1 of the pattern that is in the packet's payload, 0 = none. */
static u32 rc_patterns_find(const struct rc_patterns *patterns, struct rc_packet *pkt)
{
	struct ringcap_packet view;
	struct rc_search search;
	u32 from, to;

	rc_view_init(&view, pkt);
	if (view.payload_off == view.payload_end)
		return 0;
	from = rc_view_skb_off(&view, view.payload_off);
	to = rc_view_skb_off(&view, view.payload_end);
	rc_search_start(&search);
	if (to <= pkt->linear)
		rc_search_piece(&patterns->automaton, &search, pkt->data + from, to - from, false);
	else
		rc_patterns_search_pieces(&patterns->automaton, &search, pkt->skb, from, to);
	return search.hit;
}

bool rc_patterns_pass(const struct rc_patterns *patterns, struct rc_packet *pkt)
{
	u32 hit = rc_patterns_find(patterns, pkt);
	u64 *matches;

	if (hit) {
		matches = &patterns->matches[(u64)smp_processor_id() * patterns->stride + hit - 1];
		rc_account_add(*matches, 1);
	}
	return !hit == (patterns->action == RINGCAP_ACTION_DROP);
}

/* ---- shown ---- */

static u64 rc_patterns_matches(const struct rc_patterns *patterns, u32 index)
{
	unsigned int cpu;
	u64 sum = 0;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(patterns->matches[(u64)cpu * patterns->stride + index]);
	return sum;
}

int rc_patterns_put(struct sk_buff *msg, const struct rc_patterns *patterns, u32 index)
{
	const struct rc_pattern *pattern = &patterns->list[index];
	struct nlattr *nest = nla_nest_start(msg, RINGCAP_A_PATTERN);

	if (!nest || nla_put(msg, RINGCAP_A_PATTERN_BYTES, pattern->len, pattern->bytes) ||
	    nla_put_u32(msg, RINGCAP_A_PATTERN_FLAGS, pattern->nocase ? RINGCAP_PATTERN_NOCASE : 0) ||
	    nla_put_u32(msg, RINGCAP_A_PATTERN_OFFSET, pattern->offset) ||
	    nla_put_u32(msg, RINGCAP_A_PATTERN_DEPTH, pattern->depth) ||
	    nla_put_u64_64bit(msg, RINGCAP_A_PATTERN_MATCHES, rc_patterns_matches(patterns, index), RINGCAP_A_PAD)) {
		if (nest)
			nla_nest_cancel(msg, nest);
		return -EMSGSIZE;
	}
	nla_nest_end(msg, nest);
	return 0;
}
