// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The plugins' fuzzer: the first byte is the length of a configuration, which follows. The rest is a message or a
 * request.
 */
#include <stdlib.h>
#include <string.h>

#include "../dns.h"
#include "../http.h"

int LLVMFuzzerTestOneInput(const rc_u8 *data, size_t size);

#define REQUIRE(condition) do { if (!(condition)) abort(); } while (0)

static void fuzz_dns(const rc_u8 *config, rc_u32 len, void *block, const rc_u8 *message, rc_u32 message_len)
{
	struct rc_dns_name name;
	struct rc_dns dns;
	rc_u32 line, i;

	if (rc_dns_configure(&dns, config, len, block, &line))
		return;
	REQUIRE(dns.names.nr && dns.ports.nr);
	for (i = 1; i < dns.names.nr; i++)
		REQUIRE(rc_names_compare(&dns.names, i - 1, dns.names.pool + dns.names.list[i].off, dns.names.list[i].len) > 0);
	if (!rc_dns_question(message, message_len, &name))
		return;
	REQUIRE(name.len + RC_DNS_HEADER + 5 <= message_len);
	rc_dns_wants(&dns, &name);
}

static void fuzz_http(const rc_u8 *config, rc_u32 len, void *block, const rc_u8 *bytes, rc_u32 bytes_len)
{
	struct rc_http_request request;
	struct rc_http http;
	rc_u32 line;

	if (rc_http_configure(&http, config, len, block, &line) || !rc_http_read(bytes, bytes_len, &request))
		return;
	REQUIRE(request.path >= bytes && request.path + request.path_len <= bytes + bytes_len);
	REQUIRE(!request.host || (request.host >= bytes && request.host + request.host_len <= bytes + bytes_len));
	rc_http_wants(&http, &request);
}

int LLVMFuzzerTestOneInput(const rc_u8 *data, size_t size)
{
	rc_u32 len, lines, left;
	rc_u8 *config, *rest;
	void *block;

	if (!size)
		return 0;
	len = data[0] < size - 1 ? data[0] : (rc_u32)size - 1;
	left = (rc_u32)size - 1 - len;
	config = malloc(len + 1);
	rest = malloc(left + 1);
	memcpy(config + 1, data + 1, len);
	memcpy(rest + 1, data + 1 + len, left);
	block = malloc(rc_names_size(config + 1, len, &lines));
	fuzz_dns(config + 1, len, block, rest + 1, left);
	fuzz_http(config + 1, len, block, rest + 1, left);
	free(block);
	free(rest);
	free(config);
	return 0;
}
