/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Parses what HTTP/1 requests ask for, and matches it against the wanted hosts and URIs. Plain C without kernel or libc
 * dependencies.
 *
 * The configuration is text with one setting a line:
 *
 *	host=example.com	this host and all hosts under it, case and the port do not matter
 *	uri=/path		what begins with this, byte by byte
 *	port=80			the server's port; repeated for several, 80 without one
 *
 * A request is wanted if it matches both lists. Its host must be one of the hosts, if any are configured. Its URI must
 * begin with one of the prefixes, if any are configured. Only a request at the beginning of a segment is recognized.
 * Requests that follow in the segment are not read.
 */
#ifndef RC_HTTP_H
#define RC_HTTP_H

#include "names.h"

#define RC_HTTP_LOOK	2048	/* this many bytes of a request are read */
#define RC_HTTP_HOST_MAX 255	/* bytes of a host's name */
#define RC_HTTP_URIS_MAX 64

struct rc_http {
	struct rc_ports ports;
	struct rc_names hosts;
	rc_u32 nr_uris;
	struct rc_name uris[RC_HTTP_URIS_MAX];	/* in hosts.pool */
};

/**
 * struct rc_http_request - a request, as far as its bytes were read
 * @path: the URI without scheme and host
 * @host: as it was sent, without port; @host_len 0 = not known
 */
struct rc_http_request {
	const rc_u8 *path;
	rc_u32 path_len;
	const rc_u8 *host;
	rc_u32 host_len;
};

/* Whether @bytes begin with @word, which is in lower case; the case of @bytes does not matter. */
static inline int rc_http_begins(const rc_u8 *bytes, rc_u32 len, const char *word)
{
	rc_u32 i;

	for (i = 0; word[i]; i++)
		if (i >= len || rc_name_fold(bytes[i]) != (rc_u8)word[i])
			return 0;
	return 1;
}

/* Takes a host from "host", "host:port", "[v6]:port" or "host.". */
static inline void rc_http_set_host(struct rc_http_request *request, const rc_u8 *bytes, rc_u32 len)
{
	rc_u32 end;

	for (; len && (*bytes == ' ' || *bytes == '\t'); len--)
		bytes++;
	if (len && *bytes == '[') {
		for (end = 0; end < len && bytes[end] != ']'; end++)
			;
		end += end < len;
	} else {
		for (end = 0; end < len && bytes[end] != ':' && bytes[end] > ' '; end++)
			;
	}
	if (end && bytes[end - 1] == '.')
		end--;
	request->host = bytes;
	request->host_len = end <= RC_HTTP_HOST_MAX ? end : 0;
}

/* The request line: its length including the line's end, 0 if it is not valid. */
static inline rc_u32 rc_http_read_first(const rc_u8 *bytes, rc_u32 len, struct rc_http_request *request)
{
	rc_u32 at = 0, from, host;

	while (at < len && at < 20 && ((rc_u8)(bytes[at] - 'A') < 26 || bytes[at] == '-'))
		at++;
	if (!at || at >= len || bytes[at] != ' ')
		return 0;
	from = ++at;
	while (at < len && bytes[at] > ' ')
		at++;
	if (at == from)
		return 0;
	request->path = bytes + from;
	request->path_len = at - from;
	/* A request to a proxy has the whole URI. */
	if (rc_http_begins(request->path, request->path_len, "http://")) {
		for (host = from += 7; from < at && bytes[from] != '/'; from++)
			;
		rc_http_set_host(request, bytes + host, from - host);
		request->path = bytes + from;
		request->path_len = at - from;
	}
	/* If the URI continues behind the bytes that are seen, its version is not seen, and is not required. */
	if (at == len)
		return len;
	if (!rc_http_begins(bytes + at, len - at, " http/1.") && len - at >= 8)
		return 0;
	while (at < len && bytes[at] != '\n')
		at++;
	return at < len ? at + 1 : len;
}

/* Reads the beginning of a request; 0 if it is not one. */
static inline int rc_http_read(const rc_u8 *bytes, rc_u32 len, struct rc_http_request *request)
{
	rc_u32 at, end;

	*request = (struct rc_http_request){ 0 };
	at = rc_http_read_first(bytes, len, request);
	if (!at)
		return 0;
	for (; at < len && !request->host; at = end + 1) {
		for (end = at; end < len && bytes[end] != '\n'; end++)
			;
		/* An empty line ends the headers; a line without an end may continue. */
		if (end == len || end == at || (end == at + 1 && bytes[at] == '\r'))
			break;
		if (rc_http_begins(bytes + at, end - at, "host:"))
			rc_http_set_host(request, bytes + at + 5, end - at - 5);
	}
	return 1;
}

static inline int rc_http_wants_host(const struct rc_http *http, const struct rc_http_request *request)
{
	rc_u8 host[RC_HTTP_HOST_MAX];
	rc_u32 i;

	for (i = 0; i < request->host_len; i++)
		host[i] = rc_name_fold(request->host[i]);
	for (i = 0; i < request->host_len; i++)
		if ((!i || host[i - 1] == '.') && rc_names_have(&http->hosts, host + i, request->host_len - i))
			return 1;
	return 0;
}

static inline int rc_http_wants_uri(const struct rc_http *http, const struct rc_http_request *request)
{
	rc_u32 i;

	for (i = 0; i < http->nr_uris; i++) {
		const struct rc_name *uri = &http->uris[i];

		if (uri->len <= request->path_len &&
		    !__builtin_memcmp(request->path, http->hosts.pool + uri->off, uri->len))
			return 1;
	}
	return 0;
}

static inline int rc_http_wants(const struct rc_http *http, const struct rc_http_request *request)
{
	return (!http->hosts.nr || rc_http_wants_host(http, request)) &&
	       (!http->nr_uris || rc_http_wants_uri(http, request));
}

static inline const char *rc_http_add_host(struct rc_http *http, const struct rc_line *line)
{
	rc_u8 host[RC_HTTP_HOST_MAX];
	rc_u32 i;

	if (!line->value_len || line->value_len > RC_HTTP_HOST_MAX)
		return "a host is 1 to 255 bytes";
	for (i = 0; i < line->value_len; i++) {
		host[i] = rc_name_fold(line->value[i]);
		if (host[i] <= ' ' || host[i] > '~' || host[i] == '/')
			return "a host has no spaces and slashes";
	}
	return rc_names_add(&http->hosts, host, line->value_len) ? NULL : "too many hosts";
}

static inline const char *rc_http_add_uri(struct rc_http *http, const struct rc_line *line)
{
	struct rc_names *names = &http->hosts;

	if (!line->value_len || line->value[0] != '/')
		return "a URI begins with /";
	if (http->nr_uris == RC_HTTP_URIS_MAX)
		return "at most 64 URIs";
	/* The pool is as large as the text. */
	http->uris[http->nr_uris++] = (struct rc_name){ .off = names->used, .len = line->value_len };
	__builtin_memcpy(names->pool + names->used, line->value, line->value_len);
	names->used += line->value_len;
	return NULL;
}

static inline const char *rc_http_configure_line(void *config, const struct rc_line *line)
{
	struct rc_http *http = config;
	if (rc_line_is(line, "host"))
		return rc_http_add_host(http, line);
	if (rc_line_is(line, "uri"))
		return rc_http_add_uri(http, line);
	if (rc_line_is(line, "port"))
		return rc_ports_add(&http->ports, line);
	return "the keys are host, uri and port";
}

/* As rc_dns_configure. */
static inline const char *rc_http_configure(struct rc_http *http, const void *text, rc_u32 len, void *block,
					    rc_u32 *number)
{
	rc_u32 lines, size = rc_names_size(text, len, &lines);
	const char *wrong;

	rc_names_init(&http->hosts, block, size, lines);
	http->ports.nr = 0;
	http->nr_uris = 0;
	wrong = rc_lines_read(text, len, rc_http_configure_line, http, number);
	if (!wrong && !http->hosts.nr && !http->nr_uris)
		wrong = "at least one line host=HOST or uri=/PREFIX";
	if (!http->ports.nr)
		http->ports.ports[http->ports.nr++] = 80;
	return wrong;
}

#endif /* RC_HTTP_H */
