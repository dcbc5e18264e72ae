// SPDX-License-Identifier: BSD-2-Clause
#include "capture_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEADER = 24, RECORD = 16, LINK_ETHERNET = 1 };

static uint32_t word(const struct capture_file *f, size_t at)
{
	uint32_t value;

	memcpy(&value, f->bytes + at, sizeof(value));
	return f->swapped ? __builtin_bswap32(value) : value;
}

static int refuse(char *why, size_t len, const char *path, const char *reason)
{
	snprintf(why, len, "%s: %s", path, reason);
	return -EINVAL;
}

static int check(struct capture_file *f, const char *path, char *why, size_t len)
{
	if (f->size < HEADER)
		return refuse(why, len, path, "too short for a capture file");
	switch (word(f, 0)) {
	case 0xa1b2c3d4:
	case 0xa1b23c4d:
		break;
	case 0xd4c3b2a1:
	case 0x4d3cb2a1:
		f->swapped = 1;
		break;
	case 0x0a0d0d0a:
		return refuse(why, len, path, "is in pcapng format: convert it with 'editcap -F pcap' first");
	default:
		return refuse(why, len, path, "is no capture file of libpcap's format");
	}
	if ((word(f, 20) & 0xffff) != LINK_ETHERNET)
		return refuse(why, len, path, "its packets have no Ethernet header");
	f->at = HEADER;
	return 0;
}

int capture_file_open(struct capture_file *f, const char *path, char *why, size_t len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), err = 0;
	struct stat st;
	void *bytes;

	memset(f, 0, sizeof(*f));
	if (fd < 0 || fstat(fd, &st)) {
		err = -errno;
	} else if (st.st_size) {
		bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
		if (bytes == MAP_FAILED) {
			err = -errno;
		} else {
			f->bytes = bytes;
			f->size = (size_t)st.st_size;
		}
	}
	if (err)
		snprintf(why, len, "%s: %s", path, strerror(-err));
	if (fd >= 0)
		close(fd);
	return err ? err : check(f, path, why, len);
}

const uint8_t *capture_file_next(struct capture_file *f, uint32_t *len)
{
	size_t at = f->at + RECORD;

	*len = f->at != f->size;
	if (f->size - f->at < RECORD || word(f, f->at + 8) > f->size - at)
		return NULL;
	*len = word(f, f->at + 8);
	f->at = at + *len;
	return f->bytes + at;
}

void capture_file_rewind(struct capture_file *f)
{
	f->at = HEADER;
}
