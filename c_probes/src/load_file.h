/* SPDX-License-Identifier: Apache-2.0
 *
 * The load of the NPU's cores as the driver shows it (debugfs, root only; or proc), looked at while something runs.
 */
#ifndef RKNPU_KIT_LOAD_FILE_H
#define RKNPU_KIT_LOAD_FILE_H

#include <pthread.h>
#include <stdbool.h>

#include "json.h"

enum { MAX_LOAD_CORES = 3 };

struct load_watch {
  const char *path;
  pthread_t thread;
  bool started;
  volatile int leave;
  int looks, cores;               /* cores: 0 when the text shows none */
  double highest[MAX_LOAD_CORES]; /* percent */
  char text[200];                 /* the last look, or why there is none */
};

/* path NULL: the first of the places where the rknpu driver has its load file. */
void load_watch_start(struct load_watch *watch, const char *path);
void load_watch_stop(struct load_watch *watch);
/* "load" of the evidence: {"path", "core_percent": [..] or null, "text"}. */
void load_put(const struct load_watch *watch, struct json *json);

/* Percentages of "NPU load:  Core0: 12%, Core1:  0%, Core2:  0%," and of "NPU load: 7%"; returns how many. */
int load_parse(const char *text, double percent[MAX_LOAD_CORES]);

#endif
