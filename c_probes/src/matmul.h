/* SPDX-License-Identifier: Apache-2.0
 *
 * One matmul context with its operands, from creation to a checked result. */
#ifndef RKNPU_KIT_MATMUL_H
#define RKNPU_KIT_MATMUL_H

#include "fill.h"
#include "oracle.h"
#include "session.h"

struct problem {
  int type; /* matmul type code */
  struct shape shape;
  int B_layout, AC_layout;
  enum quant quant;
  int core_mask;        /* 0: none is set */
  int iommu_domain;     /* 0: the one every context gets */
  uint64_t seed;        /* of A and B */
  uint64_t oracle_seed; /* the same for all contexts that are compared with each other */
};

struct matmul {
  struct session *session;
  struct problem problem;
  rknn_matmul_ctx ctx;
  /* The library may own more of these than our declarations say: zeroed room behind both. */
  union {
    rknn_matmul_info info;
    uint8_t room[256];
  } about;
  union {
    rknn_matmul_io_attr attr;
    uint8_t room[4096];
  } io;
  rknn_tensor_mem *mem[3]; /* by enum operand */
  int8_t *A, *B;           /* row-major, the truth that was packed */
  struct fill_plan plan;
  struct oracle oracle;

  bool create_tried; /* rknn_matmul_create came back, with create_code */
  int create_code;
  double create_us, bind_b_us; /* NaN: did not get there */
  int mask_in_force;           /* the one asked for; 0 once the runtime refused it or proved to have no such call */
  bool mask_tried;             /* set_core_mask exists and was called */
  int mask_code;               /* what it returned */
  float b_scale;               /* get_quant_params' answer for per-channel B; NaN: not asked or refused */
  char b_packing[200];         /* how native B was packed, and what the converter had to say */

  /* How it ended. verdict is NULL as long as all is well. */
  const char *verdict;
  char reason[1000];
  struct oracle_report wrong; /* when the output was wrong */
  char log[4000];             /* what the library logged, its beginning */
  char disagreement[400];     /* a success code beside an error line, or the like; empty: none */
};

/* Creates the context and checks that io_attr describes the operands. False: verdict and reason are set. */
bool matmul_create(struct matmul *m, struct session *session, const struct problem *problem);
/* Core mask, quantisation parameters, buffers, data, packing, binding, oracle. */
bool matmul_prepare(struct matmul *m);
/* Fills C with the sentinel and makes that visible to the device. */
bool matmul_reset_C(struct matmul *m);
/* Only the library's call; its return code. Nothing else is inside a timed window. */
int matmul_run(const struct matmul *m);
/* Sets verdict (could-not-run) and reason for a run that returned this code. `when` is "cold run", "timed run". */
void matmul_run_failed(struct matmul *m, int code, const char *when);
/* Compares all of C. False: verdict and reason are set. */
bool matmul_check(struct matmul *m, const char *when, const struct oracle *const *others, int other_count);
/* Takes the captured log into m->log and notes an error line that came with a success code. */
void matmul_take_log(struct matmul *m);
/* Destroys what was created. A refused destroy is a failure unless there was one before. */
void matmul_close(struct matmul *m);

/* Sets verdict (the first one stays) and reason; returns false. */
__attribute__((format(printf, 3, 4))) bool matmul_fail(struct matmul *m, const char *verdict, const char *format, ...);
/* "rknn_x returned -5 (RKNN_ERR_PARAM_INVALID)", judged: no device or no memory is could-not-run, else unsupported. */
bool matmul_refused(struct matmul *m, const char *function, int code);

/* Parameters and evidence that every probe reports about a context. */
void matmul_put_parameters(const struct matmul *m, struct json *json);
void matmul_put_evidence(const struct matmul *m, struct json *json);

#endif
