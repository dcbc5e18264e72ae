// SPDX-License-Identifier: GPL-2.0-only
//
// e1000e, before the packet is made: in the loop for frames of one buffer, the only one up to an MTU of 1500, which has
// thrown away what came in pieces or damaged, and has counted the rest. Its buffers are empty skbs; that of a
// frame that was taken stays where it was, as the loop does with those that it throws away. With jumbo frames,
// other loops are at work, and packets go the way of the skb; so does a packet whose time is to be read from the
// device's only register.

// Hook before: e1000_clean_rx_irq

@@ @@
 e1000_clean_rx_irq(...)
 {
 <...
+if (e1000e_ringcap_frame(netdev, rx_desc, staterr, skb, length)) {
+	buffer_info->skb = skb;
+	goto next_desc;
+}
 if (length < copybreak) {
 ...
 }
 ...>
 }
