/* SPDX-License-Identifier: Apache-2.0
 *
 * mm_peak: the rate of one matmul context over shapes, layouts and quantisation types. */
#include <math.h>
#include <string.h>

#include "guard.h"
#include "measure.h"

static const char method[] =
    "One context at a time. Each sample is the wall time of rknn_matmul_run, several in a row, on data already "
    "bound; creation, allocation, packing and binding are outside. The first run is kept apart (cold_run_us). "
    "Rate = 2 M K N / time per run; median and MAD over the samples. Every element of C is compared with an "
    "exact oracle after the first, the second and the last run. Spoiled by clocks that are not at their maximum, "
    "by heat, and by any other user of the NPU, the memory or the calling CPU core.";

static const struct program program = {
    .name = "mm_peak",
    .bit = FOR_PEAK,
    .purpose =
        "Measures how fast one rknn_matmul context multiplies, and checks every element of what it returns.\n"
        "Without --shape, --type, --layout or --quant: the rows of the published RK3588 measurement\n"
        "(4096x4096x4096 and others, int8), and float16 and int4 beside them.",
    .deadline = 900,
};

static const struct column columns[] = {{"type", -11},   {"M x K x N", -14}, {"B/AC", -13},
                                        {"B quant", -7}, {"core", 4},        {"ms/run", 9},
                                        {"MAD", 5},      {"TOPS", 7},        {"verdict", -13}};

struct plan {
  int type;
  struct shape shape;
  int B_layout, AC_layout;
  enum quant quant;
};

#define NORM RKNN_MM_LAYOUT_NORM
#define NATIVE RKNN_MM_LAYOUT_NATIVE

/* The rows published for RK3588 with librknnrt 2.3.2. (Its program passed quantisation type 1 for "per channel",
 * which a runtime from 2.1.0 on reads as per-layer asymmetric; here per channel means per channel.) int4 with A and
 * C in norm layout is known to be some 80 times slower, so its row is native throughout. */
static const struct plan published[] = {
    {2, {4096, 4096, 4096}, NATIVE, NORM, QUANT_PER_CHANNEL},
    {2, {512, 4096, 4096}, NATIVE, NORM, QUANT_PER_CHANNEL},
    {2, {4096, 4096, 4096}, NATIVE, NORM, QUANT_PER_LAYER},
    {2, {4096, 4096, 4096}, NORM, NORM, QUANT_PER_LAYER},
    {2, {512, 15360, 4096}, NATIVE, NORM, QUANT_PER_LAYER},
    {1, {4096, 4096, 4096}, NATIVE, NORM, QUANT_PER_LAYER},
    {10, {4096, 4096, 4096}, NATIVE, NATIVE, QUANT_PER_LAYER},
};

static const struct plan quick[] = {
    {2, {256, 1024, 1024}, NATIVE, NORM, QUANT_PER_CHANNEL},
    {2, {64, 1024, 1024}, NATIVE, NORM, QUANT_PER_CHANNEL},
    {2, {256, 1024, 1024}, NATIVE, NORM, QUANT_PER_LAYER},
    {2, {256, 1024, 1024}, NORM, NORM, QUANT_PER_LAYER},
    {2, {64, 10240, 1024}, NATIVE, NORM, QUANT_PER_LAYER},
    {1, {256, 1024, 1024}, NATIVE, NORM, QUANT_PER_LAYER},
    {10, {256, 1024, 1024}, NATIVE, NATIVE, QUANT_PER_LAYER},
};

enum { MAX_PLANS = MAX_SHAPES * MAX_TYPES * 8 };

static int add_product(const struct options *o, struct plan *plans) {
  const struct shape usual = o->quick ? (struct shape){256, 1024, 1024} : (struct shape){4096, 4096, 4096};
  const struct shape *shapes = o->shape_count ? o->shapes : &usual;
  static const int usual_type[] = {2};
  const int *types = o->type_count ? o->types : usual_type;
  int count = 0;
  for (int t = 0; t < (o->type_count ? o->type_count : 1); t++) {
    const struct matmul_type_info *type = matmul_type_find(types[t]);
    const bool int4 = type && type->a == RKNN_TENSOR_INT4;
    const enum choice b = o->layout ? o->layout : CHOICE_SECOND;
    const enum choice ac = o->ac_layout ? o->ac_layout : int4 ? CHOICE_SECOND : CHOICE_FIRST;
    const enum choice quant = o->quant ? o->quant : CHOICE_FIRST;
    for (int s = 0; s < (o->shape_count ? o->shape_count : 1); s++)
      for (int i = 0; i < 8; i++) { /* one bit each: quant, AC layout, B layout */
        const int q = i & 1, a = i >> 1 & 1, w = i >> 2;
        if ((quant >> q & 1) && (ac >> a & 1) && (b >> w & 1))
          plans[count++] = (struct plan){types[t], shapes[s], w, a, (enum quant)q};
      }
  }
  return count;
}

static int make_plans(const struct options *o, struct plan *plans) {
  if (o->shape_count || o->type_count || o->layout || o->ac_layout || o->quant) return add_product(o, plans);
  memcpy(plans, o->quick ? quick : published, sizeof published);
  return (int)(sizeof published / sizeof published[0]);
}

static void fill_cells(struct row *row, const struct matmul *m) {
  const struct problem *p = &m->problem;
  const struct matmul_type_info *type = matmul_type_find(p->type);
  const double median = median_of(row->timing.run_us, (size_t)row->timing.count);
  const double mad = mad_of(row->timing.run_us, (size_t)row->timing.count);
  const struct shape s = p->shape;
  char (*cell)[CELL_WIDTH] = row->cells;
  snprintf(cell[0], CELL_WIDTH, "%s", type ? type->short_name : "unassigned");
  if (s.M == s.K && s.K == s.N)
    snprintf(cell[1], CELL_WIDTH, "%d cubed", s.M);
  else
    snprintf(cell[1], CELL_WIDTH, "%dx%dx%d", s.M, s.K, s.N);
  snprintf(cell[2], CELL_WIDTH, "%s/%s", layout_name(p->B_layout), layout_name(p->AC_layout));
  snprintf(cell[3], CELL_WIDTH, "%s", p->quant == QUANT_PER_CHANNEL ? "channel" : "layer");
  snprintf(cell[4], CELL_WIDTH, m->mask_in_force ? "%#x" : "auto", (unsigned)m->mask_in_force);
  snprintf(cell[5], CELL_WIDTH, row_passed(row) ? "%.3f" : "-", median / 1e3);
  snprintf(cell[6], CELL_WIDTH, row_passed(row) ? "%.1f%%" : "-", 100 * mad / median);
  snprintf(cell[7], CELL_WIDTH, row_passed(row) ? "%.4g" : "-", median_of(row->rate, (size_t)row->rate_count));
  snprintf(cell[8], CELL_WIDTH, "%s", row->verdict);
}

static void fill_row(struct row *row, const struct matmul *m, double rated_tops) {
  const struct shape s = m->problem.shape;
  const struct timing *timing = &row->timing;
  row->timing.create_us = m->create_us;
  row->timing.bind_b_us = m->bind_b_us;
  row->exact = !m->verdict || m->wrong.rows_wrong;
  row->verdict = m->verdict ? m->verdict : "passed";
  snprintf(row->reason, sizeof row->reason, "%s", m->reason);
  snprintf(row->note, sizeof row->note, "%s", m->disagreement);
  for (int i = 0; i < timing->count; i++) row->rate[row->rate_count++] = tops_of(s.M, s.K, s.N, timing->run_us[i]);

  json_open(&row->parameters, '{');
  matmul_put_parameters(m, &row->parameters);
  json_put_integer(&row->parameters, "core_mask", m->mask_in_force);
  json_close(&row->parameters, '}');

  json_open(&row->evidence, '{');
  matmul_put_evidence(m, &row->evidence);
  if (row_passed(row) && rated_tops > 0)
    json_put_number(&row->evidence, "share_of_rated", median_of(row->rate, (size_t)row->rate_count) / rated_tops);
  if (!row_passed(row) && timing->count) {
    json_key(&row->evidence, "void_run_us");
    row_put_run_us(&row->evidence, timing);
  }
  json_close(&row->evidence, '}');
  if (row_passed(row) && rated_tops > 0 && !row->note[0])
    snprintf(row->note, sizeof row->note, "%.1f %% of the rated %.4g TOPS",
             100 * median_of(row->rate, (size_t)row->rate_count) / rated_tops, rated_tops);
  fill_cells(row, m);
}

int main(int argc, char **argv) {
  static struct session session; /* static: large, and the deadline thread reads them until the end */
  static struct options options;
  static struct plan plans[MAX_PLANS];
  static struct matmul m;
  int code = 0;
  if (!session_begin(&session, &options, &program, columns, sizeof columns / sizeof columns[0], argc, argv, &code))
    return code;
  const int rows = make_plans(&options, plans);
  output_header(&session.output, session.runtime.path, session.runtime.version, options.seed, rows, method);

  struct tally tally = {0};
  for (int i = 0; i < rows; i++) {
    const struct problem problem = {.type = plans[i].type,
                                    .shape = plans[i].shape,
                                    .B_layout = plans[i].B_layout,
                                    .AC_layout = plans[i].AC_layout,
                                    .quant = plans[i].quant,
                                    .core_mask = options.core_mask,
                                    .seed = options.seed + (uint64_t)i * 2654435761u,
                                    .oracle_seed = options.seed};
    struct row row;
    row_init(&row, "gemm_rate", "tops");
    if (matmul_create(&m, &session, &problem) && matmul_prepare(&m)) measure_runs(&m, options.seconds, &row.timing);
    matmul_close(&m);
    fill_row(&row, &m, options.rated_tops);
    output_row(&session.output, &row);
    tally_row(&tally, &row);
    row_free(&row);
  }
  return session_end(&session, tally_exit(&tally));
}
