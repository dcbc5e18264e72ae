/* SPDX-License-Identifier: BSD-2-Clause */
/* libpcap's capture source "ringcap"; see pcap-ringcap(7). */
#ifndef PCAP_RINGCAP_H
#define PCAP_RINGCAP_H

pcap_t *ringcap_create(const char *device, char *errbuf, int *is_ours);
int ringcap_findalldevs(pcap_if_list_t *list, char *errbuf);

/* Returns true if device has the form of our device names. No such device has a network interface's address. */
int ringcap_is_name(const char *device);

#endif
