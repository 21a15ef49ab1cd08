/* SPDX-License-Identifier: Apache-2.0
 *
 * Setting one value by name: every key, its check and its complaint.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "settings.h"

int mock_complain(char *error, size_t size, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(error, size, format, arguments);
  va_end(arguments);
  return -1;
}

/* A persona chosen by the environment stands: a configuration file's own line is then only checked. */
static int set_persona(mock_settings *settings, const char *value, char *error, size_t size) {
  const mock_soc *soc = mock_soc_find(value);
  if (soc) {
    if (!settings->persona_fixed) mock_settings_persona(settings, soc);
    return 0;
  }
  int used = snprintf(error, size, "unknown persona \"%s\"; valid:", value);
  for (size_t i = 0; i < mock_soc_count && (size_t)used < size; i++)
    used += snprintf(error + used, size - (size_t)used, " %s", mock_socs[i].name);
  return -1;
}

/* "off", "on", a set's name, or key=value, separated by commas; later entries win. */
static int set_timing(mock_settings *settings, const char *value, char *error, size_t size) {
  char *copy = strdup(value), *rest = NULL;
  int code = copy ? 0 : mock_complain(error, size, "out of memory");
  for (char *word = copy ? strtok_r(copy, ", \t", &rest) : NULL; word && code == 0;
       word = strtok_r(NULL, ", \t", &rest)) {
    const mock_timing_set *set = mock_timing_find(word);
    char *equals = strchr(word, '=');
    settings->timing_on = strcmp(word, "off") != 0;
    if (set) {
      settings->timing = set->timing;
    } else if (equals) {
      *equals = '\0';
      code = mock_timing_set_value(&settings->timing, word, equals + 1, error, size);
    } else if (strcmp(word, "off") != 0 && strcmp(word, "on") != 0) {
      int used = snprintf(error, size, "unknown timing \"%s\"; valid: off on key=value", word);
      for (size_t i = 0; i < mock_timing_set_count && (size_t)used < size; i++)
        used += snprintf(error + used, size - (size_t)used, " %s", mock_timing_sets[i].name);
      code = -1;
    }
  }
  free(copy);
  return code;
}

static int set_types(mock_settings *settings, const char *value, char *error, size_t size) {
  unsigned types = 0;
  char *end;
  for (const char *at = value;; at = end + 1) {
    long code = strtol(at, &end, 10);
    if (end == at || code < 0 || code > 31 || !mock_type_find((int)code))
      return mock_complain(error, size, "limits.types: \"%s\" is no list of matmul type codes (1 to 12, 15)", value);
    types |= MOCK_TYPE(code);
    while (*end == ' ') end++;
    if (*end == '\0') break;
    if (*end != ',') return mock_complain(error, size, "limits.types: \"%s\": codes are separated by commas", value);
  }
  settings->types = types;
  return 0;
}

static int set_gemm(mock_settings *settings, const char *value, char *error, size_t size) {
  mock_gemm_point point;
  char layout[8], extra;
  int got = sscanf(value, "%d,%d,%d,%d,%7[a-z],%lf%c", &point.type, &point.M, &point.K, &point.N, layout, &point.tops,
                   &extra);
  point.native = strcmp(layout, "native") == 0;
  bool ok = got == 6 && mock_type_find(point.type) && point.M > 0 && point.K > 0 && point.N > 0 &&
            (point.native || strcmp(layout, "norm") == 0) && isfinite(point.tops) && point.tops > 0;
  if (!ok) return mock_complain(error, size, "timing.gemm: \"%s\" is not type,M,K,N,norm|native,TOPS", value);
  if (settings->point_count == MOCK_GEMM_POINTS)
    return mock_complain(error, size, "timing.gemm: more than %d shapes", MOCK_GEMM_POINTS);
  if (!settings->points) settings->points = calloc(MOCK_GEMM_POINTS, sizeof *settings->points);
  if (!settings->points) return mock_complain(error, size, "out of memory");
  settings->points[settings->point_count++] = point;
  settings->timing_on = true;
  return 0;
}

static int set_word(int *target, const char *key, const char *value, const char *const words[], char *error,
                    size_t size) {
  for (int i = 0; words[i]; i++)
    if (strcmp(words[i], value) == 0) {
      *target = i;
      return 0;
    }
  int used = snprintf(error, size, "%s: unknown value \"%s\"; valid:", key, value);
  for (int i = 0; words[i] && (size_t)used < size; i++)
    used += snprintf(error + used, size - (size_t)used, " %s", words[i]);
  return -1;
}

static int set_number(double *target, const char *key, const char *value, double least, double most, char *error,
                      size_t size) {
  char *end;
  double number = strtod(value, &end);
  if (end == value || *end || !(number >= least && number <= most) || number != floor(number))
    return mock_complain(error, size, "%s: \"%s\" is no whole number from %g to %g", key, value, least, most);
  *target = number;
  return 0;
}

static const char *const arithmetic_words[] = {"exact", "skip", NULL};
static const char *const memo_words[] = {"0", "1", "sync", NULL};
static const char *const int16_words[] = {"saturate", "wrap", NULL};
#define VALID_KEYS \
  "persona timing timing.PARAMETER timing.gemm faults arithmetic memo int16 threads limits.types limits.k_max_f16 " \
  "limits.k_max_i8 limits.k_max_i4 limits.n_max limits.contexts limits.domain_bytes limits.strict_reserved " \
  "limits.refusal_code limits.driver_version"

static int set_limit(mock_settings *s, const char *key, const char *value, char *error, size_t size) {
  double number = 0;
  const struct {
    const char *key;
    double *target, least, most;
    int k_class;
  } rows[] = {
      {"limits.k_max_f16", &number, 0, 1e9, MOCK_F16},
      {"limits.k_max_i8", &number, 0, 1e9, MOCK_I8},
      {"limits.k_max_i4", &number, 0, 1e9, MOCK_I4},
      {"limits.n_max", &s->n_max, 0, 1e9, -1},
      {"limits.contexts", &s->contexts, 0, MOCK_MAX_CONTEXTS, -1},
      {"limits.domain_bytes", &s->domain_bytes, 0, 1e15, -1},
      {"limits.strict_reserved", &s->strict_reserved, 0, 1, -1},
      {"limits.refusal_code", &s->refusal_code, -13, -1, -1},
      {"limits.driver_version", &s->driver_version, 0, 999999, -1},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    if (strcmp(rows[i].key, key) != 0) continue;
    int code = set_number(rows[i].target, key, value, rows[i].least, rows[i].most, error, size);
    if (code == 0 && rows[i].k_class >= 0) s->k_max[rows[i].k_class] = (int)number;
    return code;
  }
  return mock_complain(error, size, "unknown setting \"%s\"; valid: %s", key, VALID_KEYS);
}

int mock_settings_set(mock_settings *s, const char *key, const char *value, char *error, size_t size) {
  int word = 0, code;
  double number = 0;
  if (strcmp(key, "persona") == 0) return set_persona(s, value, error, size);
  if (strcmp(key, "timing") == 0) return set_timing(s, value, error, size);
  if (strcmp(key, "timing.gemm") == 0) return set_gemm(s, value, error, size);
  if (strncmp(key, "timing.", 7) == 0) return mock_timing_set_value(&s->timing, key + 7, value, error, size);
  if (strcmp(key, "faults") == 0) return mock_faults_parse(value, s->faults, error, size);
  if (strcmp(key, "limits.types") == 0) return set_types(s, value, error, size);
  if (strcmp(key, "arithmetic") == 0) {
    code = set_word(&word, key, value, arithmetic_words, error, size);
    s->skip_arithmetic = word == 1;
  } else if (strcmp(key, "memo") == 0) {
    code = set_word(&word, key, value, memo_words, error, size);
    s->memo = (mock_memo_mode)word;
  } else if (strcmp(key, "int16") == 0) {
    code = set_word(&word, key, value, int16_words, error, size);
    s->int16_wraps = word == 1;
  } else if (strcmp(key, "threads") == 0) {
    code = set_number(&number, key, value, 1, 64, error, size);
    s->threads = code == 0 ? (int)number : s->threads;
  } else {
    code = set_limit(s, key, value, error, size);
  }
  return code;
}
