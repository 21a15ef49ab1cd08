/* SPDX-License-Identifier: Apache-2.0
 *
 * The binary interface of librknnrt that this kit relies on: the matmul API and the part of the base API that a
 * matmul program needs. Written from tables of observed numbers (sizes, offsets, enum values, symbol names) in our
 * own words; identifiers are the ones programs already use, so that the mock can stand in for the library.
 *
 * This one file is read by the C probes, by the mock and by the cffi binding (c_probes/librknnrt.py). cffi sees only
 * what stands between the two "cdef" marks, so that part holds plain declarations: no macros but integers, no
 * conditionals. rknn_context is declared outside, because its width depends on the machine.
 *
 * Layout described: runtime 2.1.0 to 2.3.2. Runtimes 1.5 and 1.6 own only the first 24 bytes of rknn_matmul_info;
 * with layout 0/1 and quantisation 0 those bytes mean the same to both, so a caller that always hands over 64 zeroed
 * bytes is right for every version.
 */
#ifndef RKNPU_KIT_RKNN_ABI_H
#define RKNPU_KIT_RKNN_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* 32 bits on 32-bit Arm, 64 bits everywhere else. A 32-bit handle on aarch64 is a known mistake of hand-written
 * bindings. */
#if defined(__arm__)
typedef uint32_t rknn_context;
#else
typedef uint64_t rknn_context;
#endif

/* cdef begin */

#define RKNN_MAX_DIMS 16
#define RKNN_MAX_NAME_LEN 256

/* Return codes. The two spellings INCOMPATILE are the library's own. */
#define RKNN_SUCC 0
#define RKNN_ERR_FAIL -1
#define RKNN_ERR_TIMEOUT -2
#define RKNN_ERR_DEVICE_UNAVAILABLE -3
#define RKNN_ERR_MALLOC_FAIL -4
#define RKNN_ERR_PARAM_INVALID -5
#define RKNN_ERR_MODEL_INVALID -6
#define RKNN_ERR_CTX_INVALID -7
#define RKNN_ERR_INPUT_INVALID -8
#define RKNN_ERR_OUTPUT_INVALID -9
#define RKNN_ERR_DEVICE_UNMATCH -10
#define RKNN_ERR_INCOMPATILE_PRE_COMPILE_MODEL -11
#define RKNN_ERR_INCOMPATILE_OPTIMIZATION_LEVEL_VERSION -12
#define RKNN_ERR_TARGET_PLATFORM_UNMATCH -13

typedef enum {
  RKNN_TENSOR_FLOAT32 = 0,
  RKNN_TENSOR_FLOAT16 = 1,
  RKNN_TENSOR_INT8 = 2,
  RKNN_TENSOR_UINT8 = 3,
  RKNN_TENSOR_INT16 = 4,
  RKNN_TENSOR_UINT16 = 5,
  RKNN_TENSOR_INT32 = 6,
  RKNN_TENSOR_UINT32 = 7,
  RKNN_TENSOR_INT64 = 8,
  RKNN_TENSOR_BOOL = 9,
  RKNN_TENSOR_INT4 = 10,
  RKNN_TENSOR_BFLOAT16 = 11
} rknn_tensor_type;

typedef enum {
  RKNN_NPU_CORE_AUTO = 0,
  RKNN_NPU_CORE_0 = 1,
  RKNN_NPU_CORE_1 = 2,
  RKNN_NPU_CORE_2 = 4,
  RKNN_NPU_CORE_0_1 = 3,
  RKNN_NPU_CORE_0_1_2 = 7,
  RKNN_NPU_CORE_ALL = 0xffff
} rknn_core_mask;

/* A x B -> C. 13 and 14 are unassigned in every release seen; 12 and 15 exist without a documented meaning. */
typedef enum {
  RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT32 = 1,
  RKNN_INT8_MM_INT8_TO_INT32 = 2,
  RKNN_INT8_MM_INT8_TO_INT8 = 3,
  RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT16 = 4,
  RKNN_FLOAT16_MM_INT8_TO_FLOAT32 = 5,
  RKNN_FLOAT16_MM_INT8_TO_FLOAT16 = 6,
  RKNN_FLOAT16_MM_INT4_TO_FLOAT32 = 7,
  RKNN_FLOAT16_MM_INT4_TO_FLOAT16 = 8,
  RKNN_INT8_MM_INT8_TO_FLOAT32 = 9,
  RKNN_INT4_MM_INT4_TO_INT16 = 10,
  RKNN_INT8_MM_INT4_TO_INT32 = 11,
  RKNN_FLOAT16_MM_INT4_TO_BFLOAT16 = 12,
  RKNN_INT8_MM_INT4_TO_FLOAT16 = 15
} rknn_matmul_type;

/* 2.1.0 and later. 2.0.0-beta0 knows 0 = per layer and 1 = per channel only. */
typedef enum {
  RKNN_QUANT_TYPE_PER_LAYER_SYM = 0,
  RKNN_QUANT_TYPE_PER_LAYER_ASYM = 1,
  RKNN_QUANT_TYPE_PER_CHANNEL_SYM = 2,
  RKNN_QUANT_TYPE_PER_CHANNEL_ASYM = 3,
  RKNN_QUANT_TYPE_PER_GROUP_SYM = 4,
  RKNN_QUANT_TYPE_PER_GROUP_ASYM = 5
} rknn_matmul_quant_type;

/* norm = row-major A[M,K] B[K,N] C[M,N]; native = tiled; TP_NORM = B only, row-major [N,K]. */
typedef enum {
  RKNN_MM_LAYOUT_NORM = 0,
  RKNN_MM_LAYOUT_NATIVE = 1,
  RKNN_MM_LAYOUT_TP_NORM = 2
} rknn_matmul_layout;

/* Flags of rknn_create_mem2. */
#define RKNN_FLAG_MEMORY_FLAGS_DEFAULT 0
#define RKNN_FLAG_MEMORY_CACHEABLE 1
#define RKNN_FLAG_MEMORY_NON_CACHEABLE 2
#define RKNN_FLAG_MEMORY_TRY_ALLOC_SRAM 4
#define RKNN_MEM_FLAG_ALLOC_NO_CONTEXT 0x20000

/* Values of rknn_tensor_mem.flags. */
#define RKNN_TENSOR_MEMORY_FLAGS_ALLOC_INSIDE 1
#define RKNN_TENSOR_MEMORY_FLAGS_FROM_FD 2
#define RKNN_TENSOR_MEMORY_FLAGS_FROM_PHYS 3

typedef enum {
  RKNN_MEMORY_SYNC_TO_DEVICE = 1,
  RKNN_MEMORY_SYNC_FROM_DEVICE = 2,
  RKNN_MEMORY_SYNC_BIDIRECTIONAL = 3
} rknn_mem_sync_mode;

typedef enum {
  RKNN_QUERY_IN_OUT_NUM = 0,
  RKNN_QUERY_INPUT_ATTR = 1,
  RKNN_QUERY_OUTPUT_ATTR = 2,
  RKNN_QUERY_PERF_DETAIL = 3,
  RKNN_QUERY_PERF_RUN = 4,
  RKNN_QUERY_SDK_VERSION = 5,
  RKNN_QUERY_MEM_SIZE = 6,
  RKNN_QUERY_CUSTOM_STRING = 7,
  RKNN_QUERY_NATIVE_INPUT_ATTR = 8,
  RKNN_QUERY_NATIVE_NC1HWC2_INPUT_ATTR = 8,
  RKNN_QUERY_NATIVE_OUTPUT_ATTR = 9,
  RKNN_QUERY_NATIVE_NC1HWC2_OUTPUT_ATTR = 9,
  RKNN_QUERY_NATIVE_NHWC_INPUT_ATTR = 10,
  RKNN_QUERY_NATIVE_NHWC_OUTPUT_ATTR = 11,
  RKNN_QUERY_DEVICE_MEM_INFO = 12,
  RKNN_QUERY_INPUT_DYNAMIC_RANGE = 13,
  RKNN_QUERY_CURRENT_INPUT_ATTR = 14,
  RKNN_QUERY_CURRENT_OUTPUT_ATTR = 15,
  RKNN_QUERY_CURRENT_NATIVE_INPUT_ATTR = 16,
  RKNN_QUERY_CURRENT_NATIVE_OUTPUT_ATTR = 17
} rknn_query_cmd;

/* 40 bytes on LP64 and on 32-bit Arm alike: the 64-bit member forces the alignment. */
typedef struct {
  void *virt_addr;
  uint64_t phys_addr;
  int32_t fd;
  int32_t offset;
  uint32_t size;
  uint32_t flags;
  void *priv_data;
} rknn_tensor_mem;

typedef struct {
  char api_version[256];
  char drv_version[256];
} rknn_sdk_version;

typedef struct {
  uint32_t total_weight_size;
  uint32_t total_internal_size;
  uint64_t total_dma_allocated_size;
  uint32_t total_sram_size;
  uint32_t free_sram_size;
  uint32_t reserved[10];
} rknn_mem_size;

/* One operand as the library describes it: name "A", "B" or "C"; two dims when norm, three (A, C) or four (B) when
 * native; size in bytes, the figure to allocate. */
typedef struct {
  char name[RKNN_MAX_NAME_LEN];
  uint32_t n_dims;
  uint32_t dims[RKNN_MAX_DIMS];
  uint32_t size;
  rknn_tensor_type type;
} rknn_matmul_tensor_attr;

typedef struct {
  rknn_matmul_tensor_attr A;
  rknn_matmul_tensor_attr B;
  rknn_matmul_tensor_attr C;
} rknn_matmul_io_attr;

typedef struct {
  int32_t M;
  int32_t K;
  int32_t N;
} rknn_matmul_shape;

typedef struct {
  char name[RKNN_MAX_NAME_LEN];
  float *scale;
  int32_t scale_len;
  int32_t *zp;
  int32_t zp_len;
} rknn_quant_params;

typedef struct {
  int32_t M;
  int32_t K;
  int32_t N;
  rknn_matmul_type type;
  int16_t B_layout;
  int16_t B_quant_type;
  int16_t AC_layout;
  int16_t AC_quant_type;
  int32_t iommu_domain_id;
  int16_t group_size;
  int8_t reserved[34];
} rknn_matmul_info;

typedef rknn_context rknn_matmul_ctx;

/* Matmul API. Every function returns 0 or one of the negative codes above. */
int rknn_matmul_create(rknn_matmul_ctx *ctx, rknn_matmul_info *info, rknn_matmul_io_attr *io_attr);
int rknn_matmul_create_dynamic_shape(rknn_matmul_ctx *ctx, rknn_matmul_info *info, int shape_num,
                                     rknn_matmul_shape dynamic_shapes[], rknn_matmul_io_attr io_attrs[]);
/* The name that 2.0.0-beta0 alone uses for the function above. */
int rknn_matmul_create_dyn_shape(rknn_matmul_ctx *ctx, rknn_matmul_info *info, int shape_num,
                                 rknn_matmul_shape dynamic_shapes[], rknn_matmul_io_attr io_attrs[]);
int rknn_matmul_set_io_mem(rknn_matmul_ctx ctx, rknn_tensor_mem *mem, rknn_matmul_tensor_attr *attr);
int rknn_matmul_set_core_mask(rknn_matmul_ctx ctx, rknn_core_mask core_mask);
int rknn_matmul_set_quant_params(rknn_matmul_ctx ctx, rknn_quant_params *params);
int rknn_matmul_get_quant_params(rknn_matmul_ctx ctx, rknn_quant_params *params, float *scale);
int rknn_matmul_set_dynamic_shape(rknn_matmul_ctx ctx, rknn_matmul_shape *shape);
int rknn_matmul_run(rknn_matmul_ctx ctx);
int rknn_matmul_destroy(rknn_matmul_ctx ctx);
/* Five arguments from 2.1.0 on. 2.0.0-beta0 exports the same symbol with seven: check the version before a call. */
int rknn_B_normal_layout_to_native_layout(void *B_input, void *B_output, int K, int N, rknn_matmul_info *info);

/* Base API, as far as a matmul program needs it. */
rknn_tensor_mem *rknn_create_mem(rknn_context ctx, uint32_t size);
rknn_tensor_mem *rknn_create_mem2(rknn_context ctx, uint64_t size, uint64_t alloc_flags);
/* virt_addr is the start of the mapping, without the offset. */
rknn_tensor_mem *rknn_create_mem_from_fd(rknn_context ctx, int32_t fd, void *virt_addr, uint32_t size, int32_t offset);
rknn_tensor_mem *rknn_create_mem_from_phys(rknn_context ctx, uint64_t phys_addr, void *virt_addr, uint32_t size);
int rknn_destroy_mem(rknn_context ctx, rknn_tensor_mem *mem);
int rknn_mem_sync(rknn_context ctx, rknn_tensor_mem *mem, rknn_mem_sync_mode mode);
int rknn_query(rknn_context ctx, rknn_query_cmd cmd, void *info, uint32_t size);

/* cdef end */

/* The seven-argument converter of 2.0.0-beta0, for a caller that has checked the version. */
typedef int (*rknn_B_normal_layout_to_native_layout_v200)(void *B_input, void *B_output, int K, int N, int subN,
                                                          int subK, rknn_matmul_type type);

/* The 24 bytes that runtimes 1.5 and 1.6 own. 1.5 names the fields type, native_layout and perf_layout; the values
 * F16 = 1 and INT8 = 2 of its type are the same numbers as matmul types 1 and 2. */
typedef struct {
  int32_t M;
  int32_t K;
  int32_t N;
  int32_t type;
  int32_t B_layout;
  int32_t AC_layout;
} rknn_matmul_info_v1;

#ifdef __cplusplus
#define RKNN_ABI_ASSERT(cond) typedef char rknn_abi_assert[(cond) ? 1 : -1] /* C++98 has no static_assert */
#else
#define RKNN_ABI_ASSERT(cond) _Static_assert(cond, #cond)
#endif
#define RKNN_ABI_OFFSET(type, member, at) RKNN_ABI_ASSERT(offsetof(type, member) == (at))

/* Same on LP64 and ILP32. (i386 aligns 64-bit members to 4; the library does not exist there.) */
RKNN_ABI_ASSERT(sizeof(rknn_tensor_type) == 4);
RKNN_ABI_ASSERT(sizeof(rknn_core_mask) == 4);
RKNN_ABI_ASSERT(sizeof(rknn_matmul_type) == 4);
RKNN_ABI_ASSERT(sizeof(rknn_mem_sync_mode) == 4);
RKNN_ABI_ASSERT(sizeof(rknn_query_cmd) == 4);

#if !defined(__i386__)
RKNN_ABI_ASSERT(sizeof(rknn_tensor_mem) == 40);
RKNN_ABI_OFFSET(rknn_tensor_mem, virt_addr, 0);
RKNN_ABI_OFFSET(rknn_tensor_mem, phys_addr, 8);
RKNN_ABI_OFFSET(rknn_tensor_mem, fd, 16);
RKNN_ABI_OFFSET(rknn_tensor_mem, offset, 20);
RKNN_ABI_OFFSET(rknn_tensor_mem, size, 24);
RKNN_ABI_OFFSET(rknn_tensor_mem, flags, 28);
RKNN_ABI_OFFSET(rknn_tensor_mem, priv_data, 32);
#endif

RKNN_ABI_ASSERT(sizeof(rknn_sdk_version) == 512);
RKNN_ABI_OFFSET(rknn_sdk_version, drv_version, 256);
RKNN_ABI_ASSERT(sizeof(rknn_mem_size) == 64);
RKNN_ABI_OFFSET(rknn_mem_size, total_internal_size, 4);
RKNN_ABI_OFFSET(rknn_mem_size, total_dma_allocated_size, 8);
RKNN_ABI_OFFSET(rknn_mem_size, total_sram_size, 16);
RKNN_ABI_OFFSET(rknn_mem_size, free_sram_size, 20);
RKNN_ABI_OFFSET(rknn_mem_size, reserved, 24);

RKNN_ABI_ASSERT(sizeof(rknn_matmul_tensor_attr) == 332);
RKNN_ABI_OFFSET(rknn_matmul_tensor_attr, name, 0);
RKNN_ABI_OFFSET(rknn_matmul_tensor_attr, n_dims, 256);
RKNN_ABI_OFFSET(rknn_matmul_tensor_attr, dims, 260);
RKNN_ABI_OFFSET(rknn_matmul_tensor_attr, size, 324);
RKNN_ABI_OFFSET(rknn_matmul_tensor_attr, type, 328);
RKNN_ABI_ASSERT(sizeof(rknn_matmul_io_attr) == 996);
RKNN_ABI_OFFSET(rknn_matmul_io_attr, A, 0);
RKNN_ABI_OFFSET(rknn_matmul_io_attr, B, 332);
RKNN_ABI_OFFSET(rknn_matmul_io_attr, C, 664);

RKNN_ABI_ASSERT(sizeof(rknn_matmul_shape) == 12);
RKNN_ABI_OFFSET(rknn_matmul_shape, M, 0);
RKNN_ABI_OFFSET(rknn_matmul_shape, K, 4);
RKNN_ABI_OFFSET(rknn_matmul_shape, N, 8);

RKNN_ABI_OFFSET(rknn_quant_params, name, 0);
RKNN_ABI_OFFSET(rknn_quant_params, scale, 256);
#if defined(__LP64__)
RKNN_ABI_ASSERT(sizeof(rknn_context) == 8);
RKNN_ABI_ASSERT(sizeof(rknn_quant_params) == 288);
RKNN_ABI_OFFSET(rknn_quant_params, scale_len, 264);
RKNN_ABI_OFFSET(rknn_quant_params, zp, 272);
RKNN_ABI_OFFSET(rknn_quant_params, zp_len, 280);
#else
RKNN_ABI_ASSERT(sizeof(rknn_quant_params) == 272);
RKNN_ABI_OFFSET(rknn_quant_params, scale_len, 260);
RKNN_ABI_OFFSET(rknn_quant_params, zp, 264);
RKNN_ABI_OFFSET(rknn_quant_params, zp_len, 268);
#endif
#if defined(__arm__)
RKNN_ABI_ASSERT(sizeof(rknn_context) == 4);
#endif

RKNN_ABI_ASSERT(sizeof(rknn_matmul_info) == 64);
RKNN_ABI_OFFSET(rknn_matmul_info, M, 0);
RKNN_ABI_OFFSET(rknn_matmul_info, K, 4);
RKNN_ABI_OFFSET(rknn_matmul_info, N, 8);
RKNN_ABI_OFFSET(rknn_matmul_info, type, 12);
RKNN_ABI_OFFSET(rknn_matmul_info, B_layout, 16);
RKNN_ABI_OFFSET(rknn_matmul_info, B_quant_type, 18);
RKNN_ABI_OFFSET(rknn_matmul_info, AC_layout, 20);
RKNN_ABI_OFFSET(rknn_matmul_info, AC_quant_type, 22);
RKNN_ABI_OFFSET(rknn_matmul_info, iommu_domain_id, 24);
RKNN_ABI_OFFSET(rknn_matmul_info, group_size, 28);
RKNN_ABI_OFFSET(rknn_matmul_info, reserved, 30);

RKNN_ABI_ASSERT(sizeof(rknn_matmul_info_v1) == 24);
RKNN_ABI_OFFSET(rknn_matmul_info_v1, type, 12);
RKNN_ABI_OFFSET(rknn_matmul_info_v1, B_layout, 16);
RKNN_ABI_OFFSET(rknn_matmul_info_v1, AC_layout, 20);

#ifdef __cplusplus
}
#endif

#endif /* RKNPU_KIT_RKNN_ABI_H */
