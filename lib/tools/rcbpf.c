// SPDX-License-Identifier: BSD-2-Clause
/*
 * rcbpf: compiles a libpcap filter expression to classic BPF, for callers that cannot link libpcap.
 *
 *   rcbpf [SNAPLEN] < expression
 *
 * It reads an expression of at most 8192 bytes, for Ethernet packets of which SNAPLEN bytes (65535 by default) are
 * kept. It prints the number of instructions, then each instruction on its own line: code, jt, jf and k, in decimal.
 *
 * Exit status: 0 success; 1 the expression does not compile, and standard error has libpcap's reason in one line; 2 any
 * other error.
 *
 * The result depends only on the expression, never on the machine. Names are not resolved by the machine's NSS or DNS
 * (see rcbpf_names.c).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pcap/pcap.h>

#include "rcbpf_names.h"

enum { EXPRESSION_MAX = 8192, SNAPLEN_MAX = 262144, SNAPLEN_DEFAULT = 65535 };

enum status { OK = 0, BAD_EXPRESSION = 1, FAILED = 2 };

/* Reads standard input up to its end into buf, NUL-terminated. */
static enum status read_expression(char buf[EXPRESSION_MAX + 2])
{
	size_t n = fread(buf, 1, EXPRESSION_MAX + 1, stdin);

	if (ferror(stdin)) {
		fprintf(stderr, "rcbpf: reading standard input: %s\n", strerror(errno));
		return FAILED;
	}
	if (n > EXPRESSION_MAX) {
		fprintf(stderr, "expression is longer than %d bytes\n", EXPRESSION_MAX);
		return BAD_EXPRESSION;
	}
	if (memchr(buf, '\0', n)) {
		fprintf(stderr, "expression contains a NUL byte\n");
		return BAD_EXPRESSION;
	}
	buf[n] = '\0';
	return OK;
}

static enum status parse_snaplen(const char *arg, int *snaplen)
{
	char *end;
	long v;

	errno = 0;
	v = strtol(arg, &end, 10);
	if (errno || end == arg || *end || v < 1 || v > SNAPLEN_MAX) {
		fprintf(stderr, "rcbpf: snap length '%s': want a number from 1 to %d\n", arg, SNAPLEN_MAX);
		return FAILED;
	}
	*snaplen = (int)v;
	return OK;
}

/* Prints a libpcap message as one line, with control characters made visible. */
static void print_reason(const char *reason)
{
	for (const char *c = reason; *c; c++)
		fputc((unsigned char)*c < ' ' || *c == 0x7f ? '?' : *c, stderr);
	if (!strncmp(reason, "unknown port", strlen("unknown port")))
		fputs(" (only common port names are known: use the number)", stderr);
	else if (rcbpf_names_refused)
		fputs(" (host, network and protocol names are not looked up: use addresses and numbers)", stderr);
	fputc('\n', stderr);
}

static enum status print_program(const struct bpf_program *program)
{
	printf("%u\n", program->bf_len);
	for (unsigned int i = 0; i < program->bf_len; i++) {
		const struct bpf_insn *insn = &program->bf_insns[i];

		printf("%u %u %u %u\n", insn->code, insn->jt, insn->jf, insn->k);
	}
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "rcbpf: writing standard output: %s\n", strerror(errno));
		return FAILED;
	}
	return OK;
}

static enum status compile(const char *expression, int snaplen)
{
	pcap_t *pcap = pcap_open_dead(DLT_EN10MB, snaplen);
	struct bpf_program program;
	enum status status;

	if (!pcap) {
		fprintf(stderr, "rcbpf: out of memory\n");
		return FAILED;
	}
	if (pcap_compile(pcap, &program, expression, 1, PCAP_NETMASK_UNKNOWN)) {
		print_reason(pcap_geterr(pcap));
		status = BAD_EXPRESSION;
	} else {
		status = print_program(&program);
		pcap_freecode(&program);
	}
	pcap_close(pcap);
	return status;
}

int main(int argc, char **argv)
{
	static char expression[EXPRESSION_MAX + 2];
	int snaplen = SNAPLEN_DEFAULT;
	enum status status = OK;

	if (argc > 2) {
		fprintf(stderr, "usage: rcbpf [SNAPLEN] < expression\n");
		return FAILED;
	}
	if (argc == 2)
		status = parse_snaplen(argv[1], &snaplen);
	if (status == OK)
		status = read_expression(expression);
	if (status == OK)
		status = compile(expression, snaplen);
	return status;
}
