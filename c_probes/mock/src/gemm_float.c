/* SPDX-License-Identifier: Apache-2.0
 *
 * B lies in panels of 16 columns; a tile of 6 rows by 16 columns is kept in registers over the whole of k.
 */
#include "gemm_float.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define PANEL 16
#define ROWS 6
#define LANES 8

typedef float lanes __attribute__((vector_size(LANES * sizeof(float)), aligned(4), may_alias));

struct mock_float_b {
  size_t K, N;
  float *data; /* [N / 16 up][K][16] */
};

mock_float_b *mock_float_pack(const float *B, size_t K, size_t N) {
  mock_float_b *packed = malloc(sizeof *packed);
  size_t panels = (N + PANEL - 1) / PANEL;
  float *data = packed ? calloc(panels * K * PANEL, sizeof *data) : NULL;
  if (!data) {
    free(packed);
    return NULL;
  }
  for (size_t p = 0; p < panels; p++) {
    size_t width = N - p * PANEL < PANEL ? N - p * PANEL : PANEL;
    for (size_t k = 0; k < K; k++) memcpy(data + (p * K + k) * PANEL, B + k * N + p * PANEL, width * sizeof(float));
  }
  *packed = (mock_float_b){K, N, data};
  return packed;
}

void mock_float_free(mock_float_b *packed) {
  if (packed) free(packed->data);
  free(packed);
}

/* Twelve sums of eight lanes, named one by one so that they stay in registers at any optimisation level. */
#define EACH_ROW(X) X(0) X(1) X(2) X(3) X(4) X(5)
#define START(r) \
  lanes left##r = {0}, right##r = {0}; \
  const float *row##r = A + (r < rows ? r : rows - 1) * lda;
#define ADD(r) \
  left##r += row##r[k] * b[0]; \
  right##r += row##r[k] * b[1];
#define STORE(r) \
  memcpy(out[r], &left##r, sizeof left##r); \
  memcpy(out[r] + LANES, &right##r, sizeof right##r);

static inline __attribute__((always_inline)) void tile(const float *A, size_t lda, const float *panel, size_t k0,
                                                       size_t k1, size_t rows, float out[ROWS][PANEL]) {
  EACH_ROW(START)
  for (size_t k = k0; k < k1; k++) {
    const lanes *b = (const lanes *)(const void *)(panel + k * PANEL);
    EACH_ROW(ADD)
  }
  EACH_ROW(STORE)
}

typedef struct {
  const float *A;
  float *C;
  const mock_float_b *B;
  size_t lda, M, k0, k1, first_panel, last_panel;
} slice;

static inline __attribute__((always_inline)) void run_slice(const slice *s) {
  float out[ROWS][PANEL];
  for (size_t p = s->first_panel; p < s->last_panel; p++) {
    size_t width = s->B->N - p * PANEL < PANEL ? s->B->N - p * PANEL : PANEL;
    for (size_t m = 0; m < s->M; m += ROWS) {
      size_t rows = s->M - m < ROWS ? s->M - m : ROWS;
      tile(s->A + m * s->lda, s->lda, s->B->data + p * s->B->K * PANEL, s->k0, s->k1, rows, out);
      for (size_t r = 0; r < rows; r++) memcpy(s->C + (m + r) * s->B->N + p * PANEL, out[r], width * sizeof(float));
    }
  }
}

static void *slice_plain(void *argument) {
  run_slice(argument);
  return NULL;
}

#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("avx2"))) static void *slice_avx2(void *argument) {
  run_slice(argument);
  return NULL;
}
static void *(*slice_runner(void))(void *) { return __builtin_cpu_supports("avx2") ? slice_avx2 : slice_plain; }
#else
static void *(*slice_runner(void))(void *) { return slice_plain; }
#endif

int mock_float_gemm(const float *A, size_t lda, const mock_float_b *B, float *C, size_t M, size_t k0, size_t k1,
                    int threads) {
  enum { MOST = 64 };
  slice part[MOST];
  pthread_t thread[MOST];
  size_t panels = (B->N + PANEL - 1) / PANEL, count = threads < 1 ? 1 : threads > MOST ? MOST : (size_t)threads;
  if ((double)M * (double)(k1 - k0) * (double)B->N < 2e6) count = 1; /* not worth starting a thread */
  if (count > panels) count = panels ? panels : 1;
  void *(*runner)(void *) = slice_runner();
  size_t started = 1;
  for (size_t i = 0; i < count; i++)
    part[i] = (slice){A, C, B, lda, M, k0, k1, panels * i / count, panels * (i + 1) / count};
  while (started < count && pthread_create(&thread[started], NULL, runner, &part[started]) == 0) started++;
  runner(&part[0]);
  for (size_t i = started; i < count; i++) runner(&part[i]);
  for (size_t i = 1; i < started; i++) pthread_join(thread[i], NULL);
  return 0;
}
