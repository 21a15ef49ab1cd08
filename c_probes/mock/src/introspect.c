/* SPDX-License-Identifier: Apache-2.0
 *
 * What makes a mock recognisable and lets tools read its tables: functions named rknn_mock_*. They do not read the
 * settings, so they answer whatever the environment holds.
 */
#include "rknn_mock.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compute.h"
#include "context.h"
#include "faults.h"
#include "kernels/gemm_s8.h"
#include "memory.h"
#include "persona.h"
#include "settings.h"
#include "timing.h"

typedef struct {
  char *text;
  size_t size, used;
} sink;

static void add(sink *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(sink *out, const char *format, ...) {
  size_t room = out->text && out->used < out->size ? out->size - out->used : 0;
  va_list arguments;
  va_start(arguments, format);
  int more = vsnprintf(room ? out->text + out->used : NULL, room, format, arguments);
  va_end(arguments);
  out->used += more > 0 ? (size_t)more : 0;
}

static void add_types(sink *out, unsigned types) {
  bool first = true;
  for (size_t i = 0; i < mock_type_count; i++)
    if (types & MOCK_TYPE(mock_types[i].code)) {
      add(out, "%s%d", first ? "" : ",", mock_types[i].code);
      first = false;
    }
  add(out, "%s", first ? "none" : "");
}

static void list_faults(sink *out) {
  for (int i = 0; i < FAULT_COUNT; i++) {
    const mock_fault_row *row = &mock_fault_rows[i];
    bool call = row->id == FAULT_FAIL || row->id == FAULT_HANG || row->id == FAULT_CRASH || row->id == FAULT_ABORT;
    add(out, "%s\t%s", row->name, call ? "call=rknn_matmul_run" : "");
    for (int p = 0; p < MOCK_FAULT_PARAMS && row->params[p].name; p++)
      add(out, "%s%s=%g", call || p ? ":" : "", row->params[p].name, row->params[p].value);
    add(out, "\t%s\n", row->imitates);
  }
}

static void list_personas(sink *out) {
  for (size_t i = 0; i < mock_soc_count; i++) {
    const mock_soc *soc = &mock_socs[i];
    add(out, "%s\t%s\t%d\t", soc->name, soc->title, soc->cores);
    mock_settings settings;
    mock_settings_default(&settings);
    mock_settings_persona(&settings, soc);
    add_types(out, settings.types);
    add(out, "\t%s\t%s\n", soc->timing, soc->doubt);
  }
}

static void add_parameter(void *state, const char *key, const char *value) { add(state, "\t%s=%s", key, value); }

static void list_timing(sink *out) {
  for (size_t i = 0; i < mock_timing_set_count; i++) {
    const mock_timing_set *set = &mock_timing_sets[i];
    add(out, "%s\t%s\t%s", set->name, set->what, set->timing.source);
    mock_timing_each(&set->timing, add_parameter, out);
    add(out, "\n");
  }
}

const char *rknn_mock_version(void) { return mock_version_text; }

size_t rknn_mock_list(const char *what, char *text, size_t size) {
  sink out = {text, size, 0};
  if (what && strcmp(what, "faults") == 0) list_faults(&out);
  if (what && strcmp(what, "personas") == 0) list_personas(&out);
  if (what && strcmp(what, "timing") == 0) list_timing(&out);
  return out.used;
}

int rknn_mock_counter(const char *name, uint64_t *value) {
  if (strcmp(name, "contexts") == 0)
    *value = mock_context_count();
  else if (strcmp(name, "memories") == 0)
    *value = mock_memory_count();
  else if (strcmp(name, "memo_hits") == 0)
    *value = mock_memo_hits();
  else
    return -1;
  return 0;
}

int rknn_mock_check(const char *text, char *error, size_t size) {
  mock_settings settings;
  mock_settings_default(&settings);
  int code = mock_settings_parse(&settings, text, error, size);
  free(settings.points);
  return code;
}

const char *rknn_mock_kernel(void) { return mock_gemm_s8_path(); }
