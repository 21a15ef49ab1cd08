/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* dlinfo */
#include "runtime.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "library_file.h"
#include "load_rule.h"

struct symbol {
  const char *name;
  size_t at; /* of the pointer in struct runtime */
  bool required;
};

static const struct symbol symbols[] = {
    {"rknn_matmul_create", offsetof(struct runtime, matmul_create), true},
    {"rknn_matmul_set_io_mem", offsetof(struct runtime, matmul_set_io_mem), true},
    {"rknn_matmul_run", offsetof(struct runtime, matmul_run), true},
    {"rknn_matmul_destroy", offsetof(struct runtime, matmul_destroy), true},
    {"rknn_create_mem", offsetof(struct runtime, create_mem), true},
    {"rknn_destroy_mem", offsetof(struct runtime, destroy_mem), true},
    {"rknn_matmul_set_core_mask", offsetof(struct runtime, matmul_set_core_mask), false},
    {"rknn_matmul_set_quant_params", offsetof(struct runtime, matmul_set_quant_params), false},
    {"rknn_matmul_get_quant_params", offsetof(struct runtime, matmul_get_quant_params), false},
    {"rknn_matmul_create_dynamic_shape", offsetof(struct runtime, matmul_create_dynamic_shape), false},
    {"rknn_B_normal_layout_to_native_layout", offsetof(struct runtime, convert_B), false},
    {"rknn_mem_sync", offsetof(struct runtime, mem_sync), false},
};

static bool refuse(const char **kind, const char *word, char *why, size_t size, const char *library, const char *text) {
  *kind = word;
  snprintf(why, size, "%s %s", library, text);
  return false;
}

/* What is wrong with the file that was named, as far as its bytes show; looked at before the loader does, which would
 * not survive a file that is cut short. */
static bool file_is_usable(const char *library, const char **kind, char *why, size_t size) {
  switch (library_file_look(library)) {
    case LIBRARY_MISSING:
      return refuse(kind, "no-library", why, size, library,
                    "does not exist or cannot be read; give the path of a librknnrt.so with --library PATH");
    case LIBRARY_OTHER_MACHINE:
      return refuse(kind, "wrong-architecture", why, size, library,
                    "is a library for another machine than this program; use the librknnrt.so built for this one");
    case LIBRARY_CUT_SHORT:
      return refuse(kind, "not-a-library", why, size, library, "is cut short (a broken-off copy?); install it again");
    case LIBRARY_NO_ELF:
      return refuse(kind, "not-a-library", why, size, library,
                    "is no shared library (no ELF header); give the path of a librknnrt.so with --library PATH");
    default: return true;
  }
}

/* Why dlopen said no, in words for a person. */
static bool explain(const char *library, const char *loader_says, const char **kind, char *why, size_t size) {
  const bool missing = loader_says && strstr(loader_says, "cannot open shared object file: No such file") &&
                       strncmp(loader_says, library, strlen(library)) == 0;
  if (missing)
    return refuse(kind, "no-library", why, size, library,
                  "is not on the loader's path; install the Rockchip NPU runtime or name the file with --library PATH");
  *kind = "not-loadable";
  snprintf(why, size, "%s cannot be loaded: %s", library, loader_says ? loader_says : "the loader gives no reason");
  return false;
}

static void find_path(struct runtime *runtime, const char *library) {
  struct link_map *map = NULL;
  snprintf(runtime->path, sizeof runtime->path, "%s", library);
  if (dlinfo(runtime->handle, RTLD_DI_LINKMAP, &map) != 0 || !map || !map->l_name[0]) return;
  char *whole = realpath(map->l_name, NULL);
  snprintf(runtime->path, sizeof runtime->path, "%s", whole ? whole : map->l_name);
  free(whole);
}

bool runtime_may_open(bool named, const char **kind, char *why, size_t why_size) {
  if (named || npu_node_present("") || mock_comes_first(getenv("LD_LIBRARY_PATH"))) return true;
  *kind = "no-device";
  snprintf(why, why_size,
           "no device node of an NPU was found, and without one librknnrt may make device nodes itself, so none is "
           "loaded; name the file with --library PATH to load it all the same");
  return false;
}

bool runtime_open(struct runtime *runtime, const char *library, const char **kind, char *why, size_t why_size) {
  memset(runtime, 0, sizeof *runtime);
  if (strchr(library, '/') && !file_is_usable(library, kind, why, why_size)) return false;
  /* LOCAL: the library leaks weak C++ symbols that must not meet anyone else's. */
  runtime->handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (!runtime->handle) return explain(library, dlerror(), kind, why, why_size);
  find_path(runtime, library);
  library_file_version(runtime->path, runtime->version, sizeof runtime->version);
  runtime->version_number = library_version_number(runtime->version);
  for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
    void *address = dlsym(runtime->handle, symbols[i].name);
    if (!address && symbols[i].required) {
      *kind = "missing-symbols";
      snprintf(why, why_size, "%s does not export %s, so it has no matmul API; use librknnrt 1.5.0 or newer",
               runtime->path, symbols[i].name);
      return false;
    }
    memcpy((char *)runtime + symbols[i].at, &address, sizeof address);
  }
  /* 2.0.0-beta0 exports the converter with seven arguments. The function that 2.1.0 renamed tells the two apart where
   * there is no version text. */
  const bool five_arguments = runtime->version_number ? runtime->version_number >= 20100
                                                      : runtime->matmul_create_dynamic_shape != NULL;
  if (!five_arguments) runtime->convert_B = NULL;
  return true;
}

bool runtime_quant_value(const struct runtime *runtime, enum quant quant, int16_t *value) {
  *value = RKNN_QUANT_TYPE_PER_LAYER_SYM;
  if (quant == QUANT_PER_LAYER) return true;
  const int version = runtime->version_number ? runtime->version_number
                      : runtime->matmul_create_dynamic_shape ? 20100
                      : runtime->matmul_set_quant_params     ? 20000
                                                             : 10600;
  if (version < 20000) return false;
  *value = version < 20100 ? 1 : RKNN_QUANT_TYPE_PER_CHANNEL_SYM;
  return true;
}
