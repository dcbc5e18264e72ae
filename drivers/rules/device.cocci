// SPDX-License-Identifier: GPL-2.0-only
//
// Every driver: its devices are made known as aware before anybody can see them, and it goes by the module's own name
// (NAME_ringcap) beside the stock driver. No alias: nothing loads it by itself.

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
