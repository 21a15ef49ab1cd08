/* SPDX-License-Identifier: Apache-2.0 */
#include "ddr_options.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rule {
  const char *name, *value; /* value: its name in --help; NULL: a switch */
  const char *help;
  int programs;
  const char *(*set)(struct cpu_options *options, const char *value); /* NULL, or what is wrong with the value */
};

static const char *set_json(struct cpu_options *o, const char *value) {
  (void)value;
  o->json = true;
  return NULL;
}

static const char *set_seconds(struct cpu_options *o, const char *value) {
  char *end = NULL;
  o->seconds = strtod(value, &end);
  const bool number = end != value && *end == '\0' && isfinite(o->seconds);
  return number && o->seconds >= 0.001 && o->seconds <= 3600 ? NULL : "must be a number of seconds from 0.001 to 3600";
}

static const char *set_cpus(struct cpu_options *o, const char *value) {
  if (cpus_parse_groups(value, &o->groups)) return NULL;
  return "must be sets of CPUs such as 4-7 or 0,1;4-7 (at most 16 of 64)";
}

static const char *set_threads(struct cpu_options *o, const char *value) {
  static const char *const complaint = "must be up to 16 numbers from 1 to 64, separated by commas";
  for (o->thread_count = 0;;) {
    char *end = NULL;
    const long count = value[0] >= '0' && value[0] <= '9' ? strtol(value, &end, 10) : 0;
    if (count < 1 || count > MAX_CPUS_IN_SET || o->thread_count == MAX_THREAD_COUNTS) return complaint;
    o->threads[o->thread_count++] = (int)count;
    if (*end == '\0') return NULL;
    if (*end != ',') return complaint;
    value = end + 1;
  }
}

static const char *set_ops(struct cpu_options *o, const char *value) {
  for (o->op_count = 0;;) {
    const size_t length = strcspn(value, ",");
    if (o->op_count == OP_COUNT || !memory_op_parse(value, length, &o->ops[o->op_count]))
      return "must be a list of read, write, copy and triad, each once";
    for (int i = 0; i < o->op_count; i++)
      if (o->ops[i] == o->ops[o->op_count]) return "must be a list of read, write, copy and triad, each once";
    o->op_count++;
    if (!value[length]) return NULL;
    value += length + 1;
  }
}

static const char *set_kib(struct cpu_options *o, const char *value) {
  char *end = NULL;
  const unsigned long kib = value[0] >= '0' && value[0] <= '9' ? strtoul(value, &end, 10) : 0;
  if (kib < 1 || kib > 4UL * 1024 * 1024 - 1 || *end || kib > SIZE_MAX / 1024 / 8)
    return "must be the KiB of one array, from 1 to 4194303";
  o->array_bytes = (size_t)kib * 1024;
  return NULL;
}

static const char *set_split(struct cpu_options *o, const char *value) {
  o->even = strcmp(value, "even") == 0 || strcmp(value, "both") == 0;
  o->shared = strcmp(value, "shared") == 0 || strcmp(value, "both") == 0;
  return o->even || o->shared ? NULL : "must be even, shared or both";
}

static const char *set_no_clock(struct cpu_options *o, const char *value) {
  (void)value;
  o->clock = false;
  return NULL;
}

static const struct rule rules[] = {
    {"--json", NULL, "JSON lines instead of a table", FOR_BANDWIDTH | FOR_RATE, set_json},
    {"--seconds", "S", "time to fill with passes, per row; default 0.5", FOR_BANDWIDTH, set_seconds},
    {"--seconds", "S", "time to fill with work, per row; default 0.3", FOR_RATE, set_seconds},
    {"--cpus", "SETS", "CPUs to pin to, in order: 4-7 or 0,1;4-7; default: each cluster, then all",
     FOR_BANDWIDTH | FOR_RATE, set_cpus},
    {"--threads", "LIST", "threads on each set; default: 1 and one per CPU of the set", FOR_BANDWIDTH, set_threads},
    {"--op", "LIST", "of read,write,copy,triad; default all", FOR_BANDWIDTH, set_ops},
    {"--array-kib", "N", "KiB of one array of one thread; default 4 x the last-level cache, at least 32768",
     FOR_BANDWIDTH, set_kib},
    {"--split", "WORD", "even: each CPU the same share; shared: who is free takes more; default both", FOR_RATE,
     set_split},
    {"--no-clock", NULL, "leave out the clock of each CPU", FOR_RATE, set_no_clock},
};

static void show_help(const struct cpu_program *program) {
  printf("usage: %s [options]\n\n%s\n\noptions:\n", program->name, program->purpose);
  for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
    char left[40];
    if (!(rules[i].programs & program->bit)) continue;
    snprintf(left, sizeof left, "%s %s", rules[i].name, rules[i].value ? rules[i].value : "");
    printf("  %-20s %s\n", left, rules[i].help);
  }
  printf("  %-20s this text\n\n", "--help");
  printf("exit codes: 0 nothing wrong, 1 a row is wrong, 2 usage, 3 could not run\n");
}

static enum cpu_options_result wrong(const struct cpu_program *program, const char *what, const char *why) {
  fprintf(stderr, "%s: error: %s %s (see %s --help)\n", program->name, what, why, program->name);
  return CPU_OPTIONS_WRONG;
}

static const struct rule *find_rule(int program, const char *argument, size_t name_length) {
  for (size_t r = 0; r < sizeof rules / sizeof rules[0]; r++)
    if ((rules[r].programs & program) && strlen(rules[r].name) == name_length &&
        strncmp(rules[r].name, argument, name_length) == 0)
      return &rules[r];
  return NULL;
}

enum cpu_options_result cpu_options_parse(struct cpu_options *options, const struct cpu_program *program, int argc,
                                          char **argv) {
  *options = (struct cpu_options){.seconds = program->bit == FOR_RATE ? 0.3 : 0.5,
                                  .even = true,
                                  .shared = true,
                                  .clock = true,
                                  .ops = {OP_READ, OP_WRITE, OP_COPY, OP_TRIAD},
                                  .op_count = OP_COUNT};
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
      show_help(program);
      return CPU_OPTIONS_HELP;
    }
    const size_t name_length = strcspn(argv[i], "=");
    const char *value = argv[i][name_length] ? argv[i] + name_length + 1 : NULL;
    const struct rule *rule = find_rule(program->bit, argv[i], name_length);
    const char *unknown = argv[i][0] == '-' ? "is no option" : "is not expected; options start with --";
    if (!rule) return wrong(program, argv[i], unknown);
    if (!rule->value && value) return wrong(program, rule->name, "takes no value");
    if (rule->value && !value) {
      if (i + 1 == argc) return wrong(program, rule->name, "needs a value");
      value = argv[++i];
    }
    const char *complaint = rule->set(options, value);
    if (complaint) return wrong(program, rule->name, complaint);
  }
  return CPU_OPTIONS_RUN;
}

bool cpu_options_settle(struct cpu_options *options, const struct cpu_program *program,
                        const struct cpu_group *allowed, bool each_policy) {
  char text[CPU_TEXT];
  if (options->groups.count == 0) cpus_default_groups("", allowed, each_policy, &options->groups);
  for (int g = 0; g < options->groups.count; g++) {
    const int outside = cpus_first_outside(&options->groups.group[g], allowed);
    if (outside < 0) continue;
    cpus_text(allowed, text);
    fprintf(stderr, "%s: error: CPU %d of --cpus is not one that this process may use: %s (see %s --help)\n",
            program->name, outside, text, program->name);
    return false;
  }
  return options->groups.count > 0;
}
