// SPDX-License-Identifier: GPL-2.0-only
//
// For every driver: where the driver hands a packet to the stack, it asks ringcap first. It calls functions with the
// same signature in include/ringcap_rx.h. The rules match expressions, not statements: so an else stays with its if.

@@ expression N, S; @@
- napi_gro_receive(N, S)
+ ringcap_napi_gro_receive(N, S)

@@ expression N; @@
- napi_gro_frags(N)
+ ringcap_napi_gro_frags(N)

@@ expression S; @@
- netif_receive_skb(S)
+ ringcap_netif_receive_skb(S)

@@ expression S; @@
- netif_rx(S)
+ ringcap_netif_rx(S)

@@ expression S; @@
- __netif_rx(S)
+ ringcap___netif_rx(S)
