/* SPDX-License-Identifier: Apache-2.0
 *
 * Bound operands.
 */
#ifndef MOCK_MATMUL_BIND_H
#define MOCK_MATMUL_BIND_H

#include <stdbool.h>
#include <stddef.h>

#include "context.h"

/* Makes the operand's raw bytes those that a run of the current shape has to compute from. 0, or -1 when the bound
 * memory is too small or there is no memory for the copy. */
int mock_refresh(mock_context *context, mock_operand_id id, size_t size);

#endif
