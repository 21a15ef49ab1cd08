/* SPDX-License-Identifier: Apache-2.0
 *
 * What a persona is: a system on chip (layouts, alignments, type table, cores) crossed with a runtime version (which
 * types, limits and functions existed). Both are rows of tables; nothing else in the mock names a chip.
 */
#ifndef MOCK_PERSONA_H
#define MOCK_PERSONA_H

#include <stdbool.h>
#include <stddef.h>

#include "rknn_abi.h"

#define MOCK_TYPE(code) (1u << (code))
#define MOCK_MAX_CORES 3

/* Input types fall into three classes; tables of tiles, limits and rates are indexed by them. */
typedef enum { MOCK_F16 = 0, MOCK_I8 = 1, MOCK_I4 = 2, MOCK_CLASSES = 3 } mock_class;

typedef struct {
  int code;
  rknn_tensor_type a, b, c;
  const char *name;
} mock_type;

/* a_cell: elements of one A cell ([K/c, M, c]). b_n, b_k: B tile ([N/n, K/k, n, k]). 0 = class absent on the chip. */
typedef struct {
  int a_cell, b_n, b_k, k_align, n_align;
} mock_tile;

typedef struct {
  const char *name;
  const char *title;
  int cores;
  bool has_core_mask;
  unsigned types;             /* bit per type code that the chip accepts at the newest runtime */
  unsigned types_v1;          /* the same at runtimes 1.x */
  unsigned per_channel_types; /* types that take B_quant_type PER_CHANNEL_SYM at 2.1.0 and later */
  unsigned per_group_types;
  unsigned tp_norm_types;
  mock_tile tile[MOCK_CLASSES];
  bool mixed_b_uses_a_tile; /* int8 or int4 B under a wider A is tiled like A's type (RK3576) */
  int k_max;                /* 0 = none; 2.x only */
  int k_segment;            /* native B above this K is tiled segment by segment; 0 = never */
  const char *timing;       /* name of its timing set */
  const char *doubt;        /* where sources conflict or are silent */
} mock_soc;

typedef struct {
  const char *version;
  int info_bytes; /* 24 or 64: how much of rknn_matmul_info the caller owns */
  unsigned types;
  int k_max[MOCK_CLASSES]; /* 0 = what the chip says */
  bool segments;           /* honours mock_soc.k_segment */
  bool quant;              /* has quantisation fields and set/get_quant_params */
  bool quant_enum;         /* six quantisation values and TP_NORM; 2.0.0-beta0 has 0 and 1 only */
  int wording;             /* 0: 1.5 texts, 1: 1.6 texts, 2: 2.x texts */
  const char *source;
} mock_runtime;

extern const mock_type mock_types[];
extern const size_t mock_type_count;
extern const mock_soc mock_socs[];
extern const size_t mock_soc_count;

/* The runtime this library file stands for (one row, compiled in) and its version text. */
extern const mock_runtime mock_this_runtime;
extern const char mock_version_text[];

const mock_type *mock_type_find(int code);
const mock_soc *mock_soc_find(const char *name);
mock_class mock_class_of(rknn_tensor_type type);
unsigned mock_bits_of(rknn_tensor_type type);
/* Elements of one native C cell ([N/c, M, c]). */
int mock_c_cell(rknn_tensor_type type);
/* Tile rules of an operand pair on a chip; b_n, b_k and the alignments already account for mixed inputs. */
mock_tile mock_tile_for(const mock_soc *soc, const mock_type *type);

#endif
