/* SPDX-License-Identifier: Apache-2.0
 *
 * Small memory for the probe's own bookkeeping. Matrices are allocated with malloc and checked by their callers, so
 * that a shape too large for this machine spoils one row only. */
#ifndef RKNPU_KIT_MEMORY_H
#define RKNPU_KIT_MEMORY_H

#include <stddef.h>

/* realloc that ends the program with exit code 3 and one sentence when there is no memory left. */
void *grow(void *old, size_t bytes);

#endif
