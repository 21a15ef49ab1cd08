/* SPDX-License-Identifier: Apache-2.0
 *
 * The four passes over memory: read, write, copy and triad, and the check of every element afterwards.
 *
 * Bytes are counted as STREAM counts them: what the program asks for, 8 per element read or written. The line that a
 * store misses is fetched first by most caches; that traffic is not counted, by STREAM neither.
 * Stores are plain ones. Programs that run models store so, compilers make such code of STREAM, and on Arm there is no
 * store that is sure to go round the cache (STNP is a hint). Streaming stores of x86 would give a higher figure that
 * no program of interest reaches. The compiler must not turn a pass into memcpy or memset, whose stores are of another
 * kind for large blocks: the loops hold an empty asm statement that it cannot move into such a call. */
#ifndef RKNPU_KIT_DDR_KERNELS_H
#define RKNPU_KIT_DDR_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum memory_op { OP_READ, OP_WRITE, OP_COPY, OP_TRIAD, OP_COUNT };

/* Elements are 8 bytes: integers, for triad doubles holding small integers, so that every result is exact. Arrays are
 * aligned to 64 bytes and their length is a multiple of BLOCK elements. Not all are used by every op. */
enum { BLOCK = 16 };

struct arrays {
  uint64_t *a, *b, *c;
  size_t count;
};

const char *memory_op_name(enum memory_op op);
int memory_op_arrays(enum memory_op op);           /* how many arrays it passes over */
const char *memory_op_formula(enum memory_op op);  /* "a = b + s c" */
bool memory_op_parse(const char *word, size_t length, enum memory_op *op);

/* Sets the inputs, and the output to a sentinel that no right element equals. */
void memory_prepare(enum memory_op op, const struct arrays *arrays);
void memory_spoil_output(enum memory_op op, const struct arrays *arrays);

/* Passes once over the arrays. Read returns the sum of all elements modulo 2^64, the others 0. */
uint64_t memory_pass(enum memory_op op, const struct arrays *arrays);

/* What the read pass must return, worked out from the definition of the fill and not by reading it. */
uint64_t memory_expected_sum(size_t count);

/* Compares every element, inputs included. Returns how many are wrong; the first goes to *index, *got, *expected. */
struct wrong_element {
  char array; /* 'a', 'b' or 'c' */
  size_t index;
  double got, expected;
};
size_t memory_check(enum memory_op op, const struct arrays *arrays, struct wrong_element *first);

#endif
