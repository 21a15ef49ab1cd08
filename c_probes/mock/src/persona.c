/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables: matmul types and systems on chip.
 *
 * Sources: type codes and operand types from the public matmul headers 1.6.0 to 2.3.2; support per chip from the
 * user guide 2.3.0 table 3-6 and three create-over-all-types reports on RK3588 with 2.3.2; layouts from its table 3-5;
 * alignments from its table 3-7 and the header comments; core masks from rknn-toolkit2 issues 7 and 253.
 */
#include "persona.h"

#include <string.h>
#include <strings.h>

#define F16 RKNN_TENSOR_FLOAT16
#define F32 RKNN_TENSOR_FLOAT32
#define BF16 RKNN_TENSOR_BFLOAT16
#define I4 RKNN_TENSOR_INT4
#define I8 RKNN_TENSOR_INT8
#define I16 RKNN_TENSOR_INT16
#define I32 RKNN_TENSOR_INT32

const mock_type mock_types[] = {
    {1, F16, F16, F32, "RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT32"}, {2, I8, I8, I32, "RKNN_INT8_MM_INT8_TO_INT32"},
    {3, I8, I8, I8, "RKNN_INT8_MM_INT8_TO_INT8"},             {4, F16, F16, F16, "RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT16"},
    {5, F16, I8, F32, "RKNN_FLOAT16_MM_INT8_TO_FLOAT32"},     {6, F16, I8, F16, "RKNN_FLOAT16_MM_INT8_TO_FLOAT16"},
    {7, F16, I4, F32, "RKNN_FLOAT16_MM_INT4_TO_FLOAT32"},     {8, F16, I4, F16, "RKNN_FLOAT16_MM_INT4_TO_FLOAT16"},
    {9, I8, I8, F32, "RKNN_INT8_MM_INT8_TO_FLOAT32"},         {10, I4, I4, I16, "RKNN_INT4_MM_INT4_TO_INT16"},
    {11, I8, I4, I32, "RKNN_INT8_MM_INT4_TO_INT32"},          {12, F16, I4, BF16, "RKNN_FLOAT16_MM_INT4_TO_BFLOAT16"},
    {15, I8, I4, F16, "RKNN_INT8_MM_INT4_TO_FLOAT16"},
};
const size_t mock_type_count = sizeof mock_types / sizeof *mock_types;

#define T(code) MOCK_TYPE(code)
#define ALL_TYPES                                                                                               \
  (T(1) | T(2) | T(3) | T(4) | T(5) | T(6) | T(7) | T(8) | T(9) | T(10) | T(11) | T(12) | T(15))
/* {a_cell, b_n, b_k, k_align, n_align} for fp16, int8, int4. */
#define WIDE_TILES {{8, 16, 32, 32, 16}, {16, 32, 32, 32, 32}, {32, 64, 32, 32, 64}}

const mock_soc mock_socs[] = {
    {"rk3588", "RK3588 and RK3588S", 3, true, T(1) | T(2) | T(3) | T(4) | T(9) | T(10), ALL_TYPES, T(2) | T(3), T(9),
     T(1) | T(2) | T(4), WIDE_TILES, false, 0, 8192, "rk3588",
     "fp16 N alignment: header 16 (taken), user guide 32. Type 15 has no report: refused. TP_NORM: the runtime "
     "names three types that no source lists; 1, 2, 4 taken. One runtime 2.0.0-beta0 report saw type 11 accepted: "
     "not taken. The order of segments of native B above K 8192 follows the header comment, whose example is "
     "inconsistent."},
    {"rk3576", "RK3576", 2, true, T(1) | T(2) | T(4) | T(5) | T(7) | T(8) | T(11), ALL_TYPES, T(2) | T(3), T(8),
     T(1) | T(2) | T(4), WIDE_TILES, true, 0, 4096, "rk3576",
     "Type 4: user guide yes (taken), one 2.3.2 report no. Type 10: user guide no (taken), one back end uses it. "
     "Types 12 and 15 undocumented: refused. Types 7 and 8 are reported to halve positive int4 weights on 2.3.x: "
     "see fault int4-positive-half."},
    {"rk3562", "RK3562", 1, false, T(1) | T(2), ALL_TYPES, T(2), 0, T(1) | T(2),
     {{8, 8, 32, 32, 8}, {16, 16, 32, 32, 16}, {0, 0, 0, 0, 0}}, false, 10240, 0, "rk3562",
     "fp16 N alignment: header 8 (taken), user guide 16."},
    {"rk3566", "RK3566", 1, false, T(1) | T(2), T(2), T(2), 0, 0,
     {{4, 8, 16, 16, 8}, {8, 16, 32, 32, 16}, {0, 0, 0, 0, 0}}, false, 10240, 0, "rk3566",
     "fp16 K alignment: header 16 (taken), user guide 32; fp16 N: header 8 (taken), user guide 16. The header of "
     "runtime 1.5 for this chip knows int8 only (taken for 1.6.0 too)."},
    {"rk3568", "RK3568", 1, false, T(1) | T(2), T(2), T(2), 0, 0,
     {{4, 8, 16, 16, 8}, {8, 16, 32, 32, 16}, {0, 0, 0, 0, 0}}, false, 10240, 0, "rk3568",
     "fp16 K alignment: header 16 (taken), user guide 32; fp16 N: header 8 (taken), user guide 16. The header of "
     "runtime 1.5 for this chip knows int8 only (taken for 1.6.0 too)."},
    {"rv1126b", "RV1126B", 1, false, T(1), ALL_TYPES, 0, 0, 0,
     {{8, 8, 32, 32, 8}, {16, 16, 32, 32, 16}, {0, 0, 0, 0, 0}},
     false, 10240, 0, "rv1126b",
     "The API table lists the chip as supported, rknn-toolkit2 issue 567 reports type 2 refused: refused (taken). "
     "Layouts and type 1 are assumed like RK3562; no source."},
    {"any", "no chip: RK3588 layouts, all thirteen type codes, every quantisation", 3, true, ALL_TYPES, ALL_TYPES,
     ALL_TYPES, ALL_TYPES, ALL_TYPES, WIDE_TILES, false, 0, 8192, "rk3588", "Not a chip. For tests of clients."},
};
const size_t mock_soc_count = sizeof mock_socs / sizeof *mock_socs;

const mock_type *mock_type_find(int code) {
  for (size_t i = 0; i < mock_type_count; i++)
    if (mock_types[i].code == code) return &mock_types[i];
  return NULL;
}

const mock_soc *mock_soc_find(const char *name) {
  for (size_t i = 0; i < mock_soc_count; i++)
    if (strcasecmp(mock_socs[i].name, name) == 0) return &mock_socs[i];
  return NULL;
}

mock_class mock_class_of(rknn_tensor_type type) {
  return type == I4 ? MOCK_I4 : type == I8 ? MOCK_I8 : MOCK_F16;
}

unsigned mock_bits_of(rknn_tensor_type type) {
  switch (type) {
    case I4: return 4;
    case I8: return 8;
    case F16:
    case BF16:
    case I16: return 16;
    default: return 32;
  }
}

int mock_c_cell(rknn_tensor_type type) {
  /* 16-byte cells. int32, float32 and int16 are documented, fp16 reported, int8 and bf16 assumed alike. */
  return (int)(128 / mock_bits_of(type));
}

static int larger(int a, int b) { return a > b ? a : b; }

mock_tile mock_tile_for(const mock_soc *soc, const mock_type *type) {
  const mock_tile *a = &soc->tile[mock_class_of(type->a)];
  const mock_tile *b = &soc->tile[mock_class_of(type->b)];
  const mock_tile *tiled_like = soc->mixed_b_uses_a_tile ? a : b;
  return (mock_tile){a->a_cell, tiled_like->b_n, tiled_like->b_k, larger(a->k_align, b->k_align),
                     larger(a->n_align, b->n_align)};
}
