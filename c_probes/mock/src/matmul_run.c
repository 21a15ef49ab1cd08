/* SPDX-License-Identifier: Apache-2.0
 *
 * Running a matmul: look at the operands, compute or take the memo, spoil the result where a fault says so, write C,
 * and wait until the modelled chip would be done.
 */
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "compute.h"
#include "context.h"
#include "faults.h"
#include "matmul_bind.h"
#include "result_faults.h"
#include "settings.h"
#include "timing.h"

static int refuse(const char *why) {
  mock_log('E', "rknn_matmul_run, %s", why);
  return RKNN_ERR_PARAM_INVALID;
}

static int check_bound(const mock_context *context) {
  static const char *const unbound[] = {"A is not bound", "B is not bound", "C is not bound"};
  static const char *const gone[] = {"the memory of A is destroyed", "the memory of B is destroyed",
                                     "the memory of C is destroyed"};
  for (int i = 0; i < 3; i++) {
    if (!context->operand[i].memory) return refuse(unbound[i]);
    if (mock_memory_dead(context->operand[i].memory)) return refuse(gone[i]);
  }
  return 0;
}

/* Writes C into the client's memory, or holds it back for a sync. */
static int deliver(mock_context *context, const unsigned char *plain, const rknn_matmul_io_attr *attr) {
  const rknn_matmul_shape *shape = &context->shapes[context->current];
  mock_layout layout = mock_context_layout(context);
  size_t available = 0;
  unsigned char *out = mock_memory_bytes(context->operand[MOCK_C].memory, &available);
  if (!out || available < attr->C.size) return refuse("the memory of C is too small for the current shape");
  if (mock_fault_applies(FAULT_C_NEEDS_SYNC, context->type->code, context->runs)) {
    unsigned char *held = malloc(attr->C.size);
    if (!held || mock_scatter_c(&layout, shape, plain, held) != 0) {
      free(held);
      return RKNN_ERR_MALLOC_FAIL;
    }
    mock_memory_hold_back(context->operand[MOCK_C].memory, held, out, attr->C.size);
    return 0;
  }
  mock_scatter_c(&layout, shape, plain, out);
  mock_write_past(context, out + attr->C.size);
  return 0;
}

static int compute_and_deliver(mock_context *context) {
  const rknn_matmul_shape *shape = &context->shapes[context->current];
  const rknn_matmul_io_attr *attr = &context->attrs[context->current];
  const mock_settings *settings = mock_settings_get();
  size_t elements = (size_t)shape->M * (size_t)shape->N, size = elements * mock_bits_of(context->type->c) / 8;
  mock_variant variant = mock_variant_of(context);
  const unsigned char *right = NULL;
  if (!settings->skip_arithmetic) {
    if (mock_refresh(context, MOCK_A, attr->A.size) != 0 || mock_refresh(context, MOCK_B, attr->B.size) != 0)
      return refuse("A or B is bound to less memory than the current shape needs");
    right = mock_compute(context, &variant);
    if (!right) return RKNN_ERR_MALLOC_FAIL;
  }
  if (right && !mock_result_faults_on(context)) return deliver(context, right, attr);
  unsigned char *changed = malloc(size);
  if (!changed) return RKNN_ERR_MALLOC_FAIL;
  if (right)
    memcpy(changed, right, size);
  else
    mock_fill_unusable(context->type->c, changed, elements);
  int code = !right || mock_spoil(context, changed) ? deliver(context, changed, attr) : 0;
  free(changed);
  return code;
}

static int run(mock_context *context) {
  const rknn_matmul_shape *shape = &context->shapes[context->current];
  const rknn_matmul_io_attr *attr = &context->attrs[context->current];
  int code = check_bound(context);
  if (code) return code;
  context->runs++;
  mock_job *job =
      mock_job_begin(&(mock_work){context->type, shape->M, shape->K, shape->N, context->a_native,
                                  (double)attr->A.size + attr->B.size + attr->C.size, context->core_mask});
  code = mock_submit_fails(context);
  if (code == 0) code = compute_and_deliver(context);
  mock_leak_memory();
  mock_job_end(job);
  return code;
}

int rknn_matmul_run(rknn_matmul_ctx ctx) {
  int code = mock_enter(MOCK_CALL_matmul_run);
  if (code) return code;
  mock_context *context = mock_context_take(ctx);
  if (!context) return RKNN_ERR_CTX_INVALID;
  pthread_mutex_lock(&context->lock);
  code = run(context);
  pthread_mutex_unlock(&context->lock);
  mock_context_drop(context);
  return code;
}
