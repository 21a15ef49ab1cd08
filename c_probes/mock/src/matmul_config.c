/* SPDX-License-Identifier: Apache-2.0
 *
 * What a context is told between creation and run: core mask, quantisation parameters, current shape.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "context.h"
#include "faults.h"
#include "output.h"
#include "settings.h"

/* A matmul context runs on one core: single bits are accepted, 3, 7 and 0xffff are refused and leave it on AUTO
 * (rknn-toolkit2 issues 7 and 253). Chips with one core refuse every mask. */
int rknn_matmul_set_core_mask(rknn_matmul_ctx ctx, rknn_core_mask core_mask) {
  int code = mock_enter(MOCK_CALL_matmul_set_core_mask);
  if (code) return code;
  mock_context *context = mock_context_take(ctx);
  if (!context) return RKNN_ERR_CTX_INVALID;
  const mock_soc *soc = mock_settings_get()->soc;
  unsigned mask = (unsigned)core_mask, all = (1u << soc->cores) - 1;
  bool one = mask != 0 && (mask & (mask - 1)) == 0 && (mask & ~all) == 0;
  bool several = mask == RKNN_NPU_CORE_0_1 || mask == RKNN_NPU_CORE_0_1_2 || mask == RKNN_NPU_CORE_ALL;
  if (!soc->has_core_mask) {
    mock_log('E', "The setCoreMask interface is only valid on multi-core platforms, core mask: %#x", mask);
    code = RKNN_ERR_FAIL;
  } else if (!one && mask != RKNN_NPU_CORE_AUTO) {
    bool ignored = several && mock_fault(FAULT_MASK_IGNORED) != NULL;
    if (several)
      mock_log(ignored ? 'W' : 'E',
               "core mask for matmul api will fall back to RKNN_NPU_CORE_AUTO mode, core mask: %#x", mask);
    else
      mock_log('E', "Illegal core_mask %d", (int)mask);
    code = ignored ? RKNN_SUCC : RKNN_ERR_FAIL;
  }
  pthread_mutex_lock(&context->lock);
  context->core_mask = one && soc->has_core_mask ? mask : 0;
  pthread_mutex_unlock(&context->lock);
  mock_context_drop(context);
  return code;
}

static int operand_of(const char *name) {
  return name[0] >= 'A' && name[0] <= 'C' && name[1] == '\0' ? name[0] - 'A' : -1;
}

/* How many scales an operand takes: per layer 1, per channel N, per group N * K / group_size. */
static int32_t scales_wanted(const mock_context *context, int id) {
  const rknn_matmul_shape *shape = &context->shapes[0];
  if (id != MOCK_B || context->b_quant == RKNN_QUANT_TYPE_PER_LAYER_SYM) return 1;
  if (context->b_quant == RKNN_QUANT_TYPE_PER_CHANNEL_SYM) return shape->N;
  return shape->K / context->group_size * shape->N;
}

static int check_params(const mock_context *context, const rknn_quant_params *params, int id) {
  int32_t wanted = id < 0 ? 0 : scales_wanted(context, id);
  const char *name = id < 0 ? "?" : (const char *[]){"A", "B", "C"}[id];
  if (id < 0)
    mock_log('E', "rknn_matmul_set_quant_params, name must be that of an operand: A, B or C");
  else if (!params->scale || params->scale_len <= 0)
    mock_log('E', "rknn_matmul_set_quant_params, scale_len must > 0 and scale given, for %s", name);
  else if (wanted == 1 && (params->scale_len != 1 || params->zp_len > 1))
    mock_log('E', "rknn_matmul_set_quant_params, %s is only per layer, scale_len and zp_len must 1, got %d and %d",
             name, params->scale_len, params->zp_len);
  else if (params->scale_len != wanted)
    mock_log('E', "rknn_matmul_set_quant_params, scale_len of %s is %d, wanted %d", name, params->scale_len, wanted);
  else {
    for (int32_t i = 0; i < params->zp_len; i++)
      if (params->zp && params->zp[i] != 0) {
        mock_log('E', "rknn_matmul_set_quant_params, zp: %d is unsupport, only 0", params->zp[i]);
        return RKNN_ERR_PARAM_INVALID;
      }
    for (int32_t i = 0; i < params->scale_len; i++)
      if (!isfinite(params->scale[i]) || (id == MOCK_C && params->scale[i] == 0)) {
        mock_log('E', "rknn_matmul_set_quant_params, scale %d of %s is no usable number", i, name);
        return RKNN_ERR_PARAM_INVALID;
      }
    return 0;
  }
  return RKNN_ERR_PARAM_INVALID;
}

int rknn_matmul_set_quant_params(rknn_matmul_ctx ctx, rknn_quant_params *params) {
  int code = mock_enter(MOCK_CALL_set_quant_params);
  if (code) return code;
  mock_context *context = mock_context_take(ctx);
  if (!context) return RKNN_ERR_CTX_INVALID;
  int id = params ? operand_of(params->name) : -1;
  code = params ? check_params(context, params, id) : RKNN_ERR_PARAM_INVALID;
  float *scale = code == 0 ? malloc((size_t)params->scale_len * sizeof *scale) : NULL;
  if (code == 0 && !scale) code = RKNN_ERR_MALLOC_FAIL;
  if (code == 0) {
    memcpy(scale, params->scale, (size_t)params->scale_len * sizeof *scale);
    pthread_mutex_lock(&context->lock);
    free(context->scales[id].scale);
    context->scales[id] = (mock_scales){scale, params->scale_len};
    context->scales_change++;
    pthread_mutex_unlock(&context->lock);
  }
  mock_context_drop(context);
  return code;
}

/* API reference: type 2 with per-channel B only; gives the one scale that B was brought to. */
int rknn_matmul_get_quant_params(rknn_matmul_ctx ctx, rknn_quant_params *params, float *scale) {
  int code = mock_enter(MOCK_CALL_get_quant_params);
  if (code) return code;
  mock_context *context = mock_context_take(ctx);
  if (!context) return RKNN_ERR_CTX_INVALID;
  bool right =
      context->type->code == RKNN_INT8_MM_INT8_TO_INT32 && context->b_quant == RKNN_QUANT_TYPE_PER_CHANNEL_SYM;
  if (!scale || !right || (params && params->name[0] && operand_of(params->name) != MOCK_B)) {
    mock_log(
        'E',
        "rknn_matmul_get_quant_params, only for B of %s with B_quant_type = PER_CHANNEL_SYM, and a scale to fill",
        mock_type_find(2)->name);
    code = RKNN_ERR_PARAM_INVALID;
  } else {
    pthread_mutex_lock(&context->lock);
    const mock_scales *b = &context->scales[MOCK_B];
    *scale = b->scale ? mock_common_scale(b->scale, (size_t)b->count) : 1.0f;
    pthread_mutex_unlock(&context->lock);
  }
  mock_context_drop(context);
  return code;
}

int rknn_matmul_set_dynamic_shape(rknn_matmul_ctx ctx, rknn_matmul_shape *shape) {
  int code = mock_enter(MOCK_CALL_set_dynamic_shape);
  if (code) return code;
  mock_context *context = mock_context_take(ctx);
  if (!context) return RKNN_ERR_CTX_INVALID;
  code = RKNN_ERR_PARAM_INVALID;
  pthread_mutex_lock(&context->lock);
  for (int i = 0; shape && i < context->shape_count && code != 0; i++)
    if (context->shapes[i].M == shape->M && context->shapes[i].K == shape->K && context->shapes[i].N == shape->N) {
      context->current = i;
      code = RKNN_SUCC;
    }
  pthread_mutex_unlock(&context->lock);
  if (code)
    mock_log('E', "rknn_matmul_set_dynamic_shape, %s",
             shape ? "shape is none of those given at creation" : "shape is null");
  mock_context_drop(context);
  return code;
}
