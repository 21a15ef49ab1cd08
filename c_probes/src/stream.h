/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of mm_stream. */
#ifndef RKNPU_KIT_STREAM_H
#define RKNPU_KIT_STREAM_H

#include "parts.h"
#include "together.h"

/* NPU weight streaming at M = 1, one row for each number of cores up to count. */
void stream_rows(struct session *session, const int *masks, int count, struct tally *tally);
/* What CPU threads and the NPU take from each other when both work. */
void contention_rows(struct session *session, const int *masks, int count, struct tally *tally);

/* B of an M = 1 product that is streamed: K x N int8, 16 MiB unless --shape says otherwise. */
struct problem stream_problem(const struct session *session);
/* Bytes that the library's own description gives A, B and C. */
double matmul_bytes(const struct matmul *m);

#endif
