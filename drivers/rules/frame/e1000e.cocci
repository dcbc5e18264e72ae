// SPDX-License-Identifier: GPL-2.0-only
//
// e1000e, before the packet is made. The hook is in the loop for frames in one buffer, which is the only loop up to an
// MTU of 1500. There, the loop has discarded frames in several pieces and damaged ones, and has counted the rest. Its
// buffers are empty skbs. The buffer of a taken frame stays where it was, like those that the loop discards. With jumbo
// frames, other loops run, and packets take the path of the skb. So does a packet with a time stamp that must be read
// from the device's only register.

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
