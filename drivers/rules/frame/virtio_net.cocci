// SPDX-License-Identifier: GPL-2.0-only
//
// virtio_net, before the skb, with mergeable buffers. A frame that fits in one buffer is offered after its length was
// checked and counted, at a place where no XDP program may have changed it. Frames that the host has not finished
// (segments, missing checksums) take the path of the skb. So do frames with a hash, because the hash's place differs
// between kernels.

// Hook before: receive_mergeable

// From 7 on, buffers belong to a page pool.
@pool@ @@
 receive_mergeable(...)
 {
 <+...
 page_pool_put_page(...);
 ...+>
 }

@depends on pool@ expression list E; @@
 receive_mergeable(...)
 {
 <...
+if (virtnet_ringcap_frame(vi, rq, buf, len)) {
+	page_pool_put_page(rq->page_pool, page, -1, true);
+	return NULL;
+}
 head_skb = page_to_skb(vi, rq, page, E);
 ...>
 }

@depends on !pool@ expression list E; @@
 receive_mergeable(...)
 {
 <...
+if (virtnet_ringcap_frame(vi, rq, buf, len)) {
+	put_page(page);
+	return NULL;
+}
 head_skb = page_to_skb(vi, rq, page, E);
 ...>
 }

// The kernel has one place for a driver that is notified of dead CPUs, and the stock driver uses it.
@@ expression list E; @@
- cpuhp_setup_state_multi(CPUHP_VIRT_NET_DEAD, E)
+ virtnet_ringcap_keep_dead_state(cpuhp_setup_state_multi(CPUHP_BP_PREPARE_DYN, E))

@@ @@
- CPUHP_VIRT_NET_DEAD
+ virtnet_ringcap_dead_state
