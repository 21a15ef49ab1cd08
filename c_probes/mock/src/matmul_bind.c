/* SPDX-License-Identifier: Apache-2.0
 *
 * Binding memory to A, B and C, and looking at what a bound buffer holds.
 *
 * Normal layout: A and B are taken over at the bind, later writes go unseen until the next bind. Native layout: by
 * reference. (API reference: bind again after the content changed; back ends report both halves.)
 */
#include "matmul_bind.h"

#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "compare.h"
#include "compute.h"
#include "faults.h"
#include "settings.h"
#include "timing.h"

static bool by_reference(const mock_context *context, mock_operand_id id) {
  return id == MOCK_C || (id == MOCK_A ? context->a_native : context->b_native);
}

/* Keeps bytes as raw. Notes a change only where they differ, so that what was prepared from them stays good. */
static int keep(mock_operand *operand, const unsigned char *bytes, size_t size) {
  bool compares = mock_settings_get()->memo != MEMO_OFF;
  if (compares && operand->raw && operand->raw_size == size &&
      mock_same_bytes(operand->raw, bytes, size, mock_settings_get()->threads))
    return 0;
  if (operand->raw_room < size) {
    unsigned char *room = realloc(operand->raw, size);
    if (!room) return -1;
    operand->raw = room;
    operand->raw_room = size;
  }
  memcpy(operand->raw, bytes, size);
  operand->raw_size = size;
  operand->change++;
  bool wants_first = mock_fault(FAULT_STALE_A) || mock_fault(FAULT_STALE_B);
  if (!wants_first || (operand->first && operand->first_size >= size)) return 0;
  unsigned char *first = malloc(size);
  if (!first) return -1;
  memcpy(first, bytes, size);
  free(operand->first);
  operand->first = first;
  operand->first_size = size;
  return 0;
}

int mock_refresh(mock_context *context, mock_operand_id id, size_t size) {
  mock_operand *operand = &context->operand[id];
  size_t available;
  if (!by_reference(context, id)) return operand->raw_size >= size ? 0 : -1;
  unsigned char *bytes = mock_memory_bytes(operand->memory, &available);
  if (!bytes || available < size) return -1;
  unsigned long written = mock_memory_written(operand->memory);
  bool trusted =
      mock_settings_get()->memo == MEMO_SYNC && operand->raw_size == size && operand->seen_written == written;
  operand->seen_written = written;
  return trusted ? 0 : keep(operand, bytes, size);
}

/* The attr of one of the context's shapes that the caller's attr describes, or NULL. */
static const rknn_matmul_tensor_attr *match(const mock_context *context, const rknn_matmul_tensor_attr *attr,
                                            mock_operand_id *id) {
  char name = attr->name[0] && !attr->name[1] ? attr->name[0] : '\0';
  for (int i = 0; i < context->shape_count; i++) {
    const rknn_matmul_tensor_attr *own = name == 'A'   ? &context->attrs[i].A
                                         : name == 'B' ? &context->attrs[i].B
                                         : name == 'C' ? &context->attrs[i].C
                                                       : NULL;
    if (!own) return NULL;
    *id = name == 'A' ? MOCK_A : name == 'B' ? MOCK_B : MOCK_C;
    bool same = attr->n_dims == own->n_dims;
    for (uint32_t d = 0; same && d < own->n_dims; d++) same = attr->dims[d] == own->dims[d];
    if (same) return own;
  }
  return NULL;
}

static int bind_operand(mock_context *context, mock_memory *memory, int memory_fd, const rknn_matmul_tensor_attr *own,
                        mock_operand_id id) {
  mock_operand *operand = &context->operand[id];
  size_t available = 0;
  unsigned char *bytes = mock_memory_bytes(memory, &available);
  if (!bytes || available < own->size) {
    mock_log('E', "rknn_matmul_set_io_mem, memory of %zu bytes is too small for %s, which needs %u",
             bytes ? available : 0, own->name, own->size);
    return RKNN_ERR_PARAM_INVALID;
  }
  if (mock_fault(FAULT_BIND_NO_MEMORY) && id == MOCK_B) {
    mock_log('E', "failed to convert fd(%d) to handle, errno: 12", memory_fd);
    return RKNN_ERR_MALLOC_FAIL;
  }
  bool int4_norm_b = id == MOCK_B && context->type->b == RKNN_TENSOR_INT4 && !context->b_native;
  if (int4_norm_b && mock_fault(FAULT_INT4_NORM_B_REFUSED)) {
    mock_log('E', "Unsupport type bits 0");
    return RKNN_ERR_FAIL;
  }
  if (id != MOCK_C && !by_reference(context, id) && keep(operand, bytes, own->size) != 0) return RKNN_ERR_MALLOC_FAIL;
  if (id != MOCK_C && by_reference(context, id)) operand->raw_size = 0; /* look again at the next run */
  mock_memory_drop(operand->memory);
  operand->memory = mock_memory_take_again(memory);
  return RKNN_SUCC;
}

int rknn_matmul_set_io_mem(rknn_matmul_ctx ctx, rknn_tensor_mem *mem, rknn_matmul_tensor_attr *attr) {
  int code = mock_enter(MOCK_CALL_matmul_set_io_mem);
  if (code) return code;
  double start = mock_now();
  const mock_settings *settings = mock_settings_get();
  mock_context *context = mock_context_take(ctx);
  if (!context) return RKNN_ERR_CTX_INVALID;
  mock_memory *memory = mem ? mock_memory_take(mem) : NULL;
  mock_operand_id id = MOCK_A;
  const rknn_matmul_tensor_attr *own = attr ? match(context, attr, &id) : NULL;
  if (!memory || !own) {
    mock_log('E', "rknn_matmul_set_io_mem, %s",
             !attr  ? "attr is null"
             : !own ? "attr is none of this context's (name and dims)"
                    : "mem was not made here or is destroyed");
    code = RKNN_ERR_PARAM_INVALID;
  } else {
    pthread_mutex_lock(&context->lock);
    code = bind_operand(context, memory, mem->fd, own, id);
    pthread_mutex_unlock(&context->lock);
    if (settings->timing_on && code == 0)
      mock_wait_until(start + mock_bind_seconds(&settings->timing, by_reference(context, id), own->size));
  }
  mock_memory_drop(memory);
  mock_context_drop(context);
  return code;
}
