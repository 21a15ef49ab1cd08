/* SPDX-License-Identifier: Apache-2.0
 *
 * What can be known of a library from its file alone. */
#ifndef RKNPU_KIT_LIBRARY_FILE_H
#define RKNPU_KIT_LIBRARY_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* The text after "librknnrt version: " in the file, up to the first byte that is no printable ASCII. False and an
 * empty text when there is none. Every runtime from 1.4.0 on embeds it. */
bool library_file_version(const char *path, char *text, size_t size);

/* major * 10000 + minor * 100 + patch of "2.3.2 (...)"; 0 when the text does not start with three numbers. */
int library_version_number(const char *text);

enum library_file_kind { LIBRARY_MISSING, LIBRARY_NO_ELF, LIBRARY_OTHER_MACHINE, LIBRARY_CUT_SHORT, LIBRARY_ELF };

/* OTHER_MACHINE: an ELF file of another class or machine than this program. CUT_SHORT: a segment reaches beyond the end
 * of the file, as after a broken-off copy; to load such a file ends the process with SIGBUS. */
enum library_file_kind library_file_look(const char *path);

#endif
