/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Code that the classifier's tests share. Each check_*.c has one check_<noun>(); main.c runs them in order. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../classify.h"

/* Reports the place and the problem, and ends the test program: later checks build upon earlier ones. */
#define CHECK(cond, ...)                                                          \
	do {                                                                      \
		if (!(cond)) {                                                    \
			fprintf(stderr, "%s:%d: not true: %s: ", __FILE__, __LINE__, #cond); \
			fprintf(stderr, __VA_ARGS__);                             \
			fputc('\n', stderr);                                      \
			exit(1);                                                  \
		}                                                                 \
	} while (0)

#define NR_HASHES 4	/* balance types that hash: RINGCAP_BALANCE_FLOW .. _TWO_TUPLE */
#define FRAME_MAX 512

/* A line of vectors.txt. */
struct vector {
	char name[64];
	rc_u16 tpid, tci;	/* the tag held elsewhere */
	struct rc_flow flow;
	rc_u32 hash[NR_HASHES];
	rc_u32 len;
	rc_u8 frame[FRAME_MAX];
};

/*
 * Opens vectors.txt. The second reads its next vector, or returns 0 at the end. A line that is no vector ends the
 * program.
 */
FILE *vectors_open(const char *path);
int vectors_next(FILE *file, struct vector *v);

/* The same for tunnels.txt: the inner packet, @found.tunnel RC_TUNNEL_NONE = none; hashes are those of a line there. */
int tunnels_next(FILE *file, struct vector *v, struct rc_way_in *found);

/* The key of vectors.txt: bytes 0 .. 15. */
void vectors_key(rc_u64 key[2]);

/* Compares field by field, because of the padding; returns the first field that differs, or NULL. */
const char *flow_differs(const struct rc_flow *a, const struct rc_flow *b);

/* rc_parse on a copy that ends exactly where the packet ends, so that the sanitizer sees every read beyond it. */
void parse_exact(const rc_u8 *frame, rc_u32 len, rc_u16 tpid, rc_u16 tci, struct rc_flow *flow);

/* rc_parse_inner on such a copy; @flow is that of the packet. */
int parse_inner_exact(const rc_u8 *frame, rc_u32 len, rc_u16 tpid, rc_u16 tci, const struct rc_flow *flow,
		      struct rc_inner *inner);

/* Checks properties that the flow of every packet has. */
void check_invariants(const rc_u8 *frame, rc_u32 len, rc_u16 tpid, rc_u16 tci);

void check_vectors(const char *path);
void check_tunnels(const char *path);
void check_flows(void);
void check_spread(void);
void check_patterns(void);
void check_payload(void);
void check_rules(void);

/* A fixed sequence of well-mixed numbers: tests must do the same each time. */
rc_u64 next_random(void);

#endif /* CHECK_H */
