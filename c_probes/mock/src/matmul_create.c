/* SPDX-License-Identifier: Apache-2.0
 *
 * Creating and destroying matmul contexts.
 */
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "compute.h"
#include "context.h"
#include "faults.h"
#include "refusals.h"
#include "settings.h"
#include "timing.h"

static mock_context *build(const mock_request *r, const mock_type *type, int count, const rknn_matmul_shape *shapes) {
  mock_context *context = calloc(1, sizeof *context);
  if (!context) return NULL;
  pthread_mutex_init(&context->lock, NULL);
  context->type = type;
  context->tile = mock_tile_for(mock_settings_get()->soc, type);
  context->a_native = r->ac_layout == RKNN_MM_LAYOUT_NATIVE;
  context->b_native = r->b_layout == RKNN_MM_LAYOUT_NATIVE;
  context->b_transposed = r->b_layout == RKNN_MM_LAYOUT_TP_NORM;
  context->b_quant = r->b_quant;
  context->group_size = r->group;
  context->domain = r->domain;
  context->shape_count = count;
  context->shapes = calloc((size_t)count, sizeof *context->shapes);
  context->attrs = calloc((size_t)count, sizeof *context->attrs);
  context->references = 1;
  if (context->shapes && context->attrs) {
    memcpy(context->shapes, shapes, (size_t)count * sizeof *shapes);
    return context;
  }
  mock_context_drop(context);
  return NULL;
}

/* Sizes of all shapes, and the chip's own copies booked on the domain: the largest A and C, and B. */
static int size_up(mock_context *context) {
  mock_layout layout = mock_context_layout(context);
  double most = 0;
  for (int i = 0; i < context->shape_count; i++) {
    rknn_matmul_io_attr *attr = &context->attrs[i];
    if (mock_layout_describe(&layout, &context->shapes[i], attr) != 0) {
      mock_log('E', "rknn_matmul_create, an operand of M:%d K:%d N:%d is larger than 4 GiB", context->shapes[i].M,
               context->shapes[i].K, context->shapes[i].N);
      return RKNN_ERR_PARAM_INVALID;
    }
    double norm = context->a_native ? 0 : (double)attr->A.size + attr->C.size;
    double bytes = norm + (context->b_native ? 0 : attr->B.size);
    most = bytes > most ? bytes : most;
  }
  if (mock_domain_book(context->domain, most) != 0) {
    mock_log('E', "failed to malloc npu memory, size: %.0f, iommu domain id: %d is full", most, context->domain);
    return RKNN_ERR_MALLOC_FAIL;
  }
  context->booked = most;
  return 0;
}

static int create(rknn_matmul_ctx *ctx, rknn_matmul_info *info, int count, const rknn_matmul_shape *shapes,
                  rknn_matmul_io_attr *io_attrs) {
  mock_request r;
  int code;
  double start = mock_now();
  if (!ctx) return RKNN_ERR_CTX_INVALID;
  *ctx = 0;
  if (!info || !io_attrs || (shapes && (count <= 0 || count > MOCK_MAX_SHAPES))) {
    mock_log('E', "rknn_matmul_create, invalid argument: %s",
             !info       ? "info is null"
             : !io_attrs ? "io_attr is null"
                         : "shape_num");
    return RKNN_ERR_PARAM_INVALID;
  }
  if ((code = mock_refuse_device()) || (code = mock_read_request(info, &r)) || (code = mock_refuse_type(&r)))
    return code;
  const mock_type *type = mock_type_find(r.type);
  if (shapes && (code = mock_refuse_shapes(&r, count, shapes))) return code;
  if ((code = mock_refuse_size(&r, type)) || (code = mock_refuse_layout(&r, type)) ||
      (code = mock_refuse_quant(&r, type)))
    return code;
  if (mock_fault(FAULT_CREATE_LOGS_ERROR))
    mock_log('E', "failed to submit, op id: 0, op name: MatMul, int status: 0x0");
  if (mock_fault(FAULT_CREATE_NULL_CONTEXT)) return RKNN_SUCC;
  const rknn_matmul_shape single = {r.M, r.K, r.N};
  mock_context *context = build(&r, type, shapes ? count : 1, shapes ? shapes : &single);
  if (!context) return RKNN_ERR_MALLOC_FAIL;
  code = size_up(context);
  uint64_t handle = code == 0 ? mock_context_add(context) : 0;
  if (handle == 0) {
    if (code == 0) mock_log('E', "failed to allocate handle, too many contexts");
    mock_context_drop(context);
    return code ? code : RKNN_ERR_FAIL;
  }
  memcpy(io_attrs, context->attrs, (size_t)context->shape_count * sizeof *io_attrs);
  *ctx = (rknn_matmul_ctx)handle;
  const mock_settings *settings = mock_settings_get();
  if (settings->timing_on) mock_wait_until(start + settings->timing.create_us * settings->timing.scale * 1e-6);
  return RKNN_SUCC;
}

int rknn_matmul_create(rknn_matmul_ctx *ctx, rknn_matmul_info *info, rknn_matmul_io_attr *io_attr) {
  int code = mock_enter(MOCK_CALL_matmul_create);
  return code ? code : create(ctx, info, 1, NULL, io_attr);
}

int mock_create_dynamic(mock_call call, rknn_matmul_ctx *ctx, rknn_matmul_info *info, int shape_num,
                        rknn_matmul_shape shapes[], rknn_matmul_io_attr io_attrs[]) {
  int code = mock_enter(call);
  if (code) return code;
  if (ctx && info && !shapes) {
    mock_log('E', "rknn_matmul_create_dynamic_shape, dynamic_shapes is null");
    return RKNN_ERR_PARAM_INVALID;
  }
  return create(ctx, info, shape_num, shapes, io_attrs);
}

int rknn_matmul_destroy(rknn_matmul_ctx ctx) {
  int code = mock_enter(MOCK_CALL_matmul_destroy);
  if (code) return code;
  double start = mock_now();
  mock_context *context = mock_context_take(ctx);
  if (!context) return RKNN_ERR_CTX_INVALID;
  code = mock_context_remove(context) == 0 ? RKNN_SUCC : RKNN_ERR_CTX_INVALID;
  mock_context_drop(context);
  const mock_settings *settings = mock_settings_get();
  if (settings->timing_on) mock_wait_until(start + settings->timing.destroy_us * settings->timing.scale * 1e-6);
  return code;
}
