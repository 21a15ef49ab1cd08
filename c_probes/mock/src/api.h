/* SPDX-License-Identifier: Apache-2.0
 *
 * The entry points: one list of names, and what each of them does first (settings, call count, injected failures).
 */
#ifndef MOCK_API_H
#define MOCK_API_H

#include "rknn_abi.h"

#define MOCK_CALLS(X) \
  X(init, "rknn_init") \
  X(dup_context, "rknn_dup_context") \
  X(destroy, "rknn_destroy") \
  X(query, "rknn_query") \
  X(inputs_set, "rknn_inputs_set") \
  X(outputs_get, "rknn_outputs_get") \
  X(outputs_release, "rknn_outputs_release") \
  X(run, "rknn_run") \
  X(wait, "rknn_wait") \
  X(set_batch_core_num, "rknn_set_batch_core_num") \
  X(set_core_mask, "rknn_set_core_mask") \
  X(set_internal_mem, "rknn_set_internal_mem") \
  X(set_io_mem, "rknn_set_io_mem") \
  X(set_weight_mem, "rknn_set_weight_mem") \
  X(set_input_shape, "rknn_set_input_shape") \
  X(set_input_shapes, "rknn_set_input_shapes") \
  X(custom_op_get_op_attr, "rknn_custom_op_get_op_attr") \
  X(register_custom_ops, "rknn_register_custom_ops") \
  X(get_device_properties, "rknn_get_device_properties") \
  X(total_npu_memory, "get_total_npu_memory_of_Matmul") \
  X(create_mem, "rknn_create_mem") \
  X(create_mem2, "rknn_create_mem2") \
  X(create_mem_from_fd, "rknn_create_mem_from_fd") \
  X(create_mem_from_phys, "rknn_create_mem_from_phys") \
  X(destroy_mem, "rknn_destroy_mem") \
  X(mem_sync, "rknn_mem_sync") \
  X(matmul_create, "rknn_matmul_create") \
  X(create_dynamic_shape, "rknn_matmul_create_dynamic_shape") \
  X(create_dyn_shape, "rknn_matmul_create_dyn_shape") \
  X(matmul_set_io_mem, "rknn_matmul_set_io_mem") \
  X(matmul_set_core_mask, "rknn_matmul_set_core_mask") \
  X(set_quant_params, "rknn_matmul_set_quant_params") \
  X(get_quant_params, "rknn_matmul_get_quant_params") \
  X(set_dynamic_shape, "rknn_matmul_set_dynamic_shape") \
  X(matmul_run, "rknn_matmul_run") \
  X(matmul_destroy, "rknn_matmul_destroy") \
  X(convert_b, "rknn_B_normal_layout_to_native_layout")

typedef enum {
#define X(id, name) MOCK_CALL_##id,
  MOCK_CALLS(X)
#undef X
      MOCK_CALL_COUNT
} mock_call;

const char *mock_call_name(mock_call call);
/* The call of that name, or MOCK_CALL_COUNT. */
mock_call mock_call_find(const char *name);

/* First statement of every entry point. Reads the settings once, counts the call, and carries out the faults fail,
 * hang, crash and abort. Returns 0, or the code that the entry point has to return. */
int mock_enter(mock_call call);

/* Bodies behind names that differ between releases. */
int mock_create_dynamic(mock_call call, rknn_matmul_ctx *ctx, rknn_matmul_info *info, int shape_num,
                        rknn_matmul_shape shapes[], rknn_matmul_io_attr io_attrs[]);
int mock_convert_b(void *in, void *out, int K, int N, rknn_matmul_info *info);
int mock_convert_b_v200(void *in, void *out, int K, int N, int subN, int subK, int type);

/* One line on stderr in the form the vendor's parsers know: "E RKNN: [HH:MM:SS.mmm] text". level: 'E', 'W' or 'I'. */
void mock_log(char level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
