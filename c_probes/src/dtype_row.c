/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "dtype_trial.h"

static const char *verdict_of(const struct trial *trial) {
  return !trial->done ? "could-not-run" : trial->m.verdict ? trial->m.verdict : "passed";
}

static void describe(const struct trial *trial, char *text, size_t size) {
  const struct shape s = trial->problem.shape;
  snprintf(text, size, "%s %dx%dx%d", layout_name(trial->problem.B_layout), s.M, s.K, s.N);
}

/* Adds "; clause" to a sentence. */
static void append(char *text, size_t size, const char *clause) {
  const size_t have = strlen(text);
  snprintf(text + have, size - have, "%s%s", have ? "; " : "", clause);
}

/* From the trials that were done: wrong before right before impossible before refused. */
static void judge_trials(struct row *row, const struct dtype_shared *shared) {
  static const char *const order[] = {"failed", "passed", "could-not-run", "unsupported"};
  for (size_t o = 0; o < sizeof order / sizeof order[0]; o++)
    for (int i = 0; i < shared->count; i++) {
      const struct trial *trial = &shared->trials[i];
      char where[80];
      if (strcmp(verdict_of(trial), order[o]) != 0) continue;
      describe(trial, where, sizeof where);
      row->verdict = order[o];
      if (!row_passed(row)) snprintf(row->reason, sizeof row->reason, "%s: %s", where, trial->m.reason);
      return;
    }
}

/* For an accepted type: which of the trials were refused, and what else is odd. */
static void add_notes(struct row *row, const struct dtype_shared *shared) {
  for (int i = 0; i < shared->count; i++) {
    const struct trial *trial = &shared->trials[i];
    char where[80], clause[700];
    describe(trial, where, sizeof where);
    if (trial->done && trial->m.verdict && row_passed(row)) {
      snprintf(clause, sizeof clause, "%s: %.500s", where, trial->m.reason);
      append(row->note, sizeof row->note, clause);
    }
    if (trial->m.disagreement[0]) {
      snprintf(clause, sizeof clause, "%s: %.400s", where, trial->m.disagreement);
      append(row->note, sizeof row->note, clause);
    }
  }
}

/* A type that was created, yet not with the operand types of the published table. */
static void compare_types(const struct trial *trial, char *text, size_t size) {
  const struct matmul_type_info *info = matmul_type_find(trial->problem.type);
  const rknn_matmul_io_attr *io = &trial->m.io.attr;
  if (!info || (io->A.type == info->a && io->B.type == info->b && io->C.type == info->c)) return;
  snprintf(text, size, "io_attr says %s x %s -> %s where the type is %s", tensor_type_name((int)io->A.type),
           tensor_type_name((int)io->B.type), tensor_type_name((int)io->C.type), info->name);
}

static void put_trials(struct row *row, const struct dtype_shared *shared) {
  struct json *json = &row->evidence;
  json_key(json, "trials");
  json_open(json, '[');
  for (int i = 0; i < shared->count; i++) {
    const struct trial *trial = &shared->trials[i];
    if (!trial->begun) continue;
    json_open(json, '{');
    json_put_integer(json, "M", trial->problem.shape.M);
    json_put_integer(json, "K", trial->problem.shape.K);
    json_put_integer(json, "N", trial->problem.shape.N);
    json_put_string(json, "layout", layout_name(trial->problem.B_layout));
    json_put_string(json, "verdict", verdict_of(trial));
    json_put_string(json, "reason", trial->m.reason[0] ? trial->m.reason : NULL);
    json_key(json, "create_code");
    trial->m.create_tried ? json_integer(json, trial->m.create_code) : json_null(json);
    json_put_number(json, "run_us", trial->run_us > 0 ? trial->run_us : NAN);
    matmul_put_evidence(&trial->m, json);
    json_close(json, '}');
  }
  json_close(json, ']');
}

static void fill_cells(struct row *row, const struct trial *shown, int type) {
  char (*cell)[CELL_WIDTH] = row->cells;
  snprintf(cell[0], CELL_WIDTH, "%d", type);
  snprintf(cell[1], CELL_WIDTH, "%s", matmul_type_name(type));
  if (shown && shown->m.create_tried) snprintf(cell[2], CELL_WIDTH, "%d", shown->m.create_code);
  if (shown && shown->m.create_tried && shown->m.create_code == 0 && shown->m.io.attr.A.n_dims)
    snprintf(cell[3], CELL_WIDTH, "%s %s %s", tensor_type_name((int)shown->m.io.attr.A.type),
             tensor_type_name((int)shown->m.io.attr.B.type), tensor_type_name((int)shown->m.io.attr.C.type));
  snprintf(cell[4], CELL_WIDTH, "%s", row->verdict);
}

void dtype_row_fill(struct row *row, const struct dtype_shared *shared, int type, const struct child_end *end,
                    const char *log) {
  const struct trial *shown = NULL; /* the first that was created, else the first */
  const struct trial *wrong = NULL;
  char room[32], mismatch[300] = "";
  /* An exit() inside the library takes the caller with it as a signal does, be its code 0 or not. */
  const bool exited = end->how == ENDED && !shared->returned;
  for (int i = shared->count - 1; i >= 0; i--) {
    const struct trial *trial = &shared->trials[i];
    if (trial->m.create_tried && (!shown || trial->m.create_code == 0 || shown->m.create_code != 0)) shown = trial;
    if (trial->m.wrong.rows_wrong) wrong = trial;
    row->exact = row->exact || wrong || trial->run_us > 0;
  }
  const char *by = end->how == CRASHED ? guard_signal_name(end->signal, room, sizeof room) : NULL;
  if (exited) {
    snprintf(room, sizeof room, "exit(%d)", end->exit_code);
    by = room;
  }
  if (by) {
    row->verdict = "crashed";
    snprintf(row->reason, sizeof row->reason, "%s during step: %s", by, shared->step);
  } else if (end->how == TIMED_OUT) {
    row->verdict = "timed-out";
    snprintf(row->reason, sizeof row->reason, "killed after %.1f s during step: %s", end->duration_us / 1e6,
             shared->step);
  } else if (end->how == NO_CHILD) {
    snprintf(row->reason, sizeof row->reason, "fork failed: %s", strerror(end->error));
  } else if (end->exit_code != 0) {
    snprintf(row->reason, sizeof row->reason, "the child ended with exit code %d during step: %s", end->exit_code,
             shared->step);
  } else {
    judge_trials(row, shared);
  }
  if (!by && end->how == ENDED && end->exit_code == 0) add_notes(row, shared);
  if (shown && shown->m.create_code == 0 && shown->m.io.attr.A.n_dims)
    compare_types(shown, mismatch, sizeof mismatch);
  if (mismatch[0]) append(row->note, sizeof row->note, mismatch);

  json_open(&row->parameters, '{');
  json_put_integer(&row->parameters, "type", type);
  json_put_string(&row->parameters, "type_name", matmul_type_name(type));
  json_close(&row->parameters, '}');

  struct json *json = &row->evidence;
  const struct matmul_type_info *info = matmul_type_find(type);
  json_open(json, '{');
  json_key(json, "create_code");
  shown ? json_integer(json, shown->m.create_code) : json_null(json);
  json_put_string(json, "create_code_name", shown ? rknn_code_name(shown->m.create_code) : NULL);
  if (!info || !info->documented) json_put_string(json, "semantics", "undocumented");
  if (by) json_put_string(json, "signal", by);
  if (exited || end->how != ENDED || end->exit_code != 0) json_put_string(json, "step", shared->step);
  if (wrong) json_put_string(json, "kind", oracle_kind_word(wrong->m.wrong.kind));
  for (int i = 0; i < shared->count && !mismatch[0]; i++)
    snprintf(mismatch, sizeof mismatch, "%.299s", shared->trials[i].m.disagreement);
  if (mismatch[0]) json_put_string(json, "disagreement", mismatch);
  put_trials(row, shared);
  if (log[0]) json_put_string(json, "log", log);
  json_close(json, '}');
  row->reason_is_plain =
      strcmp(row->verdict, "unsupported") == 0 && shown && shown->m.create_code == RKNN_ERR_PARAM_INVALID;
  fill_cells(row, shown, type);
}
