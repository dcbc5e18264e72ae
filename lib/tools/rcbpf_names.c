// SPDX-License-Identifier: BSD-2-Clause
/*
 * Replacements of the C library's name look-ups that libpcap's expression compiler uses. The linker substitutes them
 * (--wrap). Addresses must be numeric. The tables below have the port and protocol names. There are two reasons: A
 * static program should not load the machine's NSS modules. And an expression must have the same meaning on the machine
 * that validates it and on the one that captures. /etc/services or a resolver does not guarantee that.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/ether.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "rcbpf_names.h"

bool rcbpf_names_refused;

enum { TCP = 1, UDP = 2 };

static const struct service {
	const char *name;
	uint16_t port;
	uint8_t protocols;
} services[] = {
	{ "ftp-data", 20, TCP },	{ "ftp", 21, TCP },		{ "ssh", 22, TCP },
	{ "telnet", 23, TCP },		{ "smtp", 25, TCP },		{ "domain", 53, TCP | UDP },
	{ "bootps", 67, UDP },		{ "bootpc", 68, UDP },		{ "tftp", 69, UDP },
	{ "http", 80, TCP },		{ "www", 80, TCP },		{ "kerberos", 88, TCP | UDP },
	{ "pop3", 110, TCP },		{ "sunrpc", 111, TCP | UDP },	{ "ntp", 123, UDP },
	{ "netbios-ns", 137, UDP },	{ "netbios-dgm", 138, UDP },	{ "netbios-ssn", 139, TCP },
	{ "imap", 143, TCP },		{ "imap2", 143, TCP },		{ "snmp", 161, TCP | UDP },
	{ "snmp-trap", 162, TCP | UDP }, { "snmptrap", 162, TCP | UDP }, { "bgp", 179, TCP },
	{ "ldap", 389, TCP | UDP },	{ "https", 443, TCP | UDP },	{ "microsoft-ds", 445, TCP | UDP },
	{ "isakmp", 500, UDP },		{ "syslog", 514, UDP },		{ "submission", 587, TCP },
	{ "ldaps", 636, TCP | UDP },	{ "domain-s", 853, TCP | UDP },	{ "imaps", 993, TCP },
	{ "pop3s", 995, TCP },		{ "ms-sql-s", 1433, TCP },	{ "radius", 1812, UDP },
	{ "nfs", 2049, TCP | UDP },	{ "mysql", 3306, TCP },		{ "ms-wbt-server", 3389, TCP },
	{ "ipsec-nat-t", 4500, UDP },	{ "sip", 5060, TCP | UDP },	{ "sip-tls", 5061, TCP | UDP },
	{ "mdns", 5353, UDP },		{ "postgresql", 5432, TCP },	{ "x11", 6000, TCP },
	{ "http-alt", 8080, TCP | UDP },
};

static const struct protocol {
	const char *name;
	int number;
} protocols[] = {
	{ "ip", 0 },	 { "icmp", 1 },	  { "igmp", 2 },  { "ipencap", 4 }, { "tcp", 6 },	 { "egp", 8 },
	{ "igp", 9 },	 { "udp", 17 },	  { "ipv6", 41 }, { "rsvp", 46 },   { "gre", 47 },	 { "esp", 50 },
	{ "ah", 51 },	 { "ipv6-icmp", 58 }, { "eigrp", 88 }, { "ospf", 89 }, { "ipip", 94 },	 { "pim", 103 },
	{ "vrrp", 112 }, { "l2tp", 115 }, { "sctp", 132 }, { "udplite", 136 },
};

int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **res);
void __wrap_freeaddrinfo(struct addrinfo *res);
struct hostent *__wrap_gethostbyname(const char *name);
int __wrap_getnetbyname_r(const char *name, struct netent *net, char *buf, size_t size, struct netent **result,
			  int *error);
struct netent *__wrap_getnetbyname(const char *name);
int __wrap_getprotobyname_r(const char *name, struct protoent *proto, char *buf, size_t size, struct protoent **result);
struct protoent *__wrap_getprotobyname(const char *name);
int __wrap_ether_hostton(const char *name, struct ether_addr *addr);

/* An address and what points to it, freed as one. */
struct answer {
	struct addrinfo info;
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} addr;
};

static struct answer *new_answer(int family, const struct addrinfo *hints)
{
	struct answer *answer = calloc(1, sizeof(*answer));

	if (!answer)
		return NULL;
	answer->addr.any.sa_family = (sa_family_t)family;
	answer->info.ai_family = family;
	answer->info.ai_socktype = hints ? hints->ai_socktype : 0;
	answer->info.ai_protocol = hints ? hints->ai_protocol : 0;
	answer->info.ai_addr = &answer->addr.any;
	answer->info.ai_addrlen = family == AF_INET ? sizeof(answer->addr.v4) : sizeof(answer->addr.v6);
	return answer;
}

static int find_service(const char *name, const struct addrinfo *hints, struct addrinfo **res)
{
	int want = hints && hints->ai_protocol == IPPROTO_TCP ? TCP : hints && hints->ai_protocol == IPPROTO_UDP ? UDP : TCP | UDP;
	struct answer *answer;

	for (size_t i = 0; i < sizeof(services) / sizeof(services[0]); i++) {
		if (!(services[i].protocols & want) || strcmp(services[i].name, name))
			continue;
		answer = new_answer(AF_INET, hints);
		if (!answer)
			return EAI_MEMORY;
		answer->addr.v4.sin_port = htons(services[i].port);
		*res = &answer->info;
		return 0;
	}
	return EAI_NONAME;
}

static int find_address(const char *node, const struct addrinfo *hints, struct addrinfo **res)
{
	int family = strchr(node, ':') ? AF_INET6 : AF_INET;
	struct answer *answer = new_answer(family, hints);
	void *where;

	if (!answer)
		return EAI_MEMORY;
	where = family == AF_INET ? (void *)&answer->addr.v4.sin_addr : (void *)&answer->addr.v6.sin6_addr;
	if (inet_pton(family, node, where) != 1) {
		free(answer);
		rcbpf_names_refused = true;
		return EAI_NONAME;
	}
	*res = &answer->info;
	return 0;
}

int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **res)
{
	if (node)
		return find_address(node, hints, res);
	return service ? find_service(service, hints, res) : EAI_NONAME;
}

void __wrap_freeaddrinfo(struct addrinfo *res)
{
	free(res);	/* the first member of its struct answer */
}

struct hostent *__wrap_gethostbyname(const char *name)
{
	(void)name;
	rcbpf_names_refused = true;
	return NULL;
}

int __wrap_getnetbyname_r(const char *name, struct netent *net, char *buf, size_t size, struct netent **result,
			  int *error)
{
	(void)name;
	(void)net;
	(void)buf;
	(void)size;
	*result = NULL;
	*error = HOST_NOT_FOUND;
	rcbpf_names_refused = true;
	return ENOENT;
}

struct netent *__wrap_getnetbyname(const char *name)
{
	(void)name;
	rcbpf_names_refused = true;
	return NULL;
}

struct protoent *__wrap_getprotobyname(const char *name)
{
	static struct protoent entry;

	for (size_t i = 0; i < sizeof(protocols) / sizeof(protocols[0]); i++)
		if (!strcmp(protocols[i].name, name)) {
			entry.p_proto = protocols[i].number;
			return &entry;
		}
	rcbpf_names_refused = true;
	return NULL;
}

int __wrap_getprotobyname_r(const char *name, struct protoent *proto, char *buf, size_t size, struct protoent **result)
{
	struct protoent *found = __wrap_getprotobyname(name);

	(void)buf;
	(void)size;
	*result = NULL;
	if (!found)
		return ENOENT;
	*proto = *found;
	*result = proto;
	return 0;
}

int __wrap_ether_hostton(const char *name, struct ether_addr *addr)
{
	(void)name;
	(void)addr;
	rcbpf_names_refused = true;
	return -1;
}
