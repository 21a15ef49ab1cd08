/* SPDX-License-Identifier: Apache-2.0 */
#include "load_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Places by driver build (rknpu_debugger.c of the public kernel trees: debugfs, or procfs on small chips). */
static const char *const places[] = {"/sys/kernel/debug/rknpu/load", "/proc/rknpu/load"};

int load_parse(const char *text, double percent[MAX_LOAD_CORES]) {
  int count = 0;
  for (const char *at = text; count < MAX_LOAD_CORES && (at = strchr(at, ':')) != NULL;) {
    char *end;
    at++;
    const double value = strtod(at, &end);
    if (end != at && *end == '%' && value >= 0 && value <= 100) percent[count++] = value;
  }
  return count;
}

static const char *find_place(void) {
  for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
    if (access(places[i], R_OK) == 0) return places[i];
  return NULL;
}

static void look(struct load_watch *watch) {
  double percent[MAX_LOAD_CORES];
  const int fd = open(watch->path, O_RDONLY | O_CLOEXEC);
  const ssize_t got = fd >= 0 ? read(fd, watch->text, sizeof watch->text - 1) : -1;
  if (got < 0) snprintf(watch->text, sizeof watch->text, "%s", strerror(errno));
  if (fd >= 0) close(fd);
  if (got < 0) return;
  watch->text[got] = '\0';
  const int cores = load_parse(watch->text, percent);
  for (int i = 0; i < cores; i++)
    if (watch->looks == 0 || i >= watch->cores || percent[i] > watch->highest[i]) watch->highest[i] = percent[i];
  watch->cores = cores > watch->cores ? cores : watch->cores;
  watch->looks++;
}

static void *keep_looking(void *argument) {
  struct load_watch *watch = argument;
  const struct timespec pause = {0, 50000000}; /* the driver works its figure out over a second */
  while (!watch->leave) {
    nanosleep(&pause, NULL);
    look(watch);
  }
  return NULL;
}

void load_watch_start(struct load_watch *watch, const char *path) {
  memset(watch, 0, sizeof *watch);
  watch->path = path ? path : find_place();
  if (!watch->path) {
    snprintf(watch->text, sizeof watch->text, "no readable load file (%s needs root)", places[0]);
    return;
  }
  watch->started = pthread_create(&watch->thread, NULL, keep_looking, watch) == 0;
}

void load_watch_stop(struct load_watch *watch) {
  if (!watch->started) return;
  watch->leave = 1;
  pthread_join(watch->thread, NULL);
  watch->started = false;
}

void load_put(const struct load_watch *watch, struct json *json) {
  json_key(json, "load");
  json_open(json, '{');
  json_put_string(json, "path", watch->path);
  if (watch->cores)
    json_put_numbers(json, "core_percent", watch->highest, (size_t)watch->cores);
  else {
    json_key(json, "core_percent");
    json_null(json);
  }
  json_put_string(json, "text", watch->text);
  json_close(json, '}');
}
