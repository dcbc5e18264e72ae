// SPDX-License-Identifier: GPL-2.0-only
//
// ixgbe, before the skb, as for igb. Frames that the device has merged (RSC), decrypted (IPsec) or placed elsewhere
// (FCoE) also take the path of the skb, and so do frames of a macvlan. While time stamps are wanted, all frames take
// it, because the device puts the time stamps after the frames.

// Hook before: ixgbe_clean_rx_irq

// Up to 6.12, the verdict is an error pointer in place of the skb. Later it is a number.
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
