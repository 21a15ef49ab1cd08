/* SPDX-License-Identifier: Apache-2.0
 *
 * mm_grid: the rate over M, and the best rate there is, for each type, layout and quantisation. */
#include <math.h>
#include <string.h>

#include "guard.h"
#include "measure.h"
#include "parts.h"

static const char method[] =
    "For each type, layout and quantisation: M over powers of two at fixed K and N, then from the best M on K and "
    "N are "
    "halved and doubled as long as the rate grows by more than 2 %. Each point is measured as in mm_peak: wall "
    "time of "
    "rknn_matmul_run on data already bound, first run apart, every element of C compared with an exact oracle. "
    "Beside the rate "
    "stand the bytes of A, B and C and the operations per byte: the points of a roofline. Spoiled by low clocks, "
    "heat, and any "
    "other user of the NPU, the memory or the calling CPU core.";

static const struct program program = {
    .name = "mm_grid",
    .bit = FOR_GRID,
    .purpose = "Finds the highest rate of each matmul type, layout and quantisation, and the rate over M.",
    .deadline = 900,
    .seconds = 0.1,
};

static const struct column columns[] = {{"type", -11}, {"M x K x N", -15}, {"B/AC", -13},   {"B quant", -7},
                                        {"ms/run", 9}, {"TOPS", 7},        {"ops/byte", 8}, {"verdict", -13}};

struct family {
  int B_layout, AC_layout;
  enum quant quant;
};

static const struct family families[] = {{RKNN_MM_LAYOUT_NATIVE, RKNN_MM_LAYOUT_NORM, QUANT_PER_LAYER},
                                         {RKNN_MM_LAYOUT_NATIVE, RKNN_MM_LAYOUT_NATIVE, QUANT_PER_LAYER},
                                         {RKNN_MM_LAYOUT_NORM, RKNN_MM_LAYOUT_NORM, QUANT_PER_LAYER},
                                         {RKNN_MM_LAYOUT_NATIVE, RKNN_MM_LAYOUT_NORM, QUANT_PER_CHANNEL}};

/* A ladder of M at side x side, and the largest product, in multiply-accumulates, that a climb may reach. */
struct extent {
  int rungs[16], side;
  double most_macs;
  int steps; /* of the climb */
};
static const struct extent small = {{1, 16, 128, 512}, 1024, 2.2e9, 2};
static const struct extent whole = {{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096}, 2048, 1.72e10, 4};

static void fill(struct row *row, const struct matmul *m) {
  const struct problem *p = &m->problem;
  const struct shape s = p->shape;
  const struct matmul_type_info *type = matmul_type_find(p->type);
  const rknn_matmul_io_attr *io = &m->io.attr;
  const double bytes = (double)io->A.size + io->B.size + io->C.size, ops = 2.0 * s.M * s.K * s.N;
  row->timing.create_us = m->create_us;
  row->timing.bind_b_us = m->bind_b_us;
  for (int i = 0; i < row->timing.count; i++)
    row->rate[row->rate_count++] = tops_of(s.M, s.K, s.N, row->timing.run_us[i]);
  matmul_put_parameters(m, &row->parameters);
  json_put_integer(&row->parameters, "core_mask", m->mask_in_force);
  json_put_string(&row->parameters, "series", "grid");
  if (m->create_tried && m->create_code == 0) {
    json_put_number(&row->evidence, "bytes", bytes);
    json_put_number(&row->evidence, "ops_per_byte", ops / bytes);
  }
  part_row_judge(row, m);
  snprintf(row->cells[0], CELL_WIDTH, "%s", type ? type->short_name : "unassigned");
  snprintf(row->cells[1], CELL_WIDTH, "%dx%dx%d", s.M, s.K, s.N);
  snprintf(row->cells[2], CELL_WIDTH, "%s/%s", layout_name(p->B_layout), layout_name(p->AC_layout));
  snprintf(row->cells[3], CELL_WIDTH, "%s", p->quant == QUANT_PER_CHANNEL ? "channel" : "layer");
  snprintf(row->cells[4], CELL_WIDTH, row_passed(row) ? "%.3f" : "-",
           median_of(row->timing.run_us, (size_t)row->timing.count) / 1e3);
  snprintf(row->cells[5], CELL_WIDTH, row_passed(row) ? "%.4g" : "-",
           median_of(row->rate, (size_t)row->rate_count));
  snprintf(row->cells[6], CELL_WIDTH, "%.3g", ops / bytes);
  snprintf(row->cells[7], CELL_WIDTH, "%s", row->verdict);
}

/* The rate of one point, or NaN when it has none. *refused: the library does not take the problem at all. */
static double point(struct session *session, const struct problem *problem, struct tally *tally, bool *refused) {
  static struct matmul m;
  struct row row;
  part_row_begin(&row, "gemm_rate", "tops");
  if (matmul_create(&m, session, problem) && matmul_prepare(&m))
    measure_runs(&m, session->options->seconds, &row.timing);
  matmul_close(&m);
  fill(&row, &m);
  const double rate = row_passed(&row) ? median_of(row.rate, (size_t)row.rate_count) : NAN;
  *refused = strcmp(row.verdict, "unsupported") == 0;
  part_row_end(session, &row, tally);
  return rate;
}

static double macs_of(struct shape s) { return (double)s.M * s.K * s.N; }

/* Points on the way: steps that lead back to a point measured before are not taken. */
static void climb(struct session *session, struct problem best, double rate, const struct extent *extent,
                  struct tally *tally) {
  int came_by = -1;
  for (int steps = 0; steps < extent->steps; steps++) {
    struct shape next_shape = best.shape;
    double next_rate = rate * 1.02;
    int next = -1;
    for (int step = 0; step < 4; step++) { /* K double, K half, N double, N half */
      struct problem other = best;
      bool refused;
      int *side = step < 2 ? &other.shape.K : &other.shape.N;
      if (came_by >= 0 && step == (came_by ^ 1)) continue;
      *side = step % 2 ? *side / 2 : *side * 2;
      if (*side < 256 || *side > 8192 || macs_of(other.shape) > extent->most_macs) continue;
      const double other_rate = point(session, &other, tally, &refused);
      if (!(other_rate > next_rate)) continue;
      next_rate = other_rate;
      next_shape = other.shape;
      next = step;
    }
    if (next < 0) return;
    best.shape = next_shape;
    rate = next_rate;
    came_by = next;
  }
}

static void series(struct session *session, int code, const struct family *family, const struct extent *extent,
                   struct tally *tally) {
  struct problem problem = plain_problem(session, 1, extent->side, extent->side), best = problem;
  double best_rate = 0;
  bool refused = false;
  problem.type = code;
  problem.B_layout = family->B_layout;
  problem.AC_layout = family->AC_layout;
  problem.quant = family->quant;
  problem.core_mask = session->options->core_mask;
  for (int i = 0; extent->rungs[i] && !refused; i++) {
    problem.shape.M = extent->rungs[i];
    problem.seed += 2654435761u;
    const double rate = point(session, &problem, tally, &refused);
    if (!(rate > best_rate)) continue;
    best_rate = rate;
    best = problem;
  }
  if (best_rate > 0) climb(session, best, best_rate, extent, tally);
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
  output_header(&session.output, session.runtime.path, session.runtime.version, options.seed, 0, method);
  for (int t = 0; t < count; t++) {
    const struct matmul_type_info *type = matmul_type_find(types[t]);
    const bool channels = type && type->a == RKNN_TENSOR_INT8;
    for (size_t f = 0; f < sizeof families / sizeof families[0]; f++)
      if (families[f].quant == QUANT_PER_LAYER || channels)
        series(&session, types[t], &families[f], options.quick ? &small : &whole, &tally);
  }
  return session_end(&session, tally_exit(&tally));
}
