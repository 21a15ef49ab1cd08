/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "ddr_cpus.h"

#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char CPUS[] = "/sys/devices/system/cpu", CPUFREQ[] = "/sys/devices/system/cpu/cpufreq";

enum { MAX_POLICIES = 16, CACHE_LEVELS = 8 };

static bool in_group(const struct cpu_group *group, int cpu) {
  for (int i = 0; i < group->count; i++)
    if (group->cpu[i] == cpu) return true;
  return false;
}

static bool add_cpu(struct cpu_group *group, int cpu) {
  if (in_group(group, cpu)) return true;
  if (group->count == MAX_CPUS_IN_SET) return false;
  group->cpu[group->count++] = cpu;
  return true;
}

static bool read_cpu(const char **text, int *cpu) {
  int value = 0, digits = 0;
  for (; **text >= '0' && **text <= '9' && digits < 5; (*text)++, digits++) value = value * 10 + (**text - '0');
  *cpu = value;
  return digits > 0 && value < MAX_CPU;
}

/* Up to `end` (';' or the end of the text); sysfs separates with spaces, people with commas. */
static bool parse_until(const char **text, struct cpu_group *group) {
  *group = (struct cpu_group){.count = 0};
  for (;;) {
    int first, last;
    if (!read_cpu(text, &first)) return false;
    last = first;
    if (**text == '-') {
      (*text)++;
      if (!read_cpu(text, &last) || last < first) return false;
    }
    for (int cpu = first; cpu <= last; cpu++)
      if (!add_cpu(group, cpu)) return false;
    if (**text == '\0' || **text == ';' || **text == '\n') return true;
    if (**text != ',' && **text != ' ') return false;
    (*text)++;
    if (**text == '\0' || **text == '\n') return (*text)[-1] == ' '; /* sysfs ends related_cpus with a space */
  }
}

bool cpus_parse(const char *text, struct cpu_group *group) {
  if (!parse_until(&text, group)) return false;
  if (*text == '\n') text++;
  return *text == '\0';
}

bool cpus_parse_groups(const char *text, struct cpu_groups *groups) {
  groups->count = 0;
  for (;;) {
    if (groups->count == MAX_CPU_SETS || !parse_until(&text, &groups->group[groups->count])) return false;
    groups->count++;
    if (*text == '\0') return true;
    if (*text != ';') return false;
    text++;
  }
}

static int ascending(const void *left, const void *right) { return *(const int *)left - *(const int *)right; }

void cpus_text(const struct cpu_group *group, char text[CPU_TEXT]) {
  struct cpu_group sorted = *group;
  size_t used = 0;
  text[0] = '\0';
  qsort(sorted.cpu, (size_t)sorted.count, sizeof sorted.cpu[0], ascending);
  for (int i = 0; i < sorted.count && used < CPU_TEXT;) {
    int last = i;
    while (last + 1 < sorted.count && sorted.cpu[last + 1] == sorted.cpu[last] + 1) last++;
    const char *comma = i ? "," : "";
    if (last == i)
      used += (size_t)snprintf(text + used, CPU_TEXT - used, "%s%d", comma, sorted.cpu[i]);
    else
      used += (size_t)snprintf(text + used, CPU_TEXT - used, "%s%d-%d", comma, sorted.cpu[i], sorted.cpu[last]);
    i = last + 1;
  }
}

struct cpu_group cpus_allowed(void) {
  struct cpu_group group = {.count = 0};
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set)) return group;
  for (int cpu = 0; cpu < CPU_SETSIZE && cpu < MAX_CPU; cpu++)
    if (CPU_ISSET(cpu, &set) && !add_cpu(&group, cpu)) break;
  return group;
}

int cpus_first_outside(const struct cpu_group *group, const struct cpu_group *allowed) {
  for (int i = 0; i < group->count; i++)
    if (!in_group(allowed, group->cpu[i])) return group->cpu[i];
  return -1;
}

/* The first bytes of a small file; false when it cannot be read. */
__attribute__((format(printf, 3, 4))) static bool read_file(char *text, size_t size, const char *format, ...) {
  char path[512];
  va_list arguments;
  va_start(arguments, format);
  const int length = vsnprintf(path, sizeof path, format, arguments);
  va_end(arguments);
  FILE *file = length > 0 && (size_t)length < sizeof path ? fopen(path, "re") : NULL;
  if (!file) return false;
  const size_t count = fread(text, 1, size - 1, file);
  fclose(file);
  text[count] = '\0';
  return count > 0;
}

struct policy {
  struct cpu_group cpus;
  long max_khz;
};

static int slowest_first(const void *left, const void *right) {
  const struct policy *a = left, *b = right;
  if (a->max_khz != b->max_khz) return a->max_khz < b->max_khz ? -1 : 1;
  return a->cpus.cpu[0] - b->cpus.cpu[0];
}

static int find_policies(const char *root, const struct cpu_group *allowed, struct policy *policies) {
  int count = 0;
  for (int number = 0; number < MAX_CPUS_IN_SET && count < MAX_POLICIES; number++) {
    char cpus[256], clock[32];
    struct policy policy = {.max_khz = 0};
    struct cpu_group related;
    if (!read_file(cpus, sizeof cpus, "%s%s/policy%d/related_cpus", root, CPUFREQ, number)) continue;
    if (!cpus_parse(cpus, &related)) continue;
    if (read_file(clock, sizeof clock, "%s%s/policy%d/cpuinfo_max_freq", root, CPUFREQ, number))
      policy.max_khz = strtol(clock, NULL, 10);
    for (int i = 0; i < related.count; i++)
      if (in_group(allowed, related.cpu[i])) add_cpu(&policy.cpus, related.cpu[i]);
    if (policy.cpus.count) policies[count++] = policy;
  }
  qsort(policies, (size_t)count, sizeof *policies, slowest_first);
  return count;
}

static void add_group(struct cpu_groups *groups, const struct cpu_group *group) {
  char fresh[CPU_TEXT], known[CPU_TEXT];
  if (group->count == 0 || groups->count == MAX_CPU_SETS) return;
  cpus_text(group, fresh);
  for (int i = 0; i < groups->count; i++) {
    cpus_text(&groups->group[i], known);
    if (strcmp(fresh, known) == 0) return;
  }
  groups->group[groups->count++] = *group;
}

void cpus_default_groups(const char *root, const struct cpu_group *allowed, bool each_policy,
                         struct cpu_groups *groups) {
  struct policy policies[MAX_POLICIES];
  struct cpu_group big = {.count = 0};
  const int count = find_policies(root, allowed, policies);
  groups->count = 0;
  if (count) add_group(groups, &policies[0].cpus);
  for (int p = 1; p < count; p++) {
    for (int i = 0; i < policies[p].cpus.count; i++) add_cpu(&big, policies[p].cpus.cpu[i]);
    if (each_policy && groups->count < MAX_CPU_SETS - 2) add_group(groups, &policies[p].cpus);
  }
  add_group(groups, &big);
  add_group(groups, allowed);
}

size_t cpus_last_level_cache(const char *root, const struct cpu_group *group) {
  size_t largest = 0;
  for (int i = 0; i < group->count; i++)
    for (int level = 0; level < CACHE_LEVELS; level++) {
      char text[32], *end;
      if (!read_file(text, sizeof text, "%s%s/cpu%d/cache/index%d/size", root, CPUS, group->cpu[i], level)) break;
      const unsigned long value = strtoul(text, &end, 10);
      const size_t bytes = (size_t)value * (*end == 'K' ? 1024 : *end == 'M' ? 1024 * 1024 : 1);
      if (bytes > largest) largest = bytes;
    }
  return largest;
}

size_t memory_available(const char *root) {
  char text[2048];
  if (!read_file(text, sizeof text, "%s/proc/meminfo", root)) return 0;
  const char *line = strstr(text, "MemAvailable:");
  const unsigned long long kib = line ? strtoull(line + strlen("MemAvailable:"), NULL, 10) : 0;
  return kib > SIZE_MAX / 1024 ? SIZE_MAX : (size_t)kib * 1024;
}
