/* SPDX-License-Identifier: Apache-2.0 */
#include "ddr_kernels.h"

#include <string.h>

#ifndef DDR_FAULT /* a test builds this file with the fault in it, to see the check fail */
#define DDR_FAULT(arrays)
#endif

typedef uint64_t words __attribute__((vector_size(16), may_alias));
typedef double reals __attribute__((vector_size(16), may_alias));

/* The eight vectors of a block, written out: a compiler would make a small loop a call of memcpy. */
#define EACH_VECTOR(statement) \
  do {                         \
    statement(0);              \
    statement(1);              \
    statement(2);              \
    statement(3);              \
    statement(4);              \
    statement(5);              \
    statement(6);              \
    statement(7);              \
  } while (0)

static const struct {
  const char *name, *formula;
  int arrays;
} ops[OP_COUNT] = {
    [OP_READ] = {"read", "s += a", 1},
    [OP_WRITE] = {"write", "a = s", 1},
    [OP_COPY] = {"copy", "c = a", 2},
    [OP_TRIAD] = {"triad", "a = b + s c", 3},
};

static const double SCALE = 3.0;
static const uint64_t WRITTEN = 0x0123456789abcdefULL, SENTINEL = 0xa5a55a5aa5a55a5aULL;

const char *memory_op_name(enum memory_op op) { return ops[op].name; }
int memory_op_arrays(enum memory_op op) { return ops[op].arrays; }
const char *memory_op_formula(enum memory_op op) { return ops[op].formula; }

bool memory_op_parse(const char *word, size_t length, enum memory_op *op) {
  for (int i = 0; i < OP_COUNT; i++)
    if (strlen(ops[i].name) == length && strncmp(ops[i].name, word, length) == 0) {
      *op = (enum memory_op)i;
      return true;
    }
  return false;
}

/* Element i of an input: differs from its neighbours in every byte, so that a shifted copy does not pass. */
static uint64_t integer_at(size_t i) { return (uint64_t)i * 0x9e3779b97f4a7c15ULL + 1; }
static double b_at(size_t i) { return (double)(i % 1021); }
static double c_at(size_t i) { return (double)(i % 4093); }

static double real_of(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static uint64_t bits_of(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static uint64_t *output_of(enum memory_op op, const struct arrays *arrays) {
  return op == OP_READ ? NULL : op == OP_COPY ? arrays->c : arrays->a;
}

void memory_spoil_output(enum memory_op op, const struct arrays *arrays) {
  uint64_t *output = output_of(op, arrays);
  if (!output) return;
  for (size_t i = 0; i < arrays->count; i++) output[i] = SENTINEL ^ i;
}

void memory_prepare(enum memory_op op, const struct arrays *arrays) {
  if (op == OP_READ || op == OP_COPY)
    for (size_t i = 0; i < arrays->count; i++) arrays->a[i] = integer_at(i);
  if (op == OP_TRIAD)
    for (size_t i = 0; i < arrays->count; i++) {
      arrays->b[i] = bits_of(b_at(i));
      arrays->c[i] = bits_of(c_at(i));
    }
  memory_spoil_output(op, arrays);
}

/* An empty statement that the compiler must keep in its place. */
#define IN_PLACE() __asm__ volatile("")

static uint64_t read_pass(const uint64_t *restrict a, size_t count) {
  words s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0}; /* more chains than an addition takes cycles */
  for (size_t i = 0; i < count; i += BLOCK) {
    const words *from = (const words *)(a + i);
    s0 += from[0];
    s1 += from[1];
    s2 += from[2];
    s3 += from[3];
    s0 += from[4];
    s1 += from[5];
    s2 += from[6];
    s3 += from[7];
  }
  s0 += s1 + s2 + s3;
  return s0[0] + s0[1];
}

static void write_pass(uint64_t *restrict a, size_t count) {
  const words value = {WRITTEN, WRITTEN};
  for (size_t i = 0; i < count; i += BLOCK) {
    words *to = (words *)(a + i);
#define WRITE(v) to[v] = value
    EACH_VECTOR(WRITE);
    IN_PLACE();
  }
}

static void copy_pass(uint64_t *restrict c, const uint64_t *restrict a, size_t count) {
  for (size_t i = 0; i < count; i += BLOCK) {
    const words *from = (const words *)(a + i);
    words *to = (words *)(c + i);
#define COPY(v) to[v] = from[v]
    EACH_VECTOR(COPY);
    IN_PLACE();
  }
}

static void triad_pass(uint64_t *restrict a, const uint64_t *restrict b, const uint64_t *restrict c, size_t count) {
  const reals scale = {SCALE, SCALE};
  for (size_t i = 0; i < count; i += BLOCK) {
    const reals *left = (const reals *)(b + i), *right = (const reals *)(c + i);
    reals *to = (reals *)(a + i);
#define TRIAD(v) to[v] = left[v] + scale * right[v]
    EACH_VECTOR(TRIAD);
    IN_PLACE();
  }
}

uint64_t memory_pass(enum memory_op op, const struct arrays *arrays) {
  uint64_t sum = 0;
  switch (op) {
    case OP_READ: sum = read_pass(arrays->a, arrays->count); break;
    case OP_WRITE: write_pass(arrays->a, arrays->count); break;
    case OP_COPY: copy_pass(arrays->c, arrays->a, arrays->count); break;
    default: triad_pass(arrays->a, arrays->b, arrays->c, arrays->count); break;
  }
  DDR_FAULT(arrays);
  __asm__ volatile("" : : "r"(arrays->a), "r"(arrays->c) : "memory"); /* each pass counts, also one that repeats */
  return sum;
}

uint64_t memory_expected_sum(size_t count) {
  /* sum of i g + 1 over i below n is g n (n - 1) / 2 + n; one of n and n - 1 is even */
  const uint64_t n = count;
  const uint64_t pairs = n % 2 ? n * ((n - 1) / 2) : n / 2 * (n - 1);
  return pairs * 0x9e3779b97f4a7c15ULL + n;
}

static uint64_t expected_at(enum memory_op op, char array, size_t i) {
  if (op == OP_TRIAD) return bits_of(array == 'a' ? b_at(i) + SCALE * c_at(i) : array == 'b' ? b_at(i) : c_at(i));
  return op == OP_WRITE ? WRITTEN : integer_at(i);
}

size_t memory_check(enum memory_op op, const struct arrays *arrays, struct wrong_element *first) {
  const struct {
    char name;
    const uint64_t *values;
  } each[] = {{'a', arrays->a}, {'b', op == OP_TRIAD ? arrays->b : NULL}, {'c', op >= OP_COPY ? arrays->c : NULL}};
  size_t wrong = 0;
  for (size_t e = 0; e < 3; e++)
    for (size_t i = 0; each[e].values && i < arrays->count; i++) {
      const uint64_t got = each[e].values[i], expected = expected_at(op, each[e].name, i);
      if (got == expected || wrong++) continue;
      const bool real = op == OP_TRIAD;
      *first = (struct wrong_element){each[e].name, i, real ? real_of(got) : (double)got,
                                      real ? real_of(expected) : (double)expected};
    }
  return wrong;
}
