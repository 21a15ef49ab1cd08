/* SPDX-License-Identifier: Apache-2.0
 *
 * The fault catalogue. A fault is a row: its name, what it imitates, and up to four numeric parameters with defaults.
 * Code asks mock_fault(ID) for the active row, or NULL.
 */
#ifndef MOCK_FAULTS_H
#define MOCK_FAULTS_H

#include <stdbool.h>
#include <stddef.h>

#define MOCK_FAULT_PARAMS 4

typedef enum {
  FAULT_C_UNTOUCHED,
  FAULT_C_ZERO,
  FAULT_STALE_A,
  FAULT_STALE_B,
  FAULT_STALE_C,
  FAULT_WRAP,
  FAULT_SLICE0_ONLY,
  FAULT_ROWS_SWAPPED,
  FAULT_K_TAIL_DROPPED,
  FAULT_OFF_BY_ONE,
  FAULT_NAN,
  FAULT_NIBBLE_ORDER,
  FAULT_INT4_POSITIVE_HALF,
  FAULT_F16_ACCUMULATE,
  FAULT_PER_CHANNEL_ZERO,
  FAULT_PER_GROUP_ZERO,
  FAULT_SMALL_F16_ZERO,
  FAULT_C_NEEDS_SYNC,
  FAULT_OOB_WRITE,
  FAULT_FD_OFFSET_IGNORED,
  FAULT_MASK_IGNORED,
  FAULT_CONTEXTS_SERIALISED,
  FAULT_SLOW_K,
  FAULT_SLOW_NORM,
  FAULT_THERMAL,
  FAULT_JITTER,
  FAULT_CLOCK_LOW,
  FAULT_K_REFUSED,
  FAULT_N_REFUSED,
  FAULT_TYPE_REFUSED,
  FAULT_NO_DEVICE,
  FAULT_DRIVER_OLD,
  FAULT_FAIL,
  FAULT_CREATE_LOGS_ERROR,
  FAULT_CREATE_NULL_CONTEXT,
  FAULT_SUBMIT_FAILED,
  FAULT_BIND_NO_MEMORY,
  FAULT_INT4_NORM_B_REFUSED,
  FAULT_HANDLES_EXHAUSTED,
  FAULT_FD_LEAK,
  FAULT_MEMORY_LEAK,
  FAULT_HANG,
  FAULT_CRASH,
  FAULT_ABORT,
  FAULT_COUNT
} mock_fault_id;

typedef struct {
  const char *name;
  double value;
} mock_fault_param;

typedef struct {
  mock_fault_id id;
  const char *name;
  const char *imitates;
  mock_fault_param params[MOCK_FAULT_PARAMS]; /* defaults; a NULL name ends the list */
} mock_fault_row;

/* A fault as switched on. Values stand in the order of the row's parameters. call: entry point for those that take
 * one ("call=NAME"), else -1. */
typedef struct {
  bool on;
  int call;
  double value[MOCK_FAULT_PARAMS];
} mock_fault_state;

extern const mock_fault_row mock_fault_rows[FAULT_COUNT];

const mock_fault_state *mock_fault(mock_fault_id id);

/* Parses "name[:param=value]..." entries separated by commas into states. 0, or -1 with a sentence in error. */
int mock_faults_parse(const char *text, mock_fault_state states[FAULT_COUNT], char *error, size_t error_size);

/* Does a fault of results apply to this matmul type and this run (counted from 1)? Its parameters "type" and "after".
 */
bool mock_fault_applies(mock_fault_id id, int type, unsigned long run);

#endif
