/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "memory_parts.h"

enum { CYCLES = 64, RUN_BLOCKS = 32, RUNS_PER_BLOCK = 16 };

int open_descriptors(void) {
  DIR *folder = opendir("/proc/self/fd");
  int count = 0;
  if (!folder) return -1;
  for (struct dirent *entry; (entry = readdir(folder)) != NULL;) count += entry->d_name[0] != '.';
  closedir(folder);
  return count - 1; /* the folder itself was open */
}

double resident_bytes(void) {
  long whole = 0, resident = -1;
  FILE *file = fopen("/proc/self/statm", "re");
  if (!file) return -1;
  if (fscanf(file, "%ld %ld", &whole, &resident) != 2) resident = -1;
  fclose(file);
  return resident < 0 ? -1 : (double)resident * (double)sysconf(_SC_PAGESIZE);
}

static int by_value(const void *left, const void *right) {
  const double a = *(const double *)left, b = *(const double *)right;
  return (a > b) - (a < b);
}

double slope_of(const double *y, int count) {
  const size_t pairs = (size_t)count * (size_t)(count - 1) / 2;
  double *slopes = malloc((pairs ? pairs : 1) * sizeof *slopes), median = NAN;
  size_t used = 0;
  for (int i = 0; slopes && i < count; i++)
    for (int j = i + 1; j < count; j++) slopes[used++] = (y[j] - y[i]) / (j - i);
  if (used) {
    qsort(slopes, used, sizeof *slopes, by_value);
    median = used % 2 ? slopes[used / 2] : 0.5 * (slopes[used / 2 - 1] + slopes[used / 2]);
  }
  free(slopes);
  return median;
}

void memory_cells(struct row *row, const char *what, const char *of, const char *value) {
  snprintf(row->cells[0], CELL_WIDTH, "%s", what);
  snprintf(row->cells[1], CELL_WIDTH, "%s", of);
  snprintf(row->cells[2], CELL_WIDTH, "%s", row_passed(row) ? value : "-");
  snprintf(row->cells[3], CELL_WIDTH, "%s", row->unit);
  snprintf(row->cells[4], CELL_WIDTH, "%s", row->verdict);
}

/* One row from a series of readings, one per cycle. The first quarter is the warm-up of allocators. */
static void slope_row(struct session *session, const struct matmul *m, const char *of, const char *part,
                      const char *unit, const double *readings, int count, double cycles_per_reading,
                      struct tally *tally) {
  struct row row;
  char value[CELL_WIDTH];
  const int skip = count / 4;
  const bool known = count > skip + 2 && readings[0] >= 0;
  part_row_begin(&row, "npu_memory", unit);
  json_put_string(&row.parameters, "part", part);
  json_put_string(&row.parameters, "over", of);
  json_put_number(&row.evidence, "cycles", count * cycles_per_reading);
  if (known) {
    row.rate[row.rate_count++] = slope_of(readings + skip, count - skip) / cycles_per_reading;
    json_put_number(&row.evidence, "at_start", readings[skip]);
    json_put_number(&row.evidence, "at_end", readings[count - 1]);
  }
  part_row_judge(&row, m);
  if (row_passed(&row) && !known) {
    row.verdict = "could-not-run";
    snprintf(row.reason, sizeof row.reason, "/proc/self does not tell");
  }
  snprintf(value, sizeof value, "%.4g", known ? row.rate[0] : NAN);
  memory_cells(&row, part, of, value);
  part_row_end(session, &row, tally);
}

static void over_contexts(struct session *session, struct tally *tally) {
  static struct matmul m;
  double descriptors[CYCLES], resident[CYCLES];
  const struct problem problem = plain_problem(session, 4, 256, 256);
  int count = 0;
  for (; count < CYCLES; count++) {
    if (!matmul_ready(&m, session, &problem)) break;
    matmul_close(&m);
    if (m.verdict) break;
    descriptors[count] = open_descriptors();
    resident[count] = resident_bytes();
  }
  if (m.verdict) matmul_close(&m);
  slope_row(session, &m, "context with three buffers, created and destroyed", "descriptors", "fds", descriptors,
            count, 1, tally);
  slope_row(session, &m, "context with three buffers, created and destroyed", "resident", "bytes", resident, count,
            1, tally);
}

static void over_buffers(struct session *session, struct tally *tally) {
  static struct matmul m;
  double descriptors[CYCLES];
  int count = 0;
  const struct problem problem = plain_problem(session, 4, 256, 256);
  if (matmul_ready(&m, session, &problem)) {
    session_step(session, "%d buffers made and destroyed", CYCLES);
    for (; count < CYCLES && !m.verdict; count++) {
      rknn_tensor_mem *mem = session->runtime.create_mem(m.ctx, 65536);
      if (!mem) {
        matmul_fail(&m, "failed", "rknn_create_mem of 65536 bytes returned NULL after %d made and destroyed",
                    count);
        break;
      }
      memset(mem->virt_addr, 1, 65536);
      const int code = session->runtime.destroy_mem(m.ctx, mem);
      if (code != 0) matmul_refused(&m, "rknn_destroy_mem", code);
      descriptors[count] = open_descriptors();
    }
    if (!m.verdict) matmul_prove(&m, "run after the buffers");
  }
  matmul_close(&m);
  slope_row(session, &m, "buffer of 64 KiB, created and destroyed", "descriptors", "fds", descriptors, count, 1,
            tally);
}

static void over_runs(struct session *session, struct tally *tally) {
  static struct matmul m;
  double resident[RUN_BLOCKS];
  int count = 0, code = 0;
  const struct problem problem = plain_problem(session, 4, 256, 256);
  if (matmul_ready(&m, session, &problem)) {
    session_step(session, "%d runs", RUN_BLOCKS * RUNS_PER_BLOCK);
    for (; count < RUN_BLOCKS && code == 0; count++) {
      for (int i = 0; i < RUNS_PER_BLOCK && code == 0; i++) code = matmul_run(&m);
      resident[count] = resident_bytes();
    }
    if (code != 0)
      matmul_run_failed(&m, code, "runs in a row");
    else
      matmul_prove(&m, "last run");
  }
  matmul_close(&m);
  slope_row(session, &m, "run", "resident", "bytes", resident, count, RUNS_PER_BLOCK, tally);
}

void memory_leaks(struct session *session, struct tally *tally) {
  over_contexts(session, tally);
  over_buffers(session, tally);
  over_runs(session, tally);
}
