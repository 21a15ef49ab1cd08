/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading the settings: first the file named by RKNN_MOCK_CONFIG, then the environment, which wins.
 */
#include "settings.h"

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/gemm_s8.h"

#define ERROR_SIZE 2048
#define CONFIG_MAX_BYTES (1 << 20)

void mock_settings_persona(mock_settings *settings, const mock_soc *soc) {
  const mock_runtime *runtime = &mock_this_runtime;
  settings->soc = soc;
  settings->types = soc->types & runtime->types;
  if (runtime->info_bytes == (int)sizeof(rknn_matmul_info_v1)) settings->types &= soc->types_v1;
  for (int class = 0; class < MOCK_CLASSES; class ++)
    settings->k_max[class] = runtime->k_max[class] ? runtime->k_max[class] : soc->k_max;
  settings->timing = mock_timing_find(soc->timing)->timing;
}

void mock_settings_default(mock_settings *settings) {
  memset(settings, 0, sizeof *settings);
  settings->contexts = 150;              /* oRKLLM feasibility log: about 150 live contexts on RK3588 */
  settings->domain_bytes = 4294967296.0; /* rk-llama.cpp documentation: 4 GB per domain */
  settings->strict_reserved = 1;
  settings->refusal_code = RKNN_ERR_PARAM_INVALID; /* measured on 1.4.0 and 1.5.2; unknown for 2.x */
  settings->driver_version = 908;
  settings->memo = MEMO_COMPARE;
  long cpus = sysconf(_SC_NPROCESSORS_ONLN);
  settings->threads = cpus < 1 ? 1 : cpus > 16 ? 16 : (int)cpus;
  mock_settings_persona(settings, mock_soc_find("rk3588"));
}

static char *trimmed(char *text) {
  while (isspace((unsigned char)*text)) text++;
  for (size_t n = strlen(text); n > 0 && isspace((unsigned char)text[n - 1]); n--) text[n - 1] = '\0';
  return text;
}

int mock_settings_parse(mock_settings *settings, const char *text, char *error, size_t size) {
  char *copy = strdup(text), *rest = copy;
  int code = copy ? 0 : mock_complain(error, size, "out of memory");
  for (int number = 1; rest && code == 0; number++) {
    char *line = strsep(&rest, "\n");
    line[strcspn(line, "#")] = '\0';
    line = trimmed(line);
    char *equals = strchr(line, '=');
    if (*line == '\0') continue;
    if (!equals) {
      code = mock_complain(error, size, "line %d: \"%s\" is not name = value", number, line);
      break;
    }
    *equals = '\0';
    char reason[ERROR_SIZE];
    code = mock_settings_set(settings, trimmed(line), trimmed(equals + 1), reason, sizeof reason);
    if (code != 0) mock_complain(error, size, "line %d: %.1900s", number, reason);
  }
  free(copy);
  return code;
}

static int read_config(mock_settings *settings, const char *path, char *error, size_t size) {
  FILE *file = fopen(path, "re");
  if (!file) return mock_complain(error, size, "RKNN_MOCK_CONFIG=%s: %s", path, strerror(errno));
  char *text = calloc(1, CONFIG_MAX_BYTES + 1), reason[ERROR_SIZE];
  size_t got = text ? fread(text, 1, CONFIG_MAX_BYTES, file) : 0;
  bool whole = text && !ferror(file) && (got < CONFIG_MAX_BYTES || fgetc(file) == EOF);
  fclose(file);
  int code =
      whole ? mock_settings_parse(settings, text, reason, sizeof reason)
            : mock_complain(reason, sizeof reason, "cannot be read, or is larger than %d bytes", CONFIG_MAX_BYTES);
  free(text);
  return code == 0 ? 0 : mock_complain(error, size, "RKNN_MOCK_CONFIG=%s: %.1900s", path, reason);
}

/* A variable whose name is misspelt would leave its switch at the default without a word. */
static int check_names(char *error, size_t size) {
  static const char *const known[] = {"PERSONA", "CONFIG", "TIMING",  "FAULTS", "ARITHMETIC",
                                      "MEMO",    "INT16",  "THREADS", "KERNEL"};
  static const char prefix[] = "RKNN_MOCK_";
  for (char **entry = environ; entry && *entry; entry++) {
    if (strncmp(*entry, prefix, sizeof prefix - 1) != 0) continue;
    const char *name = *entry + sizeof prefix - 1;
    size_t length = strcspn(name, "="), i = 0;
    while (i < sizeof known / sizeof *known && (strlen(known[i]) != length || memcmp(known[i], name, length) != 0)) i++;
    if (i < sizeof known / sizeof *known) continue;
    int used = snprintf(error, size, "unknown variable %s%.*s; valid:", prefix, length < 60 ? (int)length : 60, name);
    for (i = 0; i < sizeof known / sizeof *known && (size_t)used < size; i++)
      used += snprintf(error + used, size - (size_t)used, " %s%s", prefix, known[i]);
    return -1;
  }
  return 0;
}

/* The persona first, because it resets what it implies; then the file; then the other variables. */
static int read_all(mock_settings *settings, char *error, size_t size) {
  static const char *const variables[][2] = {{"RKNN_MOCK_TIMING", "timing"},         {"RKNN_MOCK_FAULTS", "faults"},
                                             {"RKNN_MOCK_ARITHMETIC", "arithmetic"}, {"RKNN_MOCK_MEMO", "memo"},
                                             {"RKNN_MOCK_THREADS", "threads"},       {"RKNN_MOCK_INT16", "int16"}};
  const char *config = getenv("RKNN_MOCK_CONFIG"), *persona = getenv("RKNN_MOCK_PERSONA");
  mock_settings_default(settings);
  if (check_names(error, size) != 0) return -1;
  if (persona && *persona) {
    char reason[ERROR_SIZE];
    if (mock_settings_set(settings, "persona", persona, reason, sizeof reason) != 0)
      return mock_complain(error, size, "RKNN_MOCK_PERSONA: %.1900s", reason);
    settings->persona_fixed = true;
  }
  if (config && *config && read_config(settings, config, error, size) != 0) return -1;
  for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
    const char *value = getenv(variables[i][0]);
    char reason[ERROR_SIZE];
    if (!value || !*value) continue;
    if (mock_settings_set(settings, variables[i][1], value, reason, sizeof reason) != 0)
      return mock_complain(error, size, "%s: %.1900s", variables[i][0], reason);
  }
  /* A speed fault without timing would be no fault at all. */
  static const mock_fault_id speeds[] = {FAULT_SLOW_K, FAULT_SLOW_NORM, FAULT_THERMAL,
                                         FAULT_JITTER, FAULT_CLOCK_LOW, FAULT_CONTEXTS_SERIALISED};
  for (size_t i = 0; i < sizeof speeds / sizeof *speeds; i++) settings->timing_on |= settings->faults[speeds[i]].on;
  const char *kernel_error = mock_gemm_s8_error();
  return kernel_error ? mock_complain(error, size, "%s", kernel_error) : 0;
}

static mock_settings the_settings;
static pthread_once_t settings_once = PTHREAD_ONCE_INIT;

static void read_once(void) {
  char error[ERROR_SIZE];
  if (read_all(&the_settings, error, sizeof error) == 0) return;
  char line[ERROR_SIZE + 64];
  int length = snprintf(line, sizeof line, "rknpu-kit mock librknnrt: %s\n", error);
  /* Another thread may hold a stream's lock for ever (a read of stdin), so nothing here waits for one. */
  if (ftrylockfile(stdout) == 0) fflush_unlocked(stdout);
  ssize_t ignored = write(STDERR_FILENO, line, (size_t)length);
  (void)ignored;
  _exit(2);
}

const mock_settings *mock_settings_get(void) {
  pthread_once(&settings_once, read_once);
  return &the_settings;
}
