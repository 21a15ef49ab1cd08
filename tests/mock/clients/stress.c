/* SPDX-License-Identifier: Apache-2.0
 *
 * Many threads on one library: contexts made, run and destroyed at once, one context shared by several threads, and
 * one destroyed while others still run it. Every C is compared. Usage: stress ROUNDS. Exit 0 when all is right.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rknn_matmul_api.h"

enum { THREADS = 6, K = 96, N = 64 };

typedef struct {
  rknn_matmul_ctx ctx;
  rknn_matmul_io_attr io;
  rknn_tensor_mem *mem[3];
  int M;
} matmul;

static int make(matmul *m, int M, int native, int value) {
  rknn_matmul_info info;
  memset(&info, 0, sizeof info);
  info.M = m->M = M;
  info.K = K;
  info.N = N;
  info.type = RKNN_INT8_MM_INT8_TO_INT32;
  info.B_layout = info.AC_layout = (int16_t)native;
  int wrong = rknn_matmul_create(&m->ctx, &info, &m->io) != 0;
  if (wrong) return 1;
  rknn_matmul_tensor_attr *attr[3] = {&m->io.A, &m->io.B, &m->io.C};
  for (int i = 0; i < 3; i++) {
    m->mem[i] = rknn_create_mem(m->ctx, attr[i]->size);
    if (!m->mem[i]) return 1;
    memset(m->mem[i]->virt_addr, i == 0 ? value : 2, attr[i]->size);
    wrong |= rknn_matmul_set_io_mem(m->ctx, m->mem[i], attr[i]) != 0;
  }
  return wrong;
}

static int right(const matmul *m, int value) {
  const int32_t *c = m->mem[2]->virt_addr;
  for (int i = 0; i < m->M * N; i++)
    if (c[i] != K * value * 2) return 0;
  return 1;
}

static int unmake(matmul *m) {
  int wrong = 0;
  for (int i = 0; i < 3; i++) wrong |= rknn_destroy_mem(m->ctx, m->mem[i]) != 0;
  return wrong | (rknn_matmul_destroy(m->ctx) != 0);
}

typedef struct {
  int seed, rounds, wrong, runs, gone;
  rknn_matmul_ctx shared, doomed;
} task;

static void *work(void *argument) {
  task *t = argument;
  for (int round = 0; round < t->rounds; round++) {
    matmul m;
    int value = 1 + (t->seed + round) % 50;
    if (make(&m, 1 + (t->seed * 7 + round) % 20, round & 1, value)) {
      t->wrong++;
      return NULL;
    }
    t->wrong += rknn_matmul_set_core_mask(m.ctx, (rknn_core_mask)(1 << round % 3)) != 0;
    t->wrong += rknn_matmul_run(m.ctx) != 0 || !right(&m, value);
    t->wrong += rknn_matmul_run(t->shared) != 0;
    int code = rknn_matmul_run(t->doomed);
    if (code == 0)
      t->runs++;
    else if (code == RKNN_ERR_CTX_INVALID)
      t->gone++;
    else
      t->wrong++;
    if (t->seed == 0 && round == t->rounds / 2) t->wrong += rknn_matmul_destroy(t->doomed) != 0;
    t->wrong += unmake(&m);
  }
  return NULL;
}

int main(int argc, char **argv) {
  int rounds = argc == 2 ? atoi(argv[1]) : 20, wrong = 0, gone = 0;
  pthread_t thread[THREADS];
  task tasks[THREADS];
  matmul shared, doomed;
  if (make(&shared, 33, 1, 3) || make(&doomed, 5, 0, 4)) return 2;
  for (int i = 0; i < THREADS; i++) {
    tasks[i] = (task){.seed = i, .rounds = rounds, .shared = shared.ctx, .doomed = doomed.ctx};
    if (pthread_create(&thread[i], NULL, work, &tasks[i])) return 2;
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_join(thread[i], NULL);
    wrong += tasks[i].wrong;
    gone += tasks[i].gone;
  }
  wrong += !right(&shared, 3) || unmake(&shared);
  for (int i = 0; i < 3; i++) wrong += rknn_destroy_mem(0, doomed.mem[i]) != 0;
  printf("%d threads, %d rounds, %d wrong, %d calls met the destroyed context\n", THREADS, rounds, wrong, gone);
  return wrong || !gone;
}
