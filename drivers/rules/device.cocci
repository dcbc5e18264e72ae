// SPDX-License-Identifier: GPL-2.0-only
//
// For every driver: registers its devices as aware before they become visible. Gives the driver the module's own name
// (NAME_ringcap), so that it can be loaded beside the stock driver. It has no alias, so nothing loads it automatically.

@@ expression D; @@
- register_netdev(D)
+ ringcap_register_netdev(D)

@@ expression D; @@
- register_netdevice(D)
+ ringcap_register_netdevice(D)

@@ identifier I =~ "_driver_name$"; expression N; @@
 char I[] =
- N
+ KBUILD_MODNAME
 ;

@@ identifier I =~ "_driver_name$"; expression N; @@
 const char I[] =
- N
+ KBUILD_MODNAME
 ;

@@ declarer name MODULE_DEVICE_TABLE; identifier B, T; @@
- MODULE_DEVICE_TABLE(B, T);

@@ identifier D; expression N; @@
 struct pci_driver D = {
 .name =
- N
+ KBUILD_MODNAME
 };
