/* SPDX-License-Identifier: Apache-2.0 */
#include "oracle.h"

#include <stdlib.h>
#include <string.h>

#include "fill.h"
#include "layout.h"
#include "names.h"

static uint64_t random_in_field(uint64_t *state) {
  uint64_t value;
  do value = random_next(state) & MERSENNE_P;
  while (value == MERSENNE_P);
  return value;
}

bool oracle_init(struct oracle *oracle, const int8_t *A, const int8_t *B, int M, int K, int N, uint64_t seed) {
  memset(oracle, 0, sizeof *oracle);
  *oracle = (struct oracle){.M = M, .K = K, .N = N, .A = A, .B = B};
  uint64_t state = seed ^ UINT64_C(0x6f7261636c652121); /* not the stream that filled A and B */
  bool good = true;
  for (int v = 0; v < 2 && good; v++) {
    struct field_vector bx;
    oracle->want[v] = malloc((size_t)M * sizeof *oracle->want[v]);
    good = oracle->want[v] && field_vector_init(&oracle->x[v], (size_t)N);
    if (!good) break;
    for (int i = 0; i < N; i++) field_vector_set(&oracle->x[v], (size_t)i, random_in_field(&state));
    good = field_vector_init(&bx, (size_t)K);
    if (!good) break;
    for (int k = 0; k < K; k++)
      field_vector_set(&bx, (size_t)k, dot_int8(B + (size_t)k * (size_t)N, &oracle->x[v]));
    for (int m = 0; m < M; m++) oracle->want[v][m] = dot_int8(A + (size_t)m * (size_t)K, &bx);
    field_vector_free(&bx);
  }
  if (!good) oracle_free(oracle);
  return good;
}

void oracle_free(struct oracle *oracle) {
  for (int v = 0; v < 2; v++) {
    field_vector_free(&oracle->x[v]);
    free(oracle->want[v]);
    oracle->want[v] = NULL;
  }
}

static void compute_row(const struct oracle *oracle, int row, int64_t *out) {
  memset(out, 0, (size_t)oracle->N * sizeof *out);
  for (int k = 0; k < oracle->K; k++) {
    const int64_t a = oracle->A[(size_t)row * (size_t)oracle->K + (size_t)k];
    const int8_t *b = oracle->B + (size_t)k * (size_t)oracle->N;
    if (a == 0) continue;
    for (int n = 0; n < oracle->N; n++) out[n] += a * b[n];
  }
}

/* The row whose right products these are, or -1. */
static int row_with(const struct oracle *oracle, const uint64_t got[2]) {
  for (int m = 0; m < oracle->M; m++)
    if (oracle->want[0][m] == got[0] && oracle->want[1][m] == got[1]) return m;
  return -1;
}

static void count_untouched(const struct oracle *oracle, const rknn_matmul_tensor_attr *attr, const void *C,
                            struct oracle_report *report) {
  const size_t bytes = tensor_type_bits((int)attr->type) / 8;
  for (size_t m = 0; m < (size_t)oracle->M; m++)
    for (size_t n = 0; n < (size_t)oracle->N; n++) {
      const size_t at = layout_offset_C(attr, m, n);
      report->not_written += sentinel_at(C, at * bytes, bytes);
      report->zeros += layout_value_C(attr, C, at) == 0;
    }
}

static enum oracle_kind guess(const struct oracle *oracle, const struct oracle_report *report, int64_t rows_elsewhere,
                              int64_t rows_other) {
  const int64_t all = (int64_t)oracle->M * oracle->N;
  if (report->not_written == all) return ORACLE_NOT_WRITTEN;
  if (report->zeros == all) return ORACLE_ALL_ZERO;
  if (rows_other == report->rows_computed) return ORACLE_OTHER_CONTEXT;
  if (rows_elsewhere == report->rows_computed) return ORACLE_ROWS_SWAPPED;
  /* In int8 the pattern's values occur by chance, so a few of them say nothing. */
  if (report->not_written * 64 > all) return ORACLE_PART_WRITTEN;
  return ORACLE_WRONG_VALUES;
}

bool oracle_check(const struct oracle *oracle, const rknn_matmul_tensor_attr *attr, const void *C,
                  const struct oracle *const *others, int other_count, struct oracle_report *report) {
  const size_t N = (size_t)oracle->N;
  memset(report, 0, sizeof *report);
  int32_t *row = malloc(N * sizeof *row);
  int64_t *right = malloc(N * sizeof *right), rows_elsewhere = 0, rows_other = 0;
  const bool memory = row && right;
  for (int m = 0; memory && m < oracle->M; m++) {
    const size_t odd = layout_row_C(attr, C, (size_t)m, row, N);
    const uint64_t got[2] = {dot_int32(row, &oracle->x[0]), dot_int32(row, &oracle->x[1])};
    if (odd == 0 && got[0] == oracle->want[0][m] && got[1] == oracle->want[1][m]) continue;
    if (report->rows_wrong++ >= ORACLE_ROWS_COMPUTED) continue;
    report->rows_computed++;
    compute_row(oracle, m, right);
    for (size_t n = 0; n < N; n++) {
      const double value = layout_value_C(attr, C, layout_offset_C(attr, (size_t)m, n));
      if (value == (double)right[n]) continue;
      if (report->wrong_elements++ > 0) continue;
      report->first_row = m;
      report->first_col = (int)n;
      report->got = value;
      report->expected = right[n];
    }
    rows_elsewhere += odd == 0 && row_with(oracle, got) >= 0;
    bool other = false;
    for (int i = 0; i < other_count && odd == 0; i++)
      other = other || (others[i] != oracle && others[i]->want[0][m] == got[0] && others[i]->want[1][m] == got[1]);
    rows_other += other;
  }
  if (report->rows_wrong > 0) {
    count_untouched(oracle, attr, C, report);
    report->kind = guess(oracle, report, rows_elsewhere, rows_other);
  }
  free(row);
  free(right);
  return memory && report->rows_wrong == 0;
}

static const struct {
  const char *word, *text;
} kinds[] = {
    [ORACLE_RIGHT] = {"right", "right"},
    [ORACLE_NOT_WRITTEN] = {"not-written", "C was not written"},
    [ORACLE_PART_WRITTEN] = {"part-written", "C was only partly written"},
    [ORACLE_ALL_ZERO] = {"all-zero", "C is all zero"},
    [ORACLE_ROWS_SWAPPED] = {"rows-swapped", "rows of C are swapped"},
    [ORACLE_OTHER_CONTEXT] = {"other-context", "C holds the result of another context"},
    [ORACLE_WRONG_VALUES] = {"wrong-values", "wrong values"},
};

const char *oracle_kind_text(enum oracle_kind kind) { return kinds[kind].text; }

const char *oracle_kind_word(enum oracle_kind kind) { return kinds[kind].word; }
