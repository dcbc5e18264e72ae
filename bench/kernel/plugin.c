// SPDX-License-Identifier: Apache-2.0
/*
 * A QEMU TCG plugin that counts guest instructions between markers (marker.h). It counts all instructions and those
 * with a lock prefix for each block of code. Later, the counts can be assigned to functions. The virtual CPUs must run
 * in turn, in one QEMU thread.
 *
 *	-plugin plugin.so,out=PREFIX
 *
 * The Nth end marker writes PREFIX.N: a line for each block that ran, "address instructions executions locked". No
 * package has QEMU's plugin header, so this file declares the parts of the interface that it uses. API is the version
 * number: 1 for QEMU 6 to 8, 4 for 9.1 and later.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "marker.h"

#define EXPORT __attribute__((visibility("default")))
#define BUCKETS (1U << 18)
#define INSN_MAX 15

/* ---- QEMU's interface ---- */

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef void (*qemu_plugin_tb_cb)(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);
typedef void (*qemu_plugin_exec_cb)(unsigned int cpu, void *data);

EXPORT int qemu_plugin_version = API;

extern void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, qemu_plugin_tb_cb cb);
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
extern uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
extern struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t index);
extern size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
extern void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, qemu_plugin_exec_cb cb, int flags,
						   void *data);
#if API >= 4
extern size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *bytes, size_t len);
extern void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb, qemu_plugin_exec_cb cb, int flags,
						 void *data);
#else
extern const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
/* Operation 0 adds. */
extern void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *tb, int operation, void *counter,
						     uint64_t value);
#endif

/* ---- blocks ---- */

/**
 * struct block - a straight piece of code, as QEMU translated it
 * @address: guest virtual address of its first instruction
 * @nr_insns: number of instructions in it
 * @nr_locked: number of instructions that lock the bus
 * @count: how often it ran since the last begin marker
 */
struct block {
	uint64_t address;
	uint64_t nr_insns;
	uint64_t nr_locked;
	uint64_t count;
	struct block *next;
};

static struct block *blocks[BUCKETS];
static const char *prefix = "count";
static unsigned int runs;

/* Returns the block, and creates it if it is new. The same code is translated more than once. */
static struct block *block_find(uint64_t address, uint64_t nr_insns)
{
	uint64_t hash = (address ^ nr_insns << 48) * 0x9e3779b97f4a7c15ULL >> 46;
	struct block **at = &blocks[hash & (BUCKETS - 1)];

	for (; *at; at = &(*at)->next)
		if ((*at)->address == address && (*at)->nr_insns == nr_insns)
			return *at;
	*at = calloc(1, sizeof(**at));
	if (!*at)
		abort();
	(*at)->address = address;
	(*at)->nr_insns = nr_insns;
	return *at;
}

static void blocks_clear(void)
{
	struct block *block;
	unsigned int i;

	for (i = 0; i < BUCKETS; i++)
		for (block = blocks[i]; block; block = block->next)
			block->count = 0;
}

static void blocks_write(void)
{
	struct block *block;
	char path[4096];
	unsigned int i;
	FILE *file;

	snprintf(path, sizeof(path), "%s.%u", prefix, runs++);
	file = fopen(path, "w");
	if (!file) {
		perror(path);
		abort();
	}
	for (i = 0; i < BUCKETS; i++)
		for (block = blocks[i]; block; block = block->next)
			if (block->count)
				fprintf(file, "%" PRIx64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", block->address,
					block->nr_insns, block->count, block->nr_locked);
	fclose(file);
}

/* ---- translation ---- */

static void on_begin(unsigned int cpu, void *data)
{
	(void)cpu;
	(void)data;
	blocks_clear();
}

static void on_end(unsigned int cpu, void *data)
{
	(void)cpu;
	(void)data;
	blocks_write();
}

#if API >= 4
static void on_block(unsigned int cpu, void *data)
{
	(void)cpu;
	((struct block *)data)->count++;
}
#endif

static size_t insn_bytes(const struct qemu_plugin_insn *insn, uint8_t bytes[INSN_MAX])
{
	size_t len = qemu_plugin_insn_size(insn);

	memset(bytes, 0, INSN_MAX);
	if (len > INSN_MAX)
		return 0;
#if API >= 4
	qemu_plugin_insn_data(insn, bytes, len);
#else
	memcpy(bytes, qemu_plugin_insn_data(insn), len);
#endif
	return len;
}

/* Returns true for a lock prefix, or for an exchange with memory, which locks without a prefix. */
static bool insn_is_locked(const uint8_t *bytes)
{
	if (bytes[0] == 0xf0)
		return true;
	if (bytes[0] == 0x66 || bytes[0] == 0x2e || bytes[0] == 0x65)
		bytes++;
	if (bytes[0] == 0xf0)
		return true;
	if ((bytes[0] & 0xf0) == 0x40)
		bytes++;
	return (bytes[0] == 0x86 || bytes[0] == 0x87) && bytes[1] >> 6 != 3;
}

static bool insn_is_marker(const uint8_t *bytes, size_t len, uint8_t what)
{
	const uint8_t marker[RB_MARKER_LEN] = RB_MARKER_BYTES(what);

	return len == RB_MARKER_LEN && !memcmp(bytes, marker, RB_MARKER_LEN);
}

static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t nr_insns = qemu_plugin_tb_n_insns(tb), i, len;
	struct block *block = block_find(qemu_plugin_tb_vaddr(tb), nr_insns);
	struct qemu_plugin_insn *insn;
	uint8_t bytes[INSN_MAX];

	(void)id;
	block->nr_locked = 0;
#if API >= 4
	qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, 0, block);
#else
	qemu_plugin_register_vcpu_tb_exec_inline(tb, 0, &block->count, 1);
#endif
	for (i = 0; i < nr_insns; i++) {
		insn = qemu_plugin_tb_get_insn(tb, i);
		len = insn_bytes(insn, bytes);
		block->nr_locked += insn_is_locked(bytes);
		if (insn_is_marker(bytes, len, RB_MARKER_BEGIN))
			qemu_plugin_register_vcpu_insn_exec_cb(insn, on_begin, 0, NULL);
		else if (insn_is_marker(bytes, len, RB_MARKER_END))
			qemu_plugin_register_vcpu_insn_exec_cb(insn, on_end, 0, NULL);
	}
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv)
{
	int i;

	(void)info;
	for (i = 0; i < argc; i++)
		if (!strncmp(argv[i], "out=", 4))
			prefix = strdup(argv[i] + 4);
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
	return 0;
}
