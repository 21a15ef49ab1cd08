/* SPDX-License-Identifier: Apache-2.0
 *
 * Faults that change results.
 */
#ifndef MOCK_RESULT_FAULTS_H
#define MOCK_RESULT_FAULTS_H

#include <stdbool.h>

#include "compute.h"
#include "context.h"

/* What this run computes instead of the product. */
mock_variant mock_variant_of(const mock_context *context);
/* Does any fault spoil the finished C of this run? */
bool mock_result_faults_on(const mock_context *context);
/* Spoils row-major C in place. False when C must not be written at all. */
bool mock_spoil(mock_context *context, unsigned char *plain);
/* Fault oob-write: writes behind the end of C. */
void mock_write_past(const mock_context *context, unsigned char *end);
/* Fault submit-failed: the code to return, or 0. */
int mock_submit_fails(const mock_context *context);
/* Fault memory-leak. */
void mock_leak_memory(void);

#endif
