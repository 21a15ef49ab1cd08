/* SPDX-License-Identifier: Apache-2.0
 *
 * What a kernel path is, and the packed order of B that all of them read. Private to this folder.
 *
 * Packed B: panels of 16 columns; in a panel, for each group of 4 K rows ("quad") 64 bytes, column by column
 * with the 4 K values of a column side by side. That is what vpdpbusd and sdot take as they come, and the
 * even/odd bytes of it are what pmaddwd takes after one shift. K and N are padded with zeros.
 */
#ifndef MOCK_GEMM_PATH_H
#define MOCK_GEMM_PATH_H

#include <stddef.h>
#include <stdint.h>

enum { GEMM_PANEL = 16, GEMM_QUAD = 4, GEMM_QUAD_BYTES = GEMM_PANEL * GEMM_QUAD, GEMM_MAX_MR = 12, GEMM_MAX_NR = 2 };

struct mock_gemm_b {
    size_t K, N;
    size_t quads;          /* K / 4, rounded up */
    size_t panels;         /* N / 16, rounded up */
    int8_t *data;          /* panels x quads x 64 bytes, 64-byte aligned */
    uint32_t *offset_fix;  /* per padded column: -128 * sum over K of B, modulo 2^32 */
};

/* How a path wants its strip of A (m rows, interleaved quad by quad). */
enum gemm_a_form {
    GEMM_A_S8,      /* 4 bytes per row and quad, as they are */
    GEMM_A_U8,      /* 4 bytes, each plus 128; the product is corrected by offset_fix */
    GEMM_A_S16_EO,  /* 4 int16 in the order k0 k2 k1 k3 */
};

/* One tile: m rows (1..mr) by np panels (1..nr).
 *   a       packed strip, quads x m x (4 or 8) bytes
 *   b       first panel at its first quad; the next panel lies b_stride bytes further
 *   c, ldc  m x (np * 16) results
 *   init    start values per column, or NULL: add to what c holds (a later K block)
 * Sums wrap modulo 2^32, hence unsigned. */
typedef void gemm_tile(const void *a, const int8_t *b, size_t b_stride, size_t quads, unsigned m, unsigned np,
                       uint32_t *c, size_t ldc, const uint32_t *init);

struct gemm_path {
    const char *name;
    int (*available)(void);
    gemm_tile *tile;
    enum gemm_a_form form;
    unsigned mr, nr;    /* rows and panels of the largest tile */
    size_t block_quads; /* K block (in quads) that keeps a tile's operands in L1 and L2 */
};

/* The path in use, or NULL (see mock_gemm_s8_error). */
const struct gemm_path *gemm_path_current(void);

/* Bytes of one row of one quad in a packed strip of A. */
static inline size_t gemm_a_bytes(enum gemm_a_form form)
{
    return form == GEMM_A_S16_EO ? 8 : 4;
}

/* Packs `rows` rows of A from column k0 for `quads` quads into one strip; columns at and past K read as zero. */
void gemm_pack_a(void *strip, const int8_t *A, size_t lda, size_t K, size_t k0, size_t quads, unsigned rows,
                 enum gemm_a_form form);

extern const struct gemm_path gemm_path_c;
#if defined(__x86_64__)
extern const struct gemm_path gemm_path_avx512vnni, gemm_path_avxvnni, gemm_path_avx2;
#elif defined(__aarch64__)
extern const struct gemm_path gemm_path_neon_dot, gemm_path_neon;
#endif

#endif
