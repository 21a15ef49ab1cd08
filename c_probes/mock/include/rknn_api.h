/* SPDX-License-Identifier: Apache-2.0
 *
 * The base API for programs that include rknn_api.h: rknn_abi.h plus the model functions, which the mock exports but
 * refuses. Written in our own words from tables of sizes, offsets and values; sizes are asserted for 64-bit machines.
 */
#ifndef RKNPU_KIT_RKNN_API_H
#define RKNPU_KIT_RKNN_API_H

#include "rknn_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Flags of rknn_init. */
#define RKNN_FLAG_PRIOR_HIGH 0
#define RKNN_FLAG_PRIOR_MEDIUM 1
#define RKNN_FLAG_PRIOR_LOW 2
#define RKNN_FLAG_ASYNC_MASK 4
#define RKNN_FLAG_COLLECT_PERF_MASK 8
#define RKNN_FLAG_MEM_ALLOC_OUTSIDE 0x10
#define RKNN_FLAG_SHARE_WEIGHT_MEM 0x20
#define RKNN_FLAG_FENCE_IN_OUTSIDE 0x40
#define RKNN_FLAG_FENCE_OUT_OUTSIDE 0x80
#define RKNN_FLAG_COLLECT_MODEL_INFO_ONLY 0x100
#define RKNN_FLAG_INTERNAL_ALLOC_OUTSIDE 0x200
#define RKNN_FLAG_EXECUTE_FALLBACK_PRIOR_DEVICE_GPU 0x400
#define RKNN_FLAG_ENABLE_SRAM 0x800
#define RKNN_FLAG_SHARE_SRAM 0x1000
#define RKNN_FLAG_DISABLE_PROC_HIGH_PRIORITY 0x2000
#define RKNN_FLAG_DISABLE_FLUSH_INPUT_MEM_CACHE 0x4000
#define RKNN_FLAG_DISABLE_FLUSH_OUTPUT_MEM_CACHE 0x8000
#define RKNN_FLAG_MODEL_BUFFER_ZERO_COPY 0x10000

#define RKNN_MAX_DYNAMIC_SHAPE_NUM 512

typedef enum {
  RKNN_TENSOR_NCHW = 0,
  RKNN_TENSOR_NHWC = 1,
  RKNN_TENSOR_NC1HWC2 = 2,
  RKNN_TENSOR_UNDEFINED = 3
} rknn_tensor_format;

typedef enum {
  RKNN_TENSOR_QNT_NONE = 0,
  RKNN_TENSOR_QNT_DFP = 1,
  RKNN_TENSOR_QNT_AFFINE_ASYMMETRIC = 2
} rknn_tensor_qnt_type;

/* Names of values, for programs that print them. The spelling UNKNOW is the one that programs know. */
static inline const char *get_type_string(rknn_tensor_type type) {
  static const char *const names[] = {"FP32",   "FP16",  "INT8",   "UINT8", "INT16", "UINT16",
                                      "INT32", "UINT32", "INT64", "BOOL",  "INT4",  "BF16"};
  return (unsigned)type < sizeof names / sizeof *names ? names[type] : "UNKNOW";
}

static inline const char *get_qnt_type_string(rknn_tensor_qnt_type type) {
  static const char *const names[] = {"NONE", "DFP", "AFFINE"};
  return (unsigned)type < sizeof names / sizeof *names ? names[type] : "UNKNOW";
}

static inline const char *get_format_string(rknn_tensor_format format) {
  static const char *const names[] = {"NCHW", "NHWC", "NC1HWC2", "UNDEFINED"};
  return (unsigned)format < sizeof names / sizeof *names ? names[format] : "UNKNOW";
}

typedef struct {
  uint32_t n_input;
  uint32_t n_output;
} rknn_input_output_num;

typedef struct {
  uint32_t index;
  uint32_t n_dims;
  uint32_t dims[RKNN_MAX_DIMS];
  char name[RKNN_MAX_NAME_LEN];
  uint32_t n_elems;
  uint32_t size;
  rknn_tensor_format fmt;
  rknn_tensor_type type;
  rknn_tensor_qnt_type qnt_type;
  int8_t fl;
  int32_t zp;
  float scale;
  uint32_t w_stride;
  uint32_t size_with_stride;
  uint8_t pass_through;
  uint32_t h_stride;
} rknn_tensor_attr;

typedef struct {
  rknn_context ctx;
  int32_t real_model_offset;
  uint32_t real_model_size;
  int32_t model_buffer_fd;
  uint32_t model_buffer_flags;
  uint8_t reserved[112];
} rknn_init_extend;

typedef struct {
  uint64_t frame_id;
  int32_t non_block;
  int32_t timeout_ms;
  int32_t fence_fd;
} rknn_run_extend;

typedef struct {
  char *perf_data;
  uint64_t data_len;
} rknn_perf_detail;

typedef struct {
  int64_t run_duration;
} rknn_perf_run;

typedef struct {
  uint32_t index;
  uint32_t shape_number;
  rknn_tensor_format fmt;
  char name[RKNN_MAX_NAME_LEN];
  uint32_t dyn_range[RKNN_MAX_DYNAMIC_SHAPE_NUM][RKNN_MAX_DIMS];
  uint32_t n_dims;
} rknn_input_range;

typedef struct {
  char string[1024];
} rknn_custom_string;

typedef struct {
  uint32_t index;
  void *buf;
  uint32_t size;
  uint8_t pass_through;
  rknn_tensor_type type;
  rknn_tensor_format fmt;
} rknn_input;

typedef struct {
  uint8_t want_float;
  uint8_t is_prealloc;
  uint32_t index;
  void *buf;
  uint32_t size;
} rknn_output;

typedef struct {
  uint64_t frame_id;
} rknn_output_extend;

/* Custom operators: passed by pointer only. */
typedef struct rknn_custom_op rknn_custom_op;
typedef struct rknn_custom_op_attr rknn_custom_op_attr;
typedef struct rknn_custom_op_context rknn_custom_op_context;

int rknn_init(rknn_context *context, void *model, uint32_t size, uint32_t flag, rknn_init_extend *extend);
int rknn_dup_context(rknn_context *context_in, rknn_context *context_out);
int rknn_destroy(rknn_context context);
int rknn_inputs_set(rknn_context context, uint32_t n_inputs, rknn_input inputs[]);
int rknn_outputs_get(rknn_context context, uint32_t n_outputs, rknn_output outputs[], rknn_output_extend *extend);
int rknn_outputs_release(rknn_context context, uint32_t n_outputs, rknn_output outputs[]);
int rknn_run(rknn_context context, rknn_run_extend *extend);
int rknn_wait(rknn_context context, rknn_run_extend *extend);
int rknn_set_batch_core_num(rknn_context context, int core_num);
int rknn_set_core_mask(rknn_context context, rknn_core_mask core_mask);
int rknn_set_internal_mem(rknn_context context, rknn_tensor_mem *mem);
int rknn_set_io_mem(rknn_context context, rknn_tensor_mem *mem, rknn_tensor_attr *attr);
int rknn_set_weight_mem(rknn_context context, rknn_tensor_mem *mem);
int rknn_set_input_shape(rknn_context context, rknn_tensor_attr *attr);
int rknn_set_input_shapes(rknn_context context, uint32_t n_inputs, rknn_tensor_attr attr[]);
int rknn_register_custom_ops(rknn_context context, rknn_custom_op *op, uint32_t custom_op_num);
int rknn_custom_op_get_op_attr(rknn_custom_op_context *op_context, const char *attr_name,
                               rknn_custom_op_attr *op_attr);

#if defined(__LP64__)
RKNN_ABI_ASSERT(sizeof(rknn_input_output_num) == 8);
RKNN_ABI_ASSERT(sizeof(rknn_tensor_attr) == 376);
RKNN_ABI_ASSERT(sizeof(rknn_init_extend) == 136);
RKNN_ABI_ASSERT(sizeof(rknn_run_extend) == 24);
RKNN_ABI_ASSERT(sizeof(rknn_perf_detail) == 16);
RKNN_ABI_ASSERT(sizeof(rknn_perf_run) == 8);
RKNN_ABI_ASSERT(sizeof(rknn_input_range) == 33040);
RKNN_ABI_ASSERT(sizeof(rknn_custom_string) == 1024);
RKNN_ABI_ASSERT(sizeof(rknn_input) == 32);
RKNN_ABI_ASSERT(sizeof(rknn_output) == 24);
RKNN_ABI_ASSERT(sizeof(rknn_output_extend) == 8);
#elif defined(__arm__)
RKNN_ABI_ASSERT(sizeof(rknn_tensor_attr) == 376);
RKNN_ABI_ASSERT(sizeof(rknn_init_extend) == 132);
#endif

#ifdef __cplusplus
}
#endif

#endif
