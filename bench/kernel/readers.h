/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ways to read packets from the interface vb or from the ringcap cluster "bench". Each runs in a process of its own,
 * for ever, with 16 MiB of memory or what reader_memory sets, and does the same with a packet: it looks at its first
 * bytes and its length.
 */
#ifndef RB_READERS_H
#define RB_READERS_H

#include <stdint.h>
#include <sys/types.h>

#define READERS_MAX	4
#define WAKE_BYTES	(256U << 10)
#define WAKE_MS		10

/* What a reader tells of itself, in memory that it shares with the workload; a cache line each. */
struct progress {
	uint64_t bytes;			/* the lengths of the packets read */
	uint64_t ready;			/* 1 = packets from now on are seen */
	uint64_t touched;
	uint64_t dropped;
	uint64_t answered;		/* 1 = dropped is known */
	uint64_t sockets;		/* reader 0's: the BPF map of AF_XDP's */
	uint64_t pad[2];
};

extern struct progress *progress;

/* Each reader's, bytes: a power of two, and several of WAKE_BYTES. */
extern uint32_t reader_memory;

/* The reader can be trusted with what comes from now on. */
void reader_ready(unsigned int reader);

/* The reader tells how many packets its socket has dropped when it is asked, which is once. */
void reader_answers(unsigned int reader, int fd, uint64_t (*count)(int fd));

/* Asks the reader, which is process pid. */
uint64_t reader_dropped(unsigned int reader, pid_t pid);

/* Prints what failed and why, and ends the process. */
void fail(const char *what) __attribute__((noreturn));
void fail_with(const char *what, const char *why) __attribute__((noreturn));

/* libringcap's two ways: ringcap_read and ringcap_next; ringcap_recv in batches of 64. */
void read_ringcap(unsigned int reader);
void read_ringcap_batches(unsigned int reader);

/* AF_PACKET, TPACKET_V3: by itself, with "tcp port 80" attached, in a fanout group by hash. */
void read_tpacket(unsigned int reader);
void read_tpacket_filtered(unsigned int reader);
void read_fanout(unsigned int reader);

/* pcap_loop, on ringcap:bench@READER and on vb. */
void read_pcap_ringcap(unsigned int reader);
void read_pcap_tpacket(unsigned int reader);

/*
 * AF_XDP in copy mode, each reader with a socket on the receive queue of its number: the XDP program run by the driver,
 * and by the stack ("generic").
 */
void read_xdp(unsigned int reader);
void read_xdp_generic(unsigned int reader);

#endif /* RB_READERS_H */
