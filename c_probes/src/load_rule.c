/* SPDX-License-Identifier: Apache-2.0 */
#include "load_rule.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "library_file.h"

static bool exists(const char *root, const char *folder, const char *name) {
  char path[4400];
  snprintf(path, sizeof path, "%s%s%.255s", root, folder, name);
  return access(path, F_OK) == 0;
}

static const char *last_part(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* By driver, else by the name of the device: fdab0000.npu, or rknpu with a driver from outside the kernel tree. */
static bool device_is_npu(const char *node) {
  char path[4400], line[256], target[4096];
  bool found = false;
  snprintf(path, sizeof path, "%s/device/uevent", node);
  FILE *file = fopen(path, "re");
  while (file && !found && fgets(line, sizeof line, file)) found = strcmp(line, "DRIVER=RKNPU\n") == 0;
  if (file) fclose(file);
  if (found) return true;
  snprintf(path, sizeof path, "%s/device", node);
  const ssize_t length = readlink(path, target, sizeof target - 1);
  if (length <= 0) return false;
  target[length] = '\0';
  const char *name = last_part(target), *dot = strrchr(name, '.');
  return strcmp(name, "rknpu") == 0 || (dot && strcmp(dot, ".npu") == 0);
}

bool npu_node_present(const char *root) {
  static const char *const kinds[] = {"renderD*", "card*"};
  char pattern[4200];
  bool found = exists(root, "/dev/", "rknpu");
  for (size_t k = 0; k < sizeof kinds / sizeof kinds[0] && !found; k++) {
    glob_t nodes;
    snprintf(pattern, sizeof pattern, "%s/sys/class/drm/%s", root, kinds[k]);
    if (glob(pattern, GLOB_NOSORT, NULL, &nodes) == 0)
      for (size_t i = 0; i < nodes.gl_pathc && !found; i++)
        found = device_is_npu(nodes.gl_pathv[i]) && exists(root, "/dev/dri/", last_part(nodes.gl_pathv[i]));
    globfree(&nodes);
  }
  return found;
}

bool mock_comes_first(const char *path) {
  char file[4200], version[256];
  for (const char *at = path; at && *at;) {
    const size_t length = strcspn(at, ":");
    snprintf(file, sizeof file, "%.*s/librknnrt.so", (int)(length < 4096 ? length : 4096), at);
    if (length && access(file, F_OK) == 0) {
      const char *bracket = library_file_version(file, version, sizeof version) ? strchr(version, '(') : NULL;
      return bracket && strstr(bracket, "mock");
    }
    at += length + (at[length] == ':');
  }
  return false;
}
