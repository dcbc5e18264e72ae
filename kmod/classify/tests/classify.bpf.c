// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The classifier as a tc program, as the eBPF engine uses it. Shows that kernels' verifiers accept it, and lets
 * check_bpf.c compare its results inside a kernel with those outside.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "../classify.h"

struct scratch {
	rc_u8 data[RC_PARSE_BUFFER];
	struct rc_flow flow;
};

/* What check_bpf.c reads after each run. */
struct result {
	struct rc_flow flow;
	rc_u32 hash;
	rc_u32 queue;
};

/* What check_bpf.c sets before each run. */
struct config {
	rc_u64 key[2];
	rc_u32 balance;
	rc_u32 nr_queues;
	rc_u16 vlan_tpid;
	rc_u16 vlan_tci;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, rc_u32);
	__type(value, struct scratch);
} scratch SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, rc_u32);
	__type(value, struct config);
} config SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, rc_u32);
	__type(value, struct result);
} result SEC(".maps");

/*
 * The engine's program has a function in the filter's place. In programs that have any function, verifiers before 6.3
 * treat every number as significant. Then they recognize fewer paths through the parser as equivalent.
 */
static __attribute__((noinline)) int filter(struct __sk_buff *skb)
{
	int accept = 1;

	asm volatile("" : "+r"(accept) : "r"(skb));
	return accept;
}

SEC("tc")
int classify(struct __sk_buff *skb)
{
	rc_u32 zero = 0;
	struct scratch *s = bpf_map_lookup_elem(&scratch, &zero);
	struct config *c = bpf_map_lookup_elem(&config, &zero);
	struct result *r = bpf_map_lookup_elem(&result, &zero);
	struct rc_frame frame;
	rc_u64 len = skb->len;

	if (!s || !c || !r || !len || !filter(skb))
		return -1;
	if (len > RC_PARSE_MAX)
		len = RC_PARSE_MAX;
	/* The verifier needs a bound on the register that is passed. */
	asm volatile("%0 += -1\n%0 &= %1\n%0 += 1" : "+r"(len) : "i"(RC_PARSE_MAX - 1));
	if (bpf_skb_load_bytes(skb, 0, s->data, len))
		return -1;
	frame.data = s->data;
	frame.avail = len;
	frame.vlan_tpid = c->vlan_tpid;
	frame.vlan_tci = c->vlan_tci;
	rc_parse(&frame, &s->flow);
	r->flow = s->flow;
	r->hash = rc_flow_hash(&s->flow, c->balance, c->key);
	r->queue = rc_queue(r->hash, c->nr_queues);
	return 0;
}

char _license[] SEC("license") = "Dual BSD/GPL";
