/* SPDX-License-Identifier: Apache-2.0
 *
 * One source, several instruction sets, the same bits.
 *
 * A source named src/<name>_lanes.c is compiled once for every level of the machine, with EK_LEVEL set to the level's
 * name. It writes generic C or vector extensions (vector_size) and names each function that others call EK_AT(name).
 * Such a function is reached through a table:
 *
 *     typedef void scale_row(float *x, size_t n, float s);       in a header
 *     EK_TABLE(scale_row, ek_scale_row)                          in the file that calls
 *     ... EK_CALL(ek_scale_row)(x, n, s);
 *
 * and defined in the _lanes.c as   void EK_AT(ek_scale_row)(float *x, size_t n, float s) { ... }
 *
 * Levels (x86-64): base is SSE2, avx2 adds FMA, avx512 is F, BW, DQ and VL. Elsewhere base alone. No level lets the
 * compiler contract a product and a sum (-ffp-contract=off): only __builtin_fmaf makes a fused one, and only where
 * EK_HAS_FMA is set.
 */
#ifndef ENGINE_LEVELS_H
#define ENGINE_LEVELS_H

#define EK_JOIN_(a, b) a##_##b
#define EK_JOIN(a, b) EK_JOIN_(a, b)
#define EK_AT(name) EK_JOIN(name, EK_LEVEL)

enum { EK_BASE, EK_AVX2, EK_AVX512 };

/* The level in use, one of the above. */
int ek_level(void);

#if defined(__x86_64__)
#define EK_TABLE(type, name) \
    extern type name##_base, name##_avx2, name##_avx512; \
    static type *const name##_table[] = {name##_base, name##_avx2, name##_avx512};
#else
#define EK_TABLE(type, name) \
    extern type name##_base; \
    static type *const name##_table[] = {name##_base};
#endif
#define EK_CALL(name) (name##_table[ek_level()])

#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define EK_HAS_FMA 1
#else
#define EK_HAS_FMA 0
#endif

#endif
