/* SPDX-License-Identifier: Apache-2.0
 *
 * The timing model: how long a run, a bind and the rest would take on a board, and the waiting itself. It never
 * touches results.
 */
#ifndef MOCK_TIMING_H
#define MOCK_TIMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "persona.h"

#define MOCK_CURVE_POINTS 6
#define MOCK_GEMM_POINTS 256

/* Rate over M: points in rising order of M, interpolated in log(M), flat beyond the ends. */
typedef struct {
  int count;
  struct {
    double m, tops;
  } point[MOCK_CURVE_POINTS];
} mock_curve;

/* A measured shape, as profile replay gives it: native is the layout of A and C. */
typedef struct {
  int type, M, K, N, native;
  double tops;
} mock_gemm_point;

typedef struct {
  double fixed_us;              /* cost of a run that does nothing */
  double bw_core_gbps;          /* bytes of A, B and C streamed by one core */
  double bw_shared_gbps;        /* the same by all cores together */
  double share2, share3;        /* compute speed of each of two or three contexts running together, 1 = alone */
  double k_cliff[MOCK_CLASSES]; /* K above this costs k_cliff_factor per MAC; 0 = no cliff */
  double k_cliff_factor;
  double bind_native_us;
  double bind_norm_us; /* for bind_norm_bytes; scales with the size */
  double bind_norm_bytes;
  double sync_us, sync_gbps;
  double create_us, destroy_us;
  double scale;                     /* multiplies every modelled time */
  mock_curve rate[MOCK_CLASSES][2]; /* [class of A][0 normal, 1 native] TOPS of one core alone */
  const char *source;
} mock_timing;

typedef struct {
  const char *name;
  const char *what;
  mock_timing timing;
} mock_timing_set;

extern const mock_timing_set mock_timing_sets[];
extern const size_t mock_timing_set_count;

const mock_timing_set *mock_timing_find(const char *name);
/* Sets one parameter from text. 0, or -1 with a sentence in error. */
int mock_timing_set_value(mock_timing *timing, const char *key, const char *value, char *error, size_t size);
/* Calls each with every parameter's key and value as text. */
void mock_timing_each(const mock_timing *timing, void (*each)(void *state, const char *key, const char *value),
                      void *state);

/* One run, as the model sees it. */
typedef struct {
  const mock_type *type;
  int M, K, N;
  bool native;   /* layout of A and C */
  double bytes;  /* A + B + C */
  unsigned mask; /* one core's bit, or 0 for any idle core */
} mock_work;

/* Seconds of the three parts on a core alone. */
typedef struct {
  double fixed, compute, memory;
} mock_cost;
/* points: measured shapes that take the place of the rates; may be none. */
mock_cost mock_timing_cost(const mock_timing *timing, const mock_gemm_point *points, size_t count,
                           const mock_work *work);

/* Seconds since an arbitrary start. */
double mock_now(void);
/* Returns at the absolute time `until` (mock_now's clock). */
void mock_wait_until(double until);

/* A run on the modelled chip. begin notes the submission; end returns when the chip would be done. NULL when timing
 * is off. */
typedef struct mock_job mock_job;
mock_job *mock_job_begin(const mock_work *work);
void mock_job_end(mock_job *job);

double mock_bind_seconds(const mock_timing *timing, bool native, double bytes);
double mock_sync_seconds(const mock_timing *timing, double bytes);

#endif
