// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* rc_parse_inner as a tc program. Shows that kernels' verifiers accept it, so that the engine can use it if needed. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "../classify.h"

struct scratch {
	rc_u8 data[RC_INNER_BUFFER];
	struct rc_flow flow;
	struct rc_inner inner;
};

/* The tag that is held elsewhere, set by check_bpf.c, and the result. */
struct result {
	rc_u16 vlan_tpid;
	rc_u16 vlan_tci;
	rc_u32 is_there;
	struct rc_way_in found;
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
	__type(value, struct result);
} result SEC(".maps");

SEC("tc")
int inner(struct __sk_buff *skb)
{
	rc_u32 zero = 0;
	struct scratch *s = bpf_map_lookup_elem(&scratch, &zero);
	struct result *r = bpf_map_lookup_elem(&result, &zero);
	struct rc_frame frame;
	rc_u64 len = skb->len;

	if (!s || !r || !len)
		return -1;
	if (len > RC_INNER_MAX)
		len = RC_INNER_MAX;
	asm volatile("%0 += -1\n%0 &= %1\n%0 += 1" : "+r"(len) : "i"(1023));
	if (len > RC_INNER_MAX || bpf_skb_load_bytes(skb, 0, s->data, len))
		return -1;
	frame.data = s->data;
	frame.avail = len;
	frame.vlan_tpid = r->vlan_tpid;
	frame.vlan_tci = r->vlan_tci;
	rc_parse(&frame, &s->flow);
	r->is_there = rc_parse_inner(&frame, &s->flow, &s->inner);
	r->found = s->inner.found;
	return 0;
}

char _license[] SEC("license") = "Dual BSD/GPL";
