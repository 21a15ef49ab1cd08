/* SPDX-License-Identifier: Apache-2.0
 *
 * The model part of the base API. The mock runs no models: it exports what the runtime exports, so that programs link
 * and start, and refuses at the first call. The two undocumented functions answer with an error, because their
 * prototypes are in no public header.
 */
#include "rknn_api.h"

#include "api.h"
#include "faults.h"

static int refuse(mock_call call, int code) {
  int injected = mock_enter(call);
  if (injected) return injected;
  mock_log('E', "%s, the mock runs no models, only the matmul API", mock_call_name(call));
  return code;
}

int rknn_init(rknn_context *context, void *model, uint32_t size, uint32_t flag, rknn_init_extend *extend) {
  (void)model, (void)size, (void)flag, (void)extend;
  if (context) *context = 0;
  int code = refuse(MOCK_CALL_init, context ? RKNN_ERR_MODEL_INVALID : RKNN_ERR_CTX_INVALID);
  if (!mock_fault(FAULT_NO_DEVICE)) return code;
  mock_log('E', "failed to open rknpu module, need to insmod rknpu dirver!");
  mock_log('E', "failed to open rknn device!");
  return RKNN_ERR_FAIL;
}

#define CONTEXT_CALL(id, name, ...) \
  int name(__VA_ARGS__) { return refuse(MOCK_CALL_##id, RKNN_ERR_CTX_INVALID); }

#pragma GCC diagnostic ignored "-Wunused-parameter"
CONTEXT_CALL(dup_context, rknn_dup_context, rknn_context *context_in, rknn_context *context_out)
CONTEXT_CALL(destroy, rknn_destroy, rknn_context context)
CONTEXT_CALL(inputs_set, rknn_inputs_set, rknn_context context, uint32_t n_inputs, rknn_input inputs[])
CONTEXT_CALL(outputs_get, rknn_outputs_get, rknn_context context, uint32_t n_outputs, rknn_output outputs[],
             rknn_output_extend *extend)
CONTEXT_CALL(outputs_release, rknn_outputs_release, rknn_context context, uint32_t n_outputs, rknn_output outputs[])
CONTEXT_CALL(run, rknn_run, rknn_context context, rknn_run_extend *extend)
CONTEXT_CALL(wait, rknn_wait, rknn_context context, rknn_run_extend *extend)
CONTEXT_CALL(set_batch_core_num, rknn_set_batch_core_num, rknn_context context, int core_num)
CONTEXT_CALL(set_core_mask, rknn_set_core_mask, rknn_context context, rknn_core_mask core_mask)
CONTEXT_CALL(set_internal_mem, rknn_set_internal_mem, rknn_context context, rknn_tensor_mem *mem)
CONTEXT_CALL(set_io_mem, rknn_set_io_mem, rknn_context context, rknn_tensor_mem *mem, rknn_tensor_attr *attr)
CONTEXT_CALL(set_weight_mem, rknn_set_weight_mem, rknn_context context, rknn_tensor_mem *mem)
CONTEXT_CALL(set_input_shape, rknn_set_input_shape, rknn_context context, rknn_tensor_attr *attr)
CONTEXT_CALL(set_input_shapes, rknn_set_input_shapes, rknn_context context, uint32_t n_inputs,
             rknn_tensor_attr attr[])
CONTEXT_CALL(register_custom_ops, rknn_register_custom_ops, rknn_context context, rknn_custom_op *op, uint32_t count)
CONTEXT_CALL(custom_op_get_op_attr, rknn_custom_op_get_op_attr, rknn_custom_op_context *op_context, const char *name,
             rknn_custom_op_attr *op_attr)

int rknn_get_device_properties(void);
int rknn_get_device_properties(void) { return refuse(MOCK_CALL_get_device_properties, RKNN_ERR_FAIL); }
int get_total_npu_memory_of_Matmul(void);
int get_total_npu_memory_of_Matmul(void) { return refuse(MOCK_CALL_total_npu_memory, RKNN_ERR_FAIL); }
