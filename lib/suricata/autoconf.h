/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The configuration by which Suricata's headers are read, in place of the file that its configure writes. Debian ships
 * neither that file nor the headers. Here is what every Linux with glibc has. What Suricata's builder chose, and what
 * changes structures, is in suricata_build.h: ./build takes it from the program itself (suricata --build-info).
 *
 * Capture methods (AF_PACKET, DPDK, NFQ) are left out. Their part of struct Packet shares the place of plugin_v, which
 * is as large as any of them, and no other structure that the plugin uses depends on them. The plugin compares the
 * structures with the program's when it starts (fit.c).
 */
#ifndef AUTOCONF_H
#define AUTOCONF_H

#include "suricata_build.h"

#define HAVE_PLUGINS 1
#define OS_LINUX 1
#define PCRE2_CODE_UNIT_WIDTH 8

#define HAVE_FWRITE_UNLOCKED 1
#define HAVE_PTHREAD_SPIN_UNLOCK 1
#define HAVE_STRPTIME 1

#define HAVE_ARPA_INET_H 1
#define HAVE_ASSERT_H 1
#define HAVE_CTYPE_H 1
#define HAVE_DIRENT_H 1
#define HAVE_ERRNO_H 1
#define HAVE_FCNTL_H 1
#define HAVE_GRP_H 1
#define HAVE_INTTYPES_H 1
#define HAVE_LIBGEN_H 1
#define HAVE_LIMITS_H 1
#define HAVE_MALLOC_H 1
#define HAVE_MATH_H 1
#define HAVE_MM_MALLOC_H 1
#define HAVE_NETDB_H 1
#define HAVE_NETINET_IN_H 1
#define HAVE_PCAP_H 1
#define HAVE_PCAP_PCAP_H 1
#define HAVE_POLL_H 1
#define HAVE_PWD_H 1
#define HAVE_SCHED_H 1
#define HAVE_SIGNAL_H 1
#define HAVE_STDARG_H 1
#define HAVE_STDATOMIC_H 1
#define HAVE_STDBOOL_H 1
#define HAVE_STDDEF_H 1
#define HAVE_STDINT_H 1
#define HAVE_STDIO_H 1
#define HAVE_STDLIB_H 1
#define HAVE_STRINGS_H 1
#define HAVE_STRING_H 1
#define HAVE_SYSCALL_H 1
#define HAVE_SYSLOG_H 1
#define HAVE_SYS_IOCTL_H 1
#define HAVE_SYS_MMAN_H 1
#define HAVE_SYS_PRCTL_H 1
#define HAVE_SYS_RANDOM_H 1
#define HAVE_SYS_SIGNAL_H 1
#define HAVE_SYS_SOCKET_H 1
#define HAVE_SYS_STAT_H 1
#define HAVE_SYS_SYSCALL_H 1
#define HAVE_SYS_TIME_H 1
#define HAVE_SYS_TYPES_H 1
#define HAVE_TIME_H 1
#define HAVE_UNISTD_H 1
#define HAVE_UTIME_H 1

#endif
