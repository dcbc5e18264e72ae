// SPDX-License-Identifier: BSD-2-Clause
#include "rcount.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct dump {
	FILE *file;	/* pcap, NULL = none */
	const char *path;
	unsigned int verbose;
};

/* Writes the classic pcap header with nanoseconds, in this machine's byte order. */
static void write_header(FILE *file, uint32_t snaplen)
{
	const struct {
		uint32_t magic;
		uint16_t major, minor;
		int32_t zone;
		uint32_t accuracy, snaplen, linktype;
	} header = { .magic = 0xa1b23c4d, .major = 2, .minor = 4, .snaplen = snaplen, .linktype = 1 };

	fwrite(&header, sizeof(header), 1, file);
}

struct dump *dump_open(const struct options *o, uint32_t snaplen)
{
	struct dump *d = calloc(1, sizeof(*d));

	if (!d) {
		fprintf(stderr, "rcount: out of memory\n");
		return NULL;
	}
	d->verbose = o->verbose;
	d->path = o->dump_path;
	if (!d->path)
		return d;
	d->file = strcmp(d->path, "-") ? fopen(d->path, "wbe") : stdout;
	if (!d->file) {
		fprintf(stderr, "rcount: %s: %s\n", d->path, strerror(errno));
		free(d);
		return NULL;
	}
	write_header(d->file, snaplen);
	return d;
}

static void write_packet(FILE *file, const struct ringcap_slot *slot, const uint8_t *data)
{
	const uint32_t header[4] = { (uint32_t)(slot->ts_ns / NSEC), (uint32_t)(slot->ts_ns % NSEC), slot->caplen, slot->len };

	fwrite(header, sizeof(header), 1, file);
	fwrite(data, slot->caplen, 1, file);
}

static void print_bytes(const uint8_t *data, uint32_t n)
{
	for (uint32_t at = 0; at < n; at += 16) {
		printf("  %04" PRIx32 " ", at);
		for (uint32_t i = at; i < at + 16; i++)
			if (i < n)
				printf(" %02x", data[i]);
			else
				printf("   ");
		printf("  ");
		for (uint32_t i = at; i < at + 16 && i < n; i++)
			putchar(data[i] >= ' ' && data[i] < 0x7f ? data[i] : '.');
		putchar('\n');
	}
}

static void print_packet(const struct dump *d, const struct ringcap_slot *slot, const uint8_t *data)
{
	time_t second = (time_t)(slot->ts_ns / NSEC);
	struct tm tm;
	char time[16];

	localtime_r(&second, &tm);
	strftime(time, sizeof(time), "%H:%M:%S", &tm);
	printf("%s.%09" PRIu64 " %s queue %u interface %" PRIu32 " length %" PRIu32 " captured %" PRIu32, time,
	       (uint64_t)(slot->ts_ns % NSEC),
	       slot->flags & RINGCAP_SLOT_OUTGOING ? "tx" : "rx", slot->rx_queue, slot->ifindex, slot->len, slot->caplen);
	if (slot->flags & RINGCAP_SLOT_VLAN)
		printf(" vlan %u", slot->vlan_tci & 0xfffU);
	printf("%s%s%s\n", slot->flags & RINGCAP_SLOT_HWTSTAMP ? " hwtstamp" : "",
	       slot->flags & RINGCAP_SLOT_CSUM_PARTIAL ? " csum-partial" : "",
	       slot->flags & RINGCAP_SLOT_MERGED ? " merged" : "");
	if (d->verbose > 1)
		print_bytes(data, slot->caplen);
}

void dump_packet(struct dump *d, const struct ringcap_slot *slot, const uint8_t *data)
{
	if (d->verbose)
		print_packet(d, slot, data);
	if (d->file)
		write_packet(d->file, slot, data);
}

bool dump_flush(struct dump *d)
{
	return !d->file || (!fflush(d->file) && !ferror(d->file));
}

bool dump_close(struct dump *d)
{
	bool written = dump_flush(d);

	if (d->file && d->file != stdout)
		written &= !fclose(d->file);
	if (!written)
		fprintf(stderr, "rcount: %s: not all packets could be written: %s\n", d->path, strerror(errno));
	free(d);
	return written;
}
