/* SPDX-License-Identifier: Apache-2.0
 *
 * A matmul context and the table of handles.
 */
#ifndef MOCK_CONTEXT_H
#define MOCK_CONTEXT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memory.h"
#include "persona.h"
#include "rknn_abi.h"

#define MOCK_MAX_SHAPES 1024

typedef enum { MOCK_A = 0, MOCK_B = 1, MOCK_C = 2 } mock_operand_id;

/* One bound operand. raw holds the bytes that a run computes from: taken at bind for normal layout, at the run for
 * native layout. change grows whenever raw became different. */
typedef struct {
  mock_memory *memory;
  unsigned char *raw;
  size_t raw_size, raw_room;
  unsigned long change;
  unsigned long seen_written; /* mock_memory_written at the last look */
  unsigned char *first;       /* for stale-a, stale-b: the first bytes ever seen */
  size_t first_size;
} mock_operand;

typedef struct {
  float *scale; /* NULL = 1 everywhere */
  int32_t count;
} mock_scales;

typedef struct mock_context {
  uint64_t handle;
  int references; /* guarded by the table's lock */
  pthread_mutex_t lock;

  const mock_type *type;
  mock_tile tile;
  bool a_native, b_native, b_transposed;
  int b_quant, group_size, domain;
  int shape_count;
  rknn_matmul_shape *shapes;
  rknn_matmul_io_attr *attrs; /* one per shape */
  int current;
  unsigned core_mask; /* 0 = AUTO */
  double booked;      /* bytes on the domain */

  mock_operand operand[3];
  mock_scales scales[3];
  unsigned long scales_change;
  unsigned long runs;

  struct mock_prepared *prepared; /* A and B in computable form, and the memo of C */
} mock_context;

/* Puts a new context into the table. The handle, or 0 when the limit of live contexts is reached. */
uint64_t mock_context_add(mock_context *context);
/* The context of a handle with one more reference, or NULL. */
mock_context *mock_context_take(rknn_context handle);
void mock_context_drop(mock_context *context);
/* Takes the handle out of the table; the caller's reference stays. 0, or -1 when another thread did so first. */
int mock_context_remove(mock_context *context);
size_t mock_context_count(void);

/* Frees the prepared operands (run.c). */
void mock_prepared_free(struct mock_prepared *prepared);

#endif
