// SPDX-License-Identifier: BSD-2-Clause
/*
 * Our own versions of functions to which glibc 2.33 gave new symbol versions. With them, programs that are built here
 * also run in images with glibc 2.28 (tests/abi checks it).
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __GLIBC__
#define OUR_OWN __attribute__((visibility("hidden")))

OUR_OWN int stat(const char *path, struct stat *buf)
{
	return (int)syscall(SYS_newfstatat, AT_FDCWD, path, buf, 0);
}

OUR_OWN int mknod(const char *path, mode_t mode, dev_t device)
{
	return (int)syscall(SYS_mknodat, AT_FDCWD, path, mode, (unsigned int)device);
}
#endif
