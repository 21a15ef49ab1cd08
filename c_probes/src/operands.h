/* SPDX-License-Identifier: Apache-2.0
 *
 * The buffers of a context: allocation, data, packing, binding, and the check of C. */
#ifndef RKNPU_KIT_OPERANDS_H
#define RKNPU_KIT_OPERANDS_H

#include "matmul.h"

/* Allocates A, B and C in the library, fills A and B and packs them. */
bool operands_make(struct matmul *m);
/* Hands the buffers over, B timed. Data is in place before, for a norm operand is rearranged at this call. */
bool operands_bind(struct matmul *m);

#endif
