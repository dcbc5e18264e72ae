// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * check-bpf CLASSIFY.BPF.O VECTORS.TXT: has this machine's kernel verify the classifier as a tc program, and run it on
 * every vector. Needs root; without, or where the kernel has no BPF, it says so and succeeds.
 */
#include <errno.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "check.h"

/* What the verifier may look at. The kernel's limit is 1,000,000, and the engine's program has more to it than this. */
#define VERIFIED_MAX 50000

/* Both as in classify.bpf.c. */
struct result {
	struct rc_flow flow;
	rc_u32 hash;
	rc_u32 queue;
};

struct config {
	rc_u64 key[2];
	rc_u32 balance;
	rc_u32 nr_queues;
	rc_u16 vlan_tpid;
	rc_u16 vlan_tci;
};

struct loaded {
	int prog, config, result;
};

static char verifier_log[1 << 16];

static int print_nothing(enum libbpf_print_level level, const char *format, va_list args)
{
	(void)level;
	(void)format;
	(void)args;
	return 0;
}

static struct bpf_object *load(const char *path)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .kernel_log_buf = verifier_log, .kernel_log_size = sizeof(verifier_log),
		    .kernel_log_level = 4);
	struct bpf_object *object = bpf_object__open_file(path, &opts);
	int err;

	CHECK(object, "cannot open %s", path);
	err = bpf_object__load(object);
	if (err == -EPERM || errno == EPERM || err == -ENOSYS) {
		printf("bpf: skipped: this process may not load BPF programs (%s)\n", strerror(-err));
		exit(0);
	}
	CHECK(!err, "refused (%s):\n%s", strerror(-err), verifier_log);
	return object;
}

static void check_complexity(void)
{
	const char *line = strstr(verifier_log, "processed ");
	unsigned int insns;

	CHECK(line && sscanf(line, "processed %u insns", &insns) == 1, "no count in the verifier's log: %s", verifier_log);
	CHECK(insns < VERIFIED_MAX, "the verifier looked at %u instructions, at most %u wanted", insns, VERIFIED_MAX);
	printf("bpf: accepted; the verifier looked at %u instructions\n", insns);
}

/*
 * Of what the kernel makes no packet for a test run: less than an Ethernet header and a byte, and what says that it is
 * IP and has not the whole header, whose place the kernel sees behind the first 14 bytes only.
 */
static int cannot_run(const struct vector *v)
{
	rc_u16 type = v->len < 15 ? 0 : rc_get16(v->frame + 12);

	return v->len < 15 || (type == RC_ETH_P_IPV4 && v->len < 34) || (type == RC_ETH_P_IPV6 && v->len < 54);
}

static void run(const struct loaded *bpf, const struct vector *v, rc_u32 balance, struct result *result)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = v->frame, .data_size_in = v->len);
	struct config config = { .balance = balance, .nr_queues = 16, .vlan_tpid = v->tpid, .vlan_tci = v->tci };
	rc_u32 zero = 0;
	int err;

	vectors_key(config.key);
	err = bpf_map_update_elem(bpf->config, &zero, &config, BPF_ANY);
	CHECK(!err, "config: %s", strerror(-err));
	err = bpf_prog_test_run_opts(bpf->prog, &opts);
	CHECK(!err, "%s: test run: %s", v->name, strerror(-err));
	CHECK(opts.retval == 0, "%s: the program returned %d", v->name, (int)opts.retval);
	err = bpf_map_lookup_elem(bpf->result, &zero, result);
	CHECK(!err, "result: %s", strerror(-err));
}

static void check_vector(const struct loaded *bpf, const struct vector *v)
{
	struct result result;
	const char *field;
	rc_u32 balance;

	for (balance = 0; balance < NR_HASHES; balance++) {
		run(bpf, v, balance, &result);
		field = flow_differs(&result.flow, &v->flow);
		CHECK(!field, "%s: %s is not as in vectors.txt", v->name, field);
		CHECK(result.hash == v->hash[balance], "%s: balance %u: hash %08x, in vectors.txt %08x", v->name, balance,
		      result.hash, v->hash[balance]);
		CHECK(result.queue == rc_queue(result.hash, 16), "%s: queue %u", v->name, result.queue);
	}
}

static int map_fd(const struct bpf_object *object, const char *name)
{
	int fd = bpf_object__find_map_fd_by_name(object, name);

	CHECK(fd >= 0, "no map %s", name);
	return fd;
}

int main(int argc, char **argv)
{
	struct bpf_object *object;
	struct loaded bpf;
	struct vector v;
	FILE *file;
	int run_on = 0, too_short = 0;

	CHECK(argc == 3, "usage: check-bpf CLASSIFY.BPF.O VECTORS.TXT");
	if (geteuid()) {
		printf("bpf: skipped: needs root\n");
		return 0;
	}
	libbpf_set_print(print_nothing);
	object = load(argv[1]);
	check_complexity();
	bpf.prog = bpf_program__fd(bpf_object__find_program_by_name(object, "classify"));
	bpf.config = map_fd(object, "config");
	bpf.result = map_fd(object, "result");
	file = vectors_open(argv[2]);
	while (vectors_next(file, &v)) {
		if (cannot_run(&v)) {
			too_short++;
			continue;
		}
		check_vector(&bpf, &v);
		run_on++;
	}
	fclose(file);
	bpf_object__close(object);
	CHECK(run_on >= 50, "only %d vectors could be run", run_on);
	printf("bpf: the same answers inside the kernel for %d packets (%d are too short for a test run)\n", run_on, too_short);
	return 0;
}
