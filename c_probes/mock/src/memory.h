/* SPDX-License-Identifier: Apache-2.0
 *
 * Device memory: what rknn_create_mem and its relatives hand out. Blocks are counted references, so that memory which
 * is destroyed while a context still has it bound stays mapped until the context lets go.
 */
#ifndef MOCK_MEMORY_H
#define MOCK_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rknn_abi.h"

#define MOCK_DOMAINS 16

typedef struct mock_memory mock_memory;

/* A new block on a domain; NULL after a log line by the caller's name. */
rknn_tensor_mem *mock_memory_allocate(int domain, uint64_t size, const char *who);
/* A block over memory of the client's own, usable from `offset` on for `size` bytes. */
rknn_tensor_mem *mock_memory_import(int domain, int fd, void *base, uint32_t size, int32_t offset);
/* The client's own reference is given back. 0, or -1 when the pointer is none of ours or was destroyed before. */
int mock_memory_destroy(const rknn_tensor_mem *mem);
void mock_memory_sync(mock_memory *memory, bool to_device, bool from_device);

/* The block behind a pointer that the client holds, with one more reference; NULL when it is none of ours or gone. */
mock_memory *mock_memory_take(const rknn_tensor_mem *mem);
/* One more reference to a block that the caller already holds. */
mock_memory *mock_memory_take_again(mock_memory *memory);
void mock_memory_drop(mock_memory *memory);
/* Has the client destroyed it? */
bool mock_memory_dead(mock_memory *memory);

/* Start of the usable bytes (offset applied) and how many there are, by the fields as they stand now. NULL when the
 * fields do not lie within the block. */
unsigned char *mock_memory_bytes(mock_memory *memory, size_t *available);

/* Grows whenever the client says by rknn_mem_sync that it wrote the block. */
unsigned long mock_memory_written(mock_memory *memory);

/* C of a run under fault c-needs-sync: kept until the client syncs from the device. Takes the buffer. */
void mock_memory_hold_back(mock_memory *memory, unsigned char *bytes, unsigned char *target, size_t size);

/* Books bytes on an IOMMU domain. 0, or -1 when its ceiling would be passed. Negative counts give back. */
int mock_domain_book(int domain, double bytes);

/* Blocks alive, for introspection. */
size_t mock_memory_count(void);

#endif
