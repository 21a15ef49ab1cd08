/* SPDX-License-Identifier: Apache-2.0
 *
 * From sums to elements of C: scaling, rounding, saturating.
 */
#ifndef MOCK_OUTPUT_H
#define MOCK_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "context.h"

/* int32 and int16 output hold bare sums: no scale is applied to them. */
bool mock_keeps_integers(const mock_type *type);
float mock_saturate(float value, float least, float most);
/* The largest of the channels' scales. */
float mock_common_scale(const float *scale, size_t count);

void mock_output_int(const mock_context *context, const int32_t *sum, size_t M, size_t N, unsigned char *out);
void mock_output_float(const mock_context *context, const float *sum, size_t M, size_t N, unsigned char *out);
/* Sums that already carry B's group scales. */
void mock_output_grouped(const mock_context *context, const float *sum, size_t M, size_t N, unsigned char *out);

#endif
