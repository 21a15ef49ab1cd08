/* SPDX-License-Identifier: Apache-2.0
 *
 * The fault table and its parser. "Imitates" names where the behaviour was met.
 */
#include "faults.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "persona.h"
#include "settings.h"

/* type: matmul type the fault is limited to, 0 = all. after: number of good runs of a context before it sets in. */
#define RESULT {"type", 0}, {"after", 0}
#define NTH(first) {"n", first}, {"every", 0}

const mock_fault_row mock_fault_rows[FAULT_COUNT] = {
    {FAULT_C_UNTOUCHED, "c-untouched", "run returns 0, C keeps what stood in it (rknn-toolkit2 issue 550)", {RESULT}},
    {FAULT_C_ZERO, "c-zero", "run returns 0, C is all zero (rknn-toolkit2 issues 154, 550)", {RESULT}},
    {FAULT_STALE_A, "stale-a", "run computes with the first A it ever saw (normal A without a new bind)", {RESULT}},
    {FAULT_STALE_B, "stale-b", "run computes with the first B it ever saw (B converted at bind time)", {RESULT}},
    {FAULT_STALE_C, "stale-c", "every second run leaves the result of the run before it", {RESULT}},
    {FAULT_WRAP, "wrap", "int8 and int16 output wrap where they should saturate", {RESULT}},
    {FAULT_SLICE0_ONLY, "slice0-only", "only the first of `slices` equal batch slices of M is computed",
     {RESULT, {"slices", 2}}},
    {FAULT_ROWS_SWAPPED, "rows-swapped", "rows `row` and row+1 of C change places (M > 1)", {RESULT, {"row", 0}}},
    {FAULT_K_TAIL_DROPPED, "k-tail-dropped", "the last `block` products of each sum are left out",
     {RESULT, {"block", 32}}},
    {FAULT_OFF_BY_ONE, "off-by-one", "one element of C is one too large (row, col; -1 = last)",
     {RESULT, {"row", -1}, {"col", -1}}},
    {FAULT_NAN, "nan", "one element of a floating C is NaN; of an integer C the most negative value",
     {RESULT, {"row", 0}, {"col", 0}}},
    {FAULT_NIBBLE_ORDER, "nibble-order", "int4 operands are read high nibble first (runtime 1.6 demos)", {RESULT}},
    {FAULT_INT4_POSITIVE_HALF, "int4-positive-half",
     "positive int4 weights count half (RK3576 types 7 and 8, runtime 2.3.x)", {RESULT}},
    {FAULT_F16_ACCUMULATE, "f16-accumulate", "fp16 inputs are summed in fp16 instead of fp32", {RESULT}},
    {FAULT_PER_CHANNEL_ZERO, "per-channel-zero", "per-channel B: run returns 0, C all zero (rknn-toolkit2 issue 550)",
     {RESULT}},
    {FAULT_PER_GROUP_ZERO, "per-group-zero", "per-group B: run returns 0, C all zero (rknn-toolkit2 issue 550)",
     {RESULT}},
    {FAULT_SMALL_F16_ZERO, "small-f16-zero", "fp16 with M*K*N at most `volume` gives zeros (rknn-toolkit2 issue 154)",
     {RESULT, {"volume", 512}}},
    {FAULT_C_NEEDS_SYNC, "c-needs-sync", "C appears only at rknn_mem_sync FROM_DEVICE, as behind a CPU cache",
     {RESULT}},
    {FAULT_OOB_WRITE, "oob-write", "run writes `bytes` bytes past the end of C", {RESULT, {"bytes", 4}}},
    {FAULT_FD_OFFSET_IGNORED, "fd-offset-ignored", "memory from an fd is used from its start, the offset ignored",
     {{0}}},
    {FAULT_MASK_IGNORED, "mask-ignored",
     "core masks 3 and 7 return 0, the context still uses one core (rknn-toolkit2 issue 7)", {{0}}},
    {FAULT_CONTEXTS_SERIALISED, "contexts-serialised", "all contexts share one core's queue (rknn-toolkit2 issue 129)",
     {{0}}},
    {FAULT_SLOW_K, "slow-k", "right answer, `factor` times slower per MAC above K = `limit`",
     {{"limit", 8192}, {"factor", 14}}},
    {FAULT_SLOW_NORM, "slow-norm", "right answer, `factor` times slower when A and C are in normal layout",
     {{"factor", 81}}},
    {FAULT_THERMAL, "thermal", "from `after_s` seconds after the first run on, speed decays to `floor` of itself over "
     "`over_s` seconds", {{"after_s", 1}, {"over_s", 5}, {"floor", 0.4}}},
    {FAULT_JITTER, "jitter", "each run takes up to `percent` longer, at random", {{"percent", 30}}},
    {FAULT_CLOCK_LOW, "clock-low", "NPU clock stuck at `factor` of its maximum (200 of 1000 MHz)", {{"factor", 0.2}}},
    {FAULT_K_REFUSED, "k-refused", "create refuses K above `limit` (register width, rknn-toolkit2 issue 347)",
     {{"limit", 8191}, {"code", -1}}},
    {FAULT_N_REFUSED, "n-refused", "create refuses N above `limit` (user guide table 3-7)",
     {{"limit", 4096}, {"code", -1}}},
    {FAULT_TYPE_REFUSED, "type-refused", "create refuses matmul type `type` (rknn-toolkit2 issue 567)",
     {{"type", 2}, {"code", -5}}},
    {FAULT_NO_DEVICE, "no-device", "create and init find no device node: -1 and two lines, one naming the module",
     {{0}}},
    {FAULT_DRIVER_OLD, "driver-old", "create refuses: kernel driver older than the runtime wants", {{"code", -10}}},
    {FAULT_FAIL, "fail", "the n-th call of call=NAME returns `code` (every=1: and all after it)", {NTH(1), {"code", -1}}},
    {FAULT_CREATE_LOGS_ERROR, "create-logs-error", "create returns 0 but logs an error line (rknn-llm issue 156)",
     {{0}}},
    {FAULT_CREATE_NULL_CONTEXT, "create-null-context", "create returns 0 but leaves the context 0", {{0}}},
    {FAULT_SUBMIT_FAILED, "submit-failed", "the n-th run returns -1 and logs an int status (rknn-llm issue 85)",
     {{"n", 1}, {"every", 1}, {"status", 0x200}}},
    {FAULT_BIND_NO_MEMORY, "bind-no-memory", "binding B returns -4: fd or address space exhausted (rk-llama.cpp issue 6)",
     {{0}}},
    {FAULT_INT4_NORM_B_REFUSED, "int4-norm-b-refused", "binding an int4 B in normal layout fails (RK3588, runtime 2.3.2)",
     {{0}}},
    {FAULT_HANDLES_EXHAUSTED, "handles-exhausted", "create fails after `contexts` contexts; destroying frees none",
     {{"contexts", 8}}},
    {FAULT_FD_LEAK, "fd-leak", "each rknn_destroy_mem leaves one file descriptor open (rknn-toolkit2 issue 532)",
     {{0}}},
    {FAULT_MEMORY_LEAK, "memory-leak", "each run leaks `bytes` bytes (rknn-toolkit2 issue 42)", {{"bytes", 43008}}},
    {FAULT_HANG, "hang", "the n-th call of call=NAME never returns: polls for a lost interrupt", {NTH(1)}},
    {FAULT_CRASH, "crash", "the n-th call of call=NAME ends in SIGSEGV (rknpu2 issue 88)", {NTH(1)}},
    {FAULT_ABORT, "abort", "the n-th call of call=NAME aborts the process", {NTH(1)}},
};

static int takes_call(mock_fault_id id) {
  return id == FAULT_FAIL || id == FAULT_HANG || id == FAULT_CRASH || id == FAULT_ABORT;
}

static int complain_of_name(const char *name, char *error, size_t size) {
  int used = snprintf(error, size, "unknown fault \"%s\"; valid: ", name);
  for (int i = 0; i < FAULT_COUNT && used > 0 && (size_t)used < size; i++)
    used += snprintf(error + used, size - (size_t)used, "%s%s", i ? ", " : "", mock_fault_rows[i].name);
  return -1;
}

/* What a parameter may hold, by name: a value outside would switch on a fault that is none. */
static const struct {
  const char *name;
  double least, most;
  bool whole;
} ranges[] = {
    {"type", 0, 15, true},      {"after", 0, 1e15, true},  {"slices", 2, 1e9, true},    {"block", 1, 1e9, true},
    {"row", -1e9, 1e9, true},   {"col", -1e9, 1e9, true},  {"volume", 1, 1e15, true},   {"bytes", 1, 1e9, true},
    {"limit", 0, 1e9, true},    {"n", 1, 1e15, true},      {"every", 0, 1, true},       {"code", -1e6, 1e6, true},
    {"status", 0, 4294967295.0, true}, {"contexts", 0, 1e6, true}, {"factor", 1e-6, 1e6, false},
    {"percent", 0, 1e6, false}, {"after_s", 0, 1e9, false}, {"over_s", 0, 1e9, false},  {"floor", 1e-6, 1, false},
};

static int check_value(const mock_fault_row *row, const mock_fault_param *param, double value, char *error,
                       size_t size) {
  for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
    if (strcmp(ranges[i].name, param->name) != 0) continue;
    if (!(value >= ranges[i].least && value <= ranges[i].most && (!ranges[i].whole || value == floor(value))))
      return mock_complain(error, size, "fault %s: %s=%g is no %s from %.10g to %.10g", row->name, param->name, value,
                           ranges[i].whole ? "whole number" : "number", ranges[i].least, ranges[i].most);
  }
  if (strcmp(param->name, "code") == 0 && value == 0)
    return mock_complain(error, size, "fault %s: code=0 means success; give the code to return, such as -1", row->name);
  /* 0 = all types, where a fault can have all. */
  if (strcmp(param->name, "type") == 0 && value != param->value && !mock_type_find((int)value))
    return mock_complain(error, size, "fault %s: type=%g is no matmul type code; valid: 1 to 12, 15", row->name, value);
  return 0;
}

static int complain_of_call(const mock_fault_row *row, const char *call, char *error, size_t size) {
  int used = snprintf(error, size, "fault %s: \"%s\" is no entry point; valid:", row->name, call);
  for (int i = 0; i < MOCK_CALL_COUNT && used > 0 && (size_t)used < size; i++)
    used += snprintf(error + used, size - (size_t)used, " %s", mock_call_name((mock_call)i));
  return -1;
}

static int set_param(const mock_fault_row *row, mock_fault_state *state, char *word, char *error, size_t size) {
  char *equals = strchr(word, '=');
  char *end = NULL;
  if (equals) *equals = '\0';
  if (equals && takes_call(row->id) && strcmp(word, "call") == 0) {
    state->call = mock_call_find(equals + 1);
    return state->call != MOCK_CALL_COUNT ? 0 : complain_of_call(row, equals + 1, error, size);
  }
  for (int i = 0; equals && i < MOCK_FAULT_PARAMS && row->params[i].name; i++) {
    if (strcmp(word, row->params[i].name) != 0) continue;
    state->value[i] = strtod(equals + 1, &end);
    if (end == equals + 1 || *end != '\0' || isnan(state->value[i]))
      return mock_complain(error, size, "fault %s: %s=\"%s\" is no number", row->name, word, equals + 1);
    return check_value(row, &row->params[i], state->value[i], error, size);
  }
  int used = snprintf(error, size, "fault %s: unknown parameter \"%s\"; valid:", row->name, word);
  if (takes_call(row->id)) used += snprintf(error + used, size - (size_t)used, " call=NAME");
  for (int i = 0; i < MOCK_FAULT_PARAMS && row->params[i].name && (size_t)used < size; i++)
    used += snprintf(error + used, size - (size_t)used, " %s=%g", row->params[i].name, row->params[i].value);
  if (!takes_call(row->id) && !row->params[0].name) snprintf(error + used, size - (size_t)used, " none");
  return -1;
}

static int parse_one(char *entry, mock_fault_state states[FAULT_COUNT], char *error, size_t size) {
  char *rest = NULL;
  char *name = strtok_r(entry, ":", &rest);
  int id = 0;
  while (name && id < FAULT_COUNT && strcmp(mock_fault_rows[id].name, name) != 0) id++;
  if (!name || id == FAULT_COUNT) return complain_of_name(name ? name : "", error, size);
  mock_fault_state *state = &states[id];
  state->on = true;
  state->call = takes_call((mock_fault_id)id) ? (int)MOCK_CALL_matmul_run : -1;
  for (int i = 0; i < MOCK_FAULT_PARAMS; i++) state->value[i] = mock_fault_rows[id].params[i].value;
  for (char *word; (word = strtok_r(NULL, ":", &rest));)
    if (set_param(&mock_fault_rows[id], state, word, error, size) != 0) return -1;
  return 0;
}

int mock_faults_parse(const char *text, mock_fault_state states[FAULT_COUNT], char *error, size_t error_size) {
  char *copy = strdup(text), *rest = NULL;
  int code = copy ? 0 : -1;
  if (!copy) snprintf(error, error_size, "out of memory");
  for (char *entry = copy ? strtok_r(copy, ", \t", &rest) : NULL; entry && code == 0;
       entry = strtok_r(NULL, ", \t", &rest))
    code = parse_one(entry, states, error, error_size);
  free(copy);
  return code;
}

const mock_fault_state *mock_fault(mock_fault_id id) {
  const mock_fault_state *state = &mock_settings_get()->faults[id];
  return state->on ? state : NULL;
}

bool mock_fault_applies(mock_fault_id id, int type, unsigned long run) {
  const mock_fault_state *state = mock_fault(id);
  return state && (state->value[0] == 0 || (int)state->value[0] == type) && (double)run > state->value[1];
}
