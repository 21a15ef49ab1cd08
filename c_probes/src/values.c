/* SPDX-License-Identifier: Apache-2.0 */
#include "values.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool read_integer(const char *text, long long low, long long high, long long *out) {
  char *end = NULL;
  errno = 0;
  if (text[0] != '-' && (text[0] < '0' || text[0] > '9')) return false;
  *out = strtoll(text, &end, 0);
  return errno == 0 && end != text && *end == '\0' && *out >= low && *out <= high;
}

bool read_number(const char *text, double low, double high, double *out) {
  char *end = NULL;
  *out = strtod(text, &end);
  return end != text && *end == '\0' && isfinite(*out) && *out >= low && *out <= high;
}

bool choose(const char *value, const char *first, const char *second, enum choice *out) {
  if (strcmp(value, first) == 0)
    *out = CHOICE_FIRST;
  else if (strcmp(value, second) == 0)
    *out = CHOICE_SECOND;
  else if (strcmp(value, "both") == 0)
    *out = CHOICE_BOTH;
  else
    return false;
  return true;
}
