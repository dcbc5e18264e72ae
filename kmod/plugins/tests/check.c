// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Unit tests of the plugins' parsers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../dns.h"
#include "../http.h"
#include "../../classify/tests/check.h"

/* Memory for a configuration's names, of exactly the needed size. */
static void *block_for(const char *config)
{
	rc_u32 lines;

	return malloc(rc_names_size((const rc_u8 *)config, (rc_u32)strlen(config), &lines));
}

/* ---- dns ---- */

struct dns_sample {
	const char *what;
	const char *name;	/* labels with their lengths, as sent, the 0 at the end included */
	rc_u32 len;
	int wanted;
};

#define NAME(bytes) bytes, sizeof(bytes) - 1

static const struct dns_sample dns_samples[] = {
	{ "the name", NAME("\7example\3com\0"), 1 },
	{ "one under it", NAME("\3www\7example\3com\0"), 1 },
	{ "other case", NAME("\3wWw\7EXAMPLE\3cOm\0"), 1 },
	{ "an end that is no label", NAME("\012badexample\3com\0"), 0 },
	{ "what is above", NAME("\3com\0"), 0 },
	{ "a dot in a label", NAME("\013example.com\0"), 0 },
	{ "the root", NAME("\0"), 0 },
	{ "a pointer", NAME("\3www\300\014"), 0 },
	{ "a pointer to itself", NAME("\300\014"), 0 },
	{ "a label of a type that there is not", NAME("\100abc\7example\3com\0"), 0 },
	{ "without an end", NAME("\7example\3com"), 0 },
	{ "a label beyond the end", NAME("\7example\77com"), 0 },
};

static rc_u32 dns_message(rc_u8 *message, const struct dns_sample *s)
{
	memset(message, 0, RC_DNS_HEADER);
	message[5] = 1;
	memcpy(message + RC_DNS_HEADER, s->name, s->len);
	if (s->name[s->len - 1])
		return RC_DNS_HEADER + s->len;
	memcpy(message + RC_DNS_HEADER + s->len, "\0\1\0\1", 4);
	return RC_DNS_HEADER + s->len + 4;
}

/* In memory of exactly the size. */
static int dns_pass(const struct rc_dns *dns, const rc_u8 *message, rc_u32 len)
{
	rc_u8 *copy = malloc(len);
	struct rc_dns_name name;
	int pass;

	memcpy(copy, message, len);
	pass = rc_dns_question(copy, len, &name) && rc_dns_wants(dns, &name);
	free(copy);
	return pass;
}

static void check_dns_messages(void)
{
	const char *config = "# wanted\nname=Example.com\n\nname=example.org.\nport=53\nport=5353";
	void *block = block_for(config);
	rc_u8 message[512];
	struct rc_dns dns;
	rc_u32 line, i, len, cut;

	CHECK(!rc_dns_configure(&dns, config, (rc_u32)strlen(config), block, &line), "line %u", line);
	CHECK(rc_ports_have(&dns.ports, 53) && rc_ports_have(&dns.ports, 5353) && !rc_ports_have(&dns.ports, 54), "ports");
	for (i = 0; i < sizeof(dns_samples) / sizeof(dns_samples[0]); i++) {
		len = dns_message(message, &dns_samples[i]);
		CHECK(dns_pass(&dns, message, len) == dns_samples[i].wanted, "%s", dns_samples[i].what);
		for (cut = 0; cut < len; cut++)
			CHECK(!dns_pass(&dns, message, cut), "%s, %u bytes of it", dns_samples[i].what, cut);
		message[5] = 0;
		CHECK(!dns_pass(&dns, message, len), "%s without a question", dns_samples[i].what);
	}
	free(block);
}

/* A name has at most 127 labels; one more byte is too many. */
static void check_dns_longest(void)
{
	const char *config = "name=.";
	void *block = block_for(config);
	rc_u8 message[600] = { 0 };
	struct rc_dns dns;
	rc_u32 line, i;

	CHECK(!rc_dns_configure(&dns, config, 6, block, &line), "line %u", line);
	CHECK(rc_ports_have(&dns.ports, 53), "the default");
	message[5] = 1;
	for (i = 0; i < 127; i++)
		memcpy(message + RC_DNS_HEADER + 2 * i, "\1x", 2);
	CHECK(dns_pass(&dns, message, RC_DNS_HEADER + 254 + 5), "127 labels");
	memcpy(message + RC_DNS_HEADER + 254, "\1x", 2);
	CHECK(!dns_pass(&dns, message, sizeof(message)), "128 labels");
	free(block);
}

struct config_sample {
	const char *text;
	rc_u32 line;	/* the line that is wrong; 0 = the configuration as a whole */
	const char *reason;
};

static const struct config_sample dns_configs[] = {
	{ "", 0, "at least one" },
	{ "port=53\n", 0, "at least one" },
	{ "name=a\nname\n", 2, "KEY=VALUE" },
	{ "name=a\n\n# x\nname=\n", 4, "not a name" },
	{ "name=a..b", 1, "not a name" },
	{ "name=.a", 1, "not a name" },
	{ "name=a b", 1, "not a name" },
	{ "name=0123456789012345678901234567890123456789012345678901234567890123", 1, "not a name" },
	{ "name=a\nhost=b", 2, "the keys" },
	{ "name=a\nport=0", 2, "a port" },
	{ "name=a\nport=65536", 2, "a port" },
	{ "name=a\nport=-1", 2, "a port" },
	{ "name=a\nport=", 2, "a port" },
};

static const struct config_sample http_configs[] = {
	{ "", 0, "at least one" },
	{ "host=", 1, "a host" },
	{ "host=a b", 1, "a host" },
	{ "host=a\nuri=x", 2, "a URI" },
	{ "host=a\nuri=", 2, "a URI" },
	{ "host=a\n=b", 2, "the keys" },
	{ "host=a\nport=http", 2, "a port" },
};

static void check_configs(void)
{
	struct rc_http http;
	struct rc_dns dns;
	const char *wrong;
	rc_u32 i, line;

	for (i = 0; i < sizeof(dns_configs) / sizeof(dns_configs[0]); i++) {
		const struct config_sample *s = &dns_configs[i];
		void *block = block_for(s->text);

		wrong = rc_dns_configure(&dns, s->text, (rc_u32)strlen(s->text), block, &line);
		CHECK(wrong && strstr(wrong, s->reason) && line == s->line, "'%s': line %u: %s", s->text, line, wrong);
		free(block);
	}
	for (i = 0; i < sizeof(http_configs) / sizeof(http_configs[0]); i++) {
		const struct config_sample *s = &http_configs[i];
		void *block = block_for(s->text);

		wrong = rc_http_configure(&http, s->text, (rc_u32)strlen(s->text), block, &line);
		CHECK(wrong && strstr(wrong, s->reason) && line == s->line, "'%s': line %u: %s", s->text, line, wrong);
		free(block);
	}
}

/* ---- http ---- */

static int http_pass(const char *config, const char *request)
{
	rc_u32 len = (rc_u32)strlen(request), line;
	void *block = block_for(config);
	rc_u8 *copy = malloc(len);
	struct rc_http_request read;
	struct rc_http http;
	int pass;

	CHECK(!rc_http_configure(&http, config, (rc_u32)strlen(config), block, &line), "line %u", line);
	memcpy(copy, request, len);
	pass = rc_http_read(copy, len, &read) && rc_http_wants(&http, &read);
	free(copy);
	free(block);
	return pass;
}

static const struct {
	const char *config;
	const char *request;
	int wanted;
} http_samples[] = {
	{ "host=example.com", "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n", 1 },
	{ "host=Example.com", "GET / HTTP/1.1\r\nAccept: */*\r\nhOST:WWW.EXAMPLE.COM:8080\r\n\r\n", 1 },
	{ "host=example.com", "GET / HTTP/1.1\r\nHost: badexample.com\r\n\r\n", 0 },
	{ "host=example.com", "GET / HTTP/1.1\r\nHost: example.com.evil.net\r\n\r\n", 0 },
	{ "host=example.com", "GET / HTTP/1.1\r\n\r\nHost: example.com\r\n\r\n", 0 },
	{ "host=example.com", "GET / HTTP/1.1\r\nHost: example.com.\r\n\r\n", 1 },
	{ "host=example.com", "GET / HTTP/1.1\nHost: example.com\n\n", 1 },
	{ "host=example.com", "GET / HTTP/1.1\r\nHost: example.co", 0 },
	{ "host=example.com", "GET http://www.example.com/x HTTP/1.1\r\nHost: other\r\n\r\n", 1 },
	{ "host=[::1]", "GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", 1 },
	{ "host=example.com", "HTTP/1.1 200 OK\r\nHost: example.com\r\n\r\n", 0 },
	{ "host=example.com", "get / HTTP/1.1\r\nHost: example.com\r\n\r\n", 0 },
	{ "uri=/api/", "POST /api/x HTTP/1.0\r\n\r\n", 1 },
	{ "uri=/api/", "POST /API/x HTTP/1.0\r\n\r\n", 0 },
	{ "uri=/api/\nuri=/b", "GET /beta HTTP/1.1\r\n\r\n", 1 },
	{ "uri=/api/", "GET /ap HTTP/1.1\r\n\r\n", 0 },
	{ "uri=/x", "GET http://h/x/y HTTP/1.1\r\n\r\n", 1 },
	{ "uri=/x\nhost=h", "GET /x HTTP/1.1\r\nHost: h\r\n\r\n", 1 },
	{ "uri=/x\nhost=h", "GET /x HTTP/1.1\r\nHost: g\r\n\r\n", 0 },
	{ "uri=/x\nhost=h", "GET /y HTTP/1.1\r\nHost: h\r\n\r\n", 0 },
	{ "uri=/x", "GET /x SPDY/3\r\n\r\n", 0 },
	{ "uri=/x", "GET  /x HTTP/1.1\r\n\r\n", 0 },
};

static void check_http(void)
{
	rc_u32 i;

	for (i = 0; i < sizeof(http_samples) / sizeof(http_samples[0]); i++)
		CHECK(http_pass(http_samples[i].config, http_samples[i].request) == http_samples[i].wanted, "%s: %s",
		      http_samples[i].config, http_samples[i].request);
}

int main(void)
{
	check_dns_messages();
	check_dns_longest();
	check_configs();
	check_http();
	printf("plugins: names that DNS messages ask for, HTTP requests, configurations\n");
	return 0;
}
