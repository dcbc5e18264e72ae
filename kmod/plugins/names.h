/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Code that the plugins share: a configuration of lines KEY=VALUE, and sets of names. Plain C without kernel or libc
 * dependencies, because it reads untrusted text.
 */
#ifndef RC_NAMES_H
#define RC_NAMES_H

#include "../classify/types.h"

#ifdef __KERNEL__
#include <linux/stddef.h>
#else
#include <stddef.h>
#endif

static inline rc_u8 rc_name_fold(rc_u8 byte)
{
	return (rc_u8)(byte - 'A') < 26 ? (rc_u8)(byte | 0x20) : byte;
}

/* ---- lines ---- */

/**
 * struct rc_line - a line of a configuration, and the position of the next one
 * @text: the text that is left, @left bytes of it
 * @number: of this line, from 1 on
 * @key: @key_len bytes
 * @value: @value_len bytes
 */
struct rc_line {
	const rc_u8 *text;
	rc_u32 left;
	rc_u32 number;
	const rc_u8 *key;
	rc_u32 key_len;
	const rc_u8 *value;
	rc_u32 value_len;
};

static inline void rc_line_start(struct rc_line *line, const void *text, rc_u32 len)
{
	*line = (struct rc_line){ .text = text, .left = len };
}

/*
 * Reads the next line with a setting: returns 1; 0 at the end; -1 for a line without '='. Skips empty lines and those
 * with '#'.
 */
static inline int rc_line_next(struct rc_line *line)
{
	rc_u32 len, equal;

	while (line->left) {
		const rc_u8 *text = line->text;

		for (len = 0; len < line->left && text[len] != '\n'; len++)
			;
		line->text += len < line->left ? len + 1 : len;
		line->left -= len < line->left ? len + 1 : len;
		line->number++;
		if (!len || text[0] == '#')
			continue;
		for (equal = 0; equal < len && text[equal] != '='; equal++)
			;
		line->key = text;
		line->key_len = equal;
		if (equal == len)
			return -1;
		line->value = text + equal + 1;
		line->value_len = len - equal - 1;
		return 1;
	}
	return 0;
}

typedef const char *(*rc_line_fn)(void *config, const struct rc_line *line);

/* Calls @take for each line. Returns NULL, or the error, with the number of the line in @number, else 0. */
static inline const char *rc_lines_read(const void *text, rc_u32 len, rc_line_fn take, void *config, rc_u32 *number)
{
	const char *wrong = NULL;
	struct rc_line line;
	int more;

	rc_line_start(&line, text, len);
	while (!wrong && (more = rc_line_next(&line)))
		wrong = more < 0 ? "a line is KEY=VALUE" : take(config, &line);
	*number = wrong ? line.number : 0;
	return wrong;
}

static inline int rc_line_is(const struct rc_line *line, const char *key)
{
	rc_u32 i;

	for (i = 0; i < line->key_len && key[i]; i++)
		if (line->key[i] != (rc_u8)key[i])
			return 0;
	return i == line->key_len && !key[i];
}

/* A port, 1 .. 65535; 0 if the value is not valid. */
static inline rc_u16 rc_line_port(const struct rc_line *line)
{
	rc_u32 port = 0, i;

	if (!line->value_len || line->value_len > 5)
		return 0;
	for (i = 0; i < line->value_len; i++) {
		if ((rc_u8)(line->value[i] - '0') > 9)
			return 0;
		port = port * 10 + line->value[i] - '0';
	}
	return port <= 65535 ? (rc_u16)port : 0;
}

/* ---- ports ---- */

#define RC_PORTS_MAX 16

struct rc_ports {
	rc_u32 nr;
	rc_u16 ports[RC_PORTS_MAX];
};

static inline int rc_ports_have(const struct rc_ports *ports, rc_u16 port)
{
	rc_u32 i;

	for (i = 0; i < ports->nr; i++)
		if (ports->ports[i] == port)
			return 1;
	return 0;
}

/* Adds the port of @line; returns NULL, or the reason why not. */
static inline const char *rc_ports_add(struct rc_ports *ports, const struct rc_line *line)
{
	rc_u16 port = rc_line_port(line);

	if (!port)
		return "a port is 1 to 65535";
	if (ports->nr == RC_PORTS_MAX)
		return "at most 16 ports";
	ports->ports[ports->nr++] = port;
	return NULL;
}

/* ---- sets of names ---- */

struct rc_name {
	rc_u32 off;
	rc_u32 len;
};

/**
 * struct rc_names - a set of strings of bytes
 * @list: sorted, with room for @room
 * @pool: their bytes, @used of @size
 */
struct rc_names {
	rc_u32 nr;
	rc_u32 room;
	rc_u32 used;
	rc_u32 size;
	struct rc_name *list;
	rc_u8 *pool;
};

/* Compares @bytes with the name at @i: returns less than, equal to or greater than 0. The shorter one comes first. */
static inline int rc_names_compare(const struct rc_names *names, rc_u32 i, const rc_u8 *bytes, rc_u32 len)
{
	const struct rc_name *name = &names->list[i];

	if (len != name->len)
		return len < name->len ? -1 : 1;
	return __builtin_memcmp(bytes, names->pool + name->off, len);
}

/* The place of the first name that does not come before @bytes. */
static inline rc_u32 rc_names_place(const struct rc_names *names, const rc_u8 *bytes, rc_u32 len)
{
	rc_u32 low = 0, high = names->nr, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (rc_names_compare(names, middle, bytes, len) > 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static inline int rc_names_have(const struct rc_names *names, const rc_u8 *bytes, rc_u32 len)
{
	rc_u32 place = rc_names_place(names, bytes, len);

	return place < names->nr && !rc_names_compare(names, place, bytes, len);
}

/* Returns 0 if there is no room. Does not add a name again. */
static inline int rc_names_add(struct rc_names *names, const rc_u8 *bytes, rc_u32 len)
{
	rc_u32 place = rc_names_place(names, bytes, len), i;

	if (place < names->nr && !rc_names_compare(names, place, bytes, len))
		return 1;
	if (names->nr == names->room || len > names->size - names->used)
		return 0;
	for (i = names->nr++; i > place; i--)
		names->list[i] = names->list[i - 1];
	names->list[place] = (struct rc_name){ .off = names->used, .len = len };
	__builtin_memcpy(names->pool + names->used, bytes, len);
	names->used += len;
	return 1;
}

/*
 * Bytes of memory that the names of a configuration of @len bytes can take. Sets @lines to the greatest possible number
 * of names.
 */
static inline rc_u32 rc_names_size(const rc_u8 *text, rc_u32 len, rc_u32 *lines)
{
	rc_u32 i;

	*lines = 1;
	for (i = 0; i < len; i++)
		*lines += text[i] == '\n';
	return *lines * (rc_u32)sizeof(struct rc_name) + len;
}

/* Makes an empty set in @block, of rc_names_size(..) bytes. */
static inline void rc_names_init(struct rc_names *names, void *block, rc_u32 size, rc_u32 lines)
{
	*names = (struct rc_names){ .room = lines, .list = block };
	names->size = size - lines * (rc_u32)sizeof(struct rc_name);
	names->pool = (rc_u8 *)(names->list + lines);
}

#endif /* RC_NAMES_H */
