/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory functions of the API: judging arguments around the blocks of memory.c.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "api.h"
#include "context.h"
#include "memory.h"
#include "persona.h"
#include "settings.h"
#include "timing.h"

/* Domain of the context that memory is made for; -1 when the handle is none. */
static int domain_of(rknn_context ctx) {
  mock_context *context = mock_context_take(ctx);
  int domain = context ? context->domain : -1;
  mock_context_drop(context);
  return domain;
}

rknn_tensor_mem *rknn_create_mem(rknn_context ctx, uint32_t size) {
  if (mock_enter(MOCK_CALL_create_mem) != 0) return NULL;
  int domain = domain_of(ctx);
  if (domain >= 0) return mock_memory_allocate(domain, size, "rknn_create_mem");
  mock_log('E', "rknn_create_mem, invalid context");
  return NULL;
}

rknn_tensor_mem *rknn_create_mem2(rknn_context ctx, uint64_t size, uint64_t alloc_flags) {
  const uint64_t known = RKNN_FLAG_MEMORY_CACHEABLE | RKNN_FLAG_MEMORY_NON_CACHEABLE |
                         RKNN_FLAG_MEMORY_TRY_ALLOC_SRAM | RKNN_MEM_FLAG_ALLOC_NO_CONTEXT;
  if (mock_enter(MOCK_CALL_create_mem2) != 0) return NULL;
  const uint64_t both = RKNN_FLAG_MEMORY_CACHEABLE | RKNN_FLAG_MEMORY_NON_CACHEABLE;
  if ((alloc_flags & ~known) != 0 || (alloc_flags & both) == both) {
    mock_log('E', "rknn_create_mem2, invalid flags: %#llx", (unsigned long long)alloc_flags);
    return NULL;
  }
  int domain = alloc_flags & RKNN_MEM_FLAG_ALLOC_NO_CONTEXT ? 0 : domain_of(ctx);
  if (domain >= 0) return mock_memory_allocate(domain, size, "rknn_create_mem2");
  mock_log('E', "rknn_create_mem2, invalid context");
  return NULL;
}

/* Does the file end before the block does? A file without a size of its own, as a dma-buf, is taken at the caller's
 * word. */
static bool too_short(int fd, uint32_t size, int32_t offset) {
  struct stat file;
  return fstat(fd, &file) == 0 && S_ISREG(file.st_mode) && (uint64_t)file.st_size < (uint64_t)offset + size;
}

rknn_tensor_mem *rknn_create_mem_from_fd(rknn_context ctx, int32_t fd, void *virt_addr, uint32_t size,
                                         int32_t offset) {
  if (mock_enter(MOCK_CALL_create_mem_from_fd) != 0) return NULL;
  int domain = domain_of(ctx);
  bool open_fd = fd >= 0 && fcntl(fd, F_GETFD) != -1;
  if (domain < 0 || !open_fd || !virt_addr || size == 0 || offset < 0 || too_short(fd, size, offset)) {
    mock_log('E', "rknn_create_mem_from_fd, failed to convert fd(%d) to handle: %s", fd,
             domain < 0   ? "invalid context"
             : !open_fd   ? "no open file"
             : size == 0  ? "invalid size: 0"
             : offset < 0 ? "negative offset"
             : !virt_addr ? "virt_addr is null"
                          : "the file ends before offset + size");
    return NULL;
  }
  return mock_memory_import(domain, fd, virt_addr, size, offset);
}

rknn_tensor_mem *rknn_create_mem_from_phys(rknn_context ctx, uint64_t phys_addr, void *virt_addr, uint32_t size) {
  (void)ctx, (void)virt_addr;
  if (mock_enter(MOCK_CALL_create_mem_from_phys) != 0) return NULL;
  mock_log('E', "rknn_create_mem_from_phys, the mock has no physical memory (phys_addr: %#llx, size: %u)",
           (unsigned long long)phys_addr, size);
  return NULL;
}

int rknn_destroy_mem(rknn_context ctx, rknn_tensor_mem *mem) {
  int code = mock_enter(MOCK_CALL_destroy_mem);
  if (code != 0) return code;
  /* Measured on 1.4.0 to 1.6.0. Later runtimes also have memory without a context, destroyed with ctx 0, so there the
   * handle is not judged. */
  if (ctx == 0 && mock_this_runtime.info_bytes == (int)sizeof(rknn_matmul_info_v1)) return RKNN_ERR_CTX_INVALID;
  if (mock_memory_destroy(mem) != 0) {
    mock_log('E', "rknn_destroy_mem, invalid mem: not made here, or destroyed before");
    return RKNN_ERR_PARAM_INVALID;
  }
  return RKNN_SUCC;
}

int rknn_mem_sync(rknn_context ctx, rknn_tensor_mem *mem, rknn_mem_sync_mode mode) {
  (void)ctx;
  int code = mock_enter(MOCK_CALL_mem_sync);
  if (code != 0) return code;
  double start = mock_now();
  mock_memory *memory = mock_memory_take(mem);
  if (!memory || mode < RKNN_MEMORY_SYNC_TO_DEVICE || mode > RKNN_MEMORY_SYNC_BIDIRECTIONAL) {
    mock_log('E', memory ? "rknn_mem_sync, invalid mode" : "rknn_mem_sync, invalid mem");
    mock_memory_drop(memory);
    return RKNN_ERR_PARAM_INVALID;
  }
  mock_memory_sync(memory, mode & RKNN_MEMORY_SYNC_TO_DEVICE, mode & RKNN_MEMORY_SYNC_FROM_DEVICE);
  const mock_settings *settings = mock_settings_get();
  if (settings->timing_on) mock_wait_until(start + mock_sync_seconds(&settings->timing, mem->size));
  mock_memory_drop(memory);
  return RKNN_SUCC;
}
