/* SPDX-License-Identifier: Apache-2.0
 *
 * Which CPU path runs. Names are those of the int8 product: "avx512-vnni", "avx-vnni", "avx2", "neon-dot", "neon", "c".
 * A path also sets the level (levels.h) of everything else: avx512-vnni runs avx512, avx-vnni and avx2 run avx2.
 */
#ifndef ENGINE_PATH_H
#define ENGINE_PATH_H

/* cdef begin */
/* Forces a path; NULL or "" means the best one of this CPU. 0, or -1 (nothing changes) when the name is unknown or the
 * CPU lacks it. Not to be called while a product runs. */
int ek_use_path(const char *name);
/* The path in use. */
const char *ek_path(void);
/* Changes whenever an interface of this library changes; kernels/library.py holds the number it was written for. */
int ek_abi(void);
/* cdef end */

#endif
