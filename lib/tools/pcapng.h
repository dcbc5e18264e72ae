/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes pcapng, in this machine's byte order, with nanoseconds. Errors stay in the FILE: see ferror. */
#ifndef PCAPNG_H
#define PCAPNG_H

#include <stdint.h>
#include <stdio.h>

#include <linux/ringcap.h>

/* Writes the section header, which comes first. */
void pcapng_section(FILE *file, const char *application);

/* Writes the next interface. Interfaces are numbered from 0. The description may be empty. */
void pcapng_interface(FILE *file, const char *name, const char *description, uint32_t snaplen);

/* Writes a packet of an interface. */
void pcapng_packet(FILE *file, uint32_t interface, const struct ringcap_slot *slot, const uint8_t *data);

/* Writes how many packets an interface received and dropped in all. The comment may be NULL. */
void pcapng_statistics(FILE *file, uint32_t interface, uint64_t received, uint64_t dropped, const char *comment);

#endif
