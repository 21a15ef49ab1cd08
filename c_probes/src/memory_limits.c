/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ddr_cpus.h"
#include "memory_parts.h"

enum { MOST_CONTEXTS = 1200, STEP_MIB = 64, MOST_STEPS = 4096, DOMAINS = 2, SWITCHES = 40 };

/* A context that works after all that: a refusal must not have spoiled the library. */
static bool works_afterwards(struct session *session, struct matmul *m) {
  const struct problem problem = plain_problem(session, 4, 256, 256);
  const bool good = matmul_ready(m, session, &problem);
  matmul_close(m);
  return good && !m->verdict;
}

void memory_contexts(struct session *session, struct tally *tally) {
  static struct matmul contexts[MOST_CONTEXTS], after;
  struct row row;
  char value[CELL_WIDTH];
  const int most =
      session->options->most && session->options->most < MOST_CONTEXTS ? session->options->most : MOST_CONTEXTS;
  const struct problem problem = plain_problem(session, 1, 32, 32);
  const int before = open_descriptors();
  int count = 0;
  part_row_begin(&row, "npu_memory", "contexts");
  json_put_string(&row.parameters, "part", "contexts");
  while (count < most && matmul_create(&contexts[count], session, &problem) && matmul_prepare(&contexts[count]))
    count++;
  const int descriptors = open_descriptors();
  const bool refused = count < most;
  if (refused) json_put_string(&row.evidence, "refusal", contexts[count].reason);
  for (int i = 0; i < count + refused; i++) matmul_close(&contexts[i]);
  const int left = open_descriptors();
  row.rate[row.rate_count++] = count;
  json_put_boolean(&row.evidence, "at_least", !refused);
  json_put_number(&row.evidence, "descriptors_per_context", count ? (double)(descriptors - before) / count : NAN);
  json_put_integer(&row.evidence, "descriptors_left_over", left - before);
  const bool works = works_afterwards(session, &after);
  json_put_boolean(&row.evidence, "works_afterwards", works);
  part_row_judge(&row, count ? &after : &contexts[0]);
  if (count && !works) { /* the number stands; that handles do not come back is what the row says with it */
    row.verdict = "failed";
    snprintf(row.reason, sizeof row.reason, "after %d contexts were made and destroyed no new one works: %.900s",
             count, after.reason);
  }
  snprintf(value, sizeof value, "%s%d", refused ? "" : ">=", count);
  memory_cells(&row, "contexts", "contexts alive at once", value);
  part_row_end(session, &row, tally);
}

/* Steps of 64 MiB until one is refused, or the early stop: half of the memory that was available. */
static void ceiling_row(struct session *session, int domain, struct tally *tally) {
  static rknn_tensor_mem *blocks[MOST_STEPS];
  static struct matmul m;
  struct row row;
  char value[CELL_WIDTH], of[CELL_WIDTH];
  struct problem problem = plain_problem(session, 4, 256, 256);
  const double available_mib = (double)memory_available("") / 1048576;
  const int asked = session->options->most ? session->options->most : 8192;
  const int most = (int)fmin(MOST_STEPS, fmin(asked, available_mib / 2) / STEP_MIB);
  int count = 0;
  problem.iommu_domain = domain;
  part_row_begin(&row, "npu_memory", "mib");
  json_put_string(&row.parameters, "part", "ceiling");
  json_put_integer(&row.parameters, "iommu_domain", domain);
  if (matmul_ready(&m, session, &problem)) {
    while (count < most) {
      session_step(session, "allocate %d MiB in domain %d, %d MiB so far", STEP_MIB, domain, count * STEP_MIB);
      blocks[count] = session->runtime.create_mem(m.ctx, (uint32_t)STEP_MIB << 20);
      if (!blocks[count]) break;
      count++;
    }
    row.rate[row.rate_count++] = count * STEP_MIB;
    json_put_boolean(&row.evidence, "at_least", count == most);
    json_put_number(&row.evidence, "step_mib", STEP_MIB);
    json_put_number(&row.evidence, "memory_available_mib", available_mib);
    session_step(session, "free %d blocks of domain %d", count, domain);
    for (int i = 0; i < count; i++) session->runtime.destroy_mem(m.ctx, blocks[i]);
    matmul_prove(&m, "run after freeing");
  }
  matmul_close(&m);
  m.disagreement[0] = '\0'; /* the refusal that ended it was logged, as it should be */
  part_row_judge(&row, &m);
  snprintf(of, sizeof of, "allocated in IOMMU domain %d", domain);
  snprintf(value, sizeof value, "%s%d", count == most ? ">=" : "", count * STEP_MIB);
  memory_cells(&row, "ceiling", of, value);
  part_row_end(session, &row, tally);
}

void memory_ceiling(struct session *session, struct tally *tally) {
  for (int domain = 0; domain < DOMAINS; domain++) ceiling_row(session, domain, tally);
}

/* Two contexts in turns; the time of a pair of runs. */
static int take_turns(struct matmul *one, struct matmul *other, double *us) {
  const double start = now_us();
  int code = matmul_run(one);
  if (code == 0) code = matmul_run(other);
  *us = now_us() - start;
  return code;
}

void memory_domains(struct session *session, struct tally *tally) {
  static struct matmul home, neighbour, away;
  struct row row;
  struct problem problem = plain_problem(session, 4, 256, 256);
  double same[SWITCHES], across[SWITCHES];
  char value[CELL_WIDTH];
  int code = 0, done = 0;
  part_row_begin(&row, "npu_memory", "us");
  json_put_string(&row.parameters, "part", "domain_switch");
  json_put_integer(&row.parameters, "iommu_domain", 1);
  memset(&away, 0, sizeof away);
  bool good = matmul_ready(&home, session, &problem);
  problem.seed += 17;
  good = matmul_ready(&neighbour, session, &problem) && good;
  problem.seed += 17;
  problem.iommu_domain = 1;
  good = good && matmul_ready(&away, session, &problem);
  session_step(session, "switch between IOMMU domains 0 and 1");
  for (; good && done < SWITCHES && code == 0; done++) {
    code = take_turns(&home, &neighbour, &same[done]);
    if (code == 0) code = take_turns(&home, &away, &across[done]);
  }
  if (good && code != 0) matmul_run_failed(&away, code, "run in turns with domain 0");
  if (good && code == 0)
    good = matmul_prove(&away, "last run in domain 1") && matmul_prove(&home, "last run in domain 0");
  for (int i = 0; i < done; i++) row.rate[row.rate_count++] = (across[i] - same[i]) / 2;
  json_put_number(&row.evidence, "pair_in_one_domain_us", median_of(same, (size_t)done));
  json_put_number(&row.evidence, "pair_across_domains_us", median_of(across, (size_t)done));
  matmul_close(&away);
  matmul_close(&neighbour);
  matmul_close(&home);
  part_row_judge(&row, away.verdict ? &away : neighbour.verdict ? &neighbour : &home);
  snprintf(value, sizeof value, "%.3g", median_of(row.rate, (size_t)row.rate_count));
  memory_cells(&row, "domains", "switch between domains 0 and 1", value);
  part_row_end(session, &row, tally);
}
