/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a librknnrt that nobody named may be loaded. The vendor's runtime, called as root where no node of the NPU
 * is, makes /dev/dri and nodes in it (observed with 1.4.0 and 1.5.2, which bundle libdrm). */
#ifndef RKNPU_KIT_LOAD_RULE_H
#define RKNPU_KIT_LOAD_RULE_H

#include <stdbool.h>

/* Below root ("" for the machine itself): /dev/rknpu, or a DRM node whose device is the NPU's by driver or name.
 * Nothing is opened but uevent files. */
bool npu_node_present(const char *root);

/* Whether the first librknnrt.so in the directories of path (as LD_LIBRARY_PATH; NULL: none) says that it is a mock. */
bool mock_comes_first(const char *path);

#endif
