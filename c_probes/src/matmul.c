/* SPDX-License-Identifier: Apache-2.0 */
#include "matmul.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "layout.h"
#include "operands.h"

bool matmul_fail(struct matmul *m, const char *verdict, const char *format, ...) {
  va_list arguments;
  if (m->verdict) return false;
  m->verdict = verdict;
  va_start(arguments, format);
  vsnprintf(m->reason, sizeof m->reason, format, arguments);
  va_end(arguments);
  return false;
}

void matmul_take_log(struct matmul *m) {
  char line[300];
  const size_t have = strlen(m->log);
  if (have + 2 < sizeof m->log) capture_take(&m->session->capture, m->log + have, sizeof m->log - have);
  if (!m->verdict && !m->disagreement[0] && capture_error_line(m->log, line, sizeof line))
    snprintf(m->disagreement, sizeof m->disagreement, "every code was 0, yet the library logged: %s", line);
}

bool matmul_refused(struct matmul *m, const char *function, int code) {
  /* Substrings of the messages that mean "no device", librknnrt 1.5.2 to 2.3.2. */
  static const char *const absent[] = {"failed to open rknn", "failed to open rknpu", "need to insmod",
                                       "Mismatch driver version"};
  char line[300];
  const char *verdict = "unsupported";
  m->disagreement[0] = '\0';
  const size_t have = strlen(m->log);
  capture_take(&m->session->capture, m->log + have, sizeof m->log - have);
  if (code == RKNN_ERR_TIMEOUT || code == RKNN_ERR_DEVICE_UNAVAILABLE || code == RKNN_ERR_MALLOC_FAIL)
    verdict = "could-not-run";
  for (size_t i = 0; i < sizeof absent / sizeof absent[0]; i++)
    if (strstr(m->log, absent[i])) verdict = "could-not-run";
  const bool logged = capture_error_line(m->log, line, sizeof line);
  return matmul_fail(m, verdict, "%s returned %d (%s)%s%s", function, code, rknn_code_name(code),
                     logged ? "; the library logged: " : "", logged ? line : "");
}

bool matmul_create(struct matmul *m, struct session *session, const struct problem *problem) {
  const struct runtime *rt = &session->runtime;
  memset(m, 0, sizeof *m);
  m->session = session;
  m->problem = *problem;
  m->mask_in_force = problem->core_mask;
  m->create_us = m->bind_b_us = NAN;
  m->b_scale = NAN;
  rknn_matmul_info *info = &m->about.info;
  info->M = problem->shape.M;
  info->K = problem->shape.K;
  info->N = problem->shape.N;
  info->type = (rknn_matmul_type)problem->type;
  info->B_layout = (int16_t)problem->B_layout;
  info->AC_layout = (int16_t)problem->AC_layout;
  info->iommu_domain_id = problem->iommu_domain;
  if (!runtime_quant_value(rt, problem->quant, &info->B_quant_type))
    return matmul_fail(m, "unsupported", "this runtime has no per-channel quantisation (it came with 2.0)");

  session_step(session, "create type=%d M=%d K=%d N=%d B=%s AC=%s quant=%s", problem->type, problem->shape.M,
               problem->shape.K, problem->shape.N, layout_name(problem->B_layout), layout_name(problem->AC_layout),
               quant_name(problem->quant));
  const double start = now_us();
  const int code = rt->matmul_create(&m->ctx, info, &m->io.attr);
  const double end = now_us();
  m->create_tried = true;
  m->create_code = code;
  if (code != 0) {
    m->ctx = 0; /* whatever was written there is not to be used */
    return matmul_refused(m, "rknn_matmul_create", code);
  }
  m->create_us = end - start;
  matmul_take_log(m);
  if (m->ctx == 0) return matmul_fail(m, "failed", "rknn_matmul_create returned 0 but left the context 0");

  char why[300];
  const rknn_matmul_io_attr *io = &m->io.attr;
  const struct shape s = problem->shape;
  if (!layout_check(&io->A, OPERAND_A, problem->AC_layout, s.M, s.K, why, sizeof why) ||
      !layout_check(&io->B, OPERAND_B, problem->B_layout, s.K, s.N, why, sizeof why) ||
      !layout_check(&io->C, OPERAND_C, problem->AC_layout, s.M, s.N, why, sizeof why))
    return matmul_fail(m, "failed", "rknn_matmul_create returned 0, but %s", why);
  return true;
}

static void set_mask(struct matmul *m) {
  const struct runtime *rt = &m->session->runtime;
  const int mask = m->problem.core_mask;
  m->mask_in_force = 0;
  if (mask == 0 || !rt->matmul_set_core_mask) return;
  m->mask_tried = true;
  m->mask_code = rt->matmul_set_core_mask(m->ctx, (rknn_core_mask)mask);
  if (m->mask_code == 0) m->mask_in_force = mask;
}

/* Scale 1.0 for every column, so that per-channel and per-layer results are the same numbers. */
static bool set_quant(struct matmul *m) {
  const struct runtime *rt = &m->session->runtime;
  const int N = m->problem.shape.N;
  if (m->problem.quant != QUANT_PER_CHANNEL) return true;
  if (!rt->matmul_set_quant_params)
    return matmul_fail(m, "unsupported", "this runtime does not export rknn_matmul_set_quant_params");
  rknn_quant_params params = {.scale_len = N, .zp_len = N};
  memcpy(params.name, m->io.attr.B.name, sizeof params.name);
  params.scale = malloc((size_t)N * sizeof *params.scale);
  params.zp = calloc((size_t)N, sizeof *params.zp);
  int code = -1;
  const bool memory = params.scale && params.zp;
  if (memory) {
    for (int n = 0; n < N; n++) params.scale[n] = 1.0f;
    code = rt->matmul_set_quant_params(m->ctx, &params);
    float scale = NAN;
    if (code == 0 && rt->matmul_get_quant_params) {
      matmul_take_log(m);
      char refused[2]; /* asked for the sake of the report: a refusal, and its error line, are no news of the run */
      if (rt->matmul_get_quant_params(m->ctx, &params, &scale) == 0)
        m->b_scale = scale;
      else
        capture_take(&m->session->capture, refused, sizeof refused);
    }
  }
  free(params.scale);
  free(params.zp);
  if (!memory) return matmul_fail(m, "could-not-run", "out of memory for %d scales", N);
  return code == 0 || matmul_refused(m, "rknn_matmul_set_quant_params", code);
}

bool matmul_prepare(struct matmul *m) {
  session_step(m->session, "set core mask %d and quantisation of type %d", m->problem.core_mask, m->problem.type);
  set_mask(m);
  /* A refused mask is reported as such; its error line is no news on top of the code. */
  char refused[2];
  if (m->problem.core_mask && !m->mask_in_force) capture_take(&m->session->capture, refused, sizeof refused);
  if (!set_quant(m) || !operands_make(m) || !operands_bind(m)) return false;
  const struct shape s = m->problem.shape;
  if (!oracle_init(&m->oracle, m->A, m->B, s.M, s.K, s.N, m->problem.oracle_seed))
    return matmul_fail(m, "could-not-run", "out of memory for the check of a %dx%dx%d product", s.M, s.K, s.N);
  matmul_take_log(m);
  return true;
}

int matmul_run(const struct matmul *m) { return m->session->runtime.matmul_run(m->ctx); }

void matmul_run_failed(struct matmul *m, int code, const char *when) {
  char line[300];
  matmul_fail(m, "could-not-run", "rknn_matmul_run returned %d (%s) in the %s", code, rknn_code_name(code), when);
  matmul_take_log(m);
  if (capture_error_line(m->log, line, sizeof line)) {
    const size_t have = strlen(m->reason);
    snprintf(m->reason + have, sizeof m->reason - have, "; the library logged: %s", line);
  }
}

void matmul_close(struct matmul *m) {
  const struct runtime *rt = &m->session->runtime;
  if (m->ctx) session_step(m->session, "destroy type=%d", m->problem.type);
  for (int i = 0; i < 3; i++) {
    if (!m->mem[i]) continue;
    const int code = rt->destroy_mem(m->ctx, m->mem[i]);
    m->mem[i] = NULL;
    if (code != 0) matmul_fail(m, "failed", "rknn_destroy_mem returned %d (%s)", code, rknn_code_name(code));
  }
  if (m->ctx) {
    const int code = rt->matmul_destroy(m->ctx);
    m->ctx = 0;
    if (code != 0) matmul_fail(m, "failed", "rknn_matmul_destroy returned %d (%s)", code, rknn_code_name(code));
  }
  matmul_take_log(m);
  oracle_free(&m->oracle);
  free(m->A);
  free(m->B);
  m->A = m->B = NULL;
}
