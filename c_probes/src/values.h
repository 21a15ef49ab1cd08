/* SPDX-License-Identifier: Apache-2.0
 *
 * Values of options, from text. False where the text is no such value. */
#ifndef RKNPU_KIT_VALUES_H
#define RKNPU_KIT_VALUES_H

#include <stdbool.h>

#include "options.h"

bool read_integer(const char *text, long long low, long long high, long long *out);
bool read_number(const char *text, double low, double high, double *out);
/* The first word, the second, or "both". */
bool choose(const char *value, const char *first, const char *second, enum choice *out);

#endif
