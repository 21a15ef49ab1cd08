/* SPDX-License-Identifier: Apache-2.0
 *
 * Timing parameters by name: finding sets, reading and listing values.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "timing.h"

typedef struct {
  const char *key;
  size_t offset;
  double least; /* smallest value allowed */
} number_row;

#define NUMBER(key, member, least) \
  { key, offsetof(mock_timing, member), least }
static const number_row numbers[] = {
    NUMBER("fixed_us", fixed_us, 0),
    NUMBER("bw_core_gbps", bw_core_gbps, 1e-6),
    NUMBER("bw_shared_gbps", bw_shared_gbps, 1e-6),
    NUMBER("share2", share2, 1e-6),
    NUMBER("share3", share3, 1e-6),
    NUMBER("k_cliff_f16", k_cliff[MOCK_F16], 0),
    NUMBER("k_cliff_i8", k_cliff[MOCK_I8], 0),
    NUMBER("k_cliff_i4", k_cliff[MOCK_I4], 0),
    NUMBER("k_cliff_factor", k_cliff_factor, 1e-6),
    NUMBER("bind_native_us", bind_native_us, 0),
    NUMBER("bind_norm_us", bind_norm_us, 0),
    NUMBER("bind_norm_bytes", bind_norm_bytes, 1),
    NUMBER("sync_us", sync_us, 0),
    NUMBER("sync_gbps", sync_gbps, 1e-6),
    NUMBER("create_us", create_us, 0),
    NUMBER("destroy_us", destroy_us, 0),
    NUMBER("scale", scale, 0),
};
static const char *const curve_keys[MOCK_CLASSES][2] = {
    {"rate_f16_norm", "rate_f16_native"}, {"rate_i8_norm", "rate_i8_native"}, {"rate_i4_norm", "rate_i4_native"}};

const mock_timing_set *mock_timing_find(const char *name) {
  for (size_t i = 0; i < mock_timing_set_count; i++)
    if (strcmp(mock_timing_sets[i].name, name) == 0) return &mock_timing_sets[i];
  return NULL;
}

static double *number_at(mock_timing *timing, const number_row *row) {
  return (double *)(void *)((char *)timing + row->offset);
}

/* "TOPS" or "M:TOPS/M:TOPS/..." with rising M. */
static int parse_curve(mock_curve *curve, const char *text) {
  mock_curve found = {0};
  char *end;
  for (const char *at = text; found.count < MOCK_CURVE_POINTS; at = end + 1) {
    double m = 1, tops = strtod(at, &end);
    if (end == at) return -1;
    if (*end == ':') {
      m = tops;
      at = end + 1;
      tops = strtod(at, &end);
      if (end == at) return -1;
    }
    bool rises = found.count == 0 || m > found.point[found.count - 1].m;
    if (!(isfinite(m) && isfinite(tops) && m >= 1 && tops >= 1e-9 && rises)) return -1;
    found.point[found.count].m = m;
    found.point[found.count++].tops = tops;
    if (*end == '\0') {
      *curve = found;
      return 0;
    }
    if (*end != '/') return -1;
  }
  return -1;
}

int mock_timing_set_value(mock_timing *timing, const char *key, const char *value, char *error, size_t size) {
  char *end;
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    if (strcmp(numbers[i].key, key) != 0) continue;
    double number = strtod(value, &end);
    if (end != value && *end == '\0' && isfinite(number) && number >= numbers[i].least) {
      *number_at(timing, &numbers[i]) = number;
      return 0;
    }
    snprintf(error, size, "timing parameter %s: \"%s\" is no number of at least %g", key, value, numbers[i].least);
    return -1;
  }
  for (int class = 0; class < MOCK_CLASSES; class ++)
    for (int native = 0; native < 2; native++) {
      if (strcmp(curve_keys[class][native], key) != 0) continue;
      if (parse_curve(&timing->rate[class][native], value) == 0) return 0;
      snprintf(error, size,
               "timing parameter %s: \"%s\" is neither TOPS nor M:TOPS/M:TOPS with rising M (at most %d)", key, value,
               MOCK_CURVE_POINTS);
      return -1;
    }
  int used = snprintf(error, size, "unknown timing parameter \"%s\"; valid:", key);
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers && (size_t)used < size; i++)
    used += snprintf(error + used, size - (size_t)used, " %s", numbers[i].key);
  for (int class = 0; class < MOCK_CLASSES; class ++)
    for (int native = 0; native < 2 && (size_t)used < size; native++)
      used += snprintf(error + used, size - (size_t)used, " %s", curve_keys[class][native]);
  return -1;
}

void mock_timing_each(const mock_timing *timing, void (*each)(void *, const char *, const char *), void *state) {
  char text[256];
  mock_timing copy = *timing;
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    snprintf(text, sizeof text, "%.10g", *number_at(&copy, &numbers[i]));
    each(state, numbers[i].key, text);
  }
  for (int class = 0; class < MOCK_CLASSES; class ++)
    for (int native = 0; native < 2; native++) {
      const mock_curve *curve = &timing->rate[class][native];
      size_t used = 0;
      text[0] = '\0';
      for (int i = 0; i < curve->count; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%g:%.6g", i ? "/" : "", curve->point[i].m,
                                 curve->point[i].tops);
      each(state, curve_keys[class][native], text);
    }
}
