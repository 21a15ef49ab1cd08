/* SPDX-License-Identifier: Apache-2.0
 *
 * Work that keeps a CPU busy without touching memory: int8 dot products with an exact result, and a chain of additions
 * of which a CPU does one per cycle. */
#ifndef RKNPU_KIT_DDR_WORK_H
#define RKNPU_KIT_DDR_WORK_H

#include <stdint.h>

/* Operands of the dot products, 16 KiB: they stay in any first-level cache. */
enum { DOT_ROWS = 4, DOT_LENGTH = 2048, DOT_ROUNDS = 8 };

struct dot_data {
  int8_t a[DOT_ROWS][DOT_LENGTH], b[DOT_ROWS][DOT_LENGTH];
};

void dot_fill(struct dot_data *data);

/* One unit of work: all products of rows of a with rows of b, DOT_ROUNDS times over. Returns their sum. */
int64_t dot_unit(const struct dot_data *data);

/* The same sum by plain 64-bit arithmetic, and the multiply-accumulates in a unit (two operations each). */
int64_t dot_expected(const struct dot_data *data);
double dot_macs(void);

/* value after `rounds` rounds of ADDS_PER_ROUND additions of step, each waiting for the one before. */
enum { ADDS_PER_ROUND = 1000 };
uint64_t add_chain(uint64_t value, uint64_t step, uint64_t rounds);

#endif
