/* SPDX-License-Identifier: Apache-2.0
 *
 * What was switched on, read once from RKNN_MOCK_CONFIG and the RKNN_MOCK_* environment at the first call. Anything
 * unknown stops the process with one line on stderr and exit code 2: never a silent fallback.
 */
#ifndef MOCK_SETTINGS_H
#define MOCK_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "faults.h"
#include "persona.h"
#include "timing.h"

#define MOCK_MAX_CONTEXTS 4096 /* live at once: size of the table of handles */

typedef enum { MEMO_OFF = 0, MEMO_COMPARE = 1, MEMO_SYNC = 2 } mock_memo_mode;

typedef struct {
  const mock_soc *soc;
  bool persona_fixed;      /* by the environment */
  unsigned types;          /* accepted codes: chip and runtime together, or limits.types */
  int k_max[MOCK_CLASSES]; /* 0 = none */
  double n_max;            /* 0 = none */
  double contexts;         /* live contexts before creation fails */
  double domain_bytes;     /* ceiling of each of the 16 IOMMU domains */
  double strict_reserved;  /* non-zero reserved bytes of the info are refused */
  double refusal_code;     /* returned for misalignment and K or N over the limit */
  double driver_version;   /* 908 = 0.9.8 */
  bool timing_on;
  mock_timing timing;
  mock_gemm_point *points;
  size_t point_count;
  mock_fault_state faults[FAULT_COUNT];
  bool skip_arithmetic;
  bool int16_wraps;
  mock_memo_mode memo;
  int threads;
} mock_settings;

/* The settings; reads them at the first call. */
const mock_settings *mock_settings_get(void);

/* Sets one value by the name it has in a configuration file. 0, or -1 with a sentence in error. */
int mock_settings_set(mock_settings *settings, const char *key, const char *value, char *error, size_t size);
/* Writes a sentence into error; always -1. */
int mock_complain(char *error, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* As read from a table of name = value lines in the form of a configuration file. 0, or -1 with a sentence in error.
 */
int mock_settings_parse(mock_settings *settings, const char *text, char *error, size_t size);
void mock_settings_default(mock_settings *settings);
/* Takes what the persona implies; to be called when the persona is known, before other values are set. */
void mock_settings_persona(mock_settings *settings, const mock_soc *soc);

#endif
