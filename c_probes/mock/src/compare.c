/* SPDX-License-Identifier: Apache-2.0
 *
 * Comparing large buffers.
 */
#include "compare.h"

#include <pthread.h>
#include <string.h>

#define SHARE (4u << 20) /* bytes below which another thread does not pay */
#define MOST 8

typedef struct {
  const unsigned char *a, *b;
  size_t size;
  bool same;
} part;

static void *compare_part(void *argument) {
  part *p = argument;
  p->same = memcmp(p->a, p->b, p->size) == 0;
  return NULL;
}

bool mock_same_bytes(const void *a, const void *b, size_t size, int threads) {
  part parts[MOST];
  pthread_t thread[MOST];
  size_t count = size / SHARE < (size_t)threads ? size / SHARE : (size_t)threads, started = 1;
  if (count > MOST) count = MOST;
  if (count < 2) return memcmp(a, b, size) == 0;
  for (size_t i = 0; i < count; i++) {
    size_t from = size / count * i, to = i + 1 == count ? size : size / count * (i + 1);
    parts[i] = (part){(const unsigned char *)a + from, (const unsigned char *)b + from, to - from, false};
  }
  while (started < count && pthread_create(&thread[started], NULL, compare_part, &parts[started]) == 0) started++;
  compare_part(&parts[0]);
  for (size_t i = started; i < count; i++) compare_part(&parts[i]);
  bool same = parts[0].same;
  for (size_t i = 1; i < count; i++) {
    if (i < started) pthread_join(thread[i], NULL);
    same = same && parts[i].same;
  }
  return same;
}
