/* SPDX-License-Identifier: Apache-2.0
 *
 * Forks while other threads create, bind, run and destroy: each child must be able to do the same.
 */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rknn_matmul_api.h"

enum { THREADS = 6, K = 32, N = 32 };

static atomic_int stop, wrong;

static int once(void) {
  rknn_matmul_info info;
  rknn_matmul_io_attr io;
  rknn_matmul_ctx ctx = 0;
  memset(&info, 0, sizeof info);
  info.M = 1;
  info.K = K;
  info.N = N;
  info.type = RKNN_INT8_MM_INT8_TO_INT32;
  if (rknn_matmul_create(&ctx, &info, &io) != 0) return 1;
  rknn_matmul_tensor_attr *attr[3] = {&io.A, &io.B, &io.C};
  rknn_tensor_mem *mem[3];
  int code = 0;
  for (int i = 0; i < 3; i++) {
    mem[i] = rknn_create_mem(ctx, attr[i]->size);
    memset(mem[i]->virt_addr, 1, attr[i]->size);
    code |= rknn_matmul_set_io_mem(ctx, mem[i], attr[i]);
  }
  code |= rknn_matmul_run(ctx);
  code |= ((int32_t *)mem[2]->virt_addr)[N - 1] != K;
  for (int i = 0; i < 3; i++) code |= rknn_destroy_mem(ctx, mem[i]);
  return code | rknn_matmul_destroy(ctx);
}

static void *work(void *unused) {
  while (!atomic_load(&stop))
    if (once() != 0) atomic_fetch_add(&wrong, 1);
  return unused;
}

int main(int argc, char **argv) {
  int forks = argc > 1 ? atoi(argv[1]) : 100;
  pthread_t thread[THREADS];
  for (int i = 0; i < THREADS; i++) pthread_create(&thread[i], NULL, work, NULL);
  for (int i = 0; i < forks && atomic_load(&wrong) == 0; i++) {
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
      alarm(60); /* a child that waits for a lock for ever */
      _exit(once() != 0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) atomic_fetch_add(&wrong, 1);
  }
  atomic_store(&stop, 1);
  for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
  printf("%d forks, %d wrong\n", forks, atomic_load(&wrong));
  return atomic_load(&wrong) != 0;
}
