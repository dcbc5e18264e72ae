/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the packets of a capture file in libpcap's format. The whole file is in memory. */
#ifndef CAPTURE_FILE_H
#define CAPTURE_FILE_H

#include <stddef.h>
#include <stdint.h>

struct capture_file {
	const uint8_t *bytes;	/* the file's bytes, mapped */
	size_t size, at;	/* at: offset of the next record */
	int swapped;		/* written by a machine with the other byte order */
};

/* Returns 0, or -errno with the reason in why (len bytes). Supports Ethernet only, neither compressed nor pcapng. */
int capture_file_open(struct capture_file *f, const char *path, char *why, size_t len);

/* Returns the next packet and its length. Returns NULL at the end, and NULL with *len 1 if the rest is invalid. */
const uint8_t *capture_file_next(struct capture_file *f, uint32_t *len);

void capture_file_rewind(struct capture_file *f);

#endif
