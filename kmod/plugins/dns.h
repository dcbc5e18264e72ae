/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Parses the names that DNS messages ask for, and matches them against the wanted ones. Plain C without kernel or libc
 * dependencies.
 *
 * The configuration is text with one setting a line:
 *
 *	name=example.com	this name and all that end in it, case does not matter; "." is all names
 *	port=53			a port, in either direction; repeated for several, 53 without one
 *
 * Only the first question of a message is checked. Queries and answers have one; no other question is sent. The name
 * there can't be compressed, because no name comes before it. So a message with a pointer in it has no valid name here.
 */
#ifndef RC_DNS_H
#define RC_DNS_H

#include "names.h"

#define RC_DNS_HEADER	12
#define RC_DNS_NAME_MAX	254	/* bytes of a name as it is sent, without the 0 that ends it */
#define RC_DNS_LOOK	(RC_DNS_HEADER + RC_DNS_NAME_MAX + 1 + 4)	/* this many bytes of a message are read */

struct rc_dns {
	struct rc_ports ports;
	struct rc_names names;
};

/* In the format of a message: labels, each after its length, in lower case. */
struct rc_dns_name {
	rc_u32 len;
	rc_u8 bytes[RC_DNS_NAME_MAX];
};

/* Adds a label in lower case; 0 when it does not fit. */
static inline int rc_dns_add_label(struct rc_dns_name *name, const rc_u8 *label, rc_u32 len)
{
	rc_u32 i;

	if (!len || len > 63 || name->len + 1 + len > RC_DNS_NAME_MAX)
		return 0;
	name->bytes[name->len++] = (rc_u8)len;
	for (i = 0; i < len; i++)
		name->bytes[name->len++] = rc_name_fold(label[i]);
	return 1;
}

/* The name of the first question in @len bytes of a message; 0 if there is none, or if it is incomplete. */
static inline int rc_dns_question(const rc_u8 *message, rc_u32 len, struct rc_dns_name *name)
{
	rc_u32 at = RC_DNS_HEADER;

	name->len = 0;
	if (len < RC_DNS_HEADER || !rc_get16(message + 4))
		return 0;
	while (at < len && message[at]) {
		rc_u32 label = message[at];

		/* 0xc0 and more is a pointer. */
		if (label > 63 || label > len - at - 1 || !rc_dns_add_label(name, message + at + 1, label))
			return 0;
		at += 1 + label;
	}
	/* The 0, the type and the class. */
	return at + 5 <= len;
}

/* Whether @name, or a suffix of it, is wanted. */
static inline int rc_dns_wants(const struct rc_dns *dns, const struct rc_dns_name *name)
{
	rc_u32 at = 0;

	while (at < name->len) {
		if (rc_names_have(&dns->names, name->bytes + at, name->len - at))
			return 1;
		at += 1 + name->bytes[at];
	}
	return rc_names_have(&dns->names, name->bytes, 0);
}

/* A name in text form, with or without a dot at its end; 0 if it is not valid. */
static inline int rc_dns_read_name(const rc_u8 *text, rc_u32 len, struct rc_dns_name *name)
{
	rc_u32 at = 0, end;

	name->len = 0;
	if (len == 1 && text[0] == '.')
		return 1;
	if (!len)
		return 0;
	if (text[len - 1] == '.')
		len--;
	for (at = 0; at <= len; at = end + 1) {
		for (end = at; end < len && text[end] != '.'; end++)
			if (text[end] <= ' ' || text[end] > '~')
				return 0;
		if (!rc_dns_add_label(name, text + at, end - at))
			return 0;
	}
	return 1;
}

static inline const char *rc_dns_configure_line(void *config, const struct rc_line *line)
{
	struct rc_dns *dns = config;
	struct rc_dns_name name;

	if (rc_line_is(line, "port"))
		return rc_ports_add(&dns->ports, line);
	if (!rc_line_is(line, "name"))
		return "the keys are name and port";
	if (!rc_dns_read_name(line->value, line->value_len, &name))
		return "not a name: labels of 1 to 63 bytes, 253 in all";
	return rc_names_add(&dns->names, name.bytes, name.len) ? NULL : "too many names";
}

/*
 * Reads a configuration. @block holds dns->names, rc_names_size(..) bytes. Returns NULL, or the error, with the number
 * of its line in @number; 0 = the configuration as a whole.
 */
static inline const char *rc_dns_configure(struct rc_dns *dns, const void *text, rc_u32 len, void *block,
					   rc_u32 *number)
{
	rc_u32 lines, size = rc_names_size(text, len, &lines);
	const char *wrong;

	rc_names_init(&dns->names, block, size, lines);
	dns->ports.nr = 0;
	wrong = rc_lines_read(text, len, rc_dns_configure_line, dns, number);
	if (!wrong && !dns->names.nr)
		wrong = "at least one line name=NAME";
	if (!dns->ports.nr)
		dns->ports.ports[dns->ports.nr++] = 53;
	return wrong;
}

#endif /* RC_DNS_H */
