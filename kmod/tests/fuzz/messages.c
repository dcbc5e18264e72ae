// SPDX-License-Identifier: GPL-2.0-only
/*
 * Netlink messages that are nearly right: of each command the attributes that belong to it, with values that mostly make
 * sense, sometimes others; then, in half of them, damage to the bytes: lengths, types, the end.
 */
#define _GNU_SOURCE
#include "fuzz.h"

#include <linux/bpf.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../control.h"

#define RF_ROOM 20000	/* bytes that one attribute may take at most */

typedef void (*rf_put_fn)(struct rt_message *message, u64 *seed, u16 type);

/* ---- values ---- */

static u16 rf_flow_port(u64 *seed)
{
	return (u16)(rf_one_in(seed, 3) ? rf_number(seed) : 10000 + rf_below(seed, 8));
}

static void rf_address(u64 *seed, u8 *address, u32 family)
{
	rf_bytes(seed, address, 16);
	/* As in rf_act_frames. */
	memcpy(address, family == 6 ? "\xfd\0\0" : "\x0a\0\0", 3);
	address[3] = (u8)rf_below(seed, 4);
	if (family != 6)
		memset(address + 4, 0, 12);
}

static void rf_put_number(struct rt_message *message, u64 *seed, u16 type)
{
	rt_message_put_u32(message, type, rf_one_in(seed, 2) ? rf_below(seed, 4) : rf_number(seed));
}

/* Of a size that packets and lanes have. */
static void rf_put_bytes_number(struct rt_message *message, u64 *seed, u16 type)
{
	rt_message_put_u32(message, type, rf_one_in(seed, 20) ? rf_number(seed) : 1 + rf_below(seed, 3000));
}

static void rf_put_small(struct rt_message *message, u64 *seed, u16 type)
{
	rt_message_put_u32(message, type, rf_one_in(seed, 20) ? rf_number(seed) : rf_below(seed, 3));
}

static void rf_put_flag(struct rt_message *message, u64 *seed, u16 type)
{
	rt_message_put_u32(message, type, rf_one_in(seed, 20) ? rf_number(seed) : rf_below(seed, 2));
}

static void rf_put_u64(struct rt_message *message, u64 *seed, u16 type)
{
	rt_message_put_u64(message, type, (u64)rf_number(seed) << rf_below(seed, 32));
}

/* Memory is not what is tried here. */
static void rf_put_queues(struct rt_message *message, u64 *seed, u16 type)
{
	rt_message_put_u32(message, type, rf_one_in(seed, 30) ? rf_below(seed, 20) : 1 + rf_below(seed, RF_QUEUES));
}

static void rf_put_lane_size(struct rt_message *message, u64 *seed, u16 type)
{
	u32 size = rf_one_in(seed, 20) ? rf_number(seed) : RINGCAP_LANE_SIZE_MIN << rf_below(seed, 3);

	rt_message_put_u32(message, type, size > (1U << 20) && size <= RINGCAP_LANE_SIZE_MAX ? size | 1 : size);
}

static void rf_put_mode(struct rt_message *message, u64 *seed, u16 type)
{
	rt_message_put_u32(message, type, rf_one_in(seed, 20) ? rf_number(seed) : 0600);
}

static void rf_put_balance(struct rt_message *message, u64 *seed, u16 type)
{
	rt_message_put_u32(message, type, rf_one_in(seed, 20) ? rf_number(seed) : rf_below(seed, __RINGCAP_BALANCE_MAX));
}

static void rf_put_ifindex(struct rt_message *message, u64 *seed, u16 type)
{
	static const char *const devices[] = { "p0", "p1", "q0", "q1", "q2", "lo", "p0", "p1" };

	rt_message_put_u32(message, type, rf_one_in(seed, 20) ? rf_number(seed) : if_nametoindex(devices[rf_below(seed, 8)]));
}

static void rf_put_output(struct rt_message *message, u64 *seed, u16 type)
{
	char name[RINGCAP_NAME_MAX + 1];

	rf_cluster_name(seed, name, sizeof(name));
	rt_message_put_name(message, type, name);
}

static void rf_put_key(struct rt_message *message, u64 *seed, u16 type)
{
	u8 key[RINGCAP_KEY_LEN];

	rf_bytes(seed, key, sizeof(key));
	rt_message_put(message, type, key, sizeof(key));
}

static void rf_put_bytes(struct rt_message *message, u64 *seed, u16 type)
{
	u8 bytes[300];
	u32 len = rf_below(seed, rf_one_in(seed, 4) ? sizeof(bytes) : 20);

	rf_bytes(seed, bytes, len);
	rt_message_put(message, type, bytes, len);
}

static void rf_put_words(struct rt_message *message, u64 *seed, u16 type)
{
	u16 words[64];
	u32 i, n = 1 + rf_below(seed, rf_one_in(seed, 4) ? 64 : 4);

	for (i = 0; i < n; i++)
		words[i] = (u16)(rf_one_in(seed, 10) ? rf_number(seed) : rf_below(seed, 6));
	rt_message_put(message, type, words, n * sizeof(words[0]));
}

static void rf_put_rx_queues(struct rt_message *message, u64 *seed, u16 type)
{
	u64 words[RINGCAP_RX_QUEUES_MAX / 64 + 1];

	rf_bytes(seed, words, sizeof(words));
	words[0] |= 1;
	rt_message_put(message, type, words, rf_one_in(seed, 5) ? rf_below(seed, sizeof(words) + 1) : 8);
}

/* Sometimes valid classic BPF. */
static void rf_put_filter(struct rt_message *message, u64 *seed, u16 type)
{
	struct sock_filter program[8] = {
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 12),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x0800, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, rf_number(seed)),
		BPF_STMT(BPF_RET | BPF_K, rf_below(seed, 2)),
	};

	if (rf_one_in(seed, 4))
		rf_bytes(seed, &program[rf_below(seed, 4)], sizeof(program[0]));
	rt_message_put(message, type, program, 4 * sizeof(program[0]));
}

static int rf_program(u64 *seed)
{
	/* r0 = number; exit. */
	struct bpf_insn code[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = (int)rf_number(seed) },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr = {
		.prog_type = rf_one_in(seed, 5) ? BPF_PROG_TYPE_XDP : BPF_PROG_TYPE_SOCKET_FILTER,
		.insns = (unsigned long)code, .insn_cnt = 2, .license = (unsigned long)"GPL",
	};

	return (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
}

static int rf_program_fd = -1;

static void rf_put_plugin(struct rt_message *message, u64 *seed, u16 type)
{
	static const char *const names[] = { "dns", "http", "", "nobody" };
	u32 nest = rt_message_nest(message, type);

	if (rf_one_in(seed, 2)) {
		rt_message_put_name(message, RINGCAP_A_PLUGIN_NAME, names[rf_below(seed, 4)]);
	} else {
		/* Given up once the message is sent. */
		if (rf_program_fd < 0)
			rf_program_fd = rf_program(seed);
		rt_message_put_u32(message, RINGCAP_A_PLUGIN_FD, rf_one_in(seed, 5) ? rf_number(seed) : (u32)rf_program_fd);
	}
	if (rf_one_in(seed, 2))
		rf_put_bytes(message, seed, RINGCAP_A_PLUGIN_CONFIG);
	rt_message_nest_end(message, nest);
}

/* Two taps that name one another. */
static void rf_put_pair(struct rt_message *message, u64 *seed, u16 type)
{
	static const char *const devices[] = { "p0", "p1", "q0", "q1" };
	u32 a = if_nametoindex(devices[rf_below(seed, 4)]), b = if_nametoindex(devices[rf_below(seed, 4)]), i, nest;

	for (i = 0; i < 2; i++) {
		nest = rt_message_nest(message, type);
		rt_message_put_u32(message, RINGCAP_A_TAP_IFINDEX, i ? b : a);
		rt_message_put_u32(message, RINGCAP_A_TAP_PEER, i ? a : b);
		rt_message_nest_end(message, nest);
	}
}

static void rf_put_tap(struct rt_message *message, u64 *seed, u16 type)
{
	u32 nest;

	if (rf_one_in(seed, 5)) {
		rf_put_pair(message, seed, type);
		return;
	}
	nest = rt_message_nest(message, type);
	rf_put_ifindex(message, seed, RINGCAP_A_TAP_IFINDEX);
	if (rf_one_in(seed, 2))
		rt_message_put_u32(message, RINGCAP_A_TAP_DIRECTION, rf_one_in(seed, 20) ? rf_number(seed) : 1 + rf_below(seed, 3));
	if (rf_one_in(seed, 5))
		rf_put_rx_queues(message, seed, RINGCAP_A_TAP_RX_QUEUES);
	if (rf_one_in(seed, 5))
		rt_message_put_u32(message, RINGCAP_A_TAP_FOLLOWS, rf_below(seed, 3));
	rt_message_nest_end(message, nest);
}

static void rf_put_target(struct rt_message *message, u64 *seed, u16 type)
{
	u32 nest = rt_message_nest(message, type);

	if (rf_one_in(seed, 2)) {
		rf_put_output(message, seed, RINGCAP_A_OUTPUT);
		rf_put_small(message, seed, RINGCAP_A_QUEUE);
	} else {
		rf_put_ifindex(message, seed, RINGCAP_A_TAP_IFINDEX);
	}
	rt_message_nest_end(message, nest);
}

static void rf_put_pattern(struct rt_message *message, u64 *seed, u16 type)
{
	static const char *const texts[] = { "GET", "get /index", "Host:", "aaaa", "aab", "a", "\x17\x03" };
	const char *text = texts[rf_below(seed, 7)];
	u32 nest = rt_message_nest(message, type);

	if (rf_one_in(seed, 3))
		rf_put_bytes(message, seed, RINGCAP_A_PATTERN_BYTES);
	else
		rt_message_put(message, RINGCAP_A_PATTERN_BYTES, text, (u32)strlen(text));
	if (rf_one_in(seed, 2))
		rf_put_flag(message, seed, RINGCAP_A_PATTERN_FLAGS);
	if (rf_one_in(seed, 4))
		rf_put_number(message, seed, RINGCAP_A_PATTERN_OFFSET);
	if (rf_one_in(seed, 4))
		rf_put_number(message, seed, RINGCAP_A_PATTERN_DEPTH);
	rt_message_nest_end(message, nest);
}

/* Whether each rule of this message is one that can be: a single one that cannot spoils the message. */
static bool rf_sane;

static u16 rf_target(u64 *seed, u8 action)
{
	if (rf_sane && action != RINGCAP_ACTION_QUEUE && action != RINGCAP_ACTION_REFLECT)
		return 0;
	return (u16)rf_below(seed, rf_sane ? 2 : 4);
}

static u8 rf_action(u64 *seed, bool exact)
{
	static const u8 plain[] = { RINGCAP_ACTION_PASS, RINGCAP_ACTION_DROP, RINGCAP_ACTION_LEARN };

	/* Targets are of one kind or the other, and often there are none. */
	if (rf_sane && !rf_one_in(seed, 8))
		return plain[rf_below(seed, exact ? 2 : 3)];
	return (u8)rf_below(seed, __RINGCAP_ACTION_MAX);
}

static void rf_put_exact(struct rt_message *message, u64 *seed, u16 type)
{
	static struct ringcap_exact rules[300];
	u32 i, n = 1 + rf_below(seed, rf_one_in(seed, 10) ? 300 : 4);

	for (i = 0; i < n; i++) {
		u32 family = rf_one_in(seed, 4) ? 6 : 4;

		rules[i] = (struct ringcap_exact){
			.sport = rf_flow_port(seed), .dport = rf_flow_port(seed),
			.l3_proto = family == 6 ? 0x86dd : 0x0800, .vlan_id = (u16)rf_below(seed, 3),
			.l4_proto = rf_one_in(seed, 2) ? 6 : 17, .action = rf_action(seed, true), .idle_s = rf_below(seed, 3),
		};
		rules[i].target = rf_target(seed, rules[i].action);
		rf_address(seed, rules[i].saddr, family);
		rf_address(seed, rules[i].daddr, family);
		if (!rf_sane && rf_one_in(seed, 40))
			rf_bytes(seed, (u8 *)&rules[i] + rf_below(seed, sizeof(rules[i]) - 4), 4);
	}
	rt_message_put(message, type, rules, n * sizeof(rules[0]));
}

static void rf_make_rule(u64 *seed, struct ringcap_rule *rule)
{
	*rule = (struct ringcap_rule){
		.id = 1 + rf_below(seed, 200), .priority = rf_below(seed, 5), .fields = rf_below(seed, RINGCAP_MATCH_ALL + 1),
		.idle_s = rf_below(seed, 3), .action = rf_action(seed, false),
		.flags = (u8)rf_below(seed, 2), .family = 4, .l4_proto = 17, .inner_family = 4,
		.splen = (u8)rf_below(seed, 33), .dplen = (u8)rf_below(seed, 33), .inner_splen = (u8)rf_below(seed, 33),
		.inner_dplen = (u8)rf_below(seed, 33), .ethertype = 0x0800, .vlan_id = (u16)rf_below(seed, 3),
		.sport = { 0, 65535 }, .dport = { 10000, (u16)(10000 + rf_below(seed, 10)) },
		.tunnel_id = rf_below(seed, 3), .tcp_mask = 2, .tcp_flags = (u8)(2 * rf_below(seed, 2)),
	};
	/* Few shapes and few fields, or hardly anything matches. */
	if (!rf_one_in(seed, 5))
		rule->fields &= rf_below(seed, RINGCAP_MATCH_ALL + 1) & rf_below(seed, RINGCAP_MATCH_ALL + 1);
	if (rule->fields & RINGCAP_MATCH_TCP_FLAGS && rf_sane) {
		rule->fields &= ~(RINGCAP_MATCH_SPORT | RINGCAP_MATCH_DPORT);
		rule->l4_proto = 6;
	}
	rule->target = rf_target(seed, rule->action);
	rf_address(seed, rule->saddr, 4);
	rf_address(seed, rule->daddr, 4);
	if (!rf_sane && rf_one_in(seed, 40))
		rf_bytes(seed, (u8 *)rule + rf_below(seed, sizeof(*rule) - 4), 4);
}

static void rf_put_rule(struct rt_message *message, u64 *seed, u16 type)
{
	static struct ringcap_rule rules[60];
	u32 i, n = 1 + rf_below(seed, rf_one_in(seed, 10) ? 60 : 4);

	for (i = 0; i < n; i++)
		rf_make_rule(seed, &rules[i]);
	rt_message_put(message, type, rules, n * sizeof(rules[0]));
}

/* ---- commands ---- */

/* An attribute of a command: in one of @one_in messages, then 1 to @most times. */
struct rf_attribute {
	u16 type;
	u8 one_in;
	u8 most;
	rf_put_fn put;
};

static const struct rf_attribute rf_cluster_attributes[] = {
	{ RINGCAP_A_LANE_SIZE, 1, 1, rf_put_lane_size }, { RINGCAP_A_QUEUES, 2, 1, rf_put_queues },
	{ RINGCAP_A_LANES, 2, 1, rf_put_small }, { RINGCAP_A_GENERATION, 4, 1, rf_put_u64 },
	{ RINGCAP_A_BALANCE, 2, 1, rf_put_balance }, { RINGCAP_A_KEY, 8, 1, rf_put_key },
	{ RINGCAP_A_WATERMARK, 5, 1, rf_put_bytes_number }, { RINGCAP_A_TIMEOUT_US, 5, 1, rf_put_bytes_number },
	{ RINGCAP_A_MODE, 12, 1, rf_put_mode }, { RINGCAP_A_METADATA, 4, 1, rf_put_flag },
	{ RINGCAP_A_INNER, 4, 1, rf_put_flag }, { RINGCAP_A_FRAGMENTS, 4, 1, rf_put_flag },
	{ RINGCAP_A_WHEN_FULL, 4, 1, rf_put_flag }, { RINGCAP_A_WHEN_UNATTENDED, 4, 1, rf_put_flag },
	{ RINGCAP_A_INJECT, 3, 2, rf_put_ifindex }, { RINGCAP_A_OWNED, 8, 1, rf_put_flag },
	{ RINGCAP_A_INLINE, 6, 1, rf_put_small }, { RINGCAP_A_HUNG_MS, 12, 1, rf_put_bytes_number },
	{ RINGCAP_A_SHUNT_QUOTA, 2, 1, rf_put_bytes_number }, {}
};

static const struct rf_attribute rf_ring_attributes[] = {
	{ RINGCAP_A_TAP, 1, 2, rf_put_tap }, { RINGCAP_A_OUTPUT, 1, 2, rf_put_output },
	{ RINGCAP_A_GENERATION, 4, 1, rf_put_u64 }, { RINGCAP_A_SNAPLEN, 4, 1, rf_put_bytes_number },
	{ RINGCAP_A_FILTER, 5, 1, rf_put_filter }, { RINGCAP_A_PROMISC, 4, 1, rf_put_flag },
	{ RINGCAP_A_TRANSPARENT, 8, 1, rf_put_small }, { RINGCAP_A_QUICK, 12, 1, rf_put_flag },
	{ RINGCAP_A_VLANS, 8, 1, rf_put_words }, { RINGCAP_A_SAMPLE, 6, 1, rf_put_small },
	{ RINGCAP_A_SAMPLE_BY, 6, 1, rf_put_flag }, { RINGCAP_A_DEFRAG, 4, 1, rf_put_flag },
	{ RINGCAP_A_HWTSTAMP, 8, 1, rf_put_flag }, { RINGCAP_A_PLUGIN, 6, 2, rf_put_plugin },
	{ RINGCAP_A_OWNED, 8, 1, rf_put_flag }, {}
};

static const struct rf_attribute rf_begin_attributes[] = {
	{ RINGCAP_A_GENERATION, 2, 1, rf_put_u64 }, { RINGCAP_A_DEFAULT_ACTION, 4, 1, rf_put_flag },
	{ RINGCAP_A_TARGET, 1, 3, rf_put_target }, { RINGCAP_A_PATTERN_ACTION, 3, 1, rf_put_flag }, {}
};

static const struct rf_attribute rf_rule_attributes[] = {
	{ RINGCAP_A_EXACT, 2, 2, rf_put_exact }, { RINGCAP_A_RULE, 2, 2, rf_put_rule },
	{ RINGCAP_A_PATTERN, 3, 6, rf_put_pattern }, {}
};

static const struct rf_attribute rf_change_attributes[] = {
	{ RINGCAP_A_EXACT, 2, 1, rf_put_exact }, { RINGCAP_A_RULE, 2, 1, rf_put_rule }, {}
};

static const struct rf_attribute rf_queue_attributes[] = { { RINGCAP_A_QUEUE, 1, 1, rf_put_small }, {} };
static const struct rf_attribute rf_revoke_attributes[] = {
	{ RINGCAP_A_QUEUE, 1, 1, rf_put_small }, { RINGCAP_A_ATTACHMENT, 8, 1, rf_put_u64 }, {}
};
static const struct rf_attribute rf_no_attributes[] = { {} };

/* @weight: of how many it is one; @cluster: NAME is a cluster's, or else a ring's. */
struct rf_command {
	u8 cmd;
	u8 weight;
	bool cluster;
	const struct rf_attribute *attributes;
};

static const struct rf_command rf_commands[] = {
	{ RINGCAP_CMD_CLUSTER_SET, 12, true, rf_cluster_attributes },
	{ RINGCAP_CMD_RING_SET, 20, false, rf_ring_attributes },
	{ RINGCAP_CMD_RULES_BEGIN, 8, false, rf_begin_attributes },
	{ RINGCAP_CMD_RULES_ADD, 12, false, rf_rule_attributes },
	{ RINGCAP_CMD_RULES_COMMIT, 8, false, rf_no_attributes },
	{ RINGCAP_CMD_RULES_ABORT, 1, false, rf_no_attributes },
	{ RINGCAP_CMD_RULE_NEW, 8, false, rf_change_attributes },
	{ RINGCAP_CMD_RULE_DEL, 6, false, rf_change_attributes },
	{ RINGCAP_CMD_QUEUE_RESET, 6, true, rf_queue_attributes },
	{ RINGCAP_CMD_QUEUE_REVOKE, 4, true, rf_revoke_attributes },
	{ RINGCAP_CMD_CLUSTER_DEL, 3, true, rf_no_attributes },
	{ RINGCAP_CMD_RING_DEL, 3, false, rf_no_attributes },
	{ RINGCAP_CMD_CLUSTER_GET, 2, true, rf_no_attributes },
	{ RINGCAP_CMD_RING_GET, 2, false, rf_no_attributes },
	{ RINGCAP_CMD_QUEUE_GET, 2, true, rf_no_attributes },
	{ RINGCAP_CMD_RULES_GET, 2, false, rf_no_attributes },
	{ RINGCAP_CMD_INFO_GET, 1, true, rf_no_attributes },
};

static const struct rf_command *rf_choose(u64 *seed)
{
	u32 i, sum = 0, at;

	for (i = 0; i < sizeof(rf_commands) / sizeof(rf_commands[0]); i++)
		sum += rf_commands[i].weight;
	at = rf_below(seed, sum);
	for (i = 0; at >= rf_commands[i].weight; i++)
		at -= rf_commands[i].weight;
	return &rf_commands[i];
}

static bool rf_has_room(const struct rt_message *message)
{
	return message->len + RF_ROOM < RT_MESSAGE_MAX;
}

static void rf_put_all(struct rt_message *message, u64 *seed, const struct rf_attribute *at)
{
	u32 i, n;

	for (; at->put; at++) {
		n = rf_one_in(seed, at->one_in) ? 1 + rf_below(seed, at->most) : 0;
		for (i = 0; i < n && rf_has_room(message); i++)
			at->put(message, seed, at->type);
	}
	/* What belongs to other commands, or to none. */
	if (rf_one_in(seed, 20) && rf_has_room(message))
		rf_put_bytes(message, seed, (u16)rf_below(seed, RINGCAP_A_MAX + 5));
}

static void rf_build(struct rt_message *message, u64 *seed, const struct rf_command *command)
{
	u16 flags = rf_one_in(seed, 3) && (command->cmd == RINGCAP_CMD_CLUSTER_GET || command->cmd == RINGCAP_CMD_RING_GET ||
					   command->cmd == RINGCAP_CMD_RULES_GET || command->cmd == RINGCAP_CMD_QUEUE_GET) ?
			    NLM_F_DUMP : 0;
	char name[RINGCAP_NAME_MAX + 1];
	static u32 ring;

	rf_sane = !rf_one_in(seed, 3);
	rt_message_init(message, command->cmd, flags);
	/* What builds a set is said of one ring for a while. */
	if (rf_one_in(seed, 20))
		ring = rf_below(seed, RF_OBJECTS);
	if (command->attributes == rf_begin_attributes || command->attributes == rf_rule_attributes ||
	    command->attributes == rf_change_attributes || command->cmd == RINGCAP_CMD_RULES_COMMIT)
		snprintf(name, sizeof(name), "rz-%u", ring);
	else if (rf_one_in(seed, 30) ? !command->cluster : command->cluster)
		rf_cluster_name(seed, name, sizeof(name));
	else
		rf_ring_name(seed, name, sizeof(name));
	if (!rf_one_in(seed, 50))
		rt_message_put_name(message, RINGCAP_A_NAME, name);
	rf_put_all(message, seed, command->attributes);
}

/* ---- damage ---- */

/* One of the message's outermost attributes, or of those in it. */
static struct nlattr *rf_pick(struct rt_message *message, u64 *seed)
{
	u32 at = NLMSG_LENGTH(GENL_HDRLEN), steps = rf_below(seed, 10);
	struct nlattr *attr = NULL;

	while (at + NLA_HDRLEN <= message->len) {
		attr = (struct nlattr *)(message->bytes + at);
		if (!steps--)
			break;
		if (attr->nla_len < NLA_HDRLEN)
			break;
		at += (attr->nla_type & NLA_F_NESTED) && rf_one_in(seed, 2) ? NLA_HDRLEN : (u32)NLA_ALIGN(attr->nla_len);
	}
	return attr;
}

static void rf_flip_bits(struct rt_message *message, u64 *seed)
{
	const u32 header = NLMSG_LENGTH(GENL_HDRLEN);
	u32 i, flips = 1 + rf_below(seed, 4);

	for (i = 0; i < flips && message->len > header; i++)
		message->bytes[header + rf_below(seed, message->len - header)] ^= (u8)(1U << rf_below(seed, 8));
}

static void rf_damage(struct rt_message *message, u64 *seed)
{
	const u32 header = NLMSG_LENGTH(GENL_HDRLEN);
	struct nlattr *attr = rf_pick(message, seed);
	u32 len;

	switch (attr ? rf_below(seed, 7) : 6) {
	case 0:
		attr->nla_len = (u16)rf_number(seed);
		break;
	case 1:
		attr->nla_len = (u16)(attr->nla_len + rf_below(seed, 9) - 4);
		break;
	case 2:
		attr->nla_type = (u16)(rf_below(seed, RINGCAP_A_MAX + 3) | (rf_one_in(seed, 3) ? NLA_F_NESTED : 0));
		break;
	case 3:
		attr->nla_type ^= NLA_F_NESTED;
		break;
	case 4:
		/* Again at the end, many times. */
		len = NLA_ALIGN(attr->nla_len);
		while ((u8 *)attr + len <= message->bytes + message->len && len && len < RF_ROOM && rf_has_room(message) &&
		       !rf_one_in(seed, 100)) {
			memcpy(message->bytes + message->len, attr, len);
			message->len += len;
		}
		break;
	case 5:
		message->len = header + rf_below(seed, message->len - header + 1);
		break;
	default:
		rf_flip_bits(message, seed);
	}
}

/* ---- talking ---- */

int rf_netlink_open(void)
{
	struct sockaddr_nl address = { .nl_family = AF_NETLINK };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_GENERIC), one = 1;

	RT_CHECK(fd >= 0 && !bind(fd, (struct sockaddr *)&address, sizeof(address)), "generic netlink: %m");
	setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &one, sizeof(one));
	return fd;
}

/* Takes what has come; true if request @seq was accepted. */
static bool rf_drain(int fd, u32 seq)
{
	static u8 buffer[RT_MESSAGE_MAX] __attribute__((aligned(8)));
	const struct nlmsghdr *header;
	bool accepted = false;
	ssize_t len;

	while ((len = recv(fd, buffer, sizeof(buffer), 0)) > 0) {
		for (header = (void *)buffer; NLMSG_OK(header, len); header = NLMSG_NEXT(header, len))
			accepted |= (header->nlmsg_type == NLMSG_ERROR || header->nlmsg_type == NLMSG_DONE) &&
				    header->nlmsg_seq == seq && !((struct nlmsgerr *)NLMSG_DATA(header))->error;
	}
	return accepted;
}

static void rf_send(int fd, struct rt_message *message, u8 cmd)
{
	struct nlmsghdr *header = (struct nlmsghdr *)message->bytes;
	static u32 seq;

	header->nlmsg_len = message->len;
	header->nlmsg_seq = ++seq;
	rf_count(sent[cmd]);
	if (send(fd, message->bytes, message->len, 0) == (ssize_t)message->len && rf_drain(fd, seq))
		rf_count(accepted[cmd]);
	if (rf_program_fd >= 0) {
		close(rf_program_fd);
		rf_program_fd = -1;
	}
}

void rf_act_messages(u64 seed)
{
	static struct rt_message message;
	int fd = rf_netlink_open();
	u32 steps;

	for (steps = 0; rf_go_on(steps); steps++) {
		const struct rf_command *command = rf_choose(&seed);

		rf_build(&message, &seed, command);
		/* Not too many, or too little is ever there. */
		if (rf_one_in(&seed, 3))
			rf_damage(&message, &seed);
		rf_send(fd, &message, command->cmd);
		/* With it goes what is owned by it or half made. */
		if (rf_one_in(&seed, 300)) {
			close(fd);
			fd = rf_netlink_open();
		}
	}
	close(fd);
}
