/* SPDX-License-Identifier: Apache-2.0
 *
 * mm_limits: the largest K, M and N of each type that is accepted, that is right and that is fast, and the
 * alignment of each, all found by trying. */
#include <math.h>
#include <string.h>

#include "guard.h"
#include "limit_search.h"

static const char method[] =
    "One dimension at a time, the other two small. It is doubled from a small value until a shape is refused, "
    "wrong or slow, "
    "or the cap is reached; each of these ends is then bisected on the grid of the alignment. accepted: "
    "rknn_matmul_create "
    "returns 0. right: every element of C equals the exact product after the first and the last run. fast: the "
    "time per "
    "multiply-accumulate, fastest of a few runs, is within two times that of the best smaller value. Alignment: "
    "the smallest "
    "power of two by which 1024 may be exceeded. A limit of the cap is a lower bound. Spoiled by other users of "
    "the NPU "
    "and by clocks that change while it runs.";

static const struct program program = {
    .name = "mm_limits",
    .bit = FOR_LIMITS,
    .purpose =
        "Finds the largest K, M and N that a matmul type takes, computes right and computes fast, and their "
        "alignment.",
    .deadline = 600,
    .most = "largest K, M or N that is tried; default 65536 for K and N, 16384 for M, with --quick a quarter of it",
};

static const struct column columns[] = {{"type", -11}, {"dim", -3},  {"accepted", 9}, {"right", 9},
                                        {"fast", 9},   {"align", 5}, {"verdict", -13}};

static const char *const limit_names[] = {"accepted", "right", "fast"};

static void put_trail(struct json *json, const struct line *line) {
  json_key(json, "trail");
  json_open(json, '[');
  for (int i = 0; i < line->count; i++) {
    const struct trial *trial = &line->trials[i];
    json_open(json, '{');
    json_put_integer(json, "value", trial->value);
    json_put_boolean(json, "accepted", trial->accepted);
    if (trial->known_right && trial->accepted) json_put_boolean(json, "right", trial->right);
    json_put_number(json, "ns_per_mac", trial->ns_per_mac);
    if (trial->why[0]) json_put_string(json, "why", trial->why);
    json_close(json, '}');
  }
  json_close(json, ']');
}

static void put_problem(struct row *row, const struct line *line) {
  const struct problem *p = &line->base;
  char dimension[2] = {line->dimension, '\0'};
  json_put_integer(&row->parameters, "type", p->type);
  json_put_string(&row->parameters, "type_name", matmul_type_name(p->type));
  json_put_string(&row->parameters, "dimension", dimension);
  json_put_string(&row->parameters, "B_layout", layout_name(p->B_layout));
  json_put_string(&row->parameters, "AC_layout", layout_name(p->AC_layout));
  if (line->dimension != 'M') json_put_integer(&row->parameters, "M", p->shape.M);
  if (line->dimension != 'K') json_put_integer(&row->parameters, "K", p->shape.K);
  if (line->dimension != 'N') json_put_integer(&row->parameters, "N", p->shape.N);
}

static void limit_row(struct session *session, const struct line *line, enum limit limit, struct tally *tally) {
  struct row row;
  const struct limit_found found = line_limit(line, limit);
  part_row_begin(&row, "shape_limit", "elements");
  put_problem(&row, line);
  json_put_string(&row.parameters, "limit", limit_names[limit]);
  json_put_boolean(&row.evidence, "at_least", found.at_least);
  if (found.beyond) {
    json_put_integer(&row.evidence, "ends_at", found.beyond->value);
    json_put_string(&row.evidence, "ends_by",
                    !found.beyond->accepted ? "refused"
                    : !found.beyond->right  ? "wrong"
                                            : "slow");
    if (found.beyond->why[0]) json_put_string(&row.evidence, "why", found.beyond->why);
    double best = INFINITY;
    for (int i = 0; i < line->count; i++)
      if (line->trials[i].right && line->trials[i].value <= found.value)
        best = fmin(best, line->trials[i].ns_per_mac);
    if (limit == LIMIT_FAST && found.beyond->right)
      json_put_number(&row.evidence, "slower_times", found.beyond->ns_per_mac / best);
  }
  if (limit == LIMIT_FAST) put_trail(&row.evidence, line);
  row.rate[row.rate_count++] = found.value;
  row.exact = true;
  row.verdict = "passed";
  const struct limit_found *all[LIMIT_COUNT];
  struct limit_found each[LIMIT_COUNT];
  for (int i = 0; i < LIMIT_COUNT; i++) {
    each[i] = line_limit(line, (enum limit)i);
    all[i] = &each[i];
    snprintf(row.cells[2 + i], CELL_WIDTH, "%s%d", all[i]->at_least ? ">=" : "", all[i]->value);
  }
  const struct matmul_type_info *type = matmul_type_find(line->base.type);
  snprintf(row.cells[0], CELL_WIDTH, "%s", type ? type->short_name : "unassigned");
  snprintf(row.cells[1], CELL_WIDTH, "%c", line->dimension);
  snprintf(row.cells[5], CELL_WIDTH, "%d", line->alignment);
  snprintf(row.cells[6], CELL_WIDTH, "%s", row.verdict);
  if (session->output.json || limit == LIMIT_FAST) {
    part_row_end(session, &row, tally);
  } else { /* the table has all three in one line */
    row_free(&row);
  }
}

static void alignment_row(struct session *session, const struct line *line, struct tally *tally) {
  struct row row;
  if (!session->output.json) return; /* a column of the table */
  part_row_begin(&row, "shape_alignment", "elements");
  put_problem(&row, line);
  json_put_boolean(&row.evidence, "regular", line->regular);
  row.rate[row.rate_count++] = line->alignment;
  row.verdict = !line->alignment ? "unsupported" : line->alignment_right ? "passed" : "failed";
  row.exact = line->alignment > 0;
  if (line->alignment && !line->alignment_right)
    snprintf(row.reason, sizeof row.reason, "%c = 1024 + %d is accepted, but: %s", line->dimension, line->alignment,
             line->alignment_why);
  if (!line->alignment)
    snprintf(row.reason, sizeof row.reason, "no %c between 1025 and 2048 was accepted", line->dimension);
  part_row_end(session, &row, tally);
}

/* The base shape does not even work: one row says so for the type. False then. */
static bool base_works(struct session *session, const struct problem *base, struct tally *tally) {
  struct row row;
  static struct line line;
  memset(&line, 0, sizeof line);
  line.base = *base;
  line.dimension = 'K';
  line.trials[0].value = base->shape.K;
  limit_try(session, base, true, &line.trials[0]);
  if (line.trials[0].right) return true;
  const struct matmul_type_info *type = matmul_type_find(base->type);
  part_row_begin(&row, "shape_limit", "elements");
  put_problem(&row, &line);
  json_put_string(&row.parameters, "limit", "right");
  row.verdict = line.trials[0].verdict;
  row.exact = strcmp(row.verdict, "failed") == 0;
  snprintf(row.reason, sizeof row.reason, "M=%d K=%d N=%d: %s", base->shape.M, base->shape.K, base->shape.N,
           line.trials[0].why);
  snprintf(row.cells[0], CELL_WIDTH, "%s", type ? type->short_name : "unassigned");
  snprintf(row.cells[6], CELL_WIDTH, "%s", row.verdict);
  part_row_end(session, &row, tally);
  return false;
}

static void search_type(struct session *session, int code, struct tally *tally) {
  static const struct {
    char dimension;
    struct shape base;
    int quick_cap, cap;
  } lines[] = {
      {'K', {64, 512, 256}, 16384, 65536}, {'N', {64, 512, 256}, 16384, 65536}, {'M', {16, 512, 512}, 4096, 16384}};
  static struct line line;
  const struct options *o = session->options;
  const struct matmul_type_info *type = matmul_type_find(code);
  struct problem base = plain_problem(session, 64, 512, 256);
  base.type = code;
  if (type && type->a == RKNN_TENSOR_INT4) base.AC_layout = RKNN_MM_LAYOUT_NATIVE;
  if (!base_works(session, &base, tally)) return;
  for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
    memset(&line, 0, sizeof line);
    line.base = base;
    line.base.shape = lines[i].base;
    line.dimension = lines[i].dimension;
    line.cap = o->most ? o->most : o->quick ? lines[i].quick_cap : lines[i].cap;
    line_find_alignment(session, &line);
    line_search(session, &line);
    alignment_row(session, &line, tally);
    for (int limit = 0; limit < LIMIT_COUNT; limit++) limit_row(session, &line, (enum limit)limit, tally);
  }
}

int main(int argc, char **argv) {
  static struct session session;
  static struct options options;
  static const int usual[] = {2, 1, 10};
  struct tally tally = {0};
  int code = 0;
  if (!session_begin(&session, &options, &program, columns, sizeof columns / sizeof columns[0], argc, argv, &code))
    return code;
  const int *types = options.type_count ? options.types : usual;
  const int count = options.type_count ? options.type_count : 3;
  output_header(&session.output, session.runtime.path, session.runtime.version, options.seed, count * 12, method);
  for (int i = 0; i < count; i++) search_type(&session, types[i], &tally);
  return session_end(&session, tally_exit(&tally));
}
