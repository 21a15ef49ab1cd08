/* SPDX-License-Identifier: Apache-2.0
 *
 * Packing: B once into panels, A per call into strips.
 */
#include "gemm_path.h"
#include "gemm_s8.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { CACHE_LINE = 64, HUGE_PAGE = 2 << 20 };

/* Zeroed memory; large blocks lie on huge pages where the system allows it, because streaming a weight matrix
 * page by page otherwise stops at every 4 KiB. */
static void *alloc_panels(size_t bytes)
{
    size_t align = bytes >= HUGE_PAGE ? HUGE_PAGE : CACHE_LINE;
    void *p = NULL;
    if (posix_memalign(&p, align, bytes ? bytes : align))
        return NULL;
#ifdef MADV_HUGEPAGE
    if (align == HUGE_PAGE)
        (void)madvise(p, bytes, MADV_HUGEPAGE); /* only a wish; refusal changes nothing but speed */
#endif
    return p;
}

/* One panel: columns n0 .. n0+cols-1 of B. */
static void pack_panel(int8_t *out, uint32_t *fix, const int8_t *B, size_t K, size_t N, size_t n0, size_t cols)
{
    uint32_t sum[GEMM_PANEL] = {0};
    for (size_t k = 0; k < K; k += GEMM_QUAD, out += GEMM_QUAD_BYTES) {
        size_t depth = K - k < GEMM_QUAD ? K - k : GEMM_QUAD;
        if (depth < GEMM_QUAD || cols < GEMM_PANEL)
            memset(out, 0, GEMM_QUAD_BYTES);
        for (size_t i = 0; i < depth; i++) {
            const int8_t *row = B + (k + i) * N + n0;
            for (size_t n = 0; n < cols; n++) {
                out[n * GEMM_QUAD + i] = row[n];
                sum[n] += (uint32_t)row[n];
            }
        }
    }
    for (size_t n = 0; n < GEMM_PANEL; n++)
        fix[n] = 0u - 128u * sum[n];
}

mock_gemm_b *mock_gemm_s8_pack(const int8_t *B_kn, size_t K, size_t N)
{
    size_t quads = K / GEMM_QUAD + (K % GEMM_QUAD != 0);
    size_t panels = N / GEMM_PANEL + (N % GEMM_PANEL != 0);
    if (panels && quads > SIZE_MAX / 2 / GEMM_QUAD_BYTES / panels)
        return NULL;
    mock_gemm_b *b = malloc(sizeof *b);
    if (!b)
        return NULL;
    *b = (mock_gemm_b){.K = K, .N = N, .quads = quads, .panels = panels};
    b->data = alloc_panels(panels * quads * GEMM_QUAD_BYTES);
    b->offset_fix = alloc_panels(panels * GEMM_PANEL * sizeof *b->offset_fix);
    if (!b->data || !b->offset_fix) {
        mock_gemm_s8_free(b);
        return NULL;
    }
    for (size_t p = 0; p < panels; p++) {
        size_t n0 = p * GEMM_PANEL, cols = N - n0 < GEMM_PANEL ? N - n0 : GEMM_PANEL;
        pack_panel(b->data + p * quads * GEMM_QUAD_BYTES, b->offset_fix + n0, B_kn, K, N, n0, cols);
    }
    return b;
}

void mock_gemm_s8_free(mock_gemm_b *b)
{
    if (!b)
        return;
    free(b->data);
    free(b->offset_fix);
    free(b);
}

/* One quad of one row, at the end of K padded with zeros. */
static inline uint32_t load_quad(const int8_t *row, size_t k, size_t K)
{
    uint32_t q = 0;
    memcpy(&q, row + k, K - k < GEMM_QUAD ? K - k : GEMM_QUAD);
    return q;
}

void gemm_pack_a(void *strip, const int8_t *A, size_t lda, size_t K, size_t k0, size_t quads, unsigned rows,
                 enum gemm_a_form form)
{
    size_t whole = (K - k0) / GEMM_QUAD < quads ? (K - k0) / GEMM_QUAD : quads;
    if (form == GEMM_A_S16_EO) {
        for (unsigned r = 0; r < rows; r++) {
            const int8_t *row = A + r * lda;
            int16_t *out = (int16_t *)strip + r * 4;
            for (size_t q = 0; q < quads; q++, out += (size_t)rows * 4) {
                int8_t v[GEMM_QUAD] = {0};
                uint32_t word = load_quad(row, k0 + q * GEMM_QUAD, K);
                memcpy(v, &word, sizeof v);
                out[0] = v[0], out[1] = v[2], out[2] = v[1], out[3] = v[3];
            }
        }
        return;
    }
    const uint32_t flip = form == GEMM_A_U8 ? 0x80808080u : 0; /* s8 ^ 0x80 is s8 + 128 as u8 */
    for (unsigned r = 0; r < rows; r++) {
        const int8_t *row = A + r * lda + k0;
        uint32_t *out = (uint32_t *)strip + r;
        for (size_t q = 0; q < whole; q++, out += rows) {
            uint32_t word;
            memcpy(&word, row + q * GEMM_QUAD, sizeof word);
            *out = word ^ flip;
        }
        if (whole < quads)
            *out = load_quad(row, whole * GEMM_QUAD, K - k0) ^ flip;
    }
}
