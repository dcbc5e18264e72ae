// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * check-bpf CLASSIFY.BPF.O INNER.BPF.O VECTORS.TXT TUNNELS.TXT: has this machine's kernel verify the classifier as tc
 * programs, and runs them on every vector. Needs root. Without root, or if the kernel has no BPF, it reports that and
 * succeeds.
 */
#include <errno.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "check.h"

/*
 * Instructions that the verifier may process. The kernel's limit is 1,000,000, and the engine's program has more code
 * than this.
 */
#define VERIFIED_MAX 50000
#define VERIFIED_INNER_MAX 500000

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

/* As in inner.bpf.c. */
struct inner_result {
	rc_u16 vlan_tpid;
	rc_u16 vlan_tci;
	rc_u32 is_there;
	struct rc_way_in found;
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

static void check_complexity(unsigned int most)
{
	const char *line = strstr(verifier_log, "processed ");
	unsigned int insns;

	CHECK(line && sscanf(line, "processed %u insns", &insns) == 1, "no count in the verifier's log: %s", verifier_log);
	CHECK(insns < most, "the verifier looked at %u instructions, at most %u wanted", insns, most);
	printf("bpf: accepted; the verifier looked at %u instructions\n", insns);
}

/*
 * The kernel makes no packet for a test run of less than an Ethernet header and a byte. It also makes none if the first
 * 14 bytes have the ethertype of IP and less than a whole IP header follows.
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

static void run_inner(int prog, int map, const struct vector *v, const struct rc_way_in *want)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = v->frame, .data_size_in = v->len);
	struct inner_result result = { .vlan_tpid = v->tpid, .vlan_tci = v->tci };
	const char *field;
	rc_u32 zero = 0;
	int err;

	err = bpf_map_update_elem(map, &zero, &result, BPF_ANY);
	CHECK(!err, "result: %s", strerror(-err));
	err = bpf_prog_test_run_opts(prog, &opts);
	CHECK(!err && !opts.retval, "%s: test run: %s, %d", v->name, strerror(-err), (int)opts.retval);
	err = bpf_map_lookup_elem(map, &zero, &result);
	CHECK(!err, "result: %s", strerror(-err));
	CHECK(result.is_there == (want->tunnel != RC_TUNNEL_NONE), "%s: %u", v->name, result.is_there);
	if (!result.is_there)
		return;
	field = flow_differs(&result.found.flow, &want->flow);
	CHECK(!field, "%s: %s is not as in tunnels.txt", v->name, field);
	CHECK(result.found.tunnel == want->tunnel && result.found.has_id == want->has_id &&
	      result.found.tunnel_id == want->tunnel_id, "%s: tunnel %u", v->name, result.found.tunnel);
}

static void check_inner(const char *path, const char *tunnels)
{
	struct bpf_object *object = load(path);
	FILE *file = vectors_open(tunnels);
	struct rc_way_in want;
	int prog, map, n = 0;
	struct vector v;

	check_complexity(VERIFIED_INNER_MAX);
	prog = bpf_program__fd(bpf_object__find_program_by_name(object, "inner"));
	map = map_fd(object, "result");
	while (tunnels_next(file, &v, &want)) {
		run_inner(prog, map, &v, &want);
		n++;
	}
	fclose(file);
	bpf_object__close(object);
	printf("bpf: the same inside of %d tunnels inside the kernel\n", n);
}

int main(int argc, char **argv)
{
	struct bpf_object *object;
	struct loaded bpf;
	struct vector v;
	FILE *file;
	int run_on = 0, too_short = 0;

	CHECK(argc == 5, "usage: check-bpf CLASSIFY.BPF.O INNER.BPF.O VECTORS.TXT TUNNELS.TXT");
	if (geteuid()) {
		printf("bpf: skipped: needs root\n");
		return 0;
	}
	libbpf_set_print(print_nothing);
	object = load(argv[1]);
	check_complexity(VERIFIED_MAX);
	bpf.prog = bpf_program__fd(bpf_object__find_program_by_name(object, "classify"));
	bpf.config = map_fd(object, "config");
	bpf.result = map_fd(object, "result");
	file = vectors_open(argv[3]);
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
	check_inner(argv[2], argv[4]);
	return 0;
}
