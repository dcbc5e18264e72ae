// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "wire.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "readers.h"
#include "traffic.h"

#define BAR_BYTES	0x20000U
#define HUGE_BYTES	(2U << 20)
#define DESCRIPTORS	4096U		/* a multiple of FLOWS */
#define FRAME_BYTES	2048U

/* Registers of the sending card, from the manual of the 82540. */
#define TCTL		0x0400U
#define TCTL_ENABLE	0x0002U
#define TCTL_PAD	0x0008U
#define TDBAL		0x3800U
#define TDBAH		0x3804U
#define TDLEN		0x3808U
#define TDH		0x3810U
#define TDT		0x3818U
#define GPTC		0x4080U		/* packets sent; reading clears it */

/* A transmit descriptor of the sending card. */
struct descriptor {
	uint64_t address;		/* physical */
	uint16_t length;
	uint8_t checksum_offset;
	uint8_t command;
	uint8_t status;
	uint8_t checksum_start;
	uint16_t special;
};

#define END_OF_PACKET	0x01
#define INSERT_FCS	0x02

static volatile uint8_t *sender;
static struct descriptor *descriptors;
static uint8_t *frames;			/* FRAME_BYTES for each flow */
static uint64_t frames_address;
static uint32_t tail;

static uint32_t get(const volatile uint8_t *card, uint32_t at)
{
	return *(const volatile uint32_t *)(card + at);
}

static void set(volatile uint8_t *card, uint32_t at, uint32_t value)
{
	*(volatile uint32_t *)(card + at) = value;
}

static int open_file(const char *card, const char *name)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/%s", card, name);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		fail(path);
	return fd;
}

static volatile uint8_t *map_registers(const char *card)
{
	int fd = open_file(card, "resource0");
	void *registers = mmap(NULL, BAR_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (registers == MAP_FAILED)
		fail("a card's registers");
	close(fd);
	return registers;
}

/* Enables the card: its memory answers, and it may read the machine's memory. */
static void enable(const char *card)
{
	int fd = open_file(card, "config");
	uint16_t command;

	if (pread(fd, &command, 2, 4) != 2)
		fail("PCI configuration");
	command |= 0x0006;
	if (pwrite(fd, &command, 2, 4) != 2)
		fail("PCI configuration");
	close(fd);
}

static uint64_t physical(const void *p)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	uint64_t entry;

	if (fd < 0 || pread(fd, &entry, 8, (off_t)((uintptr_t)p / 4096 * 8)) != 8)
		fail("/proc/self/pagemap");
	close(fd);
	return (entry & ((1ULL << 55) - 1)) * 4096;
}

void wire_open(const char *card)
{
	uint8_t *memory = mmap(NULL, HUGE_BYTES, PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS | MAP_HUGETLB | MAP_POPULATE, -1, 0);
	uint64_t address;

	if (memory == MAP_FAILED)
		fail("a huge page");
	address = physical(memory);
	descriptors = (void *)memory;
	frames = memory + DESCRIPTORS * sizeof(struct descriptor);
	frames_address = address + DESCRIPTORS * sizeof(struct descriptor);
	enable(card);
	sender = map_registers(card);
	set(sender, TDBAL, (uint32_t)address);
	set(sender, TDBAH, (uint32_t)(address >> 32));
	set(sender, TDLEN, DESCRIPTORS * sizeof(struct descriptor));
	set(sender, TDH, 0);
	set(sender, TDT, 0);
	set(sender, TCTL, TCTL_ENABLE | TCTL_PAD);
}

void wire_load(unsigned int size)
{
	unsigned int i;

	for (i = 0; i < FLOWS; i++)
		memcpy(frames + i * FRAME_BYTES, traffic_frame(i), size);
	for (i = 0; i < DESCRIPTORS; i++)
		descriptors[i] = (struct descriptor){ .address = frames_address + i % FLOWS * FRAME_BYTES,
						      .length = (uint16_t)size, .command = END_OF_PACKET | INSERT_FCS };
}

void wire_send(unsigned int count)
{
	unsigned int n;

	for (; count; count -= n) {
		n = count < DESCRIPTORS ? count : DESCRIPTORS - 1;
		tail = (tail + n) % DESCRIPTORS;
		set(sender, TDT, tail);
	}
}

uint64_t wire_sent(void)
{
	return get(sender, GPTC);
}

/* ---- the receiving card ---- */

/* The registers of a queue that the driver does not use: the last of 16 with igb, the second one with e1000e. */
struct spare {
	uint16_t device;	/* PCI device id */
	uint32_t len, tail, control;
};

static const struct spare spares[] = {
	{ 0x10c9, 0xc3c8, 0xc3d8, 0xc3e8 },
	{ 0x10d3, 0x2908, 0x2918, 0x2928 },
};

#define QUEUE_ENABLE	(1U << 25)

void wire_stop_waiting(const char *card)
{
	volatile uint8_t *receiver = map_registers(card);
	int fd = open_file(card, "config");
	uint16_t device;
	size_t i;

	if (pread(fd, &device, 2, 2) != 2)
		fail("PCI configuration");
	close(fd);
	for (i = 0; i < sizeof(spares) / sizeof(spares[0]); i++) {
		if (spares[i].device != device)
			continue;
		set(receiver, spares[i].len, 4096);
		set(receiver, spares[i].control, get(receiver, spares[i].control) | QUEUE_ENABLE);
		set(receiver, spares[i].tail, 1);
		munmap((void *)receiver, BAR_BYTES);
		return;
	}
	fail_with(card, "neither an igb nor an e1000e");
}
