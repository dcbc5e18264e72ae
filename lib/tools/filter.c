// SPDX-License-Identifier: BSD-2-Clause
#include "filter.h"

#include <stdio.h>

#include <linux/ringcap.h>

#include "rcbpf_names.h"

/* Linux's sockets have VLAN tags outside the packet. libpcap makes programs for them for open interfaces only. */
bool filter_compile(const char *tool, const char *expression, struct bpf_program *program)
{
	pcap_t *dead = pcap_open_dead(DLT_EN10MB, RINGCAP_SNAPLEN_MAX);
	bool done = dead && !pcap_compile(dead, program, expression, 1, PCAP_NETMASK_UNKNOWN);

	if (!done)
		fprintf(stderr, "%s: filter '%s': %s%s\n", tool, expression, dead ? pcap_geterr(dead) : "out of memory",
			rcbpf_names_refused ? " (host, network and protocol names are not looked up: use numbers)" : "");
	if (dead)
		pcap_close(dead);
	return done;
}
