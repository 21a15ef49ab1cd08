/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks of device memory: a memfd each, as a dma-buf is on the board. The list of blocks answers which pointers are
 * alive; one lock guards it and all counts.
 */
#include "memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "api.h"
#include "faults.h"
#include "fork_safe.h"
#include "settings.h"

#define PAGE 4096u

struct mock_memory {
  rknn_tensor_mem shown; /* first member: the client's pointer is ours */
  int references;
  bool dead;
  void *base;    /* mapping, or the address that came with an fd */
  size_t extent; /* bytes from base on */
  bool ours;     /* mapping and fd are unmapped and closed by us */
  int fd;        /* as made: the client may write over the shown one */
  int domain;
  unsigned long written;
  unsigned char *held;
  unsigned char *held_target;
  size_t held_size;
  mock_memory *next;
};

static struct {
  pthread_mutex_t lock;
  mock_memory *first;
  double booked[MOCK_DOMAINS];
} memory_state = {.lock = PTHREAD_MUTEX_INITIALIZER};

MOCK_FORK_SAFE(memory_state.lock, )

int mock_domain_book(int domain, double bytes) {
  int code = 0;
  pthread_mutex_lock(&memory_state.lock);
  if (bytes > 0 && memory_state.booked[domain] + bytes > mock_settings_get()->domain_bytes)
    code = -1;
  else
    memory_state.booked[domain] += bytes;
  pthread_mutex_unlock(&memory_state.lock);
  return code;
}

static mock_memory *find(const rknn_tensor_mem *mem) {
  for (mock_memory *at = memory_state.first; at; at = at->next)
    if (&at->shown == mem) return at;
  return NULL;
}

mock_memory *mock_memory_take(const rknn_tensor_mem *mem) {
  pthread_mutex_lock(&memory_state.lock);
  mock_memory *memory = find(mem);
  if (memory && memory->dead) memory = NULL;
  if (memory) memory->references++;
  pthread_mutex_unlock(&memory_state.lock);
  return memory;
}

mock_memory *mock_memory_take_again(mock_memory *memory) {
  pthread_mutex_lock(&memory_state.lock);
  memory->references++;
  pthread_mutex_unlock(&memory_state.lock);
  return memory;
}

static void release(mock_memory *memory) {
  if (memory->ours) {
    munmap(memory->base, memory->extent);
    if (!mock_fault(FAULT_FD_LEAK)) close(memory->fd);
    mock_domain_book(memory->domain, -(double)memory->extent);
  }
  free(memory->held);
  free(memory);
}

void mock_memory_drop(mock_memory *memory) {
  if (!memory) return;
  pthread_mutex_lock(&memory_state.lock);
  bool last = --memory->references == 0;
  for (mock_memory **at = &memory_state.first; last && *at; at = &(*at)->next)
    if (*at == memory) {
      *at = memory->next;
      break;
    }
  pthread_mutex_unlock(&memory_state.lock);
  if (last) release(memory);
}

bool mock_memory_dead(mock_memory *memory) {
  pthread_mutex_lock(&memory_state.lock);
  bool dead = memory->dead;
  pthread_mutex_unlock(&memory_state.lock);
  return dead;
}

unsigned char *mock_memory_bytes(mock_memory *memory, size_t *available) {
  const rknn_tensor_mem *shown = &memory->shown;
  size_t offset = mock_fault(FAULT_FD_OFFSET_IGNORED) ? 0 : (size_t)(shown->offset > 0 ? shown->offset : 0);
  if (shown->offset < 0 || offset > memory->extent || shown->size > memory->extent - offset) return NULL;
  *available = shown->size;
  return (unsigned char *)memory->base + offset;
}

unsigned long mock_memory_written(mock_memory *memory) {
  pthread_mutex_lock(&memory_state.lock);
  unsigned long written = memory->written;
  pthread_mutex_unlock(&memory_state.lock);
  return written;
}

void mock_memory_hold_back(mock_memory *memory, unsigned char *bytes, unsigned char *target, size_t size) {
  pthread_mutex_lock(&memory_state.lock);
  free(memory->held);
  memory->held = bytes;
  memory->held_target = target;
  memory->held_size = size;
  pthread_mutex_unlock(&memory_state.lock);
}

size_t mock_memory_count(void) {
  size_t count = 0;
  pthread_mutex_lock(&memory_state.lock);
  for (mock_memory *at = memory_state.first; at; at = at->next) count += !at->dead;
  pthread_mutex_unlock(&memory_state.lock);
  return count;
}

static rknn_tensor_mem *publish(mock_memory *memory) {
  memory->references = 1;
  pthread_mutex_lock(&memory_state.lock);
  memory->next = memory_state.first;
  memory_state.first = memory;
  pthread_mutex_unlock(&memory_state.lock);
  return &memory->shown;
}

rknn_tensor_mem *mock_memory_allocate(int domain, uint64_t size, const char *who) {
  if (size == 0 || size > UINT32_MAX - PAGE) {
    mock_log('E', "%s, invalid size: %llu", who, (unsigned long long)size);
    return NULL;
  }
  size_t extent = ((size_t)size + PAGE - 1) / PAGE * PAGE;
  if (mock_domain_book(domain, (double)extent) != 0) {
    mock_log('E', "failed to malloc npu memory, size: %llu, iommu domain id: %d is full", (unsigned long long)size,
             domain);
    return NULL;
  }
  mock_memory *memory = calloc(1, sizeof *memory);
  int fd = memory ? memfd_create("rknn_mock", MFD_CLOEXEC) : -1;
  void *base = fd >= 0 && ftruncate(fd, (off_t)extent) == 0
                   ? mmap(NULL, extent, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                   : MAP_FAILED;
  if (base == MAP_FAILED) {
    mock_log('E', fd < 0 ? "failed to allocate fd, size: %zu" : "failed to map memory, size: %zu", extent);
    if (fd >= 0) close(fd);
    free(memory);
    mock_domain_book(domain, -(double)extent);
    return NULL;
  }
  memory->shown = (rknn_tensor_mem){
      .virt_addr = base, .fd = fd, .size = (uint32_t)size, .flags = RKNN_TENSOR_MEMORY_FLAGS_ALLOC_INSIDE};
  memory->base = base;
  memory->extent = extent;
  memory->ours = true;
  memory->fd = fd;
  memory->domain = domain;
  return publish(memory);
}

rknn_tensor_mem *mock_memory_import(int domain, int fd, void *base, uint32_t size, int32_t offset) {
  mock_memory *memory = calloc(1, sizeof *memory);
  if (!memory) return NULL;
  memory->shown = (rknn_tensor_mem){
      .virt_addr = base, .fd = fd, .offset = offset, .size = size, .flags = RKNN_TENSOR_MEMORY_FLAGS_FROM_FD};
  memory->base = base;
  memory->extent = (size_t)offset + size;
  memory->domain = domain;
  return publish(memory);
}

int mock_memory_destroy(const rknn_tensor_mem *mem) {
  pthread_mutex_lock(&memory_state.lock);
  mock_memory *memory = find(mem);
  if (memory && memory->dead) memory = NULL;
  if (memory) memory->dead = true;
  pthread_mutex_unlock(&memory_state.lock);
  mock_memory_drop(memory);
  return memory ? 0 : -1;
}

void mock_memory_sync(mock_memory *memory, bool to_device, bool from_device) {
  pthread_mutex_lock(&memory_state.lock);
  if (to_device) memory->written++;
  if (from_device && memory->held) {
    memcpy(memory->held_target, memory->held, memory->held_size);
    free(memory->held);
    memory->held = NULL;
  }
  pthread_mutex_unlock(&memory_state.lock);
}
