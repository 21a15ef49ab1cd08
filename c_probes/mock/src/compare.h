/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MOCK_COMPARE_H
#define MOCK_COMPARE_H

#include <stdbool.h>
#include <stddef.h>

/* Are both byte for byte equal? Large buffers are compared by up to `threads` threads: with a timing model on, the
 * look at a weight matrix has to be quicker than the chip would stream it. */
bool mock_same_bytes(const void *a, const void *b, size_t size, int threads);

#endif
