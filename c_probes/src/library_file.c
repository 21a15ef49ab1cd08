/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* memmem */
#include "library_file.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

bool library_file_version(const char *path, char *text, size_t size) {
  static const char mark[] = "librknnrt version: ";
  const size_t mark_length = sizeof mark - 1;
  struct stat about;
  bool found = false;
  text[0] = '\0';
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  if (fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && about.st_size > 0) {
    const size_t bytes = (size_t)about.st_size;
    const char *map = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map != MAP_FAILED) {
      const char *from = map, *end = map + bytes;
      /* The mark may stand in a format string too, without a version after it: look for one that starts a number. */
      while (!found && (from = memmem(from, (size_t)(end - from), mark, mark_length))) {
        size_t length = 0;
        from += mark_length;
        while (from + length < end && length + 1 < size && from[length] >= 0x20 && from[length] < 0x7f) length++;
        if (length == 0 || from[0] < '0' || from[0] > '9') continue;
        memcpy(text, from, length);
        text[length] = '\0';
        found = true;
      }
      munmap((void *)map, bytes);
    }
  }
  close(fd);
  return found;
}

int library_version_number(const char *text) {
  unsigned major = 0, minor = 0, patch = 0;
  if (sscanf(text, "%3u.%2u.%2u", &major, &minor, &patch) != 3) return 0;
  return (int)(major * 10000 + minor * 100 + patch);
}

/* Of an ELF file of our own class: whether a loadable segment ends behind the end of the file. */
static bool cut_short(const char *path) {
  ElfW(Ehdr) header;
  ElfW(Phdr) segment;
  struct stat about;
  bool cut = true;
  FILE *file = fopen(path, "rbe");
  if (!file) return false;
  if (fstat(fileno(file), &about) == 0 && fread(&header, sizeof header, 1, file) == 1) {
    cut = false;
    for (unsigned i = 0; i < header.e_phnum && !cut; i++) {
      const uint64_t at = (uint64_t)header.e_phoff + (uint64_t)i * header.e_phentsize;
      cut = at > INT32_MAX || fseek(file, (long)at, SEEK_SET) != 0 || fread(&segment, sizeof segment, 1, file) != 1 ||
            (segment.p_type == PT_LOAD &&
             (uint64_t)segment.p_offset + (uint64_t)segment.p_filesz > (uint64_t)about.st_size);
    }
  }
  fclose(file);
  return cut;
}

enum library_file_kind library_file_look(const char *path) {
  unsigned char theirs[EI_NIDENT + 4], ours[EI_NIDENT + 4];
  FILE *file = fopen(path, "rbe");
  if (!file) return LIBRARY_MISSING;
  const size_t got = fread(theirs, 1, sizeof theirs, file);
  fclose(file);
  if (got < sizeof theirs || memcmp(theirs, ELFMAG, SELFMAG) != 0) return LIBRARY_NO_ELF;
  if (!(file = fopen("/proc/self/exe", "rbe"))) return LIBRARY_ELF;
  const size_t known = fread(ours, 1, sizeof ours, file);
  fclose(file);
  if (known < sizeof ours || memcmp(ours, ELFMAG, SELFMAG) != 0) return LIBRARY_ELF;
  const bool same = theirs[EI_CLASS] == ours[EI_CLASS] && theirs[EI_DATA] == ours[EI_DATA] &&
                    memcmp(theirs + EI_NIDENT + 2, ours + EI_NIDENT + 2, 2) == 0; /* e_machine */
  if (!same) return LIBRARY_OTHER_MACHINE;
  return cut_short(path) ? LIBRARY_CUT_SHORT : LIBRARY_ELF;
}
