// SPDX-License-Identifier: GPL-2.0-only
//
// ixgbe, before the skb: as igb. Also those that the device has merged (RSC), decrypted (IPsec), placed
// elsewhere (FCoE), or that are a macvlan's take the way of the skb, and all of them while times are wanted,
// which the device puts behind frames.

// Hook before: ixgbe_clean_rx_irq

// Up to 6.12 the verdict is an error pointer in place of the skb, later a number.
@@ expression A, R, X; struct sk_buff *S; @@
 S =
- ixgbe_run_xdp(A, R, X)
+ ixgbe_ringcap_frame(R, rx_desc, X) ? ERR_PTR(-IXGBE_XDP_CONSUMED) : ixgbe_run_xdp(A, R, X)
 ;

@@ expression A, R, X; int V; @@
 V =
- ixgbe_run_xdp(A, R, X)
+ ixgbe_ringcap_frame(R, rx_desc, X) ? IXGBE_XDP_CONSUMED : ixgbe_run_xdp(A, R, X)
 ;
