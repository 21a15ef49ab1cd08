/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "values.h"

struct rule {
  const char *name, *value; /* value: its name in --help; NULL: a switch */
  const char *help;
  int programs;
  const char *(*set)(struct options *options, const char *value); /* NULL, or what is wrong with the value */
};

static const char *set_library(struct options *o, const char *value) {
  o->library = value;
  o->library_named = true;
  return value[0] ? NULL : "must name a file";
}

static const char *set_json(struct options *o, const char *value) {
  (void)value;
  o->json = true;
  return NULL;
}

static const char *set_quick(struct options *o, const char *value) {
  (void)value;
  o->quick = true;
  return NULL;
}

static const char *set_seconds(struct options *o, const char *value) {
  return read_number(value, 0.001, 3600, &o->seconds) ? NULL : "must be a number of seconds from 0.001 to 3600";
}

static const char *set_deadline(struct options *o, const char *value) {
  return read_number(value, 0, 86400, &o->deadline) ? NULL : "must be a number of seconds from 0 (none) to 86400";
}

static const char *set_rated(struct options *o, const char *value) {
  return read_number(value, 1e-6, 1e6, &o->rated_tops) ? NULL : "must be a number of TOPS above 0";
}

static const char *set_seed(struct options *o, const char *value) {
  long long seed;
  if (!read_integer(value, 0, 1LL << 53, &seed)) return "must be an integer from 0 to 2^53";
  o->seed = (uint64_t)seed;
  return NULL;
}

static const char *set_shape(struct options *o, const char *value) {
  struct shape s;
  int used = 0;
  if (o->shape_count == MAX_SHAPES) return "was given more than 32 times";
  if (strspn(value, "0123456789x") != strlen(value) || strlen(value) > 30 ||
      sscanf(value, "%8dx%8dx%8d%n", &s.M, &s.K, &s.N, &used) != 3 || value[used] || s.M < 1 || s.K < 1 || s.N < 1)
    return "must be MxKxN, three positive integers such as 512x4096x4096";
  const uint64_t most = UINT32_MAX, M = (uint64_t)s.M, K = (uint64_t)s.K, N = (uint64_t)s.N;
  if (M * K * 2 > most || K * N * 2 > most || M * N * 4 > most || K > 131072)
    return "asks for an operand of 4 GiB or more, or for K above 131072 where int32 sums can overflow";
  o->shapes[o->shape_count++] = s;
  return NULL;
}

/* Calls take for every word of a comma list. */
static const char *each_word(struct options *o, const char *value,
                             const char *(*take)(struct options *, const char *)) {
  char word[64];
  for (;;) {
    const size_t length = strcspn(value, ",");
    if (length == 0 || length >= sizeof word) return "must be a list such as 1,2,4 without empty places";
    memcpy(word, value, length);
    word[length] = '\0';
    const char *wrong = take(o, word);
    if (wrong || !value[length]) return wrong;
    value += length + 1;
  }
}

static const char *take_type(struct options *o, const char *word) {
  const int code = matmul_type_parse(word);
  if (code < 0) return "takes type codes 0 to 20 and names such as int8_int8_int32, separated by commas";
  for (int i = 0; i < o->type_count; i++)
    if (o->types[i] == code) return NULL;
  o->types[o->type_count++] = code;
  return NULL;
}

static const char *set_types(struct options *o, const char *value) { return each_word(o, value, take_type); }

static const char *take_mask(struct options *o, const char *word) {
  long long mask;
  if (o->mask_count == MAX_MASKS || !read_integer(word, 1, 0xffff, &mask) || (mask & (mask - 1)))
    return "must be up to eight single-bit masks such as 1,2,4";
  for (int i = 0; i < o->mask_count; i++)
    if (o->masks[i] == mask) return "names a core twice; each context needs a core of its own";
  o->masks[o->mask_count++] = (int)mask;
  return NULL;
}

static const char *set_masks(struct options *o, const char *value) { return each_word(o, value, take_mask); }

static const char *set_mask(struct options *o, const char *value) {
  long long mask;
  if (!read_integer(value, 0, 0xffff, &mask)) return "must be an integer from 0 (any core) to 0xffff";
  o->core_mask = (int)mask;
  return NULL;
}

static const char *set_cores(struct options *o, const char *value) {
  long long cores;
  if (!read_integer(value, 1, MAX_MASKS, &cores)) return "must be an integer from 1 to 8";
  o->cores = (int)cores;
  return NULL;
}

static const char *set_layout(struct options *o, const char *value) {
  return choose(value, "norm", "native", &o->layout) ? NULL : "must be norm, native or both";
}

static const char *set_ac_layout(struct options *o, const char *value) {
  return choose(value, "norm", "native", &o->ac_layout) ? NULL : "must be norm, native or both";
}

static const char *set_quant(struct options *o, const char *value) {
  return choose(value, "per_layer", "per_channel", &o->quant) ? NULL : "must be per_layer, per_channel or both";
}

static const char *take_part(struct options *o, const char *word) {
  const char *const *known = o->program->parts;
  while (*known && strcmp(*known, word) != 0) known++;
  if (!*known || o->part_count == MAX_PARTS) return "names a part that this program does not have (see --help)";
  o->parts[o->part_count++] = *known;
  return NULL;
}

static const char *set_parts(struct options *o, const char *value) { return each_word(o, value, take_part); }

static const char *set_load_file(struct options *o, const char *value) {
  o->load_file = value;
  return value[0] ? NULL : "must name a file";
}

static const char *set_cpu_threads(struct options *o, const char *value) {
  long long threads;
  if (!read_integer(value, 1, 64, &threads)) return "must be an integer from 1 to 64";
  o->cpu_threads = (int)threads;
  return NULL;
}

static const char *set_most(struct options *o, const char *value) {
  long long most;
  if (!read_integer(value, 1, 1 << 24, &most)) return "must be an integer from 1 to 16777216";
  o->most = (int)most;
  return NULL;
}

#define FOR_TIMED (FOR_ALL & ~(FOR_DTYPES | FOR_LIMITS))

static const struct rule rules[] = {
    {"--library", "PATH", "library to open; default, with an NPU: librknnrt.so by the loader's search", FOR_ALL, set_library},
    {"--json", NULL, "JSON lines instead of a table", FOR_ALL, set_json},
    {"--seed", "N", "seed of the data; default 1", FOR_ALL, set_seed},
    {"--seconds", "S", "time to fill with runs, per row", FOR_TIMED, set_seconds},
    {"--deadline", "S", "end with exit code 3 when not done by then; 0 = never", FOR_ALL & ~FOR_DTYPES,
     set_deadline},
    {"--deadline", "S", "time each type may take before it is killed", FOR_DTYPES, set_deadline},
    {"--shape", "MxKxN", "measure this shape; may be given again (others than mm_peak use the first)",
     FOR_PEAK | FOR_CONCURRENT | FOR_STREAM | FOR_SOAK, set_shape},
    {"--type", "LIST", "matmul types, by code or name (some use the first alone)",
     FOR_ALL & ~(FOR_COST | FOR_MEMORY), set_types},
    {"--types", "LIST", "the same as --type", FOR_ALL & ~(FOR_COST | FOR_MEMORY), set_types},
    {"--layout", "WORD", "layout of B: norm, native or both; default native", FOR_PEAK | FOR_CONCURRENT,
     set_layout},
    {"--ac-layout", "WORD", "layout of A and C; default norm, for int4 A native", FOR_PEAK | FOR_CONCURRENT,
     set_ac_layout},
    {"--quant", "WORD", "quantisation of B: per_layer, per_channel or both; default per_layer", FOR_PEAK,
     set_quant},
    {"--core-mask", "N", "core mask of the context; default 1", FOR_PEAK, set_mask},
    {"--masks", "LIST", "one single-bit core mask per context; default: those of 1,2,4 that are accepted",
     FOR_CONCURRENT | FOR_STREAM | FOR_SOAK, set_masks},
    {"--cores", "N", "contexts to go up to; default: one per mask", FOR_CONCURRENT | FOR_STREAM | FOR_SOAK,
     set_cores},
    {"--rated-tops", "T", "rated TOPS of what is measured: one core, or for mm_concurrent the chip",
     FOR_PEAK | FOR_CONCURRENT | FOR_GRID, set_rated},
    {"--quick", NULL, "small shapes, few of them", FOR_PEAK | FOR_CONCURRENT | FOR_LIMITS | FOR_GRID | FOR_COST,
     set_quick},
    {"--part", "LIST", "only these parts", FOR_COST | FOR_STREAM | FOR_MEMORY, set_parts},
    {"--load-file", "PATH", "where to read the load of the NPU cores; default: the driver's debugfs or proc file",
     FOR_MASKS, set_load_file},
    {"--cpu-threads", "N", "CPU threads beside the NPU; default: one less than there are CPUs", FOR_STREAM,
     set_cpu_threads},
    {"--most", "N", "upper bound of what is tried", FOR_MEMORY | FOR_LIMITS, set_most},
};

static void show_help(const struct program *program) {
  printf("usage: %s [options]\n\n%s\n\noptions:\n", program->name, program->purpose);
  for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
    char left[40];
    if (!(rules[i].programs & program->bit)) continue;
    snprintf(left, sizeof left, "%s %s", rules[i].name, rules[i].value ? rules[i].value : "");
    printf("  %-20s %s\n", left, rules[i].set == set_most ? program->most : rules[i].help);
    if (rules[i].set != set_parts) continue;
    printf("  %-20s of:", "");
    for (const char *const *part = program->parts; *part; part++) printf(" %s", *part);
    printf("; default: all\n");
  }
  printf("  %-20s this text\n\n", "--help");
  printf("exit codes: 0 nothing wrong, 1 a row is wrong, 2 usage, 3 could not run\n");
}

static enum options_result wrong(const struct program *program, const char *what, const char *why) {
  fprintf(stderr, "%s: error: %s %s (see %s --help)\n", program->name, what, why, program->name);
  return OPTIONS_WRONG;
}

enum options_result options_parse(struct options *options, const struct program *program, int argc, char **argv) {
  *options = (struct options){.library = "librknnrt.so",
                              .program = program,
                              .seconds = program->seconds > 0 ? program->seconds : 1.0,
                              .deadline = program->deadline,
                              .seed = 1,
                              .core_mask = 1};
  for (int i = 1; i < argc; i++) {
    const size_t name_length = strcspn(argv[i], "=");
    const char *value = argv[i][name_length] ? argv[i] + name_length + 1 : NULL;
    const struct rule *rule = NULL;
    if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
      show_help(program);
      return OPTIONS_HELP;
    }
    for (size_t r = 0; r < sizeof rules / sizeof rules[0]; r++)
      if ((rules[r].programs & program->bit) && strlen(rules[r].name) == name_length &&
          strncmp(rules[r].name, argv[i], name_length) == 0)
        rule = &rules[r];
    if (!rule)
      return wrong(program, argv[i], argv[i][0] == '-' ? "is no option" : "is not expected; options start with --");
    if (!rule->value && value) return wrong(program, rule->name, "takes no value");
    if (rule->value && !value) {
      if (i + 1 == argc) return wrong(program, rule->name, "needs a value");
      value = argv[++i];
    }
    const char *complaint = rule->set(options, value);
    if (complaint) return wrong(program, rule->name, complaint);
  }
  return OPTIONS_RUN;
}
