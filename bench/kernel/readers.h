/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ways to read packets from the interface vb or from the ringcap cluster "bench". Each reader runs endlessly in its own
 * process. It has 16 MiB of memory, or as much as reader_memory sets. All readers do the same with a packet: they read
 * its first bytes and its length.
 */
#ifndef RB_READERS_H
#define RB_READERS_H

#include <stdint.h>
#include <sys/types.h>

#define READERS_MAX	4
#define WAKE_BYTES	(256U << 10)
#define WAKE_MS		10

/* A reader's report, in memory that it shares with the workload. Each reader has one cache line. */
struct progress {
	uint64_t bytes;			/* the lengths of the packets read */
	uint64_t ready;			/* 1 = the reader sees packets from now on */
	uint64_t touched;
	uint64_t dropped;
	uint64_t answered;		/* 1 = dropped is valid */
	uint64_t sockets;		/* of reader 0: the BPF map of the AF_XDP sockets */
	uint64_t pad[2];
};

extern struct progress *progress;

/* Bytes of memory of each reader: a power of two, and a multiple of WAKE_BYTES. */
extern uint32_t reader_memory;

/* Reports that the reader sees all packets from now on. */
void reader_ready(unsigned int reader);

/* Makes the reader answer how many packets its socket has dropped. It can be asked once. */
void reader_answers(unsigned int reader, int fd, uint64_t (*count)(int fd));

/* Asks the reader, the process pid. */
uint64_t reader_dropped(unsigned int reader, pid_t pid);

/* Prints what failed and why, and ends the process. */
void fail(const char *what) __attribute__((noreturn));
void fail_with(const char *what, const char *why) __attribute__((noreturn));

/* The two ways of libringcap: ringcap_read with ringcap_next, and ringcap_recv in batches of 64. */
void read_ringcap(unsigned int reader);
void read_ringcap_batches(unsigned int reader);

/* The first of these, which has shunted the traffic's flows (traffic.h), or as many others, before. */
void read_shunted(unsigned int reader);
void read_others_shunted(unsigned int reader);

/* AF_PACKET with TPACKET_V3: alone, with the filter "tcp port 80" attached, and in a fanout group by hash. */
void read_tpacket(unsigned int reader);
void read_tpacket_filtered(unsigned int reader);
void read_fanout(unsigned int reader);

/* pcap_loop, on ringcap:bench@READER and on vb. */
void read_pcap_ringcap(unsigned int reader);
void read_pcap_tpacket(unsigned int reader);

/*
 * AF_XDP in copy mode. Each reader has a socket on the receive queue with its number. The driver runs the XDP program,
 * or the stack does ("generic").
 */
void read_xdp(unsigned int reader);
void read_xdp_generic(unsigned int reader);

#endif /* RB_READERS_H */
