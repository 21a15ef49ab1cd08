/* SPDX-License-Identifier: Apache-2.0
 *
 * rknn_query on a matmul context: the versions and the memory sizes. Whether the vendor's runtime answers for a
 * matmul context is not known; the mock does, for the two commands whose answer is plain.
 */
#include <stdio.h>
#include <string.h>

#include "api.h"
#include "context.h"
#include "settings.h"

static int answer_version(void *info, uint32_t size) {
  rknn_sdk_version version;
  unsigned driver = (unsigned)mock_settings_get()->driver_version;
  if (size < sizeof version) return -1;
  memset(&version, 0, sizeof version);
  snprintf(version.api_version, sizeof version.api_version, "%s (mock of rknpu-kit)", mock_this_runtime.version);
  snprintf(version.drv_version, sizeof version.drv_version, "%u.%u.%u", driver / 10000, driver / 100 % 100,
           driver % 100);
  memcpy(info, &version, sizeof version);
  return 0;
}

static int answer_memory(const mock_context *context, void *info, uint32_t size) {
  rknn_mem_size memory;
  if (size < sizeof memory) return -1;
  memset(&memory, 0, sizeof memory);
  memory.total_weight_size = context->attrs[0].B.size;
  memory.total_internal_size = (uint32_t)context->booked;
  memory.total_dma_allocated_size = (uint64_t)context->booked;
  memcpy(info, &memory, sizeof memory);
  return 0;
}

int rknn_query(rknn_context ctx, rknn_query_cmd cmd, void *info, uint32_t size) {
  int code = mock_enter(MOCK_CALL_query);
  if (code) return code;
  mock_context *context = mock_context_take(ctx);
  if (!context) return RKNN_ERR_CTX_INVALID;
  int answered = -2;
  if (info && cmd == RKNN_QUERY_SDK_VERSION) answered = answer_version(info, size);
  if (info && cmd == RKNN_QUERY_MEM_SIZE) answered = answer_memory(context, info, size);
  if (!info) mock_log('E', "rknn_query, info is null");
  if (info && answered == -1)
    mock_log('E', "rknn_query, info_len(%u) < sizeof of the answer to command %d", size, (int)cmd);
  if (info && answered == -2) mock_log('E', "rknn_query, command %d has no answer for a matmul context", (int)cmd);
  mock_context_drop(context);
  return answered == 0 ? RKNN_SUCC : RKNN_ERR_PARAM_INVALID;
}
