/* SPDX-License-Identifier: Apache-2.0
 *
 * What the probes made of several parts share: a row about a context, and which parts were asked for. */
#ifndef RKNPU_KIT_PARTS_H
#define RKNPU_KIT_PARTS_H

#include "matmul.h"

/* Whether --part names it, or no part was named. */
bool part_wanted(const struct options *options, const char *part);

/* Begins a row; parameters and evidence are open objects until part_row_end. */
void part_row_begin(struct row *row, const char *name, const char *unit);
/* Verdict and reason of m, and whether its C was compared. To be called before part_row_end. */
void part_row_judge(struct row *row, const struct matmul *m);
/* Closes both objects, writes the row and frees it. */
void part_row_end(struct session *session, struct row *row, struct tally *tally);

/* A problem of int8, B native, A and C norm, on core mask 1 where the runtime takes it. */
struct problem plain_problem(const struct session *session, int M, int K, int N);
/* Created, prepared, run once and compared. False: m has verdict and reason. */
bool matmul_ready(struct matmul *m, struct session *session, const struct problem *problem);
/* The sentinel into C, one run, and a comparison of all of C. */
bool matmul_prove(struct matmul *m, const char *when);

#endif
