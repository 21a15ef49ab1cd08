/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of contexts. A handle never names memory: a stale, truncated or invented one is an error, not a crash. On
 * 64-bit machines a handle does not fit 32 bits, as on the board, so that a binding which declares it too narrow is
 * found out here.
 */
#include "context.h"

#include <stdlib.h>

#include "faults.h"
#include "fork_safe.h"
#include "settings.h"

#define SLOTS MOCK_MAX_CONTEXTS

static struct {
  pthread_mutex_t lock;
  mock_context *slot[SLOTS];
  uint32_t generation;
  size_t live, made;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

MOCK_FORK_SAFE(table.lock, )

static uint64_t handle_of(size_t slot, uint32_t generation) {
  uint64_t low = ((uint64_t)(generation & 0x7ffffu) << 12 | slot) + 1;
  return sizeof(rknn_context) == 8 ? low | (uint64_t)0x5a << 40 : low;
}

uint64_t mock_context_add(mock_context *context) {
  const mock_settings *settings = mock_settings_get();
  const mock_fault_state *exhausted = mock_fault(FAULT_HANDLES_EXHAUSTED);
  uint64_t handle = 0;
  pthread_mutex_lock(&table.lock);
  bool full = (double)table.live >= settings->contexts || (exhausted && (double)table.made >= exhausted->value[0]);
  for (size_t i = 0; !full && handle == 0 && i < SLOTS; i++) {
    if (table.slot[i]) continue;
    handle = handle_of(i, ++table.generation);
    context->handle = handle;
    context->references = 1; /* the table's own */
    table.slot[i] = context;
    table.live++;
    table.made++;
  }
  pthread_mutex_unlock(&table.lock);
  return handle;
}

mock_context *mock_context_take(rknn_context handle) {
  mock_context *found = NULL;
  if (handle == 0) return NULL;
  pthread_mutex_lock(&table.lock);
  mock_context *candidate = table.slot[((uint64_t)handle - 1) % SLOTS];
  if (candidate && candidate->handle == (uint64_t)handle) {
    found = candidate;
    found->references++;
  }
  pthread_mutex_unlock(&table.lock);
  return found;
}

static void destroy(mock_context *context) {
  for (int i = 0; i < 3; i++) {
    mock_memory_drop(context->operand[i].memory);
    free(context->operand[i].raw);
    free(context->operand[i].first);
    free(context->scales[i].scale);
  }
  mock_domain_book(context->domain, -context->booked);
  mock_prepared_free(context->prepared);
  pthread_mutex_destroy(&context->lock);
  free(context->shapes);
  free(context->attrs);
  free(context);
}

void mock_context_drop(mock_context *context) {
  if (!context) return;
  pthread_mutex_lock(&table.lock);
  bool last = --context->references == 0;
  pthread_mutex_unlock(&table.lock);
  if (last) destroy(context);
}

int mock_context_remove(mock_context *context) {
  int code = -1;
  pthread_mutex_lock(&table.lock);
  mock_context **slot = &table.slot[(context->handle - 1) % SLOTS];
  if (*slot == context) {
    *slot = NULL;
    table.live--;
    context->references--;
    code = 0;
  }
  pthread_mutex_unlock(&table.lock);
  return code;
}

size_t mock_context_count(void) {
  pthread_mutex_lock(&table.lock);
  size_t live = table.live;
  pthread_mutex_unlock(&table.lock);
  return live;
}
