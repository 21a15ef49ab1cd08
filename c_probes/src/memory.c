/* SPDX-License-Identifier: Apache-2.0 */
#include "memory.h"

#include <stdio.h>
#include <stdlib.h>

void *grow(void *old, size_t bytes) {
  void *fresh = realloc(old, bytes ? bytes : 1);
  if (!fresh) {
    fprintf(stderr, "error: out of memory (%zu bytes wanted for the report itself); free some and try again\n", bytes);
    exit(3);
  }
  return fresh;
}
