/* SPDX-License-Identifier: Apache-2.0
 *
 * Plain C path: for 32-bit Arm and any other CPU, and the yardstick the fast paths are compared with.
 */
#include "gemm_path.h"

static int available(void)
{
    return 1;
}

static void tile(const void *a, const int8_t *b, size_t b_stride, size_t quads, unsigned m, unsigned np, uint32_t *c,
                 size_t ldc, const uint32_t *init)
{
    const int8_t *rows = a;
    (void)b_stride; /* one panel at a time */
    (void)np;
    for (unsigned r = 0; r < m; r++, c += ldc) {
        uint32_t sum[GEMM_PANEL];
        for (unsigned n = 0; n < GEMM_PANEL; n++)
            sum[n] = init ? init[n] : c[n];
        for (size_t q = 0; q < quads; q++) {
            const int8_t *x = rows + (q * m + r) * GEMM_QUAD, *y = b + q * GEMM_QUAD_BYTES;
            for (unsigned n = 0; n < GEMM_PANEL; n++, y += GEMM_QUAD)
                sum[n] += (uint32_t)(x[0] * y[0] + x[1] * y[1] + x[2] * y[2] + x[3] * y[3]);
        }
        for (unsigned n = 0; n < GEMM_PANEL; n++)
            c[n] = sum[n];
    }
}

const struct gemm_path gemm_path_c = {
    .name = "c", .available = available, .tile = tile, .form = GEMM_A_S8, .mr = 4, .nr = 1, .block_quads = 256};
