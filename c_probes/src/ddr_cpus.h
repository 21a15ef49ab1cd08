/* SPDX-License-Identifier: Apache-2.0
 *
 * Which CPUs there are, how they are grouped, and how large their caches are: sets of CPUs to measure on. */
#ifndef RKNPU_KIT_DDR_CPUS_H
#define RKNPU_KIT_DDR_CPUS_H

#include <stdbool.h>
#include <stddef.h>

enum { MAX_CPU = 1024, MAX_CPUS_IN_SET = 64, MAX_CPU_SETS = 16, CPU_TEXT = 160 };

struct cpu_group {
  int cpu[MAX_CPUS_IN_SET]; /* in the order threads are pinned */
  int count;
};

struct cpu_groups {
  struct cpu_group group[MAX_CPU_SETS];
  int count;
};

/* "0-3,6": CPUs in that order, each once. */
bool cpus_parse(const char *text, struct cpu_group *group);

/* "0,1;4-7": several sets. */
bool cpus_parse_groups(const char *text, struct cpu_groups *groups);

/* Writes a set as "0-3,6", in ascending order. */
void cpus_text(const struct cpu_group *group, char text[CPU_TEXT]);

/* The CPUs that the scheduler lets this process use. */
struct cpu_group cpus_allowed(void);

/* The first CPU of group that is not in allowed, or -1. */
int cpus_first_outside(const struct cpu_group *group, const struct cpu_group *allowed);

/* Sets by cpufreq policy under root ("" for this machine), slowest first, as far as they are allowed. The slowest
 * policy is the little cluster; all others together are the big one, a set of its own when there are several. The
 * last set is all CPUs. each_policy false leaves out the single policies of a big cluster that has several. */
void cpus_default_groups(const char *root, const struct cpu_group *allowed, bool each_policy,
                         struct cpu_groups *groups);

/* Size in bytes of the largest cache that any CPU of the group has, as sysfs shows it; 0 when it shows none. */
size_t cpus_last_level_cache(const char *root, const struct cpu_group *group);

/* MemAvailable in bytes, 0 when it is not known. */
size_t memory_available(const char *root);

#endif
