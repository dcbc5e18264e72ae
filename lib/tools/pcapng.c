// SPDX-License-Identifier: BSD-2-Clause
#include "pcapng.h"

#include <string.h>

enum { SECTION = 0x0a0d0d0a, INTERFACE = 1, STATISTICS = 5, PACKET = 6 };
enum { OPT_END = 0, OPT_COMMENT = 1, IF_NAME = 2, IF_DESCRIPTION = 3, EPB_FLAGS = 2, SHB_USERAPPL = 4, ISB_IFRECV = 4, ISB_IFDROP = 5, IF_TSRESOL = 9 };
enum { INBOUND = 1, OUTBOUND = 2 };
enum { LINK_ETHERNET = 1, FRAME = 12 /* a block's type and both its lengths */ };

static uint32_t padded(size_t len)
{
	return (uint32_t)(len + 3) & ~3U;
}

static void put(FILE *file, const void *bytes, size_t len)
{
	static const uint8_t zeroes[4];

	fwrite(bytes, len, 1, file);
	fwrite(zeroes, padded(len) - len, 1, file);
}

static void put_u32(FILE *file, uint32_t value)
{
	fwrite(&value, sizeof(value), 1, file);
}

static void put_option(FILE *file, uint16_t code, const void *value, size_t len)
{
	const uint16_t header[2] = { code, (uint16_t)len };

	fwrite(header, sizeof(header), 1, file);
	put(file, value, len);
}

static uint32_t option_size(size_t len)
{
	return 4 + padded(len);
}

static void begin(FILE *file, uint32_t type, uint32_t size)
{
	put_u32(file, type);
	put_u32(file, size);
}

void pcapng_section(FILE *file, const char *application)
{
	const struct {
		uint32_t magic;
		uint16_t major, minor;
		int64_t length;
	} header = { .magic = 0x1a2b3c4d, .major = 1, .length = -1 };
	uint32_t size = FRAME + (uint32_t)sizeof(header) + option_size(strlen(application)) + 4;

	begin(file, SECTION, size);
	fwrite(&header, sizeof(header), 1, file);
	put_option(file, SHB_USERAPPL, application, strlen(application));
	put_option(file, OPT_END, "", 0);
	put_u32(file, size);
}

void pcapng_interface(FILE *file, const char *name, const char *description, uint32_t snaplen)
{
	const struct {
		uint16_t link, reserved;
		uint32_t snaplen;
	} header = { .link = LINK_ETHERNET, .snaplen = snaplen };
	uint32_t size = FRAME + (uint32_t)sizeof(header) + option_size(strlen(name)) +
			(*description ? option_size(strlen(description)) : 0) + option_size(1) + 4;
	const uint8_t nanoseconds = 9;

	begin(file, INTERFACE, size);
	fwrite(&header, sizeof(header), 1, file);
	put_option(file, IF_NAME, name, strlen(name));
	if (*description)
		put_option(file, IF_DESCRIPTION, description, strlen(description));
	put_option(file, IF_TSRESOL, &nanoseconds, 1);
	put_option(file, OPT_END, "", 0);
	put_u32(file, size);
}

void pcapng_packet(FILE *file, uint32_t interface, const struct ringcap_slot *slot, const uint8_t *data)
{
	const uint32_t header[5] = { interface, (uint32_t)(slot->ts_ns >> 32), (uint32_t)slot->ts_ns, slot->caplen, slot->len };
	const uint32_t flags = slot->flags & RINGCAP_SLOT_OUTGOING ? OUTBOUND : INBOUND;
	uint32_t size = FRAME + (uint32_t)sizeof(header) + padded(slot->caplen) + option_size(4) + 4;

	begin(file, PACKET, size);
	fwrite(header, sizeof(header), 1, file);
	put(file, data, slot->caplen);
	put_option(file, EPB_FLAGS, &flags, sizeof(flags));
	put_option(file, OPT_END, "", 0);
	put_u32(file, size);
}

void pcapng_statistics(FILE *file, uint32_t interface, uint64_t received, uint64_t dropped, const char *comment)
{
	const uint32_t header[3] = { interface };	/* no time */
	size_t len = comment ? strlen(comment) : 0;
	uint32_t size = FRAME + (uint32_t)sizeof(header) + 2 * option_size(8) + (comment ? option_size(len) : 0) + 4;

	begin(file, STATISTICS, size);
	fwrite(header, sizeof(header), 1, file);
	if (comment)
		put_option(file, OPT_COMMENT, comment, len);
	put_option(file, ISB_IFRECV, &received, sizeof(received));
	put_option(file, ISB_IFDROP, &dropped, sizeof(dropped));
	put_option(file, OPT_END, "", 0);
	put_u32(file, size);
}
