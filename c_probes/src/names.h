/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables of the words this field uses: matmul types, tensor types, return codes, layouts, quantisation. */
#ifndef RKNPU_KIT_NAMES_H
#define RKNPU_KIT_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "rknn_abi.h"

struct matmul_type_info {
  int code;
  const char *name;       /* int8_int8_int32 */
  const char *short_name; /* i8*i8>i32 */
  rknn_tensor_type a, b, c;
  bool documented; /* false: exists in headers without stated semantics (12, 15) */
};

/* NULL for a code that no release assigns. */
const struct matmul_type_info *matmul_type_find(int code);
/* Accepts a name of the table or a decimal code 0..20; -1 when neither. */
int matmul_type_parse(const char *word);
/* Never NULL: "unassigned" where there is no such type. */
const char *matmul_type_name(int code);

/* "RKNN_ERR_PARAM_INVALID" and so on; "unknown code" otherwise. */
const char *rknn_code_name(int code);

const char *tensor_type_name(int type);
/* Bits of one element as stored; 0 for a type that no matmul operand is known to have. */
unsigned tensor_type_bits(int type);

const char *layout_name(int layout);

enum quant { QUANT_PER_LAYER = 0, QUANT_PER_CHANNEL = 1 };
const char *quant_name(enum quant quant);

#endif
