// SPDX-License-Identifier: GPL-2.0-only
//
// igb, before the skb. A whole frame in one buffer is offered where the XDP program would see it. A taken frame is
// recycled as if the XDP program had dropped it, which the driver counts as received. Frames in several buffers and
// damaged ones take the path of the skb. So do frames with a time stamp that must be read from the device's only
// register.

// Hook before: igb_clean_rx_irq

// Up to 6.12, the verdict is an error pointer in place of the skb. Later it is a number.
@@ expression A, R, X; struct sk_buff *S; @@
 S =
- igb_run_xdp(A, R, X)
+ igb_ringcap_frame(R, rx_desc, X, timestamp) ? ERR_PTR(-IGB_XDP_CONSUMED) : igb_run_xdp(A, R, X)
 ;

@@ expression A, R, X; int V; @@
 V =
- igb_run_xdp(A, R, X)
+ igb_ringcap_frame(R, rx_desc, X, timestamp) ? IGB_XDP_CONSUMED : igb_run_xdp(A, R, X)
 ;
