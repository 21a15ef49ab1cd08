/* SPDX-License-Identifier: Apache-2.0
 *
 * Is C = A x B, in every element? By Freivalds' identity: C x = A (B x) for a random x modulo 2^61 - 1, twice. One
 * wrong element in a row makes its product differ unless x happens to cancel it, which has probability 2^-61 for each
 * of the two independent x. The cost is that of reading the matrices, so 4096 cubed takes a fraction of a second
 * where the product itself would take a minute. Rows that differ are then computed directly, in 64-bit integers. */
#ifndef RKNPU_KIT_ORACLE_H
#define RKNPU_KIT_ORACLE_H

#include <stdbool.h>
#include <stdint.h>

#include "mersenne.h"
#include "rknn_abi.h"

struct oracle {
  int M, K, N;
  const int8_t *A, *B; /* row-major [M,K] and [K,N]; borrowed */
  struct field_vector x[2];
  uint64_t *want[2]; /* A (B x), one per row */
};

enum oracle_kind {
  ORACLE_RIGHT = 0,
  ORACLE_NOT_WRITTEN,  /* C is the sentinel throughout */
  ORACLE_PART_WRITTEN, /* some of C still holds the sentinel */
  ORACLE_ALL_ZERO,
  ORACLE_ROWS_SWAPPED, /* the wrong rows looked at belong to other rows */
  ORACLE_OTHER_CONTEXT, /* C is the product of another context */
  ORACLE_WRONG_VALUES
};

struct oracle_report {
  enum oracle_kind kind;
  int64_t rows_wrong;     /* all of them, exactly */
  int64_t wrong_elements; /* of the rows computed directly */
  int64_t rows_computed;  /* min(rows_wrong, ORACLE_ROWS_COMPUTED) */
  int64_t not_written, zeros; /* over all of C; filled in when C is wrong */
  int first_row, first_col;
  double got;
  int64_t expected;
};

enum { ORACLE_ROWS_COMPUTED = 32 };

/* The seed of x is the caller's; contexts that are to be told apart share it. False when out of memory. */
bool oracle_init(struct oracle *oracle, const int8_t *A, const int8_t *B, int M, int K, int N, uint64_t seed);
void oracle_free(struct oracle *oracle);

/* True when every element of C is right. others: further oracles of the same shape and seed, to recognise a result
 * that went to the wrong context; may be NULL. False with kind RIGHT: out of memory, nothing was judged. */
bool oracle_check(const struct oracle *oracle, const rknn_matmul_tensor_attr *attr, const void *C,
                  const struct oracle *const *others, int other_count, struct oracle_report *report);

/* One clause for people; one word for programs: "not-written", "part-written", "all-zero", "rows-swapped",
 * "other-context", "wrong-values". */
const char *oracle_kind_text(enum oracle_kind kind);
const char *oracle_kind_word(enum oracle_kind kind);

#endif
