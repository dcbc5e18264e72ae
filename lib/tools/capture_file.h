/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets of a capture file in libpcap's format, all of them in memory. */
#ifndef CAPTURE_FILE_H
#define CAPTURE_FILE_H

#include <stddef.h>
#include <stdint.h>

struct capture_file {
	const uint8_t *bytes;	/* of the file, mapped */
	size_t size, at;	/* at: of the next record */
	int swapped;		/* written by a machine of the other byte order */
};

/* 0, or -errno with the reason in why (len bytes). Only Ethernet, neither compressed nor pcapng. */
int capture_file_open(struct capture_file *f, const char *path, char *why, size_t len);

/* The next packet and its length; NULL at the end, or when the rest makes no sense: then *len is 1. */
const uint8_t *capture_file_next(struct capture_file *f, uint32_t *len);

void capture_file_rewind(struct capture_file *f);

#endif
